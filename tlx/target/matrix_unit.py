"""Matrix units: tile registers, products of tiles, and the operations from which the matrix legaliser composes code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.functions import Function
    from tlx.ir.instructions import Instruction
    from tlx.ir.values import Value
    from tlx.target.instructions.dots import Dot


@dataclass(frozen=True, slots=True)
class TileAddress:
    """The address of a tile in memory.

    Attributes:
        pointer: The base.
        offset: Bytes from the base to the first line.
        stride: Bytes from line to line.
    """

    pointer: Value
    offset: int
    stride: int


TileOperand = tuple["Value", ...]
"""An operand in the form that a unit multiplies: a tile, or a register for each of its groups along K."""


class TileOperations(Protocol):
    """The operations of a matrix unit on tiles of one kind, emitted at the position of a builder.

    An accumulator is one value of a type that the unit chooses. Between basic blocks it may have another form: `phi`
    emits a phi of that form, `to_phi` and `from_phi` convert. A unit whose accumulators are state, not values, knows
    them by `place`, the number of an accumulator in its grid, row by row: at any time, one accumulator of each place is
    in use.

    A group is as many positions of K as a product adds to a sum at once, `Dot.width`. A tile of B has a line for each
    group, with the group of each column (VNNI order). A tile of A has a line for each row or, if the unit's layout of A
    is "groups", a line for each group, with the group of each row.

        width 2, 2 rows, 2 groups     rows       a00 a01 a02 a03        groups     a00 a01 a10 a11
                                                 a10 a11 a12 a13                   a02 a03 a12 a13
    """

    def enter(self) -> None:
        """Emit what a kernel with tiles begins with, such as a change of mode or a configuration."""
        ...

    def leave(self) -> None:
        """Emit what such a kernel ends with, before each return."""
        ...

    def zero(self, place: int) -> Value:
        """An accumulator of zeros."""
        ...

    def load(self, place: int, address: TileAddress) -> Value:
        """An accumulator from memory, row by row."""
        ...

    def store(self, tile: Value, address: TileAddress) -> None:
        """An accumulator to memory, row by row."""
        ...

    def rows(self, tile: Value) -> Sequence[Value]:
        """The rows of an accumulator, as vectors of sums; called only if the unit's `accumulators` are in registers."""
        ...

    def from_rows(self, place: int, rows: Sequence[Value]) -> Value:
        """The accumulator of these rows; called only if the unit's `accumulators` are in registers."""
        ...

    def load_a(self, address: TileAddress, groups: int) -> TileOperand:
        """A left operand of `groups` groups along K."""
        ...

    def load_b(self, address: TileAddress, groups: int, *, streaming: bool) -> TileOperand:
        """A right operand of `groups` lines; if `streaming`, it bypasses the first-level cache."""
        ...

    def product(self, groups: int, acc: Value, lhs: Value, rhs: Value) -> Value:
        """`acc + lhs @ rhs` of one value of each operand; `groups` is as for the loads."""
        ...

    def phi(self, place: int, name: str) -> Instruction:
        """A phi of accumulators, without incoming values."""
        ...

    def from_phi(self, place: int, value: Value) -> Value:
        """The accumulator that a phi's result holds."""
        ...

    def to_phi(self, tile: Value) -> Value:
        """The form in which an accumulator is an operand of a phi."""
        ...


class TileOperationsFactory(Protocol):
    """Makes the operations of one kind of product for one kernel: see `MatrixUnit.operations`."""

    def __call__(self, b: Builder, dot: Dot, attributes: Sequence[str], *, rows: int, emulate: bool) -> TileOperations:
        """Operations on accumulators of this many rows that emit at the position of `b`."""
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
class Fp16SplitCosts:
    """Products of fp16 as sums of products of bf16 parts, on a unit that multiplies bf16 only.

    Attributes:
        element_cycles: Of splitting an element into its two parts, apart from waiting for memory.
        max_vector_share: Largest share of the vectors' cycles at which such a product is preferred.
        max_k: Positions of K that are split at a time: longer row tiles would not stay in the first-level cache.
        max_bytes: Bytes of the parts of A and of B at a time; glibc's malloc maps 32 MB or more anew at each call.
    """

    element_cycles: float
    max_vector_share: float
    max_k: int
    max_bytes: tuple[int, int] = (16 << 20, 8 << 20)


@dataclass(frozen=True, slots=True)
class MatrixUnitCosts:
    """Cycles of the work of a matrix unit's kernel besides its products, for which see `TileKind.cycles`.

    The defaults are for a unit that is part of a core and multiplies its vector registers.

    Attributes:
        configure_cycles: Of configuring the tiles, once a call, with the stalls that it causes.
        load_cycles: Of a tile from the first-level cache, from the second within and beyond the pages of the
            first-level TLB, and from beyond.
        l1_bypassing_load_cycles: Of a tile from the second-level cache without entering the first, within the pages of
            the first-level TLB and beyond.
        store_cycles: Of a tile of sums, beside the next products, to the first-level cache, the second, and beyond.
        line_crossing_store_factor: Factor for stores of tiles whose rows cross cache lines.
        packed_row_cycles: Of packing a row of a tile from the first-level cache, the second, and beyond.
        transposed_row_cycles: The same for an operand whose lines run across the order of memory.
        masked_row_cycles: Additional cycles of a packed row that is padded.
        epilogue_row_cycles: Of a row of sums that is converted after the last product.
        vector_speedups: How much faster vectors are than estimated where a matrix unit competes with them: register
            tiles, and rows that are streamed.
        min_copy_uses: Least number of register tiles that read an operand for which it is copied to aligned or adjacent
            rows.
        max_exposed_epilogue_steps: Steps of K up to which the epilogue of the last tile is not hidden behind products.
        fp16_split: Of products of fp16 on a unit that multiplies bf16 only; None where they are not split.
        line_crossing_load_cycles: Additional cycles of loading a tile of the right operand whose rows cross cache
            lines.
        scattered_load_cycles: Additional cycles of loading a tile of the left operand whose rows are not adjacent.
    """

    configure_cycles: float = 0.0
    load_cycles: tuple[float, float, float, float] = (1.0, 2.0, 2.0, 8.0)
    l1_bypassing_load_cycles: tuple[float, float] = (2.0, 2.0)
    store_cycles: tuple[float, float, float] = (4.0, 6.0, 16.0)
    line_crossing_store_factor: float = 1.0
    packed_row_cycles: tuple[float, float, float] = (1.0, 2.0, 4.0)
    transposed_row_cycles: tuple[float, float, float] = (2.0, 4.0, 8.0)
    masked_row_cycles: float = 1.0
    epilogue_row_cycles: float = 1.0
    vector_speedups: tuple[float, float] = (1.0, 1.0)
    min_copy_uses: int = 4
    max_exposed_epilogue_steps: int = 4
    fp16_split: Fp16SplitCosts | None = None
    line_crossing_load_cycles: float = 0.0
    scattered_load_cycles: float = 0.0


@dataclass(frozen=True, slots=True)
class TileKind:
    """Tiles of one shape, and the products whose sums they hold.

    Attributes:
        rows, columns: Sums of an accumulator.
        step_bytes: Most bytes of A along K that one tile product multiplies: those of a row of A's tile.
        registers: Tile registers, or accumulators if operands are in vector registers.
        grid: Accumulators of the inner loop, (along M, along N).
        dots: The products, without `emit`; `width` is the number of positions of a group (VNNI factor), 1 for outer
            products of vectors. Their sums are as wide as one another.
        cycles: Of a product of whole tiles, of `step_bytes` along K.
        operands_take_tiles: Whether operands are in tile registers, too.
        may_have_fewer_rows: Whether accumulators, and tiles of A, may have fewer rows, all as many.
        unroll: Most steps of K in an iteration of the inner loop.
        loads_ahead: For operands of a register for each group: by how many products a register is loaded before its
            first use. With 0, a tile's registers are loaded together, right before the first product of the tile.
    """

    rows: int
    columns: int
    step_bytes: int
    registers: int
    grid: tuple[int, int]
    dots: tuple[Dot, ...]
    cycles: float
    operands_take_tiles: bool = False
    may_have_fewer_rows: bool = False
    unroll: int = 1
    loads_ahead: int = 0

    def __post_init__(self) -> None:
        operands = sum(self.grid) if self.operands_take_tiles else 0
        needed = self.grid[0] * self.grid[1] + operands
        if needed > self.registers:
            message = f"a {self.grid[0]}x{self.grid[1]} grid needs {needed} tiles, the unit has {self.registers}"
            raise ValueError(message)
        if others := {dot.accumulator for dot in self.dots} - _SUM_BYTES.keys():
            message = f"sums of type {min(others)}: a matrix unit's sums are {', '.join(_SUM_BYTES)}"
            raise ValueError(message)
        if len({_SUM_BYTES[dot.accumulator] for dot in self.dots}) > 1:
            message = "sums of one kind of tiles have one width"
            raise ValueError(message)

    def fits(self, rows: int, columns: int) -> bool:
        """Whether the inner loop may have a grid of so many accumulators.

        One row of them may take all tile registers but two: for a tile of A, and for one of B at a time.
        """
        in_row = self.registers - 2 if self.operands_take_tiles else 0
        return rows * columns <= max(self.grid[0] * self.grid[1], in_row if rows == 1 else 0)

    def rows_for(self, extent: int) -> int:
        """Rows of an accumulator, where as few as possible cover `extent` rows: equal ones if they may have fewer.

        24 rows     two accumulators of 12; of 16 if they have a fixed size, which overlap or are padded
        """
        tiles = -(-extent // self.rows)
        return extent // tiles if self.may_have_fewer_rows and extent % tiles == 0 else self.rows


_SUM_BYTES: Final = {"float": 4, "i32": 4, "double": 8}


def _no_shapes(_function: Function) -> frozenset[tuple[str, ...]]:
    return frozenset()


@dataclass(frozen=True, slots=True)
class MatrixUnit:
    """A matrix unit: tiles that are multiplied by instructions (acc, a, b) -> acc.

    Attributes:
        kinds: The kinds of tiles.
        operations: Makes the emitter of the unit's instructions: (builder, product, attributes of the target's
            functions, rows, emulate).
        costs: Cycles of the work besides the products.
        a_layout: The lines of a tile of A: its rows, or its groups along K; see `TileOperations`. An A in groups is
            packed.
        accumulators: How sums are read after the last product: through memory, or as rows in vector registers.
        attributes: Attributes of functions with tiles besides the target's, such as those that set a mode. Functions
            with such attributes are not inlined.
        tile_shapes: The shapes of a legalised function's tiles, as text, where the unit is configured by them; a
            function with tiles of one shape is not inlined into one with tiles of another.
        emulation: How LLVM emulates the unit, if it does.
        max_uses: How often a loaded tile may be used in a block.
    """

    kinds: tuple[TileKind, ...]
    operations: TileOperationsFactory
    costs: MatrixUnitCosts = MatrixUnitCosts()
    a_layout: Literal["rows", "groups"] = "rows"
    accumulators: Literal["memory", "registers"] = "memory"
    attributes: tuple[str, ...] = ()
    tile_shapes: Callable[[Function], frozenset[tuple[str, ...]]] = _no_shapes
    emulation: MatrixEmulation | None = None
    max_uses: int = 1 << 30

    @property
    def dots(self) -> tuple[Dot, ...]:
        """The products of all kinds of tiles."""
        return tuple(dot for kind in self.kinds for dot in kind.dots)

    def kind_of(self, dot: Dot) -> TileKind:
        """The tiles that hold a product's sums."""
        return next(kind for kind in self.kinds if dot in kind.dots)

    def kind_for(self, operand: str, accumulator: str) -> TileKind:
        """The tiles of products of two operands of an element type, with sums of a type."""
        return next(k for k in self.kinds if any((d.lhs[0], d.accumulator) == (operand, accumulator) for d in k.dots))

    def with_dots(self, dots: Collection[Dot]) -> MatrixUnit:
        """The unit with only some of its products."""
        kinds = (replace(kind, dots=tuple(dot for dot in kind.dots if dot in dots)) for kind in self.kinds)
        return replace(self, kinds=tuple(kind for kind in kinds if kind.dots))
