"""Products of fragments: each warp loads fragments of the stage and multiplies them, its sums in registers.

for 16 of K            load the fragments of the warp's rows and columns, multiply each pair

Two chunks of lines along K are the depth of fragments, which are loaded as matrices; those of doubles are loaded number
by number, or in pairs. Bytes whose lines follow each other along K are transposed on their way to shared memory.
"""

from __future__ import annotations

from typing import Final

from tlx.ir.types import I8, I32, VectorType, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_blocks.kernel import GridKernel, as_index
from tlx.lower.to_blocks.products.k_positions import TileSums
from tlx.lower.to_blocks.products.staging import StagedOperand, StagedSums
from tlx.target.grid_unit import FragmentProduct

_QUAD: Final = 4
_GROUP: Final = 8
_PAIR: Final = 2
_REGISTER: Final = 4


class FragmentSums(StagedSums):
    """Emits the sums of a tile by products of fragments; see the module's description."""

    busy_stages = 1  # the one that is multiplied; the one before is free after the barrier
    transposable = (2, 8)

    def __init__(self, kernel: GridKernel, tile: TileSums, product: FragmentProduct) -> None:
        super().__init__(kernel, tile)
        self.product, self.rows, self.columns = product, product.rows, product.columns

    def multiplied(self, acc: list[Value], stage: Value) -> list[Value]:
        """The sums with the products of a stage added."""
        for step in range(self.shape.depth // self.product.depth):
            acc = self._multiplied(acc, step, stage)
        return acc

    def _multiplied(self, acc: list[Value], step: int, stage: Value) -> list[Value]:
        """The sums with the products of one depth of fragments added."""
        b, product, shape = self.b, self.product, self.shape
        height, width = shape.warp_rows // product.rows, shape.warp_columns // product.columns
        size = len(acc) // (height * width)
        k = step * product.depth
        if bytes_of(self.lhs.view.element) <= _REGISTER:
            lhs = [self._load(self.lhs, stage, self.warp_row, i * product.rows, k) for i in range(height)]
            pairs = [
                self._load(self.rhs, stage, self.warp_column, 2 * j * product.columns, k) for j in range(width // 2)
            ]
            rhs = [half for pair in pairs for half in (pair[:2], pair[2:])]
        else:
            lhs = [self._numbers(self.lhs, stage, b.add(self.warp_row, i * product.rows), k) for i in range(height)]
            rhs = [
                self._numbers(self.rhs, stage, b.add(self.warp_column, j * product.columns), k) for j in range(width)
            ]
        result = list(acc)
        for i in range(height):
            for j in range(width) if i % 2 == 0 else reversed(range(width)):
                at = (i * width + j) * size
                result[at : at + size] = product.multiply(self.b, result[at : at + size], lhs[i], rhs[j])
        return result

    def _load(self, operand: StagedOperand, stage: Value, origin: Value, place: int, k: int) -> list[Value]:
        """Fragments of 16 lines x 2 chunks: of A rows by K, of B K by columns.

        Args:
            operand: A or B.
            stage: Offset of the stage, i32.
            origin: First row or column of the warp.
            place: First row or column in the warp's part.
            k: First position of K in the stage.
        """
        b, lane = self.b, self.lane
        low = b.binary("and", lane, const_int(I32, 7))
        eight, sixteen = (
            b.binary("and", b.binary("lshr", lane, const_int(I32, shift)), const_int(I32, 1)) for shift in (3, 4)
        )
        swapped = operand.is_lhs == operand.k_lines
        high_line, high_chunk = (sixteen, eight) if swapped else (eight, sixteen)
        line, chunk = b.add(low, b.mul(high_line, 8)), high_chunk
        moved = b.binary("udiv", origin, const_int(I32, operand.per_chunk))
        if operand.k_lines:
            line, chunk = b.add(line, k), b.add(b.add(chunk, place // operand.per_chunk), moved)
        else:
            line, chunk = b.add(line, b.add(origin, place)), b.add(chunk, k // operand.per_chunk)
        at = operand.chunk_offset(self.kernel, line, chunk)
        address = b.gep(I8, self.shared, as_index(b, b.add(b.add(stage, operand.offset), at)))
        return self.operations.load_fragments(b, address, transposed=operand.k_lines)

    def _numbers(self, operand: StagedOperand, stage: Value, origin: Value, k: int) -> list[Value]:
        """The thread's elements of a fragment: for each of two steps, those of each 8 rows or columns.

        Step s multiplies the positions s, 2 + s, 4 + s and 6 + s of K: a thread's two are adjacent.

        Args:
            operand: A or B.
            stage: Offset of the stage, i32.
            origin: First row or column, i32.
            k: First position of K in the stage.
        """
        b, product, pairs = self.b, self.product, list[list[Value]]()
        element, size = operand.view.element, bytes_of(operand.view.element)
        group, quad = self.kernel.divided(self.lane, _QUAD)
        along = b.add(b.mul(quad, _PAIR), k)
        for part in range(0, product.rows if operand.is_lhs else product.columns, _GROUP):
            across = b.add(b.add(origin, part), group)
            if operand.k_lines:
                steps = [self._number(operand, stage, b.add(along, step), across) for step in range(_PAIR)]
                pairs.append([b.load(element, address, size) for address in steps])
            else:
                address = self._number(operand, stage, across, along)
                pair = b.load(VectorType(_PAIR, element), address, _PAIR * size)
                pairs.append([b.extract_element(pair, step) for step in range(_PAIR)])
        return [pair[step] for step in range(_PAIR) for pair in pairs]

    def _number(self, operand: StagedOperand, stage: Value, line: Value, element: Value) -> Value:
        """The address of an element of a line."""
        b = self.b
        chunk, rest = self.kernel.divided(element, operand.per_chunk)
        at = b.add(operand.chunk_offset(self.kernel, line, chunk), b.mul(rest, bytes_of(operand.view.element)))
        return b.gep(I8, self.shared, as_index(b, b.add(b.add(stage, operand.offset), at)))
