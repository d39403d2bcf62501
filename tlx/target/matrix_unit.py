"""Matrix units: tile registers, products of tiles, and the operations from which the matrix legaliser composes code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.functions import Function
    from tlx.ir.instructions import Instruction
    from tlx.ir.values import Value
    from tlx.target.hardware import Dot


@dataclass(frozen=True, slots=True)
class TileAddress:
    """The address of a tile in memory.

    Attributes:
        pointer: The base.
        offset: Bytes from the base to the first row.
        stride: Bytes from row to row.
    """

    pointer: Value
    offset: int
    stride: int


class TileOperations(Protocol):
    """The operations of a matrix unit on tiles, emitted at the position of a builder.

    A tile is one value of a type that the unit chooses. Between basic blocks it may have another form: `phi` emits a
    phi of that form, `to_phi` and `from_phi` convert.
    """

    def zero(self) -> Value:
        """An accumulator of zeros."""
        ...

    def load(self, address: TileAddress) -> Value:
        """An accumulator from memory."""
        ...

    def store(self, tile: Value, address: TileAddress) -> None:
        """An accumulator to memory."""
        ...

    def load_a(self, address: TileAddress, depth: int) -> Value:
        """A left operand: rows of `depth` bytes."""
        ...

    def load_b(self, address: TileAddress, groups: int, *, streaming: bool) -> Value:
        """A right operand in VNNI order, of `groups` rows; if `streaming`, it bypasses the first-level cache."""
        ...

    def product(self, dot: Dot, depth: int, acc: Value, lhs: Value, rhs: Value) -> Value:
        """`acc + lhs @ rhs`; `depth`: bytes of a row of `lhs`."""
        ...

    def phi(self, name: str) -> Instruction:
        """A phi of accumulators, without incoming values."""
        ...

    def from_phi(self, value: Value) -> Value:
        """The accumulator that a phi's result holds."""
        ...

    def to_phi(self, tile: Value) -> Value:
        """The form in which an accumulator is an operand of a phi."""
        ...


class TileOperationsFactory(Protocol):
    """Makes the operations for one kernel: see `MatrixUnit.operations`."""

    def __call__(self, b: Builder, attributes: Sequence[str], *, emulate: bool) -> TileOperations:
        """Operations that emit at the position of `b`."""
        ...


@dataclass(frozen=True, slots=True)
class MatrixEmulation:
    """How LLVM runs a unit's instructions on machines that lack them.

    Attributes:
        llvm_options: Command-line options of LLVM that turn it on.
        attributes: Attributes that functions with tiles need for it.
        opt_level: The highest optimisation level at which LLVM's code is correct.
    """

    llvm_options: tuple[str, ...]
    attributes: tuple[str, ...] = ()
    opt_level: int = 3


@dataclass(frozen=True, slots=True)
class SplitCosts:
    """Products of fp16 as sums of products of bf16 parts, on a unit that multiplies bf16 only.

    Attributes:
        cycles: Of splitting an element into its two parts, apart from waiting for memory.
        lead: Largest share of the vectors' cycles at which such a product is preferred.
        depth: Positions of K that are split at a time: longer row tiles would not stay in the first-level cache.
        bytes: Bytes of the parts of A and of B at a time; glibc's malloc maps 32 MB or more anew at each call.
    """

    cycles: float
    lead: float
    depth: int
    bytes: tuple[int, int] = (16 << 20, 8 << 20)


@dataclass(frozen=True, slots=True)
class MatrixTiming:
    """Cycles of the work of a matrix unit's kernel; a tile product takes one for each row of the left tile.

    Attributes:
        configuration: Of configuring the tiles, once a call, with the stalls that it causes.
        load: Of a tile from the first-level cache, from the second within and beyond the pages of the first-level TLB,
            and from beyond.
        load_bypassing_l1: Of a tile from the second-level cache without entering the first, within the pages of the
            first-level TLB and beyond.
        store: Of a tile of sums, beside the next products, to the first-level cache, the second, and beyond.
        crossing: Factor for stores of tiles whose rows cross cache lines.
        packed_row: Of packing a row of a tile from the first-level cache, the second, and beyond.
        transposed_row: The same for a column-major left operand.
        masked_row: Additional cycles of a packed row that is padded.
        epilogue_row: Of a row of sums that is converted after the last product.
        vectors_lead: How much faster vectors are than estimated where a matrix unit competes with them: register tiles,
            and rows that are streamed.
        copy_uses: Least number of register tiles that read an operand for which it is copied to aligned or adjacent
            rows.
        few_steps: Steps of K up to which the epilogue of the last tile is not hidden behind products.
        split: Of products of fp16 on a unit that multiplies bf16 only.
        crossing_load: Additional cycles of loading a tile of the right operand whose rows cross cache lines.
        scattered_load: Additional cycles of loading a tile of the left operand whose rows are not adjacent.
    """

    configuration: float
    load: tuple[float, float, float, float]
    load_bypassing_l1: tuple[float, float]
    store: tuple[float, float, float]
    crossing: float
    packed_row: tuple[float, float, float]
    transposed_row: tuple[float, float, float]
    masked_row: float
    epilogue_row: float
    vectors_lead: tuple[float, float]
    copy_uses: int
    few_steps: int
    split: SplitCosts
    crossing_load: float
    scattered_load: float


def _no_shapes(_function: Function) -> frozenset[tuple[str, ...]]:
    return frozenset()


@dataclass(frozen=True, slots=True)
class MatrixUnit:
    """A matrix unit: tiles of `rows` x `row_bytes`, multiplied by instructions (acc, a, b) -> acc.

    Attributes:
        rows: Rows of a tile.
        row_bytes: Bytes of a row: of A along K, of accumulators along N.
        tiles: Tile registers.
        grid: Accumulators of the inner loop, (along M, along N).
        dots: The unit's kinds of products, without `emit`; `width` is the VNNI factor. Sums are float or i32.
        operations: Makes the emitter of the unit's instructions: (builder, attributes of the target's functions,
            emulate).
        tile_shapes: The shapes of a legalised function's tiles, as text, where the unit is configured by them; a
            function with tiles of one shape is not inlined into one with tiles of another.
        emulation: How LLVM emulates the unit, if it does.
        max_uses: How often a loaded tile may be used in a block.
    """

    rows: int
    row_bytes: int
    tiles: int
    grid: tuple[int, int]
    dots: tuple[Dot, ...]
    timing: MatrixTiming
    operations: TileOperationsFactory
    tile_shapes: Callable[[Function], frozenset[tuple[str, ...]]] = _no_shapes
    emulation: MatrixEmulation | None = None
    max_uses: int = 1 << 30

    def __post_init__(self) -> None:
        needed = self.grid[0] * self.grid[1] + sum(self.grid)
        if needed > self.tiles:
            msg = f"a {self.grid[0]}x{self.grid[1]} grid needs {needed} tiles, the unit has {self.tiles}"
            raise ValueError(msg)
        if others := {dot.accumulator for dot in self.dots} - {"float", "i32"}:
            msg = f"sums of type {min(others)}: a matrix unit's sums are float or i32"
            raise ValueError(msg)

    @property
    def columns(self) -> int:
        """Columns of an accumulator: elements of 32 bits in a row."""
        return self.row_bytes // 4
