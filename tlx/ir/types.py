"""LLVM types as immutable values; `str(type)` is the LLVM spelling, `mangle(type)` the intrinsic suffix.

The functions at the end are about vectors too large for LLVM's code generator; clang -O0 makes them of large tensors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final


@dataclass(frozen=True, slots=True, eq=False)
class Type:
    """Base of all LLVM types; types are equal if their spellings are.

    Attributes:
        spelling: As LLVM spells it. It is kept because every instruction spells and looks up types.
    """

    spelling: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spelling", self._spelled())

    def _spelled(self) -> str:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Type) and self.spelling == other.spelling)

    def __hash__(self) -> int:
        return hash(self.spelling)

    def __str__(self) -> str:
        return self.spelling


@dataclass(frozen=True, slots=True, eq=False)
class SimpleType(Type):
    """A type that is one word: void, token, label, metadata, x86_amx, opaque."""

    word: str

    def _spelled(self) -> str:
        return self.word


VOID: Final = SimpleType("void")
TOKEN: Final = SimpleType("token")
LABEL: Final = SimpleType("label")
METADATA: Final = SimpleType("metadata")
X86_AMX: Final = SimpleType("x86_amx")


@dataclass(frozen=True, slots=True, eq=False)
class IntType(Type):
    """`iN`."""

    bits: int

    def _spelled(self) -> str:
        return f"i{self.bits}"


I1: Final = IntType(1)
I8: Final = IntType(8)
I16: Final = IntType(16)
I32: Final = IntType(32)
I64: Final = IntType(64)


@dataclass(frozen=True, slots=True, eq=False)
class FloatType(Type):
    """A floating-point type by its LLVM name."""

    name: str

    def _spelled(self) -> str:
        return self.name

    @property
    def bits(self) -> int:
        """Width in bits."""
        return FLOAT_BITS[self.name]


FLOAT_BITS: Final = {
    "half": 16,
    "bfloat": 16,
    "float": 32,
    "double": 64,
    "x86_fp80": 80,
    "fp128": 128,
    "ppc_fp128": 128,
}
HALF: Final = FloatType("half")
BFLOAT: Final = FloatType("bfloat")
FLOAT: Final = FloatType("float")
DOUBLE: Final = FloatType("double")


@dataclass(frozen=True, slots=True, eq=False)
class PointerType(Type):
    """`ptr` (pointee None) or a typed `T*`, with its address space."""

    pointee: Type | None = None
    addrspace: int = 0

    def _spelled(self) -> str:
        space = f" addrspace({self.addrspace})" if self.addrspace else ""
        if self.pointee is None:
            return f"ptr{space}"
        return f"{self.pointee}{space}*"


PTR: Final = PointerType()


@dataclass(frozen=True, slots=True, eq=False)
class VectorType(Type):
    """`<count x element>`, or `<vscale x count x element>`."""

    count: int
    element: Type
    scalable: bool = False

    def _spelled(self) -> str:
        scale = "vscale x " if self.scalable else ""
        return f"<{scale}{self.count} x {self.element}>"


def next_power_of_two(number: int) -> int:
    """The least power of two that is not below a number of elements, bits or bytes; 1 for 0."""
    return 1 << max(number - 1, 0).bit_length()


@lru_cache(maxsize=4096)
def vector_of(count: int, element: Type) -> VectorType:
    """`<count x element>`; equal ones are one object, which makes dictionary lookups faster."""
    return VectorType(count, element)


@lru_cache(maxsize=4096)
def pointer_to(pointee: Type | None, addrspace: int) -> PointerType:
    """A type of pointers; equal ones are one object, as those of `vector_of`."""
    return PointerType(pointee, addrspace)


@lru_cache(maxsize=4096)
def function_of(result: Type, params: tuple[Type, ...]) -> FunctionType:
    """A type of functions; equal ones are one object, as those of `vector_of`."""
    return FunctionType(result, params)


@dataclass(frozen=True, slots=True, eq=False)
class ArrayType(Type):
    """`[count x element]`."""

    count: int
    element: Type

    def _spelled(self) -> str:
        return f"[{self.count} x {self.element}]"


@dataclass(frozen=True, slots=True, eq=False)
class StructType(Type):
    """`{ ... }`, packed `<{ ... }>`."""

    elements: tuple[Type, ...]
    packed: bool = False

    def _spelled(self) -> str:
        inner = ", ".join(str(e) for e in self.elements)
        body = f"{{ {inner} }}" if inner else "{}"
        return f"<{body}>" if self.packed else body


@dataclass(frozen=True, slots=True, eq=False)
class NamedType(Type):
    """`%name` of a `%name = type ...`; `name` is spelled with its `%`."""

    name: str

    def _spelled(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class TargetType(Type):
    """`target("...", ...)`, kept as spelled."""

    text: str

    def _spelled(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, eq=False)
class FunctionType(Type):
    """`result (params)`."""

    result: Type
    params: tuple[Type, ...]
    vararg: bool = False

    def _spelled(self) -> str:
        parts = [str(p) for p in self.params] + (["..."] if self.vararg else [])
        return f"{self.result} ({', '.join(parts)})"


def scalar_of(type_: Type) -> Type:
    """Element type of a vector, the type itself otherwise."""
    return type_.element if isinstance(type_, VectorType) else type_


def is_scalar_number(type_: Type) -> bool:
    """Whether a type is an integer or floating-point scalar."""
    return isinstance(type_, (IntType, FloatType))


def bits_of(type_: Type) -> int:
    """Width in bits of a scalar or a fixed-length vector of scalars; pointers have 64.

    Raises:
        ValueError: The type is another one.
    """
    if isinstance(type_, (IntType, FloatType)):
        return type_.bits
    if isinstance(type_, PointerType):
        return 64
    if isinstance(type_, VectorType) and not type_.scalable:
        return type_.count * bits_of(type_.element)
    message = f"type {type_} has no fixed width"
    raise ValueError(message)


def bytes_of(type_: Type) -> int:
    """Size in bytes of a scalar, or of a fixed-length vector with packed elements."""
    return (bits_of(type_) + 7) // 8


def is_float(type_: Type) -> bool:
    """Whether a scalar or vector type is floating-point."""
    return isinstance(type_.element if isinstance(type_, VectorType) else type_, FloatType)


_FLOAT_SUFFIXES: Final = {
    "half": "f16",
    "bfloat": "bf16",
    "float": "f32",
    "double": "f64",
    "x86_fp80": "f80",
    "fp128": "f128",
    "ppc_fp128": "ppcf128",
}


def mangle(type_: Type) -> str:
    """LLVM's suffix for a type, without the dot.

    Raises:
        ValueError: LLVM has no suffix for the type.
    """
    if isinstance(type_, IntType):
        return f"i{type_.bits}"
    if isinstance(type_, FloatType):
        return _FLOAT_SUFFIXES[type_.name]
    if isinstance(type_, VectorType):
        return f"{'nx' if type_.scalable else ''}v{type_.count}{mangle(type_.element)}"
    if isinstance(type_, PointerType):
        return f"p{type_.addrspace}{mangle(type_.pointee) if type_.pointee is not None else ''}"
    if isinstance(type_, ArrayType):
        return f"a{type_.count}{mangle(type_.element)}"
    if isinstance(type_, StructType):
        return f"sl_{''.join(mangle(e) for e in type_.elements)}s"
    message = f"no intrinsic suffix for type {type_}"
    raise ValueError(message)


def mangled_name(name: str, types: list[Type]) -> str:
    """An intrinsic's full name: `llvm.fma` and `<4 x float>` give `llvm.fma.v4f32`."""
    return ".".join([name, *(mangle(t) for t in types)])


MAX_SSA_BYTES: Final = 1024
"""Vectors up to this size may be SSA values, for ordinary instructions that use them."""
_MAX_SSA_BFLOATS: Final = 32
"""The limit for bfloat is lower: LLVM scalarises its vectors, with a register for each element. LLVM 19 and 22 take
minutes for a few hundred elements that are live across blocks; LLVM 22 crashes on 33 at -O0 with AVX512-BF16."""
ABI_ELEMENTS: Final = 4096
"""Vectors up to this size are passed by value, which LLVM's code generator can handle."""

_ELEMENTS: Final[dict[str, Type]] = {
    str(type_): type_ for type_ in (I1, I8, I16, I32, I64, HALF, BFLOAT, FLOAT, DOUBLE)
}
_VECTOR: Final = re.compile(rf"<(\d+) x ({'|'.join(_ELEMENTS)})>")
_LARGE: Final = re.compile(
    r"<(?:409[7-9]|4[1-9]\d\d|[5-9]\d{3}|\d{5,}) x [a-z]"
    r"|<(?:25[7-9]|2[6-9]\d|[3-9]\d\d|\d{4,}) x bfloat>"
)


def has_large_vectors(text: str) -> bool:
    """Whether a text mentions vectors of more than 4096 elements, or 256 of bfloat, which need the lowering."""
    return _LARGE.search(text) is not None


def mentions_slow_vectors(text: str) -> bool:
    """Whether a text mentions vectors too large for SSA values of ordinary instructions."""
    return any(int(count) > max_ssa_elements(_ELEMENTS[name]) for count, name in set(_VECTOR.findall(text)))


def max_ssa_elements(element: Type) -> int:
    """Elements of the largest vector that ordinary instructions may compute with as an SSA value."""
    return _MAX_SSA_BFLOATS if element == BFLOAT else MAX_SSA_BYTES // bytes_of(element)


def exceeds_abi(type_: Type) -> bool:
    """Whether a type cannot be a parameter or a result."""
    return exceeds_register(type_) and isinstance(type_, VectorType) and type_.count > ABI_ELEMENTS


def size_in_bytes(type_: Type) -> int | None:
    """Bytes of a vector of numbers; None for every other type."""
    if not isinstance(type_, VectorType) or type_.scalable:
        return None
    try:
        return (bits_of(type_) + 7) // 8
    except ValueError:
        return None


def exceeds_register(type_: Type) -> bool:
    """Whether a vector is too large to be an SSA value."""
    size = size_in_bytes(type_)
    return size is not None and size > MAX_SSA_BYTES
