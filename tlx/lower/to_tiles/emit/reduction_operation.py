"""The operation of a reduction on flattened tiles: identity, NaN handling, and the horizontal reduction of a row.

The maximum of floats is NaN if one of them is. A loop carries the maximum and, separately, a mask of where there was a
NaN: the two do not depend on each other, and one comparison tests two registers for NaN.

    best = best > x ? best : x                           may lose a NaN
    seen = x0 ordered x1, x2 ordered x3, ... ? seen : all    x0, x1, ...: registers of x

The maximum or minimum of 16-bit floats is the maximum of integers in the same order, so nothing is widened. NaN is the
largest integer (m: the bits of infinity):

    largest    x < 0 ? m - x : x     signed      -inf -> least,  -0 -> m - 0x8000,  0 -> 0,  inf -> m,  NaN above it
    smallest   x < 0 ? x : m - x     unsigned    inf -> 0,  0 -> m,  -0 -> 0x8000,  -inf -> m + 0x8000,  NaN above it

The same mapping converts back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder import Builder
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I16, I32, I64, FloatType, IntType, Type, VectorType
from tlx.ir.values import Value, const_float, const_ints, const_vector, zero
from tlx.lower.operations import (
    MIN_MAX,
    combine_identity,
    emit_combine,
    emit_combine_ordered,
    emit_fcmp,
    emit_portable_combine,
)
from tlx.lower.to_tiles.emit.tiles import SWAPPED_AXES, ResultTile, data_mask

_INFINITIES: Final[dict[Type, int]] = {BFLOAT: 0x7F80, HALF: 0x7C00}


@dataclass(frozen=True, slots=True)
class ReductionOperation:
    """The operation of a reduction.

    Attributes:
        operation: add, mul, max, min, and, or, xor.
        element: Element type of what is reduced.
        by_intrinsic: Whether minima and maxima of floats are `llvm.minimum` and `llvm.maximum`, rather than two
            comparisons: one that may lose NaN, and one that finds it.
    """

    operation: str
    element: Type
    by_intrinsic: bool = False

    @property
    def partial_element(self) -> Type:
        """Element type of partial results: 16-bit floats are combined as float, or as ordered integers."""
        if self.uses_ordered_integers:
            return I16
        return FLOAT if self.element in _INFINITIES else self.element

    @property
    def uses_ordered_integers(self) -> bool:
        """Whether floats are combined as ordered integers."""
        return self.operation in MIN_MAX and self.element in _INFINITIES

    def widened(self, b: Builder, value: Value) -> Value:
        """A flattened tile in the type of partial results."""
        if self.uses_ordered_integers:
            return self._reordered(b, _converted(b, "bitcast", value, I16))
        return _converted(b, "fpext", value, self.partial_element)

    def narrowed(self, b: Builder, value: Value) -> Value:
        """Partial results in the type of the result."""
        if self.uses_ordered_integers:
            return _converted(b, "bitcast", self._reordered(b, value), self.element)
        return _converted(b, "fptrunc", value, self.element)

    def widened_pairs(self, b: TensorBuilder, value: Value, rows: int, lanes: int) -> Value:
        """A flattened tile of bfloat as float, the even elements of each register before the odd ones.

        No element changes its lane.
        """
        assert isinstance(value.type, VectorType)
        cols = value.type.count // rows
        permuted = TensorType.dense(self.element, (rows, cols // (2 * lanes), lanes, 2, 1))
        shape = VectorType(value.type.count, self.element)
        moved = b.reshape_permute(b.typeinfo(value, permuted, "pairs"), SWAPPED_AXES, (rows, cols), shape, "permuted")
        return self.widened(b, moved)

    def _reordered(self, b: Builder, x: Value) -> Value:
        """The bits of floats as integers in the same order, or back.

        Unlike moving signs to a mask, testing the sign bit does not use the port of the maximum on Intel's machines.
        """
        assert isinstance(x.type, VectorType)
        count = x.type.count
        mirrored = b.binary("sub", const_ints(I16, [_INFINITIES[self.element]] * count), x)
        sign = b.binary("and", x, const_ints(I16, [-0x8000] * count))
        is_negative = b.icmp("ne", sign, zero(x.type))
        return b.select(is_negative, mirrored, x) if self.operation == "max" else b.select(is_negative, x, mirrored)

    def identity(self, count: int) -> Value:
        """The identity; -0 for sums, as -0 + -0 is -0."""
        if self.uses_ordered_integers:
            return const_ints(I16, [-0x8000 if self.operation == "max" else 0] * count)
        return const_vector([combine_identity(self.operation, self.partial_element)] * count)

    def masked(self, b: Builder, value: Value, result_tile: ResultTile) -> Value:
        """A tile with its padding replaced by the identity."""
        return (
            b.select(data_mask(result_tile), value, self.identity(result_tile.count)) if result_tile.padding else value
        )

    @property
    def compares_floats(self) -> bool:
        """Whether NaN needs handling."""
        return self.operation in MIN_MAX and isinstance(self.partial_element, FloatType)

    def apply(self, b: Builder, x: Value, y: Value) -> Value:
        """Combine element by element; max and min propagate NaN."""
        if not self.compares_floats:
            return self.apply_to_numbers(b, x, y)
        return (emit_portable_combine if self.by_intrinsic else emit_combine)(b, self.operation, x, y)

    def apply_to_numbers(self, b: Builder, x: Value, y: Value) -> Value:
        """Combine numbers; NaN may be lost."""
        return emit_combine_ordered(
            b, self.partial_operation, x, y, signed=self.operation == "max" or not self.uses_ordered_integers
        )

    @property
    def partial_operation(self) -> str:
        """The operation on partial results: max or umax for ordered integers."""
        return "max" if self.uses_ordered_integers else self.operation

    def combine_all(self, b: Builder, values: list[Value], *, checked: bool = True) -> Value:
        """Combine all values, in a tree; NaN may be lost unless `checked`."""
        apply = self.apply if checked else self.apply_to_numbers
        while len(values) > 1:
            pairs = [apply(b, x, y) for x, y in zip(values[::2], values[1::2], strict=False)]
            values = [*pairs, *([values[-1]] if len(values) % 2 else [])]
        return values[0]

    def in_signed_order(self, b: Builder, line: Value) -> Value:
        """Ordered integers in signed order, which `reduce.max` uses, or back."""
        if not self.uses_ordered_integers or self.operation == "max":
            return line
        assert isinstance(line.type, VectorType)
        return b.binary("xor", line, const_ints(I16, [-0x8000] * line.type.count))

    def reduce_row(self, b: Builder, row: Value, width: int) -> Value:
        """A flattened row reduced to a vector of one: registers of `width` first, then halves."""
        value = self.combine_all(b, split_vector(b, row, width))
        while width > 1:
            width //= 2
            value = self.combine_all(b, split_vector(b, value, width))
        return value


@dataclass(frozen=True, slots=True)
class RunningReduction:
    """The loop-carried state of a reduction of tiles of one size: partial results, and a mask of NaN.

    Attributes:
        combine: The operation.
        rows, cols: The tile.
        width: Elements of the mask: of a register when rows are reduced, `cols` when columns are.
        by_row: Whether each row of the tile has its own mask.
    """

    combine: ReductionOperation
    rows: int
    cols: int
    width: int
    by_row: bool

    @classmethod
    def along_columns(cls, combine: ReductionOperation, result_tile: ResultTile, lanes: int) -> RunningReduction:
        """The state for reducing each row."""
        return cls(combine, result_tile.rows, result_tile.cols, min(lanes, result_tile.cols), True)

    @classmethod
    def along_rows(cls, combine: ReductionOperation, result_tile: ResultTile) -> RunningReduction:
        """The state for reducing each column."""
        return cls(combine, result_tile.rows, result_tile.cols, result_tile.cols, False)

    def start(self) -> list[Value]:
        """The initial state."""
        best = self.combine.identity(self.rows * self.cols)
        return [best, *self._masks()]

    def _masks(self) -> list[Value]:
        if not self.combine.compares_floats:
            return []
        return [zero(VectorType(self.width, self._word)) for _ in range(self.rows if self.by_row else 1)]

    @property
    def _word(self) -> IntType:
        return I64 if self.combine.partial_element == DOUBLE else I32

    def first(self, b: Builder, value: Value) -> list[Value]:
        """The state after the first tile."""
        return [value, *self._all_marked(b, self._masks(), value)]

    def add(self, b: Builder, carried: list[Value], value: Value) -> list[Value]:
        """The state after another tile."""
        best, *seen = carried
        return [self.combine.apply_to_numbers(b, best, value), *self._all_marked(b, seen, value)]

    def _all_marked(self, b: Builder, seen: list[Value], value: Value) -> list[Value]:
        if not seen:
            return []
        lines = split_vector(b, value, self.width)
        share = len(lines) // len(seen)
        return [self._with_nan_lanes(b, mask, lines[i * share : (i + 1) * share]) for i, mask in enumerate(seen)]

    def _with_nan_lanes(self, b: Builder, mask: Value, lines: list[Value]) -> Value:
        """The mask, with all bits set where one of the registers is NaN."""
        return b.select(_are_numbers(b, lines), mask, const_ints(self._word, [-1] * self.width), "nan")

    def lines_of_single_tile(self, b: Builder, value: Value) -> list[Value]:
        """The register of each row of a single tile, as `lines` returns them."""
        rows = [split_vector(b, row, self.width) for row in split_vector(b, value, self.cols)]
        return [self._line(b, row) for row in rows]

    def _line(self, b: Builder, parts: list[Value]) -> Value:
        best = self.combine.combine_all(b, parts, checked=False)
        return b.select(_are_numbers(b, parts), best, self._nan(), "line") if self.combine.compares_floats else best

    def lines(self, b: Builder, carried: list[Value]) -> list[Value]:
        """A register for each row, or one for all rows if columns are reduced; NaN where a NaN was seen."""
        best, *seen = carried
        if not self.by_row:
            rows = [split_vector(b, best, self.width)]
        else:
            rows = [split_vector(b, row, self.width) for row in split_vector(b, best, self.cols)]
        lines = [self.combine.combine_all(b, row, checked=False) for row in rows]
        return [self._with_nan(b, row, seen[i : i + 1]) for i, row in enumerate(lines)]

    def _with_nan(self, b: Builder, value: Value, seen: list[Value]) -> Value:
        if not seen:
            return value
        return b.select(b.icmp("ne", seen[0], zero(seen[0].type)), self._nan(), value, "acc")

    def _nan(self) -> Value:
        assert isinstance(self.combine.partial_element, FloatType)
        return const_vector([const_float(self.combine.partial_element, float("nan"))] * self.width)


def _are_numbers(b: Builder, lines: list[Value]) -> Value:
    """A mask of where no register is NaN; one comparison tests two."""
    pairs = zip(lines[::2], [*lines[1::2], lines[-1]], strict=False)
    first, *others = [emit_fcmp(b, "ord", x, y) for x, y in pairs]
    return reduce(lambda x, y: b.binary("and", x, y, "ordered"), others, first)


def split_vector(b: Builder, value: Value, width: int) -> list[Value]:
    """A flattened vector cut into pieces of `width`, which divides it."""
    assert isinstance(value.type, VectorType)
    assert value.type.count % width == 0
    return [b.shuffle(value, None, range(s, s + width), "part") for s in range(0, value.type.count, width)]


def _converted(b: Builder, opcode: str, value: Value, element: Type) -> Value:
    assert isinstance(value.type, VectorType)
    return b.cast(opcode, value, VectorType(value.type.count, element))
