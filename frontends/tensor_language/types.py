"""Types of the tensor language, and the rules about them: promotion, default strides, sizes.

    f32                                   ScalarType
    memref<f32x4x?,strided<1,?>,local>    MemrefType; `?` is None in shape and stride
    group<memref<f32x4x8>x?,offset:?>     GroupType
    coopmatrix<f16x16x16,matrix_a>        CoopMatrixType

`str(type)` is the spelling in version 2, with layouts and address spaces left out where they are the default.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

Kind = Literal["bool", "int", "float", "complex"]
AddressSpace = Literal["global", "local"]
MatrixUse = Literal["matrix_a", "matrix_b", "matrix_acc"]
Extent = int | None  # None is `?`: known only at run time
MAX_INTEGER: Final = 2**63 - 1  # integers of a text lie between -MAX_INTEGER and this
LOCAL_ALIGNMENT: Final = 64  # bytes: alignment of `alloca`; a cache line, and the widest vector
LARGEST_LOCAL_ALIGNMENT: Final = 128  # bytes: largest alignment of `alloca`; two lines, which are prefetched as a pair


@dataclass(frozen=True, slots=True)
class ScalarType:
    """`bool`, an integer, floating or complex type.

    Attributes:
        name: Its spelling.
        kind: What it holds.
        bits: Width of a value in bits (of both parts of a complex one).
    """

    name: str
    kind: Kind
    bits: int

    def __str__(self) -> str:
        return self.name

    @property
    def size(self) -> int:
        """Bytes of a value in memory."""
        return max(1, self.bits // 8)

    @property
    def is_number(self) -> bool:
        """Whether it is any type but `bool`."""
        return self.kind != "bool"

    @property
    def is_narrow_float(self) -> bool:
        """Whether it is `bf16` or `f16`: operations on them compute in f32 and round."""
        return self.kind == "float" and self.bits == 16

    @property
    def integers(self) -> range:
        """The values of an integer type."""
        return range(-(1 << (self.bits - 1)), 1 << (self.bits - 1))

    @property
    def part(self) -> ScalarType:
        """The floating type of the parts of a complex type; any other type itself."""
        if self.kind != "complex":
            return self
        return F32 if self.bits == 64 else F64


BOOL: Final = ScalarType("bool", "bool", 1)
I8: Final = ScalarType("i8", "int", 8)
I16: Final = ScalarType("i16", "int", 16)
I32: Final = ScalarType("i32", "int", 32)
I64: Final = ScalarType("i64", "int", 64)
INDEX: Final = ScalarType("index", "int", 64)
BF16: Final = ScalarType("bf16", "float", 16)
F16: Final = ScalarType("f16", "float", 16)
F32: Final = ScalarType("f32", "float", 32)
F64: Final = ScalarType("f64", "float", 64)
C32: Final = ScalarType("c32", "complex", 64)
C64: Final = ScalarType("c64", "complex", 128)

NUMBERS: Final = {t.name: t for t in (I8, I16, I32, I64, INDEX, BF16, F16, F32, F64, C32, C64)}


def is_language_type(type_: ScalarType) -> bool:
    """Whether a scalar type belongs to the language; programs can construct others."""
    return type_ == BOOL or NUMBERS.get(type_.name) == type_


# The types that represent every value of a type exactly, apart from the type itself.
_WIDER: Final = {
    I8: (I16, I32, I64, INDEX, BF16, F16, F32, F64, C32, C64),
    I16: (I32, I64, INDEX, F32, F64, C32, C64),
    I32: (I64, INDEX, F64, C64),
    I64: (),
    INDEX: (),
    BF16: (F32, F64, C32, C64),
    F16: (F32, F64, C32, C64),
    F32: (F64, C32, C64),
    F64: (C64,),
    C32: (C64,),
    C64: (),
}


def promotable(narrow: ScalarType, wide: ScalarType) -> bool:
    """Whether every value of `narrow` is a value of `wide`."""
    return narrow == wide or wide in _WIDER.get(narrow, ())


def promote(a: ScalarType, b: ScalarType) -> ScalarType | None:
    """The one of two types that represents the values of both; None if neither does."""
    if promotable(a, b):
        return b
    return a if promotable(b, a) else None


@dataclass(frozen=True, slots=True)
class MemrefType:
    """A region of memory with a shape and a stride.

    Attributes:
        element: A number type.
        shape: Extent of each mode, first mode first.
        stride: Distance in elements between neighbours along each mode.
        address_space: The address space of the memory.
    """

    element: ScalarType
    shape: tuple[Extent, ...]
    stride: tuple[Extent, ...]
    address_space: AddressSpace = "global"

    @classmethod
    def packed(
        cls, element: ScalarType, shape: tuple[Extent, ...], address_space: AddressSpace = "global"
    ) -> MemrefType:
        """A memref with the default stride of its shape."""
        return cls(element, shape, default_stride(shape), address_space)

    @property
    def order(self) -> int:
        """Number of modes."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether shape and stride are known."""
        return None not in self.shape and None not in self.stride

    def __str__(self) -> str:
        text = f"memref<{self.element}{''.join(f'x{extent_text(s)}' for s in self.shape)}"
        if self.stride != default_stride(self.shape):
            text += f",strided<{','.join(map(extent_text, self.stride))}>"
        if self.address_space != "global":
            text += f",{self.address_space}"
        return f"{text}>"


@dataclass(frozen=True, slots=True)
class GroupType:
    """Pointers to memrefs of one type.

    Attributes:
        memref: Type of each member.
        size: Number of members.
        offset: Elements added to each pointer.
    """

    memref: MemrefType
    size: Extent
    offset: Extent = 0

    def __str__(self) -> str:
        offset = "" if self.offset == 0 else f",offset:{extent_text(self.offset)}"
        return f"group<{self.memref}x{extent_text(self.size)}{offset}>"


@dataclass(frozen=True, slots=True)
class CoopMatrixType:
    """A matrix that is distributed over a subgroup.

    Attributes:
        component: A number type.
        rows: Extent of the first mode.
        columns: Extent of the second mode.
        use: Its place in a multiplication.
    """

    component: ScalarType
    rows: int
    columns: int
    use: MatrixUse

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows, self.columns

    @property
    def part(self) -> CoopMatrixType:
        """The matrix of the parts of complex components; any other matrix itself."""
        return replace(self, component=self.component.part)

    def reduced(self, mode: Literal["row", "column"]) -> CoopMatrixType:
        """The matrix with one entry a row, `M x 1`, or one a column, `1 x N`."""
        return replace(self, columns=1) if mode == "row" else replace(self, rows=1)

    def __str__(self) -> str:
        return f"coopmatrix<{self.component}x{self.rows}x{self.columns},{self.use}>"


Type = ScalarType | MemrefType | GroupType | CoopMatrixType


def number_of_kind(value: Any, type_: ScalarType) -> bool | int | float | complex:
    """A Python or numpy number as a Python number of the type's kind; integers lie in the type's range.

    Raises:
        TypeError: It is not a number of that kind; arrays are not, and booleans are not numbers.
        ValueError: It is not a number at all.
        OverflowError: The type has no such integer, or there is no such float.
    """
    name = type(value).__name__
    if (name in {"bool", "bool_"}) != (type_.kind == "bool") or name == "ndarray" or isinstance(value, (str, bytes)):
        raise TypeError
    if type_.kind == "int":
        number = operator.index(value)
        if number not in type_.integers:
            raise OverflowError
        return number
    return _CONVERSIONS[type_.kind](value)


_CONVERSIONS: Final[dict[str, Callable[[Any], bool | float | complex]]] = {
    "bool": bool,
    "float": float,
    "complex": complex,
}


def default_stride(shape: tuple[Extent, ...]) -> tuple[Extent, ...]:
    """The packed, column-major stride: `S1 = 1`, `S(i+1) = S(i) * s(i)` up to the first dynamic mode, then `?`."""
    stride: list[Extent] = []
    following: Extent = 1
    for extent in shape:
        stride.append(following)
        following = extent_product(following, extent)
    return tuple(stride)


def extent_product(a: Extent, b: Extent) -> Extent:
    """The product of two extents, unknown if one of them is."""
    return None if a is None or b is None else a * b


def extent_text(extent: Extent) -> str:
    """An extent as the language spells it."""
    return "?" if extent is None else str(extent)
