"""Random graphs: compiled, evaluated and computed by numpy, they give the same results."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tlx

GRAPHS = 40
Pair = tuple[Any, Any]  # a value of the graph, and numpy's in float64


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def normalised(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def step(r: random.Random, g: Any, pool: list[Pair]) -> Pair:
    v, a = r.choice(pool)
    rows = len(a)
    match r.randrange(13):
        case 0:
            return g.softmax(v), softmax(a)
        case 1:
            return g.layer_norm(v), normalised(a)
        case 2:
            return g.softmax(v @ v.T) @ v, softmax(a @ a.T) @ a
        case 3:
            return g.tanh(v), np.tanh(a)
        case 4:
            low = r.randrange(rows)
            return v[low:, ::2], a[low:, ::2]
        case 5:
            where = np.array([r.randrange(rows) for _ in range(r.randint(1, 5))], "i4")
            return g.take(v, where, 0), a.take(where, 0)
        case 6:
            return g.concatenate([v, g.tanh(v)], 1), np.concatenate([a, np.tanh(a)], 1)
        case 7:
            (result,) = g.sort(v, axis=1)
            return result, np.sort(a, 1)
        case 8:
            return g.sum(v, 1, keep=True) * 0.1 + v, a.sum(1, keepdims=True) * 0.1 + a
        case 9:

            def halve(i: Any, x: Any) -> Any:
                return i + 1, x * 0.5 + v

            def is_early(i: Any, _x: Any) -> Any:
                return i < 3

            _, result = g.while_loop(is_early, halve, np.int32(0), v)
            return result, a * 1.875
        case 10:
            high = a.sum() > 0
            if abs(a.sum()) < 1e-2:
                return v, a

            def plus(x: Any) -> Any:
                return (x + 1,)

            def double(x: Any) -> Any:
                return (x * 2,)

            (result,) = g.conditional(g.sum(v, (0, 1)) > 0, plus, double, v)
            return result, a + 1 if high else a * 2
        case 11:
            return v.T, a.T
        case _:
            return g.cumsum(v, 0) * 0.25, a.cumsum(0) * 0.25


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_random_graph(seed: int) -> None:
    r = random.Random(seed)
    dtype = r.choice(("f4", "f8"))
    shape = r.randint(1, 9), r.randint(1, 9)
    x = np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)
    g = tlx.Graph(f"seed{seed}")
    pool = [(g.parameter("x", shape, dtype), x.astype("f8"))]
    for _ in range(r.randint(2, 6)):
        pool.append(step(r, g, pool))
    results = pool[-r.randint(1, 2) :]
    for value, _ in results:
        g.output(value)
    for run in (g.evaluate, g.compile()):
        got = run(x)
        for (_, expected), array in zip(results, got if len(results) > 1 else (got,), strict=True):
            np.testing.assert_allclose(array, expected, rtol=1e-4, atol=1e-4)
