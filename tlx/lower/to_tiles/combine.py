"""How a reduction combines values: the operation on flattened tiles, its identity, and folding a row to one number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.types import BFLOAT, FLOAT, HALF, I1, FloatType, IntType, Type, VectorType
from tlx.ir.values import Constant, ConstInt, Value, const_float, const_vector
from tlx.lower.ordinary import Operation
from tlx.lower.to_tiles.evaluate import Place, data_mask

_OPCODES: Final = {"add": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}


@dataclass(frozen=True, slots=True)
class Combine:
    """A reduction's operation.

    Attributes:
        operation: add, mul, max, min, and, or, xor.
        element: Element type of what is reduced.
    """

    operation: str
    element: Type

    @property
    def held(self) -> Type:
        """Element type of what is combined so far: 16-bit floats are combined as float."""
        return FLOAT if self.element in (BFLOAT, HALF) else self.element

    def widened(self, b: Builder, value: Value) -> Value:
        """A flattened tile in the type that is combined."""
        return _converted(b, "fpext", value, self.held)

    def narrowed(self, b: Builder, value: Value) -> Value:
        """What was combined, in the type of the result."""
        return _converted(b, "fptrunc", value, self.element)

    def identity(self, count: int) -> Value:
        """What changes nothing: -0 for sums, as -0 + -0 is -0."""
        return const_vector([_identity(self.operation, self.held)] * count)

    def masked(self, b: Builder, value: Value, place: Place) -> Value:
        """A tile with the identity where it holds no data."""
        return b.select(data_mask(place), value, self.identity(place.count)) if place.padding else value

    def apply(self, b: Builder, x: Value, y: Value) -> Value:
        """Both combined, element by element. NaN wins in max and min."""
        floats = isinstance(self.held, FloatType)
        if self.operation in _OPCODES:
            return b.binary(f"f{self.operation}" if floats else self.operation, x, y, "acc")
        if not floats:
            return b.select(b.icmp("sgt" if self.operation == "max" else "slt", x, y), x, y, "acc")
        better = b.select(_compare(b, "ogt" if self.operation == "max" else "olt", x, y), x, y)
        return b.select(_compare(b, "uno", x, x), x, better, "acc")

    def all_of(self, b: Builder, values: list[Value]) -> Value:
        """All values combined, in a tree."""
        while len(values) > 1:
            pairs = [self.apply(b, x, y) for x, y in zip(values[::2], values[1::2], strict=False)]
            values = [*pairs, *([values[-1]] if len(values) % 2 else [])]
        return values[0]

    def folded(self, b: Builder, row: Value, width: int) -> Value:
        """A flattened row as one number, in a vector of one: registers of `width` first, then their halves."""
        value = self.all_of(b, slices(b, row, width))
        while width > 1:
            width //= 2
            value = self.all_of(b, slices(b, value, width))
        return value


def slices(b: Builder, value: Value, width: int) -> list[Value]:
    """A flattened vector cut into pieces of `width`, which divides it."""
    assert isinstance(value.type, VectorType)
    return [b.shuffle(value, None, range(s, s + width), "part") for s in range(0, value.type.count, width)]


def _converted(b: Builder, opcode: str, value: Value, element: Type) -> Value:
    assert isinstance(value.type, VectorType)
    return b.cast(opcode, value, VectorType(value.type.count, element))


def _compare(b: Builder, predicate: str, x: Value, y: Value) -> Value:
    assert isinstance(x.type, VectorType)
    return Operation("fcmp", (), predicate).emit(b, VectorType(x.type.count, I1), [x, y], "is")


def _identity(operation: str, element: Type) -> Constant:
    if isinstance(element, FloatType):
        return const_float(element, {"add": -0.0, "mul": 1.0, "max": float("-inf"), "min": float("inf")}[operation])
    assert isinstance(element, IntType)
    least = -(1 << (element.bits - 1))
    numbers = {"add": 0, "mul": 1, "max": least, "min": -least - 1, "and": -1, "or": 0, "xor": 0}
    return ConstInt(element, numbers[operation])
