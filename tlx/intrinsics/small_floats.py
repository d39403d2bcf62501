"""Floating-point formats of 8 bits. LLVM has no types for them: they are bytes, `i8`, which two intrinsics convert.

    %x = call <n x half> @llvm.convert.from.arbitrary.fp(<n x i8> %bytes, metadata !"Float8E4M3FN")
    %b = call <n x i8> @llvm.convert.to.arbitrary.fp(<n x half> %x, metadata !"Float8E4M3FN",
                                                     metadata !"round.tonearest", i1 false)

LLVM up to version 22 does not know them, and reads their declarations like those of any function. The last operand says
whether numbers beyond the largest one become the largest one. Otherwise they become infinity, or NaN in a format
without infinities.

    Float8E4M3FN    s eeee mmm    2^-9 to 448, bias 7, no infinities; s 1111 111 is NaN
    Float8E5M2      s eeeee mm    2^-16 to 57344, bias 15: the upper byte of a half

OCP 8-bit Floating Point Specification (OFP8) 1.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import numpy as np

    _Array: TypeAlias = np.ndarray[Any, Any]

FROM_SMALL: Final = "llvm.convert.from.arbitrary.fp"
TO_SMALL: Final = "llvm.convert.to.arbitrary.fp"
CONVERSIONS: Final = (FROM_SMALL, TO_SMALL)
NEAREST: Final = '!"round.tonearest"'
MARKER: Final = ".arbitrary.fp"
"""What the names of both have in common."""


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
    def largest_number(self) -> float:
        """The largest number."""
        return float(self._numbers[self.largest])

    @property
    def beyond(self) -> int:
        """The bits of numbers that are too large, unless they are clamped."""
        return self.nan if self.infinity is None else self.infinity

    @cached_property
    def _magnitudes(self) -> _Array:
        """The numbers from 0 through the largest one, and the one that would follow it."""
        import numpy as np

        codes = np.arange(self.largest + 2)
        exponents, fractions = codes >> self.mantissa_bits, codes & ((1 << self.mantissa_bits) - 1)
        whole = np.where(exponents > 0, fractions + (1 << self.mantissa_bits), fractions)
        return np.ldexp(whole.astype(np.float64), np.maximum(exponents, 1) - self.bias - self.mantissa_bits)

    @cached_property
    def _numbers(self) -> _Array:
        """The number of each byte."""
        import numpy as np

        numbers = np.full(256, np.nan)
        numbers[: self.largest + 1] = self._magnitudes[:-1]
        if self.infinity is not None:
            numbers[self.infinity] = np.inf
        numbers[128:] = -numbers[:128]
        return numbers

    def decoded(self, codes: _Array) -> _Array:
        """The numbers of bytes, as doubles."""
        return self._numbers[codes]

    def encoded(self, numbers: _Array, *, saturates: bool) -> _Array:
        """Numbers rounded to the format, to nearest even, as bytes."""
        import numpy as np

        with np.errstate(invalid="ignore"):  # signalling NaN
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


def format_named(metadata: str) -> SmallFloat:
    """The format that an operand names, such as `!"Float8E5M2"`.

    Raises:
        KeyError: There is no such format.
    """
    return _BY_METADATA[metadata]


def is_conversion(callee: str) -> bool:
    """Whether a function is one of the two intrinsics."""
    return callee.strip('"').startswith(CONVERSIONS)
