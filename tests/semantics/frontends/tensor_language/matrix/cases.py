"""What the tests of cooperative matrices share: types of numpy, random data, compiled kernels."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import ml_dtypes
import numpy as np

from tlx.frontends import tensor_language
from tlx.frontends.tensor_language.runtime.kernels import CompiledKernels

Array = np.ndarray[Any, np.dtype[Any]]

DTYPES: Final[dict[str, Any]] = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64,
    "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "c32": np.complex64, "c64": np.complex128,
}  # fmt: skip
REAL: Final = ("i8", "i16", "i32", "i64", "bf16", "f16", "f32", "f64")


@cache
def compiled(text: str, target: str = "native") -> CompiledKernels:
    """The kernels of a text."""
    return tensor_language.compile(text, target)


def random(type_: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Small numbers of a type, column-major: products and sums of few of them are exact in f32."""
    generator = np.random.default_rng([seed, *shape])
    whole = generator.integers(-8, 9, shape)
    if type_.startswith("i"):
        values: Array = whole
    elif type_.startswith("c"):
        values = whole / 4 + 1j * generator.integers(-8, 9, shape) / 4
    else:
        values = whole / 4
    return np.asfortranarray(values.astype(DTYPES[type_]))


def strided(values: Array, step: int) -> Array:
    """The same values with a first stride of `step`, in an array full of others."""
    rows, columns = values.shape
    around = np.asfortranarray(np.ones((rows * step, columns), values.dtype))
    view = around[::step, :]
    view[...] = values
    return view


def same(found: Array, expected: Array) -> None:
    """Assert that arrays are equal; any NaN equals any other."""
    np.testing.assert_array_equal(found.astype(_wide(found)), expected.astype(_wide(found)))


def _wide(values: Array) -> Any:
    return np.float32 if values.dtype.itemsize == 2 and values.dtype.kind != "i" else values.dtype
