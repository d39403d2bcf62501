"""The operation of a reduction on flattened tiles: its identity, NaN, and the horizontal reduction of a row.

The largest of floats is NaN where one of them is. A loop keeps the largest number and, beside it, a mask of where there
was a NaN, so that each takes an instruction of its own, two lines of a tile are tested at once, and neither waits:

    best = best > x ? best : x                           NaN of x, or what comes behind it: no matter
    seen = x0 ordered x1, x2 ordered x3, ... ? seen : all    x0, x1, ...: lines of x

The largest or smallest of 16-bit floats is the largest of integers in their order, which a whole register holds and
at whose end NaN is (m is infinity's bits):

    largest    x < 0 ? m - x : x     signed      -inf -> least,  -0 -> m - 0x8000,  0 -> 0,  inf -> m,  NaN above it
    smallest   x < 0 ? x : m - x     unsigned    inf -> 0,  0 -> m,  -0 -> 0x8000,  -inf -> m + 0x8000,  NaN above it

The same once more is the way back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.instructions import Builder
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I16, I32, I64, FloatType, IntType, Type, VectorType
from tlx.ir.values import Value, const_float, const_ints, const_vector, zero
from tlx.lower.operations import MIN_MAX, combine_identity, emit_combine, emit_combine_ordered, emit_fcmp
from tlx.lower.to_tiles.emit.expression import ResultTile, data_mask

_PERMUTED_AXES: Final = (0, 1, 3, 2, 4)
_INFINITIES: Final[dict[Type, int]] = {BFLOAT: 0x7F80, HALF: 0x7C00}


@dataclass(frozen=True, slots=True)
class ReductionOperation:
    """A reduction's operation.

    Attributes:
        operation: add, mul, max, min, and, or, xor.
        element: Element type of what is reduced.
    """

    operation: str
    element: Type

    @property
    def held(self) -> Type:
        """Element type of what is combined so far: 16-bit floats are combined as float, or as integers in order."""
        if self.are_ordered:
            return I16
        return FLOAT if self.element in _INFINITIES else self.element

    @property
    def are_ordered(self) -> bool:
        """Whether floats become integers in the same order."""
        return self.operation in MIN_MAX and self.element in _INFINITIES

    def widened(self, b: Builder, value: Value) -> Value:
        """A flattened tile in the type that is combined."""
        if self.are_ordered:
            return self._turned(b, _converted(b, "bitcast", value, I16))
        return _converted(b, "fpext", value, self.held)

    def narrowed(self, b: Builder, value: Value) -> Value:
        """What was combined, in the type of the result."""
        if self.are_ordered:
            return _converted(b, "bitcast", self._turned(b, value), self.element)
        return _converted(b, "fptrunc", value, self.element)

    def widened_pairs(self, b: TensorBuilder, value: Value, rows: int, lanes: int) -> Value:
        """A flattened tile of bfloat as float, each two registers' elements in turn: no element changes its place."""
        assert isinstance(value.type, VectorType)
        cols = value.type.count // rows
        dealt = TensorType.dense(self.element, (rows, cols // (2 * lanes), lanes, 2, 1))
        shape = VectorType(value.type.count, self.element)
        moved = b.reshape_permute(b.typeinfo(value, dealt, "pairs"), _PERMUTED_AXES, (rows, cols), shape, "moved")
        return self.widened(b, moved)

    def _turned(self, b: Builder, x: Value) -> Value:
        """Integers in the order of the floats whose bits they are, or back.

        Whether any bit of the sign is set is a test: on Intel's machines it leaves the maximum's port alone, where
        moving signs to a mask does not.
        """
        assert isinstance(x.type, VectorType)
        count = x.type.count
        turned = b.binary("sub", const_ints(I16, [_INFINITIES[self.element]] * count), x)
        sign = b.binary("and", x, const_ints(I16, [-0x8000] * count))
        is_negative = b.icmp("ne", sign, zero(x.type))
        return b.select(is_negative, turned, x) if self.operation == "max" else b.select(is_negative, x, turned)

    def identity(self, count: int) -> Value:
        """What changes nothing: -0 for sums, as -0 + -0 is -0."""
        if self.are_ordered:
            return const_ints(I16, [-0x8000 if self.operation == "max" else 0] * count)
        return const_vector([combine_identity(self.operation, self.held)] * count)

    def masked(self, b: Builder, value: Value, place: ResultTile) -> Value:
        """A tile with the identity where it holds no data."""
        return b.select(data_mask(place), value, self.identity(place.count)) if place.padding else value

    @property
    def compares_floats(self) -> bool:
        """Whether NaN has to be looked after."""
        return self.operation in MIN_MAX and isinstance(self.held, FloatType)

    def apply(self, b: Builder, x: Value, y: Value) -> Value:
        """Both combined, element by element. NaN wins in max and min."""
        return emit_combine(b, self.operation, x, y) if self.compares_floats else self.better(b, x, y)

    def better(self, b: Builder, x: Value, y: Value) -> Value:
        """Both combined, where none of them is NaN."""
        return emit_combine_ordered(b, self.in_order, x, y, signed=self.operation == "max" or not self.are_ordered)

    @property
    def in_order(self) -> str:
        """The operation on what is held: the largest of integers in either order."""
        return "max" if self.are_ordered else self.operation

    def all_of(self, b: Builder, values: list[Value], *, checked: bool = True) -> Value:
        """All values combined, in a tree; NaN among them is lost if it is not checked for."""
        apply = self.apply if checked else self.better
        while len(values) > 1:
            pairs = [apply(b, x, y) for x, y in zip(values[::2], values[1::2], strict=False)]
            values = [*pairs, *([values[-1]] if len(values) % 2 else [])]
        return values[0]

    def in_signed_order(self, b: Builder, line: Value) -> Value:
        """What is combined in integers' signed order, which `reduce.max` goes by, or back from that."""
        if not self.are_ordered or self.operation == "max":
            return line
        assert isinstance(line.type, VectorType)
        return b.binary("xor", line, const_ints(I16, [-0x8000] * line.type.count))

    def folded(self, b: Builder, row: Value, width: int) -> Value:
        """A flattened row as one number, in a vector of one: registers of `width` first, then their halves."""
        value = self.all_of(b, split_vector(b, row, width))
        while width > 1:
            width //= 2
            value = self.all_of(b, split_vector(b, value, width))
        return value


@dataclass(frozen=True, slots=True)
class RunningReduction:
    """What a loop carries while it reduces tiles of one size: what is combined so far, and where there was a NaN.

    Attributes:
        combine: The operation.
        rows, cols: The tile.
        width: Elements of a line of the mask: of a register where rows are reduced, `cols` where columns are.
        by_row: Whether each row of the tile has a mask of its own.
    """

    combine: ReductionOperation
    rows: int
    cols: int
    width: int
    by_row: bool

    @classmethod
    def along_columns(cls, combine: ReductionOperation, place: ResultTile, lanes: int) -> RunningReduction:
        """Each row is reduced."""
        return cls(combine, place.rows, place.cols, min(lanes, place.cols), True)

    @classmethod
    def along_rows(cls, combine: ReductionOperation, place: ResultTile) -> RunningReduction:
        """Each column is reduced."""
        return cls(combine, place.rows, place.cols, place.cols, False)

    def start(self) -> list[Value]:
        """Nothing so far."""
        best = self.combine.identity(self.rows * self.cols)
        return [best, *self._masks()]

    def _masks(self) -> list[Value]:
        if not self.combine.compares_floats:
            return []
        return [zero(VectorType(self.width, self._word)) for _ in range(self.rows if self.by_row else 1)]

    @property
    def _word(self) -> IntType:
        return I64 if self.combine.held == DOUBLE else I32

    def first(self, b: Builder, value: Value) -> list[Value]:
        """What there is after the first tile."""
        return [value, *self._all_marked(b, self._masks(), value)]

    def add(self, b: Builder, carried: list[Value], value: Value) -> list[Value]:
        """A tile combined with what there is."""
        best, *seen = carried
        return [self.combine.better(b, best, value), *self._all_marked(b, seen, value)]

    def _all_marked(self, b: Builder, seen: list[Value], value: Value) -> list[Value]:
        if not seen:
            return []
        lines = split_vector(b, value, self.width)
        share = len(lines) // len(seen)
        return [self._marked(b, mask, lines[i * share : (i + 1) * share]) for i, mask in enumerate(seen)]

    def _marked(self, b: Builder, mask: Value, lines: list[Value]) -> Value:
        """The mask with all its bits set where one of the lines is NaN."""
        return b.select(_are_numbers(b, lines), mask, const_ints(self._word, [-1] * self.width), "seen")

    def only(self, b: Builder, value: Value) -> list[Value]:
        """Each row's result, as `lines`, where there is one tile."""
        rows = [split_vector(b, row, self.width) for row in split_vector(b, value, self.cols)]
        return [self._line(b, row) for row in rows]

    def _line(self, b: Builder, parts: list[Value]) -> Value:
        best = self.combine.all_of(b, parts, checked=False)
        return b.select(_are_numbers(b, parts), best, self._nan(), "line") if self.combine.compares_floats else best

    def lines(self, b: Builder, carried: list[Value]) -> list[Value]:
        """Each row's result, a register wide; of columns that of all rows. NaN where there was one."""
        best, *seen = carried
        if not self.by_row:
            rows = [split_vector(b, best, self.width)]
        else:
            rows = [split_vector(b, row, self.width) for row in split_vector(b, best, self.cols)]
        found = [self.combine.all_of(b, row, checked=False) for row in rows]
        return [self._with_nan(b, row, seen[i : i + 1]) for i, row in enumerate(found)]

    def _with_nan(self, b: Builder, value: Value, seen: list[Value]) -> Value:
        if not seen:
            return value
        return b.select(b.icmp("ne", seen[0], zero(seen[0].type)), self._nan(), value, "acc")

    def _nan(self) -> Value:
        assert isinstance(self.combine.held, FloatType)
        return const_vector([const_float(self.combine.held, float("nan"))] * self.width)


def _are_numbers(b: Builder, lines: list[Value]) -> Value:
    """Where none of the lines is NaN: two are tested at once."""
    pairs = zip(lines[::2], [*lines[1::2], lines[-1]], strict=False)
    first, *others = [emit_fcmp(b, "ord", x, y) for x, y in pairs]
    return reduce(lambda x, y: b.binary("and", x, y, "are"), others, first)


def split_vector(b: Builder, value: Value, width: int) -> list[Value]:
    """A flattened vector cut into pieces of `width`, which divides it."""
    assert isinstance(value.type, VectorType)
    return [b.shuffle(value, None, range(s, s + width), "part") for s in range(0, value.type.count, width)]


def _converted(b: Builder, opcode: str, value: Value, element: Type) -> Value:
    assert isinstance(value.type, VectorType)
    return b.cast(opcode, value, VectorType(value.type.count, element))
