"""What a name is while LLVM IR is written: a number, a memref, a group or a matrix.

A number is *uniform* (one LLVM scalar) or *varying* (one lane each work-item of a subgroup, an LLVM vector). In
registers, `bf16` and `f16` are floats that hold a value of the narrow type: nothing is computed in them. A complex
number is two such values, its parts.

    register             memory                 tensor element
    bool   i1            -                      i1
    i8...i64, index      the same               the same
    bf16   float         i16 (the upper half)   bfloat
    f16    float         half                   half
    f32    float         float                  float
    f64    double        double                 double
    c32    2 x float     2 x float, adjacent    -
    c64    2 x double    2 x double, adjacent   -

It tells whether sums and products of small integers, such as `subgroup_linear_id * subgroup_size + subgroup_local_id`,
wrap around; if they do not, they grow as evenly from lane to lane in a wider type.
"""

from __future__ import annotations

from dataclasses import dataclass

from tlx.frontends.tensor_language.types import BF16, CoopMatrixType, GroupType, MemrefType, ScalarType
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I16, FloatType, IntType, VectorType
from tlx.ir.values import ConstInt, Value


def register_type(type_: ScalarType) -> IntType | FloatType:
    """LLVM type in which one part of a scalar is held and computed with."""
    if type_.kind in ("bool", "int"):
        return IntType(type_.bits)
    return DOUBLE if type_.part.bits == 64 else FLOAT


def memory_type(type_: ScalarType) -> IntType | FloatType:
    """LLVM type with which one part of a scalar is loaded and stored."""
    if type_.is_narrow_float:
        return I16 if type_ == BF16 else HALF
    return register_type(type_)


def tensor_element(type_: ScalarType) -> IntType | FloatType:
    """Element type of tensors of a scalar type; of its parts where it is complex."""
    if type_.is_narrow_float:
        return BFLOAT if type_ == BF16 else HALF
    return register_type(type_)


@dataclass(frozen=True, slots=True)
class Linear:
    """Lane `i` holds `base + i * step`.

    Attributes:
        base: A uniform integer.
        step: Known distance from lane to lane.
        exact: Whether that is so of the numbers themselves; if not, then only modulo 2 to the number of bits.
    """

    base: Value
    step: int
    exact: bool = False


Parts = tuple[Value, ...]  # of a number, or of a vector of numbers: one, or the real and the imaginary one
Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar.

    Attributes:
        type: Its type.
        parts: One LLVM value; the real and the imaginary one of a complex number.
        linear: Set for varying integers that grow evenly from lane to lane.
        interval: The smallest and the largest number that an integer can be, in any lane.
    """

    type: ScalarType
    parts: Parts
    linear: Linear | None = None
    interval: Interval | None = None

    @property
    def value(self) -> Value:
        """The only part."""
        (value,) = self.parts
        return value

    @property
    def is_varying(self) -> bool:
        """Whether it is one value each lane."""
        return isinstance(self.parts[0].type, VectorType)


@dataclass(frozen=True, slots=True)
class Memref:
    """A memref. Where a part of it varies (a view at a varying offset), that part is a vector with a lane each item.

    Attributes:
        type: Its type; a static extent is also the constant in `shape` or `stride`.
        pointer: Address of its first element: `ptr`, or a vector of `ptr`.
        shape: Extent of each mode, i64.
        stride: Stride of each mode in elements, i64.
        alignment: Known alignment of the pointer in bytes, at least that of an element.
    """

    type: MemrefType
    pointer: Value
    shape: tuple[Value, ...]
    stride: tuple[Value, ...]
    alignment: int

    @property
    def is_varying(self) -> bool:
        """Whether work-items see different memrefs."""
        return any(isinstance(v.type, VectorType) for v in (self.pointer, *self.shape, *self.stride))


@dataclass(frozen=True, slots=True)
class Group:
    """A group of memrefs.

    Attributes:
        type: Its type.
        pointer: Address of the first member's pointer.
        shapes: For each mode, the address of the members' extents (i64), None where the extent is static.
        strides: The same for the strides.
        size: Number of members, i64; None in the first version of the language, which does not tell it.
        offset: Elements added to each pointer, i64.
        alignment: Known alignment of the members' pointers in bytes.
    """

    type: GroupType
    pointer: Value
    shapes: tuple[Value | None, ...]
    strides: tuple[Value | None, ...]
    size: Value | None
    offset: Value
    alignment: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """A cooperative matrix, uniform: all of it, column by column, in a flattened vector a part.

    Attributes:
        type: Its type.
        parts: `<rows * columns x T>` of the tensor element type; two of them for complex components.
    """

    type: CoopMatrixType
    parts: Parts

    @property
    def value(self) -> Value:
        """The only part."""
        (value,) = self.parts
        return value


Emitted = Number | Memref | Group | Matrix


def interval_of(number: Number) -> Interval | None:
    """What is known of a number."""
    if number.interval is not None:
        return number.interval
    if number.is_varying or not isinstance(number.parts[0], ConstInt):
        return None
    return number.parts[0].value, number.parts[0].value


def binary_interval(op: str, type_: ScalarType, lhs: Number, rhs: Number) -> Interval | None:
    """What is known of `lhs op rhs`."""
    a, b = interval_of(lhs), interval_of(rhs)
    if type_.kind != "int" or a is None or b is None:
        return None
    match op:
        case "add":
            return clamped_interval(type_, (a[0] + b[0], a[1] + b[1]))
        case "sub":
            return clamped_interval(type_, (a[0] - b[1], a[1] - b[0]))
        case "mul":
            corners = [x * y for x in a for y in b]
            return clamped_interval(type_, (min(corners), max(corners)))
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
        case _:
            return None


def loop_interval(start: Number, stop: Number) -> Interval | None:
    """What is known of the variable of a loop, in the work-items that run it."""
    a, b = interval_of(start), interval_of(stop)
    return None if a is None or b is None else (a[0], max(a[0], b[1] - 1))


def clamped_interval(type_: ScalarType, found: Interval | None) -> Interval | None:
    """An interval of numbers that a type holds; nothing is known of numbers that wrapped around."""
    limit = 1 << (type_.bits - 1)
    return found if found is not None and -limit <= found[0] and found[1] < limit else None
