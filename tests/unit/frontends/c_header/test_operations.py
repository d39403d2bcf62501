"""Every operation in C against numpy, for all compilers and flags that affect raising."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pytest

from tests.unit.frontends.c_header.test_programs import COMPILERS, FLAGS, Array, floats, machine
from tlx.intrinsics import INTRINSICS

X: Final = floats(16)
Y: Final = floats(16)[::-1].copy()
SQUARE, OTHER = X.reshape(4, 4), Y.reshape(4, 4)
POSITIVE: Final = np.abs(X) + np.float32(0.5)
BITS: Final = floats(16).astype("i4") * 0x01010101
WHOLE: Final = BITS.reshape(4, 4)
QUARTERS: Final = SQUARE.reshape(2, 2, 2, 2).swapaxes(1, 2).reshape(4, 4)
PRECISE: Final = POSITIVE.astype(np.float64)

VALUES: Final[dict[str, tuple[list[Any], Array]]] = {
    "relu": ([X], np.maximum(X, 0)),
    "fabs_": ([X], np.abs(X)),
    "floor_": ([X / 2], np.floor(X / 2)),
    "ceil_": ([X / 2], np.ceil(X / 2)),
    "chained": ([X / 2], np.maximum(np.floor(X / 2), 0)),
    "sigmoid": ([X], 1 / (1 + np.exp(-X.astype(np.float64)))),
    "erfc_": ([POSITIVE], np.vectorize(math.erfc)(PRECISE)),
    **{
        f"{name}_": ([POSITIVE], getattr(np, name)(PRECISE))
        for name in ("sqrt", "tanh", "sin", "cos", "exp", "exp2", "log", "log2", "log10")
    },
    "reduce_add": ([X], SQUARE.sum(1)),
    "reduce_max": ([X], QUARTERS.max(1)),
    "reduce_min": ([X], SQUARE.min(0)),
    "reduce_mul": ([X], QUARTERS.prod(1)),
    "reduce_and": ([BITS], np.bitwise_and.reduce(WHOLE, 1)),
    "reduce_or": ([BITS], np.bitwise_or.reduce(WHOLE, 1)),
    "reduce_xor": ([BITS], np.bitwise_xor.reduce(WHOLE, 1)),
    "pad": ([X, 2.5], np.pad(SQUARE, ((1, 0), (0, 0)), constant_values=2.5)),
    "crop": ([X], SQUARE[1:3, :3]),
    "spread": ([X], np.insert(SQUARE, [1, 2, 3], 2, 1)),
    "concat_rows": ([X, Y], np.vstack([SQUARE, OTHER])),
    "concat_columns": ([X, Y], np.hstack([SQUARE, OTHER, SQUARE])),
    "concat_one": ([X], X),
    "contract": ([X, Y], SQUARE.T @ OTHER.T),
    "contract_batch": ([X, Y], (SQUARE * OTHER).sum(1)),
}
INPUT, KERNEL = floats(50).reshape(1, 2, 5, 5), floats(24)[::-1].reshape(3, 2, 2, 2).copy()


def convolved(holes: int) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(INPUT, (holes + 2, holes + 2), (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows[..., :: holes + 1, :: holes + 1], KERNEL)


WRITTEN: Final[dict[str, tuple[list[Any], Array]]] = {
    "convolution": ([INPUT, KERNEL], convolved(0)),
    "convolution_strided": ([INPUT, KERNEL], convolved(0)[:, :, ::2, ::2]),
    "convolution_dilated": ([INPUT, KERNEL], convolved(1)[:, :, ::2, ::2]),
    "reduce_pair": ([X], SQUARE.reshape(4, 2, 2).sum((0, 2))),
    "reduce_all": ([X], X.sum(keepdims=True)),
    "reduce_all_ints": ([BITS], BITS.sum(keepdims=True).astype("i4")),
    "contract_nothing": ([X, Y], np.multiply.outer(X, Y)),
    "contract_nothing_batch": ([X, Y], np.einsum("bi,bj->bij", SQUARE, OTHER)),
    "contract_all": ([X, Y], (X * Y).sum(keepdims=True)),
}


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_operations_that_return_a_vector(compiler: str, flags: str) -> None:
    program = machine(compiler, flags, "operations.c")
    for name, (arguments, expected) in VALUES.items():
        got = np.asarray(program.call(name, *(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)))
        np.testing.assert_array_equal(got, expected.astype(got.dtype).ravel(), name)


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_operations_whose_result_is_written(compiler: str, flags: str) -> None:
    program = machine(compiler, flags, "operations.c")
    for name, (arguments, expected) in WRITTEN.items():
        out = np.zeros(expected.size, expected.dtype)
        program.call(name, out, *(a.copy() for a in arguments))
        np.testing.assert_array_equal(out, expected.ravel(), name)


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_small_tensors(compiler: str, flags: str) -> None:
    bytes_ = np.array([-1, 2, -128, 127], "i1")
    machine(compiler, flags, "operations.c").call("relu_small", bytes_)
    np.testing.assert_array_equal(bytes_, [0, 2, 0, 127])


def test_no_operation_is_left_out() -> None:
    called = {name.removesuffix("_") for name in (*VALUES, *WRITTEN)} | {"concat"}
    families = ("reduce.", "contract", "convolution", "pad", "concat")
    names = [row.name for row in INTRINSICS if row.name.startswith(families) or row.operands[1:] == ()]
    assert [name for name in names if name.replace(".", "_") not in called] == ["tovector"]
