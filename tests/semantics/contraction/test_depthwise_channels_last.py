"""Depthwise convolutions with channels innermost in the input, but not in the kernel."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

import tlx
from tests.semantics.to_2d.contract import check_contract, poisoned
from tests.semantics.to_2d.random.writer import ints
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.tensors.calls import canonicalise
from tlx.lower.context import LoweringContext
from tlx.lower.pipeline import lower
from tlx.lower.to_2d import to_2d
from tlx.target.lookup import find_target

LAST = (0, 2, 3, 1)
DTYPES = {"float": np.float32, "bfloat": bfloat16, "i8": np.int8, "i32": np.int32}


def program(types: tuple[str, str], channels: int, side: int, window: int) -> str:
    """`void @f(ptr y, ptr x, ptr w)`: x and y with channels innermost, w with taps innermost."""
    element, wide = types
    out = side - window + 1
    x, w, y = (1, side, side, channels), (channels, 1, window, window), (1, out, out, channels)
    plain, none, vector = ints(range(4)), ints([0] * 4), f"<{out * out * channels} x {wide}>"
    lines = [
        f"%a = call token @llvm.tensor.load(ptr elementtype({element}) %x, {ints(x)}, {ints(LAST)}, {none}, {none})",
        f"%b = call token @llvm.tensor.load(ptr elementtype({element}) %w, {ints(w)}, {plain}, {none}, {none})",
        f"%c = call {vector} @llvm.tensor.convolution(token %a, token %b)",
        f"%t = call token @llvm.tensor.typeinfo({vector} %c, {ints((1, channels, out, out))}, {plain}, {none})",
        f"%u = call {vector} @llvm.tensor.transpose(token %t, {ints(LAST)})",
        f"%v = call token @llvm.tensor.typeinfo({vector} %u, {ints(y)}, {ints(LAST)}, {none})",
        f"call void @llvm.tensor.store(ptr %y, token %v, {none})",
        "ret void",
    ]
    body = "\n  ".join(lines)
    return f"define void @f(ptr noalias %y, ptr noalias %x, ptr noalias %w) {{\n  {body}\n}}\n"


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
@pytest.mark.parametrize("types", [("float", "float"), ("bfloat", "float"), ("i8", "i32")])
@pytest.mark.parametrize(("channels", "side", "window"), [(20, 9, 3), (33, 7, 2), (64, 6, 5)])
def test_channels_last_mean_the_same(
    types: tuple[str, str], channels: int, side: int, window: int, target: str
) -> None:
    text, generator = program(types, channels, side, window), np.random.default_rng(side)
    x, w = (
        generator.integers(-3, 4, shape).astype(DTYPES[types[0]])
        for shape in ((side, side, channels), (channels, window, window))
    )
    out = side - window + 1

    def run(module: Module) -> Array:
        y = np.full((out, out, channels), 7, DTYPES[types[1]])
        Machine(module).call("f", y, x, w)
        return y

    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float32), (window, window), (0, 1))
    expected = np.einsum("yxcij,cij->yxc", windows, w.astype(np.float32)).astype(DTYPES[types[1]])
    np.testing.assert_array_equal(run(parse(text)), expected)
    module = parse(text)
    canonicalise(module)
    to_2d(module, LoweringContext(find_target(target)))
    check_contract(module)
    assert window > 3 or "%w.buf" in str(module)
    np.testing.assert_array_equal(run(module), expected)
    np.testing.assert_array_equal(run(poisoned(module)), expected)
    np.testing.assert_array_equal(run(lower(parse(text), target)), expected)
    y = np.zeros_like(expected)
    tlx.compile(text, "native", opt_level=0)(y, x, w)
    np.testing.assert_array_equal(y, expected)
