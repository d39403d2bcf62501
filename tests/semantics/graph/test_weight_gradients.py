"""Convolutions with few positions under a large kernel, as gradients of weights are: a product for each position."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import tlx
from tests.semantics.graph.checks import Array, check, random, same
from tlx.graph import Graph, Value
from tlx.lower.options import Options
from tlx.lower.remarks import Remarks


def reference(x: Array, w: Array, case: dict[str, Any]) -> Array:
    """The convolution in the order of its output: sums over channels and kernel, position by position."""
    letters = "".join(letter for letter in case["layouts"][0] if letter not in "NC")
    rank = len(letters)
    steps, gaps, holes = (case.get(k, (1,) * rank) for k in ("strides", "input_dilation", "kernel_dilation"))
    x = x.transpose([case["layouts"][0].index(letter) for letter in f"NC{letters}"])
    w = w.transpose([case["layouts"][1].index(letter) for letter in f"OI{letters}"])
    spread = np.zeros((*x.shape[:2], *((e - 1) * gap + 1 for e, gap in zip(x.shape[2:], gaps, strict=True))))
    spread[(..., *(slice(None, None, gap) for gap in gaps))] = x
    for axis, (low, high) in enumerate(case["padding"], 2):
        wide = [(0, 0)] * spread.ndim
        wide[axis] = max(low, 0), max(high, 0)
        spread = np.pad(spread, wide)
        spread = spread.take(range(max(-low, 0), spread.shape[axis] - max(-high, 0)), axis)
    sizes = [
        (e - (k - 1) * hole - 1) // step + 1
        for e, k, hole, step in zip(spread.shape[2:], w.shape[2:], holes, steps, strict=True)
    ]
    y, along = np.zeros((x.shape[0], w.shape[0], *sizes)), tuple(range(1, w.ndim))
    for p in product(*map(range, sizes)):
        window = tuple(
            slice(at * step, at * step + (k - 1) * hole + 1, hole)
            for at, step, k, hole in zip(p, steps, w.shape[2:], holes, strict=True)
        )
        y[(..., *p)] = np.tensordot(spread[(..., *window)], w, (along, along))
    return y.transpose([f"NC{letters}".index(letter) for letter in case["layouts"][2]])


LAST = ("CXYN", "IXYO", "XYNC")
FIRST = ("CNXY", "IOXY", "XYNC")
CASES: dict[str, dict[str, Any]] = {
    "same": {"x": (3, 8, 8, 16), "w": (3, 8, 8, 20), "layouts": LAST, "padding": ((1, 1), (1, 1))},
    "strided": {
        "x": (2, 12, 12, 17),
        "w": (2, 6, 6, 16),
        "layouts": LAST,
        "padding": ((0, 1), (0, 1)),
        "kernel_dilation": (2, 2),
    },
    "odd rows": {
        "x": (4, 11, 9, 16),
        "w": (4, 5, 5, 16),
        "layouts": LAST,
        "padding": ((0, 1), (1, 1)),
        "kernel_dilation": (2, 2),
    },
    "channels first": {"x": (4, 16, 8, 8), "w": (4, 18, 8, 8), "layouts": FIRST, "padding": ((1, 1), (1, 1))},
    "one channels first": {
        "x": (4, 16, 8, 8),
        "w": (4, 8, 8, 18),
        "layouts": ("CNXY", "IXYO", "YXCN"),
        "padding": ((1, 1), (0, 2)),
    },
    "exchanged": {
        "x": (2, 6, 6, 16),
        "w": (2, 13, 13, 19),
        "layouts": ("CXYN", "IXYO", "XYNC"),
        "padding": ((2, 2), (2, 2)),
        "input_dilation": (2, 2),
    },
    "exchanged, other order": {
        "x": (2, 6, 5, 16),
        "w": (2, 13, 11, 19),
        "layouts": ("CXYN", "IXYO", "YXCN"),
        "padding": ((2, 3), (1, 2)),
        "input_dilation": (2, 2),
    },
    "cropped": {"x": (2, 12, 12, 16), "w": (2, 8, 8, 16), "layouts": LAST, "padding": ((-1, -1), (-2, 1))},
    "outside": {"x": (2, 4, 9, 16), "w": (2, 9, 9, 16), "layouts": LAST, "padding": ((4, 5), (1, 1))},
    "steps": {
        "x": (2, 12, 12, 16),
        "w": (2, 9, 9, 16),
        "layouts": LAST,
        "padding": ((1, 1), (1, 1)),
        "strides": (2, 3),
    },
    "one dimension": {"x": (4, 30, 16), "w": (4, 28, 16), "layouts": ("CXN", "IXO", "XNC"), "padding": ((0, 1),)},
    "few channels": {"x": (3, 8, 8, 3), "w": (3, 8, 8, 5), "layouts": LAST, "padding": ((1, 1), (1, 1))},
    "groups of several images": {
        "x": (8, 35, 7, 64),
        "w": (8, 33, 5, 96),
        "layouts": LAST,
        "padding": ((0, 0), (0, 0)),
    },
    "one group": {"x": (12, 6, 6, 96), "w": (12, 6, 6, 160), "layouts": LAST, "padding": ((1, 1), (1, 1))},
    "three dimensions": {
        "x": (2, 6, 5, 6, 16),
        "w": (2, 5, 5, 6, 16),
        "layouts": ("CXYZN", "IXYZO", "XYZNC"),
        "padding": ((0, 1), (1, 0), (0, 0)),
    },
}


def builder(case: dict[str, Any]) -> Callable[[Any, Value, Value], Value]:
    """What builds the convolution of a case."""
    options = {k: v for k, v in case.items() if k not in "xw"}

    def build(graph: Any, x: Value, w: Value) -> Value:
        return graph.convolution(x, w, **options)

    return build


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_positions(name: str, dtype: str) -> None:
    case, rng = CASES[name], np.random.default_rng(1)
    x, w = (random(rng, case[k], np.dtype(dtype)) for k in "xw")
    terms = w.size // w.shape[-1]

    def expected(a: Array, b: Array) -> Array:
        return reference(a, b, case)

    check(builder(case), expected, x, w, terms=terms)


@pytest.mark.parametrize(("dtype", "ulp"), [(np.float16, 2**-10), (bfloat16, 2**-7)], ids=["half", "bfloat"])
@pytest.mark.parametrize("name", ["same", "strided", "channels first", "exchanged", "few channels"])
def test_narrow_images_are_added_up_in_float(name: str, dtype: type, ulp: float) -> None:
    case, rng = CASES[name], np.random.default_rng(1)
    x, w = (random(rng, case[k], np.dtype(dtype)) for k in "xw")

    def expected(a: Array, b: Array) -> Array:
        return reference(a, b, case)

    check(builder(case), expected, x, w, tolerance=ulp / 8)  # half an ulp of the result


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_positions_have_no_temporaries_of_whole_images(name: str, dtype: str) -> None:
    """There is no convolution of an enlarged input, and what is copied is some images."""
    case = CASES[name]
    graph = Graph("f")
    graph.output(builder(case)(graph, *(graph.parameter(k, case[k], dtype) for k in "xw")))
    text = graph.text()
    assert "llvm.tensor.convolution" not in text
    assert "llvm.tensor.pad" not in text


def test_images_are_added_up_together() -> None:
    """As many as fit: all of ten small images, each copied once if channels are not innermost."""
    case: dict[str, Any] = {"layouts": FIRST, "padding": ((1, 1), (1, 1))}
    rng = np.random.default_rng(2)
    x, w = (random(rng, (10, channels, 6, 6), np.dtype(np.float32)) * 0.1 for channels in (16, 18))
    expected = reference(x.astype(np.float64), w.astype(np.float64), case)
    graph = same(builder(case), (expected,), x, w, targets=("native", "avx2"))
    assert " phi " not in graph.text()  # no loop over images


@pytest.mark.parametrize("first", [False, True])
def test_threads_share_groups_of_images(first: bool) -> None:
    """Groups have sums and copies of their own; how many threads there are changes no bit."""
    case: dict[str, Any] = {"layouts": FIRST if first else LAST, "padding": ((1, 1), (1, 1))}
    rng = np.random.default_rng(4)
    x, w = (random(rng, (16, c, 32, 32) if first else (16, 32, 32, c), np.dtype(np.float32)) for c in (16, 20))
    remarks = Remarks()
    graph = Graph("f")
    graph.output(
        builder(case)(graph, graph.parameter("x", x.shape, "float32"), graph.parameter("w", w.shape, "float32"))
    )
    results: list[Array] = []
    for options in (Options(), Options(threads="openmp", remarks=remarks)):
        compiled = tlx.compile(graph.text(), options=options).f
        results.append(np.zeros((3, 3, 16, 20), np.float32))
        compiled(x, w, results[-1])
    np.testing.assert_array_equal(results[0], results[1])
    assert any("threads share 8 iterations" in remark.message for remark in remarks.items)
    np.testing.assert_allclose(results[0], reference(x.astype(np.float64), w.astype(np.float64), case), 1e-4, 1e-3)


def test_random_positions() -> None:
    rng = np.random.default_rng(3)
    for _ in range(8):
        kernel, holes = rng.integers(4, 9, 2), rng.integers(1, 3, 2)
        padding = rng.integers(-1, 3, (2, 2))
        positions = rng.integers(1, 4, 2)
        reach = (kernel - 1) * holes + positions
        extents = np.maximum(reach - padding.sum(1), 2)
        first = bool(rng.integers(2))
        images, channels = int(rng.integers(1, 5)), rng.integers(3, 20, 2)
        case: dict[str, Any] = {
            "layouts": FIRST if first else LAST,
            "padding": tuple((int(low), int(high)) for low, high in padding),
            "kernel_dilation": tuple(holes.tolist()),
        }
        shapes = [
            (images, int(c), *e.tolist()) if first else (images, *e.tolist(), int(c))
            for e, c in zip((extents, kernel), channels, strict=True)
        ]
        x, w = (random(rng, shape, np.dtype(np.float32)) * 0.2 for shape in shapes)
        if min(e + low + high - r for e, (low, high), r in zip(extents, padding, reach, strict=True)) < 0:
            continue
        expected = reference(x.astype(np.float64), w.astype(np.float64), case)
        same(builder(case), (expected,), x, w)
