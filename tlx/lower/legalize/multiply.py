"""acc += left @ right on registers, by dot-product instructions or multiply-adds.

Operands are loaded piece by piece, right before their use:

left:   scalar(r, k)            one element             word(r, g, v)           v elements along K as one integer
right:  vector(k, c)            register c of row k     words(g, c, v)          v rows, VNNI, as integers

Register allocation (measured): the smaller operand is loaded first and kept, the larger one is streamed. Left elements
are broadcast:

    hold right                                     hold left
      b0 b1 b2 = load                                a0 a1 a2 = splat(load)
      a = splat(load A[0]); acc00 += a*b0 ...        b = load B[0]; acc00 += a0*b; acc10 += a1*b ...
      a = splat(load A[1]); acc10 += a*b0 ...        b = load B[1]; ...

If registers hold B's rows for all of K, A is read row by row, which exposes more instruction-level parallelism.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder import Builder
from tlx.ir.types import BFLOAT, FLOAT, I32, FloatType, IntType, Type, VectorType, bits_of
from tlx.ir.values import Aggregate, Keyword, Value, const_vector
from tlx.lower.cost import needed_registers
from tlx.lower.legalize.conversions import convert_register
from tlx.lower.legalize.memory import load_part
from tlx.lower.legalize.registers import (
    Registers,
    as_words,
    interleaved_rows,
    register_element,
    register_widths,
    resized,
)
from tlx.lower.legalize.vnni import RightWithPermutedColumns
from tlx.lower.operations import MMA_SIGNS
from tlx.target.instructions.dots import Dot, Sign
from tlx.target.target import Target


class LeftOperand(Protocol):
    """The left operand: rows x K."""

    @property
    def element(self) -> Type:
        """Element type."""
        ...

    def scalar(self, b: Builder, row: int, k: int) -> Value:
        """Element (row, k), in its storage type."""
        ...

    def word(self, b: Builder, row: int, group: int, width: int) -> Value:
        """Elements (row, group * width ...) as one integer, lowest first."""
        ...


class RightOperand(Protocol):
    """The right operand: K x columns."""

    @property
    def element(self) -> Type:
        """Element type."""
        ...

    def vector(self, b: Builder, k: int, index: int) -> Value:
        """Register `index` of row k."""
        ...

    def words(self, b: Builder, group: int, index: int, width: int) -> Value:
        """Rows group * width ... of register `index`'s columns, as integers that hold `width` elements each."""
        ...


@dataclass(eq=False, slots=True)
class LeftInMemory:
    """A left operand in memory."""

    pointer: Value
    type: TensorType
    pitches: tuple[int, ...] | None

    @property
    def element(self) -> Type:
        """Element type."""
        return self.type.element

    def address(self, b: Builder, row: int, k: int) -> Value:
        """Address of element (row, k)."""
        row_stride, k_stride = self.type.logical_strides(self.pitches)
        return b.gep(register_element(self.element), self.pointer, row * row_stride + k * k_stride)

    def scalar(self, b: Builder, row: int, k: int) -> Value:
        """Element (row, k)."""
        stored = register_element(self.element)
        return b.load(stored, self.address(b, row, k), bits_of(stored) // 8)

    def word(self, b: Builder, row: int, group: int, width: int) -> Value:
        """`width` elements along K, loaded as one integer."""
        size = bits_of(self.element)
        return b.load(IntType(size * width), self.address(b, row, group * width), size // 8)

    @property
    def has_words(self) -> bool:
        """Whether A is contiguous along K."""
        return self.type.logical_strides(self.pitches)[1] == 1


@dataclass(eq=False, slots=True)
class LeftByLane:
    """A left operand in memory, contiguous along K, that is loaded a register at a time and multiplied by lane.

    Attributes:
        memory: The operand.
        count: Lanes of a register.
        loaded: The registers, by row and number.
    """

    memory: LeftInMemory
    count: int
    loaded: dict[tuple[int, int], Value] = field(default_factory=dict[tuple[int, int], "Value"])

    @property
    def element(self) -> Type:
        """Element type."""
        return self.memory.element

    def scalar(self, b: Builder, row: int, k: int) -> Value:
        """Element (row, k), in all lanes."""
        return self._lane(b, row, k, register_element(self.element), 1)

    def word(self, b: Builder, row: int, group: int, width: int) -> Value:
        """`width` elements along K as one integer, in all lanes."""
        return self._lane(b, row, group, IntType(bits_of(self.element) * width), width)

    def _lane(self, b: Builder, row: int, at: int, element: Type, width: int) -> Value:
        index, lane = divmod(at, self.count)
        if (row, index) not in self.loaded:
            address = self.memory.address(b, row, index * self.count * width)
            register = b.load(VectorType(self.count, element), address, bits_of(self.element) // 8)
            self.loaded[row, index] = register
        return b.shuffle(self.loaded[row, index], None, [lane] * self.count)


@dataclass(eq=False, slots=True)
class LeftInRegisters:
    """A left operand in registers, or constant."""

    tile: Registers

    @property
    def element(self) -> Type:
        """Element type."""
        return self.tile.element

    def scalar(self, b: Builder, row: int, k: int) -> Value:
        """Element (row, k)."""
        return b.extract_element(self.tile.regs[row][k // self.tile.lanes], k % self.tile.lanes)

    def word(self, b: Builder, row: int, group: int, width: int) -> Value:
        """`width` adjacent elements of a register, as one integer."""
        start = group * width
        register = self.tile.regs[row][start // self.tile.lanes]
        first = start % self.tile.lanes
        bits = bits_of(self.element)
        if isinstance(register, Aggregate):
            part: Value = const_vector(register.elements[first : first + width])
        else:
            part = b.shuffle(register, None, range(first, first + width))
        return b.cast("bitcast", part, IntType(bits * width))


@dataclass(eq=False, slots=True)
class RightInMemory:
    """A right operand in memory, row-major."""

    target: Target
    pointer: Value
    type: TensorType
    pitches: tuple[int, ...] | None
    lanes: int

    @property
    def element(self) -> Type:
        """Element type."""
        return self.type.element

    def vector(self, b: Builder, k: int, index: int) -> Value:
        """Part of row k."""
        stored = register_element(self.element)
        width = register_widths(self.type.shape[1], self.lanes)[index]
        present = max(0, min(width, self.type.data_shape[1] - index * self.lanes))
        offset = k * self.type.strides(self.pitches)[0] + index * self.lanes
        address = b.gep(stored, self.pointer, offset) if present else self.pointer
        return load_part(b, self.target, address, stored, width, present)

    def words(self, b: Builder, group: int, index: int, width: int) -> Value:
        """Rows loaded and interleaved."""
        return as_words(b, interleaved_rows(b, [self.vector(b, group * width + j, index) for j in range(width)]), width)


@dataclass(eq=False, slots=True)
class RightInVnniPanel:
    """A right operand in a VNNI panel: [K/factor][columns][factor]."""

    pointer: Value
    element: Type
    columns: int
    factor: int
    lanes: int

    def address(self, b: Builder, group: int, index: int) -> Value:
        """Address of a group of a register's columns."""
        return b.gep(
            register_element(self.element), self.pointer, (group * self.columns + index * self.lanes) * self.factor
        )

    def _group(self, b: Builder, group: int, index: int) -> Value:
        stored = register_element(self.element)
        width = register_widths(self.columns, self.lanes)[index]
        return b.load(VectorType(width * self.factor, stored), self.address(b, group, index), bits_of(stored) // 8)

    def vector(self, b: Builder, k: int, index: int) -> Value:
        """Every `factor`-th element of a group."""
        group = self._group(b, k // self.factor, index)
        assert isinstance(group.type, VectorType)
        return b.shuffle(group, None, range(k % self.factor, group.type.count, self.factor))

    def words(self, b: Builder, group: int, index: int, width: int) -> Value:
        """A group, which is stored that way."""
        if width == self.factor:
            return as_words(b, self._group(b, group, index), width)
        return as_words(b, interleaved_rows(b, [self.vector(b, group * width + j, index) for j in range(width)]), width)


@dataclass(eq=False, slots=True)
class RightInRegisters:
    """A right operand in registers, or constant."""

    tile: Registers

    @property
    def element(self) -> Type:
        """Element type."""
        return self.tile.element

    def vector(self, b: Builder, k: int, index: int) -> Value:
        """Register `index` of row k."""
        del b
        return self.tile.regs[k][index]

    def words(self, b: Builder, group: int, index: int, width: int) -> Value:
        """Rows interleaved, those of constants here: LLVM folds the conversion to words by the machine's byte order."""
        rows = [self.tile.regs[group * width + j][index] for j in range(width)]
        constants = [r for r in rows if isinstance(r, Aggregate)]
        if len(constants) == width:
            columns = zip(*(row.elements for row in constants), strict=True)
            return as_words(b, const_vector([element for column in columns for element in column]), width)
        return as_words(b, interleaved_rows(b, rows), width)


_SHORT_LANES: Final = 4


def multiply(
    b: Builder, target: Target, name: str, acc: Registers, left: LeftOperand, right: RightOperand, k: int
) -> Registers:
    """The accumulator tile after the product.

    Args:
        b: Where to emit.
        target: The machine; its dot products are used if they compute exactly this operation.
        name: The mma intrinsic's name, which gives the signs.
        acc: Accumulator tile.
        left: Left operand, `acc.rows` x `k`.
        right: Right operand, `k` x `acc.cols`.
        k: Positions along K.
    """
    signs: tuple[Sign, Sign] = ("f", "f") if isinstance(acc.element, FloatType) else MMA_SIGNS[name]
    dot = _matching_dot(target, acc, left, right, signs, k)
    if target.instructions.fma_takes_lane and (dot is not None or left.element == acc.element):
        left = _by_lane(acc, left, k // (dot.width if dot else 1))
    if dot is not None and dot.widening_loads is None:
        return _by_dot(b, acc, left, right, k, dot)
    if dot is not None and isinstance(left, LeftInMemory) and isinstance(right, RightInVnniPanel):
        return _by_widening_loads(b, acc, left, right, k, dot)
    return _by_fma(b, target, acc, left, right, k, signs)


def _by_lane(acc: Registers, left: LeftOperand, steps: int) -> LeftOperand:
    """The left operand, loaded a register at a time if it is contiguous along K, for whole registers."""
    if not isinstance(left, LeftInMemory) or not left.has_words or steps % acc.lanes != 0:
        return left
    return LeftByLane(left, acc.lanes)


def _matching_dot(
    target: Target, acc: Registers, left: LeftOperand, right: RightOperand, signs: tuple[Sign, Sign], k: int
) -> Dot | None:
    if isinstance(left, LeftInMemory) and not left.has_words:
        return None
    types = ((str(left.element), signs[0]), (str(right.element), signs[1]), str(acc.element))
    for dot in target.usable_dots:
        if (dot.lhs, dot.rhs, dot.accumulator) == types and k % dot.width == 0 and _has_layout(dot, acc, left, right):
            return dot
    return None


def _has_layout(dot: Dot, acc: Registers, left: LeftOperand, right: RightOperand) -> bool:
    """Whether the operands have the layout in memory that a dot product's widening loads need, if it has any."""
    if dot.widening_loads is None:
        return True
    in_memory = isinstance(left, LeftInMemory) and isinstance(right, RightInVnniPanel) and right.factor == dot.width
    return in_memory and set(register_widths(acc.cols, acc.lanes)) <= set(dot.widening_loads.lanes)


def _by_dot(b: Builder, acc: Registers, left: LeftOperand, right: RightOperand, k: int, dot: Dot) -> Registers:
    lanes = acc.lanes

    def accumulate(c: Value, x: Value, y: Value) -> Value:
        return _dot_of_whole_registers(b, c, x, y, lanes, dot)

    for group in range(k // dot.width):

        def word(row: int, g: int = group) -> Value:
            return left.word(b, row, g, dot.width)

        def words(index: int, g: int = group) -> Value:
            return right.words(b, g, index, dot.width)

        acc = _step(b, acc, word, words, accumulate, holds_left=isinstance(left, LeftByLane))
    return acc


def _by_widening_loads(
    b: Builder, acc: Registers, left: LeftInMemory, right: RightInVnniPanel, k: int, dot: Dot
) -> Registers:
    """Multiply-adds of operands that are widened as they are loaded.

    Equation:
        acc += A[:, 0::2] @ B[0::2, :] + A[:, 1::2] @ B[1::2, :]
        MxN    MxK/2        K/2xN        MxK/2        K/2xN
    """
    loads = dot.widening_loads
    assert loads is not None
    sizes = register_widths(acc.cols, acc.lanes)
    for at in range(k):
        group, position = divmod(at, dot.width)

        def element(row: int, p: int = at) -> Value:
            return loads.lhs(b, left.address(b, row, p), max(sizes))

        def vector(index: int, g: int = group, p: int = position) -> Value:
            return loads.rhs[p](b, right.address(b, g, index), sizes[index])

        acc = _step(b, acc, element, vector, lambda c, x, y: dot.emit(b, c, x, y))
    return acc


def _dot_of_whole_registers(b: Builder, acc: Value, x: Value, y: Value, lanes: int, dot: Dot) -> Value:
    """A dot product on whole registers; narrower ones are extended before and truncated afterwards."""
    assert isinstance(acc.type, VectorType)
    count = acc.type.count
    if count == lanes:
        return dot.emit(b, acc, x, y)
    wide = [resized(b, v, lanes) for v in (acc, x, y)]
    return resized(b, dot.emit(b, *wide), count)


def _by_fma(
    b: Builder, target: Target, acc: Registers, left: LeftOperand, right: RightOperand, k: int, signs: tuple[Sign, Sign]
) -> Registers:
    def scalar(row: int, at: int) -> Value:
        return _widened(b, target, left.scalar(b, row, at), left.element, acc.element, signs[0])

    def vector(index: int, at: int) -> Value:
        if isinstance(right, RightWithPermutedColumns) and right.are_pairs_of_floats and acc.element == FLOAT:
            return right.floats(b, at, index)
        return _widened(b, target, right.vector(b, at, index), right.element, acc.element, signs[1])

    def accumulate(c: Value, x: Value, y: Value) -> Value:
        if not isinstance(acc.element, FloatType):
            return b.binary("add", c, b.binary("mul", x, y))
        name = "llvm.fma" if target.instructions.has_fma else "llvm.fmuladd"
        return b.call_intrinsic(name, [c.type], c.type, [x, y, c], "acc")

    by_lane = isinstance(left, LeftByLane)
    if (
        k > 1
        and not by_lane
        and left.element == right.element == acc.element
        and _holds_right(target.registers, acc, k)
    ):
        return _by_rows(b, acc, scalar, vector, accumulate, k)
    is_full = needed_registers(acc.rows, acc.row_registers) >= target.registers
    keeps_order = target.core.limits.k_loop.keeps_order and is_full
    for at in range(k):
        row_of_b = partial(vector, at=at)
        left_column = partial(scalar, at=at)
        acc = _step(b, acc, left_column, row_of_b, accumulate, holds_left=by_lane, keeps_order=keeps_order)
    return acc


def _holds_right(registers: int, acc: Registers, k: int) -> bool:
    """Whether the right operand is smaller than the left one and fits in registers with the sums."""
    vectors = acc.row_registers
    return acc.rows > vectors and (acc.rows + k) * vectors + 1 <= registers


def _by_rows(
    b: Builder,
    acc: Registers,
    scalar: Callable[[int, int], Value],
    vector: Callable[[int, int], Value],
    accumulate: Callable[[Value, Value, Value], Value],
    k: int,
) -> Registers:
    """All of K for one row, then for the next; `scalar` takes row and position, `vector` index and position."""
    ys = [[vector(index, at) for index in range(acc.row_registers)] for at in range(k)]
    rows: list[tuple[Value, ...]] = []
    for row, sums in enumerate(acc.regs):
        for at in range(k):
            x, splats = scalar(row, at), dict[int, Value]()
            sums = tuple(accumulate(c, _splat_for(b, c, x, splats), y) for c, y in zip(sums, ys[at], strict=True))
        rows.append(sums)
    return Registers(acc.element, acc.rows, acc.cols, acc.lanes, tuple(rows))


def _widened(b: Builder, target: Target, value: Value, element: Type, to: Type, sign: Sign) -> Value:
    """An operand (scalar or register) in the accumulator's type."""
    if element == to:
        return value
    vector = value if isinstance(value.type, VectorType) else b.splat(value, 1)
    opcode = "fpext" if element == BFLOAT or isinstance(element, FloatType) else ("zext" if sign == "u" else "sext")
    if bits_of(element) > bits_of(to):
        opcode = "fptrunc" if isinstance(element, FloatType) else "trunc"
    wide = convert_register(b, target, opcode, vector, element, to)
    return wide if vector is value else b.extract_element(wide, 0)


def _step(
    b: Builder,
    acc: Registers,
    scalar: Callable[[int], Value],
    vector: Callable[[int], Value],
    accumulate: Callable[[Value, Value, Value], Value],
    *,
    holds_left: bool = False,
    keeps_order: bool = False,
) -> Registers:
    """One position (or group) of K for all registers of the tile.

    Args:
        b: Where to emit.
        acc: The sums.
        scalar: The left operand of a row.
        vector: A register of the right operand.
        accumulate: Emits a product of a sum and both operands.
        holds_left: Whether the left operand is in registers.
        keeps_order: Whether LLVM must not load operands of a streamed row or column during the products of another one.
    """
    rows, vectors = acc.rows, acc.row_registers
    regs = [list(row) for row in acc.regs]
    splats: dict[int, dict[int, Value]] = {}
    scalars: dict[int, Value] = {}

    def left(row: int, index: int) -> Value:
        if row not in scalars:
            scalars[row] = scalar(row)
        return _splat_for(b, acc.regs[row][index], scalars[row], splats.setdefault(row, {}))

    def keep_order() -> None:
        if keeps_order:
            b.scheduling_barrier()

    keep_order()
    if holds_left or rows <= vectors:
        for row in range(rows):
            left(row, 0)
        for index in range(vectors):
            if index > 0:
                keep_order()
            y = vector(index)
            for row in range(rows):
                regs[row][index] = accumulate(regs[row][index], left(row, index), y)
    else:
        ys = [vector(index) for index in range(vectors)]
        for row in range(rows):
            if row > 0:
                keep_order()
            for index in range(vectors):
                regs[row][index] = accumulate(regs[row][index], left(row, index), ys[index])
    return Registers(acc.element, acc.rows, acc.cols, acc.lanes, tuple(tuple(r) for r in regs))


def _splat_for(b: Builder, acc: Value, scalar: Value, splats: dict[int, Value]) -> Value:
    """A scalar splat to the length of a sum's register; emitted once for each length."""
    type_ = acc.type
    assert isinstance(type_, VectorType)
    if type_.count not in splats:
        splats[type_.count] = _splat(b, scalar, type_)
    return splats[type_.count]


def _splat(b: Builder, scalar: Value, type_: VectorType) -> Value:
    """A splat of `scalar`, or of a part of it, as the operand of a product with sums of `type_`.

    LLVM 16 crashes on a splat of pairs of bfloat as an operand of vdpbf16ps, unless it is a shuffle of a shorter
    vector; the machine code is the same.
    """
    if isinstance(scalar.type, VectorType):
        return resized(b, scalar, type_.count)
    if type_.element != FLOAT or scalar.type != I32:
        return b.splat(scalar, type_.count)
    short = b.insert_element(Keyword(VectorType(_SHORT_LANES, I32), "undef"), scalar, 0)
    return b.shuffle(short, None, [0] * type_.count)
