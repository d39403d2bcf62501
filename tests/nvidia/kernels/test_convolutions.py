"""Convolutions and contractions of any layout on the emulator: sums of products, whose terms a table lists."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.nvidia.kernels.test_products import DTYPES
from tests.nvidia.programs import Array, function, integers, lowered, tensor, typed
from tests.semantics.contraction.programs import LARGE, SMALL, Program, contraction, convolution
from tests.semantics.contraction.test_contractions import assert_same, evaluated
from tlx.ir.parser.module import parse
from tlx.llvm.codegen import emit_code
from tlx.llvm.triples import with_platform

Run = Callable[..., list[Any]]


@pytest.mark.parametrize(
    ("generate", "sizes", "first", "count"),
    [
        (contraction, SMALL, 0, 3),
        (convolution, SMALL, 0, 4),
        (convolution, LARGE, 0, 1),
        pytest.param(contraction, SMALL, 3, 30, marks=pytest.mark.long),
        pytest.param(convolution, SMALL, 4, 30, marks=pytest.mark.long),
    ],
    ids=["contractions", "convolutions", "large-convolutions", "more-contractions", "more-convolutions"],
)
def test_random_programs(
    run: Run, generate: Callable[[int, tuple[int, ...]], Program], sizes: tuple[int, ...], first: int, count: int
) -> None:
    for seed in range(first, first + count):
        program = generate(seed, sizes)
        *_, found = run(program.text, *program.inputs(), seed=seed)
        assert_same(program, evaluated(program, parse(program.text)), found)


def convolved(
    element: str, x: tuple[int, ...], w: tuple[int, ...], order: tuple[int, ...], stride: int = 1
) -> tuple[str, tuple[int, ...]]:
    """A convolution of images x channels x rows x columns, stored in some order of these, and its result's shape."""
    images, _, *extents = x
    shape = (images, w[0], *((n - k) // stride + 1 for n, k in zip(extents, w[2:], strict=True)))
    count, holes = int(np.prod(shape)), "<2 x i32> zeroinitializer"
    layout = ", ".join(f"i32 {axis}" for axis in order)
    body = f"""{_stored("a", "x", element, x, order)}{_stored("b", "w", element, w, order)}
  %r = call <{count} x {element}> @llvm.tensor.convolution(token %a, token %b, <2 x i32> <i32 {stride}, i32 {stride}>, \
{holes}, {holes})
{typed("t", "r", element, shape)}
  %v = call <{count} x {element}> @llvm.tensor.transpose(token %t, <4 x i32> <{layout}>)
  store <{count} x {element}> %v, ptr %y
"""
    return function(["x", "w", "y"], body), shape


def _stored(name: str, pointer: str, element: str, shape: tuple[int, ...], order: tuple[int, ...]) -> str:
    return tensor(name, pointer, element, [shape[axis] for axis in order], order)


def exact(x: Array, w: Array, shape: tuple[int, ...], stride: int) -> Array:
    """The convolution, whose input channels are in groups."""
    images, filters, rows, columns = shape
    groups = x.shape[1] // w.shape[1]
    result = np.zeros(shape, np.float64)
    for i, j in np.ndindex(w.shape[2:]):
        part = x[:, :, i : i + (rows - 1) * stride + 1 : stride, j : j + (columns - 1) * stride + 1 : stride]
        grouped = part.astype(np.float64).reshape(images, groups, w.shape[1], rows, columns)
        kernel = w[:, :, i, j].astype(np.float64).reshape(groups, filters // groups, w.shape[1])
        result += np.einsum("ngchw,gfc->ngfhw", grouped, kernel).reshape(shape)
    return result


CASES = {
    "3x3": ("bfloat", (2, 32, 10, 12), (40, 32, 3, 3), 1),
    "few-channels": ("half", (1, 3, 19, 21), (16, 3, 5, 5), 2),
    "1x1": ("bfloat", (3, 24, 7, 7), (16, 24, 1, 1), 1),
    "floats": ("float", (2, 12, 9, 9), (10, 12, 3, 3), 2),
    "depthwise": ("bfloat", (2, 20, 9, 10), (20, 1, 3, 3), 1),
    "strided-1x1": ("bfloat", (2, 16, 10, 12), (24, 16, 1, 1), 2),
    "groups": ("bfloat", (1, 48, 8, 8), (32, 24, 3, 3), 1),
}


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1)], ids=["channels-first", "channels-last"])
@pytest.mark.parametrize("case", CASES)
def test_layouts(run: Run, case: str, order: tuple[int, ...]) -> None:
    element, x_shape, w_shape, stride = CASES[case]
    x, w = integers(x_shape, DTYPES[element], most=2), integers(w_shape, DTYPES[element], 1, most=2)
    text, shape = convolved(element, x_shape, w_shape, order, stride)
    stored = [np.ascontiguousarray(a.transpose(order)) for a in (x, w)]
    found = np.zeros([shape[axis] for axis in order], DTYPES[element])
    *_, found = run(text, *stored, found)
    want = exact(x, w, shape, stride).astype(DTYPES[element]).transpose(order)
    np.testing.assert_array_equal(found.astype(np.float64), want.astype(np.float64))


@pytest.mark.parametrize(
    ("order", "filters", "stride"),
    [((0, 1, 2, 3), 64, 1), ((0, 2, 3, 1), 512, 2)],
    ids=["channels-first", "channels-last"],
)
def test_results_are_stored_in_pieces(order: tuple[int, ...], filters: int, stride: int) -> None:
    """Threads store 16 bytes at once, also where merged loops are rows or columns of the result."""
    text, _ = convolved("bfloat", (32, 256, 56, 56), (filters, 256, 1, 1), order, stride)
    code = emit_code(with_platform(lowered(text, "sm_90a"), "nvptx64-nvidia-cuda"), "asm", 3, "sm_90a").decode()
    assert set(re.findall(r"st\.global\S*", code)) == {"st.global.v4.b32"}


def test_strided_windows_are_read_in_place() -> None:
    """With channels last, the product reads every second pixel of the image itself."""
    text, _ = convolved("bfloat", (8, 256, 28, 28), (128, 256, 1, 1), (0, 2, 3, 1), 2)
    assert lowered(text, "sm_90a").count("define ptx_kernel") == 1
