"""Tensors without elements: results have the right shape, and sums over nothing are the neutral element."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import tlx
from tests.semantics.graph.checks import same
from tlx.graph import Graph

E: Final = np.zeros((0, 3), "f4")
Z: Final = np.zeros((3, 0), "f4")
X: Final = np.arange(12, dtype="f4").reshape(3, 4)
V: Final = np.arange(3, dtype="f4")
NO_ROWS: Final = np.zeros((0, 1), "i4")


def filled(shape: tuple[int, ...], number: float = 0) -> Any:
    return np.full(shape, number)


def loop(g: Graph, e: Any, v: Any) -> Any:
    """A loop that carries a tensor without elements beside others."""
    return g.while_loop(lambda i, *_: i < 3, lambda i, a, s: (i + 1, a * 2, s + g.sum(a) + 1), np.int32(0), e, v)


CASES: Final[dict[str, tuple[Callable[..., Any], list[Any], tuple[Any, ...]]]] = {
    "elementwise": (lambda g, e: (e + 1, g.exp(e) * e, g.where(e > 0, e, 1.0)), [E, E, E], (E,)),
    "conversions": (lambda g, e: (g.convert(e, "int32"), g.bitcast(e, "int16")), [E, filled((0, 3, 2))], (E,)),
    "sums": (lambda g, e: (g.sum(e), g.sum(e, 0), g.sum(e, 1)), [0, filled((3,)), filled((0,))], (E,)),
    "products and extremes": (
        lambda g, e: (g.reduce("product", e, 0, keep=True), g.max(e, 0), g.min(g.convert(e, "uint8"))),
        [filled((1, 3), 1), filled((3,), -np.inf), 255],
        (E,),
    ),
    "all and any": (
        lambda g, e: (g.reduce("all", e > 0, 0), g.reduce("any", e > 0, 0)),
        [filled((3,), 1), filled((3,))],
        (E,),
    ),
    "mean": (lambda g, e: g.mean(e, 0), [filled((3,), np.nan)], (E,)),
    "fold": (lambda g, e: g.fold(lambda a, b: a + b, e, 5.0, 0), [filled((3,), 5)], (E,)),
    "windows": (
        lambda g, e: (
            g.reduce_window("sum", e, (1, 2)),
            g.reduce_window("sum", e, (1, 2), padding=[(1, 1), (0, 0)]),
        ),
        [filled((0, 2)), filled((2, 2))],
        (E,),
    ),
    "matrix products": (
        lambda _, z, e, x: (z @ e, e @ z, x.T @ z),
        [filled((3, 3)), filled((0, 0)), filled((4, 0))],
        (Z, E, X),
    ),
    "batches": (
        lambda g, z, e: (g.broadcast(z, (2, 3, 0)) @ e, g.broadcast(z, (0, 3, 0)) @ e),
        [filled((2, 3, 3)), filled((0, 3, 3))],
        (Z, E),
    ),
    "weights": (
        lambda g, x: x @ g.weight("w", np.zeros((4, 0), "f4")) @ g.weight("w", np.zeros((0, 4), "f4")),
        [filled((3, 4))],
        (X,),
    ),
    "convolutions": (
        lambda g, _: (
            g.convolution(g.full((2, 0, 5, 5), 0), np.zeros((4, 0, 3, 3), "f4")),
            g.convolution(g.full((0, 2, 5, 5), 0), np.ones((4, 2, 3, 3), "f4"), layouts=("NCXY", "OIXY", "NXYC")),
        ),
        [filled((2, 4, 3, 3)), filled((0, 3, 3, 4))],
        (X,),
    ),
    "slices": (lambda _, x: (x[:, 4:], x[2:1], x[3:, ::2]), [X[:, 4:], X[2:1], X[3:, ::2]], (X,)),
    "pads": (
        lambda g, x, e: (g.pad(e, (1, 0), (2, 1), number=7), g.pad(x, (-1, 0), (-2, 0)), g.pad(x, (-3, 0), (1, 0))),
        [filled((3, 4), 7), X[:0], filled((1, 4))],
        (X, E),
    ),
    "concatenations": (
        lambda g, x, e: (g.concatenate([x[:, :3], e]), g.concatenate([e, e], 1), g.stack([e, e])),
        [X[:, :3], filled((0, 6)), filled((2, 0, 3))],
        (X, E),
    ),
    "shapes": (
        lambda g, e: (e.T.reshape(3, 0, 5), g.broadcast(e, (2, 0, 3)), g.reverse(e, (0, 1)), g.iota((0, 3), 1)),
        [filled((3, 0, 5)), filled((2, 0, 3)), E, E],
        (E,),
    ),
    "composites": (lambda g, e: (g.softmax(e), g.layer_norm(e), g.gelu(e), g.erf(e)), [E] * 4, (E,)),
    "sorts": (
        lambda g, e, x: (*g.sort(e, axis=1), g.argsort(e), *g.top_k(x, 0), g.argmax(e, 1), g.cumsum(e, 0)),
        [E, E, X[:, :0], X[:, :0], filled((0,)), E],
        (E, X),
    ),
    "slices at positions": (
        lambda g, x, e: (
            g.take(x, np.zeros(0, "i4")),
            g.take(x, np.zeros((2, 0), "i4"), 1),
            g.dynamic_slice(x, (1, 2), (0, 2)),
            g.dynamic_update_slice(x[:, :3], e, (1, 0)),
            g.scatter(x, NO_ROWS, [0], np.zeros((0, 1, 4), "f4"), "add"),
        ),
        [X[:0], filled((3, 2, 0)), X[:0, :2], X[:, :3], X],
        (X, E),
    ),
    "loops": (loop, [3, E, V + 3], (E, V)),
    "a loop of nothing else": (
        lambda g, e: g.while_loop(lambda a: g.reduce("any", a > 0), lambda a: a + 1, e),
        [E],
        (E,),
    ),
    "branches": (
        lambda g, e, v: g.conditional(g.sum(v) > 1, lambda: (e[:, 1:], v), lambda: (e[:, :2] * 2, v * 2)),
        [E[:, 1:], V],
        (E, V),
    ),
    "random bits": (
        lambda g, _: g.random_bits(np.array([1, 2], "u8"), (0, 3)),
        [np.array([1, 2]), E],
        (X,),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_tensors_without_elements(name: str) -> None:
    build, expected, arrays = CASES[name]
    same(build, expected, *arrays)


def test_nothing_is_greatest_among_nothing() -> None:
    g = Graph()
    with pytest.raises(tlx.TlxError, match=r"argmax: dimension 0 of \(0, 3\) has no elements"):
        g.argmax(g.parameter("x", (0, 3)), 0)
