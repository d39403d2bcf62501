"""How an operand lies in the panels that it is copied into, and how the inner loop reads it there.

B (row-major, K x N), width 2        panel of nr = 4 columns, [K/2][nr][2]

    b00 b01 b02 b03 ...                  b00 b10 b01 b11 b02 b12 b03 b13
    b10 b11 b12 b13 ...                  b20 b30 b21 b31 ...
    b20 ...

A (M x K) becomes rows of K rounded up to the step of the inner loop; what is added is zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import Type, VectorType, bits_of
from tlx.ir.values import Value, zero
from tlx.lower.to_tiles.memory import LINE
from tlx.lower.to_tiles.tiles import convert, flip_sign_bit, tile
from tlx.lower.to_tiles.view import View
from tlx.target import Sign
from tlx.types import TensorType


@dataclass(frozen=True, slots=True)
class Packing:
    """How an operand is packed.

    Attributes:
        view: The operand in memory.
        element: Element type of the panels.
        sign: How narrow integers are widened.
        width: VNNI factor.
        step: The inner loop's step along K; panels are zero up to a multiple of it.
        flip: Whether bytes are xored with 0x80.
        lanes: Elements that are transposed together.
        by_columns: Whether panels of A are [k][rows], as a column-major A lies, instead of rows.
    """

    view: View
    element: Type
    sign: Sign
    width: int
    step: int
    flip: bool
    lanes: int
    by_columns: bool = False

    def depth(self, k: int) -> int:
        """Positions along K that a panel has for `k` of the operand."""
        return -(-k // self.step) * self.step

    def is_run(self, k: int) -> bool:
        """Whether rows of `k` elements have nothing between them, neither in memory nor in panels of A."""
        return self.view.is_row_major and not self.by_columns and self.view.row_stride == k == self.depth(k)

    def finish(self, b: TensorBuilder, vector: Value) -> Value:
        """Convert and flip a tile's elements."""
        vector = convert(b, vector, self.element, self.sign)
        return flip_sign_bit(b, vector) if self.flip else vector

    def clear(self, b: TensorBuilder, pointer: Value, count: int) -> None:
        """Write `count` zeros to a panel, in tiles of at most a cache line."""
        chunk = min(count, LINE * 8 // bits_of(self.element))
        full, rest = divmod(count, chunk)
        with b.loop(0, full, name="z") as loop:
            self._clear_tile(b, b.gep(self.element, pointer, b.mul(loop.index, chunk)), chunk)
        if rest:
            self._clear_tile(b, b.gep(self.element, pointer, full * chunk), rest)

    def _clear_tile(self, b: TensorBuilder, pointer: Value, count: int) -> None:
        zeros = b.typeinfo(zero(VectorType(count, self.element)), tile(self.element, 1, count), "zeros")
        b.tensor_store(pointer, zeros)


def load_vnni(b: TensorBuilder, element: Type, address: Value, k: int, n: int, width: int) -> Value:
    """A token of the `k` x `n` matrix that a VNNI panel holds at `address`.

    Rewrite:
        load <k/width, n, width>  ->  reshape.permute <0, 2, 1> to <k, n>  ->  typeinfo
    """
    packed = b.tensor_load(address, TensorType.dense(element, (k // width, n, width)), None, "b.vnni")
    flat = b.reshape_permute(packed, (0, 2, 1), (k, n), VectorType(k * n, element), "b.flat")
    return b.typeinfo(flat, tile(element, k, n), "b")
