"""Floating-point formats of 8 bits, which are no types of LLVM: bytes in integers, which two of its intrinsics convert.

    %x = call <n x half> @llvm.convert.from.arbitrary.fp(<n x i8> %bytes, metadata !"Float8E4M3FN")
    %b = call <n x i8> @llvm.convert.to.arbitrary.fp(<n x half> %x, metadata !"Float8E4M3FN",
                                                     metadata !"round.tonearest", i1 false)

LLVM has them from version 23 on; older versions read their declarations like those of any function. The last operand
says whether numbers beyond the largest one become the largest one. Otherwise they become infinity, or NaN in a format
without infinities.

    Float8E4M3FN    s eeee mmm    2^-9 to 448, bias 7, no infinities; s 1111 111 is NaN
    Float8E5M2      s eeeee mm    2^-16 to 57344, bias 15: the upper byte of a half

Formats: OCP 8-bit Floating Point Specification (OFP8) 1.0. Intrinsics: LLVM's language reference, "Arbitrary
floating-point format conversions".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I1, I8, Type, VectorType, scalar_of
from tlx.ir.values import ConstInt, Value

if TYPE_CHECKING:
    from tlx.intrinsics.numpy_types import Array

FROM_SMALL: Final = "llvm.convert.from.arbitrary.fp"
TO_SMALL: Final = "llvm.convert.to.arbitrary.fp"
CONVERSIONS: Final = (FROM_SMALL, TO_SMALL)
MARKER: Final = ".arbitrary.fp"
"""What the names of both have in common."""
_NEAREST: Final = '!"round.tonearest"'
_FLOATS: Final = (HALF, BFLOAT, FLOAT, DOUBLE)


@dataclass(frozen=True)
class SmallFloat:
    """A format of 8 bits.

    Attributes:
        name: LLVM's name.
        short: The name in products.
        dtype: The name of numpy's type, which `ml_dtypes` has.
        exponent_bits, mantissa_bits: Their sizes.
        largest: The bits of the largest number.
        nan: The bits of NaN.
        infinity: The bits of infinity; None if the format has none.
    """

    name: str
    short: Literal["e4m3", "e5m2"]
    dtype: str
    exponent_bits: int
    mantissa_bits: int
    largest: int
    nan: int
    infinity: int | None

    @property
    def bias(self) -> int:
        """What is added to exponents."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def metadata(self) -> str:
        """The operand that names the format."""
        return f'!"{self.name}"'

    @property
    def beyond(self) -> int:
        """The bits of numbers that are too large, unless they are clamped."""
        return self.nan if self.infinity is None else self.infinity

    @cached_property
    def _magnitudes(self) -> Array:
        """The numbers from 0 through the largest one, and the one that would follow it."""
        import numpy as np

        codes = np.arange(self.largest + 2)
        exponents, fractions = codes >> self.mantissa_bits, codes & ((1 << self.mantissa_bits) - 1)
        whole = np.where(exponents > 0, fractions + (1 << self.mantissa_bits), fractions)
        return np.ldexp(whole.astype(np.float64), np.maximum(exponents, 1) - self.bias - self.mantissa_bits)

    @cached_property
    def _numbers(self) -> Array:
        """The number of each byte."""
        import numpy as np

        numbers = np.full(256, np.nan)
        numbers[: self.largest + 1] = self._magnitudes[:-1]
        if self.infinity is not None:
            numbers[self.infinity] = np.inf
        numbers[128:] = -numbers[:128]
        return numbers

    def decoded(self, codes: Array) -> Array:
        """The numbers of bytes, as doubles."""
        return self._numbers[codes]

    def encoded(self, numbers: Array, *, saturates: bool) -> Array:
        """Numbers rounded to the format, to nearest even, as bytes."""
        import numpy as np

        numbers = numbers.astype(np.float64)
        magnitudes = np.abs(numbers)
        middles = (self._magnitudes[:-1] + self._magnitudes[1:]) / 2
        below = np.searchsorted(middles, magnitudes, side="left")
        ties = middles[np.minimum(below, len(middles) - 1)] == magnitudes
        codes = below + (ties & (below % 2 == 1))
        codes = np.where(codes > self.largest, self.largest if saturates else self.beyond, codes)
        codes = np.where(np.isnan(numbers), self.nan, codes)
        return (codes | np.where(np.signbit(numbers), 128, 0)).astype(np.uint8)


E4M3: Final = SmallFloat("Float8E4M3FN", "e4m3", "float8_e4m3fn", 4, 3, 0x7E, 0x7F, None)
E5M2: Final = SmallFloat("Float8E5M2", "e5m2", "float8_e5m2", 5, 2, 0x7B, 0x7E, 0x7C)
SMALL_FLOATS: Final = (E4M3, E5M2)
_BY_METADATA: Final = {format_.metadata: format_ for format_ in SMALL_FLOATS}


@dataclass(frozen=True)
class SmallConversion:
    """A conversion from or to a format of 8 bits.

    Attributes:
        format: The format.
        widens: Whether bytes become floats.
        saturates: Whether numbers beyond the largest one become the largest one.
    """

    format: SmallFloat
    widens: bool
    saturates: bool = False

    @classmethod
    def of(cls, callee: str, arguments: Sequence[Value]) -> SmallConversion:
        """The conversion of a call that has no mistake."""
        widens = callee.startswith(FROM_SMALL)
        last = arguments[-1]
        saturates = not widens and isinstance(last, ConstInt) and last.value != 0
        return cls(format_named(str(arguments[1])), widens, saturates)


def format_named(metadata: str) -> SmallFloat:
    """The format that an operand names, such as `!"Float8E5M2"`.

    Raises:
        KeyError: There is no such format.
    """
    return _BY_METADATA[metadata]


def is_conversion(callee: str) -> bool:
    """Whether a function is one of the two intrinsics."""
    return callee.strip('"').startswith(CONVERSIONS)


def conversion_mistake(callee: str, result: Type, arguments: Sequence[Value]) -> str | None:
    """What is wrong with a call of one of the intrinsics; None if nothing is."""
    widens = callee.strip('"').startswith(FROM_SMALL)
    count = 2 if widens else 4
    if len(arguments) != count:
        return f"{_title(widens)} takes {count} operands, got {len(arguments)}"
    source = arguments[0].type
    narrow, wide = (source, result) if widens else (result, source)
    if scalar_of(narrow) != I8:
        return f"formats of other sizes than 8 bits are not supported: expected i8 or a vector of i8, got {narrow}"
    if scalar_of(wide) not in _FLOATS:
        return f"expected half, bfloat, float or double, or a vector of them, got {wide}"
    if _count(narrow) != _count(wide):
        return f"operand and result must have equally many elements: {source} and {result}"
    if str(arguments[1]) not in _BY_METADATA:
        names = " and ".join(format_.metadata for format_ in SMALL_FLOATS)
        return f"the format {arguments[1]} is not supported: expected {names}"
    if widens:
        return None
    if str(arguments[2]) != _NEAREST:
        return f"the rounding mode {arguments[2]} is not supported: expected {_NEAREST}"
    if arguments[3].type != I1 or not isinstance(arguments[3], ConstInt):
        return "the last operand, which says whether the result is clamped, must be a constant i1"
    return None


def _title(widens: bool) -> str:
    return f"@{FROM_SMALL if widens else TO_SMALL}"


def _count(type_: Type) -> tuple[int, bool] | None:
    return (type_.count, type_.scalable) if isinstance(type_, VectorType) else None
