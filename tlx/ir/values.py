"""Operands of instructions: locals, globals, constants and their arithmetic. `str(value)` leaves out the type."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from tlx.ir.types import DOUBLE, FLOAT, I1, FloatType, IntType, Type, VectorType, vector_of


@dataclass(frozen=True, slots=True)
class Value:
    """Base of all operands."""

    type: Type

    @property
    def typed(self) -> str:
        """`type value`, as LLVM spells an operand."""
        return f"{self.type.spelling} {self}"


@dataclass(frozen=True, slots=True)
class Local(Value):
    """`%name`: an argument, an instruction's result, or a block (type label). `name` has no `%`."""

    name: str

    def __str__(self) -> str:
        return f"%{self.name}"

    @property
    def typed(self) -> str:
        """`type %name`: in place, since most operands are names."""
        return f"{self.type.spelling} %{self.name}"


@dataclass(frozen=True, slots=True)
class Global(Value):
    """`@name`. `name` has no `@`; quoted names keep their quotes."""

    name: str

    def __str__(self) -> str:
        return f"@{self.name}"


@dataclass(frozen=True, slots=True)
class Constant(Value):
    """Base of all constants."""


@dataclass(frozen=True, slots=True)
class ConstInt(Constant):
    """An integer; `value` is as written (negative numbers allowed)."""

    value: int

    def __str__(self) -> str:
        if self.type == I1:
            return "true" if self.value & 1 else "false"
        return str(self.value)

    @property
    def unsigned(self) -> int:
        """Its bits as an unsigned number."""
        return self.value % (1 << self.type.bits) if isinstance(self.type, IntType) else self.value


@dataclass(frozen=True, slots=True)
class ConstFloat(Constant):
    """A floating-point number in LLVM's spelling."""

    spelling: str

    def __str__(self) -> str:
        return self.spelling

    @property
    def value(self) -> float:
        """The number; half and bfloat are exact in a Python float.

        Raises:
            ValueError: x86_fp80, fp128 and ppc_fp128 in hexadecimal do not fit.
        """
        text = self.spelling
        if text.startswith("0xH"):
            return float(struct.unpack("<e", int(text[3:], 16).to_bytes(2, "little"))[0])
        if text.startswith("0xR"):
            return float(struct.unpack("<f", (int(text[3:], 16) << 16).to_bytes(4, "little"))[0])
        if text[:3] in ("0xK", "0xL", "0xM"):
            message = f"{text} does not fit a Python float"
            raise ValueError(message)
        if text.startswith("0x"):
            return float(struct.unpack("<d", int(text, 0).to_bytes(8, "little"))[0])
        return float(text)


@dataclass(frozen=True, slots=True)
class Keyword(Constant):
    """`zeroinitializer`, `null`, `undef`, `poison` or `none`."""

    word: str

    def __str__(self) -> str:
        return self.word


@dataclass(frozen=True, slots=True)
class Aggregate(Constant):
    """A vector, array or struct constant; `brackets` is its opening spelling: `<`, `[`, `{` or `<{`."""

    elements: tuple[Value, ...]
    brackets: str
    _spelling: str = field(default="", repr=False, compare=False)
    _integers: tuple[int, ...] | None = field(default=None, repr=False, compare=False)

    @property
    def integers(self) -> tuple[int, ...] | None:
        """The elements, if all are integers."""
        if self._integers is None:
            numbers = tuple(e.value for e in self.elements if isinstance(e, ConstInt))
            object.__setattr__(self, "_integers", numbers if len(numbers) == len(self.elements) else ())
        return self._integers or None

    def copy(self) -> Aggregate:
        """A new object: the operands of an instruction are distinguished by identity."""
        return Aggregate(self.type, self.elements, self.brackets, str(self), self.integers)

    def __str__(self) -> str:
        if not self._spelling:
            object.__setattr__(self, "_spelling", self._spelled())
        return self._spelling

    def _spelled(self) -> str:
        closing = {"<": ">", "[": "]", "{": "}", "<{": "}>"}[self.brackets]
        space = " " if "{" in self.brackets and self.elements else ""
        return f"{self.brackets}{space}{', '.join(e.typed for e in self.elements)}{space}{closing}"


@dataclass(frozen=True, slots=True)
class Splat(Constant):
    """`splat (type value)`."""

    element: Value

    def __str__(self) -> str:
        return f"splat ({self.element.typed})"


@dataclass(frozen=True, slots=True)
class OpaqueConstant(Constant):
    """A constant kept as spelled: `c"..."` strings, inline asm, metadata operands, blockaddress, ..."""

    spelling: str

    def __str__(self) -> str:
        return self.spelling


@dataclass(frozen=True, slots=True)
class ConstExpr(Constant):
    """A constant expression, kept as spelled, with its operands."""

    opcode: str
    operands: tuple[Value, ...]
    spelling: str
    source_type: Type | None = None

    def __str__(self) -> str:
        return self.spelling


def const_int(type_: Type, value: int) -> ConstInt:
    """An integer constant of an integer type."""
    return ConstInt(type_, value)


def const_float(type_: FloatType, number: float) -> ConstFloat:
    """A floating-point constant, spelled in hexadecimal: exact, and read by every LLVM.

    Raises:
        ValueError: The type is none of half, bfloat, float, double.
    """
    if type_ in (FLOAT, DOUBLE):
        rounded = struct.unpack("<f", struct.pack("<f", number))[0] if type_ == FLOAT else number
        bits = struct.unpack("<Q", struct.pack("<d", rounded))[0]
        return ConstFloat(type_, f"0x{bits:016X}")
    if type_.name == "half":
        return ConstFloat(type_, f"0xH{struct.unpack('<H', struct.pack('<e', number))[0]:04X}")
    if type_.name == "bfloat":
        bits = struct.unpack("<I", struct.pack("<f", number))[0]
        if math.isnan(number):
            return ConstFloat(type_, "0xR7FC0")
        return ConstFloat(type_, f"0xR{(bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 & 0xFFFF:04X}")
    message = f"cannot spell a constant of type {type_}"
    raise ValueError(message)


def zero(type_: Type) -> Constant:
    """The zero of a type."""
    if isinstance(type_, IntType):
        return ConstInt(type_, 0)
    if isinstance(type_, FloatType):
        return const_float(type_, 0.0)
    return Keyword(type_, "zeroinitializer")


def is_zeros(value: Value) -> bool:
    """Whether a value is the constant `zeroinitializer`."""
    return isinstance(value, Keyword) and value.word == "zeroinitializer"


def is_undefined(value: Value) -> bool:
    """Whether a value is `undef` or `poison`: any value may replace it."""
    return isinstance(value, Keyword) and value.word in ("undef", "poison")


def const_vector(elements: Sequence[Value]) -> Aggregate:
    """A vector constant of equally typed elements."""
    return Aggregate(vector_of(len(elements), elements[0].type), tuple(elements), "<")


def const_ints(type_: IntType, numbers: Sequence[int]) -> Aggregate:
    """`<n x iN> <iN a, iN b, ...>`."""
    return _const_ints(type_, tuple(numbers))


@lru_cache(maxsize=4096)
def _const_ints(type_: IntType, numbers: tuple[int, ...]) -> Aggregate:
    return const_vector([ConstInt(type_, n) for n in numbers])


def int_elements(value: Value) -> tuple[int, ...] | None:
    """The integers of a constant vector, in any spelling; None if it is not one.

    `zeroinitializer` and `splat` are such spellings; `undef` and `poison` have no integers.
    """
    if not isinstance(value.type, VectorType) or value.type.scalable:
        return None
    count = value.type.count
    if isinstance(value, Keyword):
        return (0,) * count if value.word == "zeroinitializer" else None
    if isinstance(value, Splat):
        return (value.element.value,) * count if isinstance(value.element, ConstInt) else None
    integers = value.integers if isinstance(value, Aggregate) else None
    return integers if integers is not None and len(integers) == count else None


def as_signed(bits: int, width: int) -> int:
    """The signed number of the lowest bits of a number."""
    half = 1 << (width - 1)
    return (bits + half) % (2 * half) - half


def _signed_quotient(a: int, b: int, width: int) -> int | None:
    x, y = as_signed(a, width), as_signed(b, width)
    if y == 0 or (y == -1 and x == -(1 << width - 1)):
        return None
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def _signed_remainder(a: int, b: int, width: int) -> int | None:
    quotient = _signed_quotient(a, b, width)
    return None if quotient is None else as_signed(a, width) - quotient * as_signed(b, width)


OPERATIONS: Final[dict[str, Callable[[int, int, int], int | None]]] = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul": lambda a, b, _: a * b,
    "and": lambda a, b, _: a & b,
    "or": lambda a, b, _: a | b,
    "xor": lambda a, b, _: a ^ b,
    "shl": lambda a, b, width: a << b if b < width else None,
    "lshr": lambda a, b, width: a >> b if b < width else None,
    "ashr": lambda a, b, width: as_signed(a, width) >> b if b < width else None,
    "udiv": lambda a, b, _: a // b if b else None,
    "urem": lambda a, b, _: a % b if b else None,
    "sdiv": _signed_quotient,
    "srem": _signed_remainder,
}
"""The result of each binary opcode, before it wraps, from unsigned operands and their width; None for poison."""

_PREDICATES: Final[dict[str, Callable[[int, int], bool]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def fold_integers(opcode: str, a: int, b: int, width: int) -> int | None:
    """The unsigned result of a binary instruction; None for poison, and for opcodes that are not folded."""
    mask = (1 << width) - 1
    compute = OPERATIONS.get(opcode)
    result = compute(a & mask, b & mask, width) if compute is not None else None
    return None if result is None else result & mask


def compare_integers(predicate: str, a: int, b: int, width: int) -> bool:
    """Whether a predicate of `icmp` holds."""
    if predicate.startswith("s"):
        a, b = as_signed(a, width), as_signed(b, width)
    else:
        a, b = a % (1 << width), b % (1 << width)
    return _PREDICATES[predicate[-2:]](a, b)
