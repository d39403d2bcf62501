"""Element types of workloads: between LLVM's name, the table's, and arrays of numpy.

bfloat is kept as its bits in arrays of uint16, so that nothing but numpy is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Element:
    """An element type.

    Attributes:
        name: In the table, such as `u8`.
        llvm: LLVM's name, which knows no sign.
        dtype: Of arrays that hold it.
        precision: Bits of a float's significand, the hidden one included; 0 for integers.
    """

    name: str
    llvm: str
    dtype: np.dtype[Any]
    precision: int = 0

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self.precision > 0

    def random(self, shape: tuple[int, ...], seed: int) -> Array:
        """Random elements: integers of the whole range, floats in [-1, 1)."""
        generator = np.random.default_rng(seed)
        if not self.is_float:
            limits = np.iinfo(self.dtype)
            return generator.integers(limits.min, limits.max, shape, self.dtype, endpoint=True)
        return self.narrowed(generator.uniform(-1, 1, shape))

    def widened(self, array: Array) -> Array:
        """The values as float64, or int64."""
        if not self.is_float:
            return array.astype(np.int64)
        if self.llvm == "bfloat":
            return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return array.astype(np.float64)

    def narrowed(self, values: Array) -> Array:
        """Values as this type holds them: floats rounded to nearest even, integers wrapped."""
        if self.llvm != "bfloat":
            return values.astype(self.dtype)
        bits = values.astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


F64: Final = Element("f64", "double", np.dtype(np.float64), 53)
F32: Final = Element("f32", "float", np.dtype(np.float32), 24)
F16: Final = Element("f16", "half", np.dtype(np.float16), 11)
BF16: Final = Element("bf16", "bfloat", np.dtype(np.uint16), 8)
S8: Final = Element("s8", "i8", np.dtype(np.int8))
U8: Final = Element("u8", "i8", np.dtype(np.uint8))
S16: Final = Element("s16", "i16", np.dtype(np.int16))
S32: Final = Element("s32", "i32", np.dtype(np.int32))
S64: Final = Element("s64", "i64", np.dtype(np.int64))
