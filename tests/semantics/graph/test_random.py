"""Random chains of views, products, reductions and arithmetic: what one makes of memory, the next must read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tlx.graph import Graph, Value

Step = tuple[Value, Any]


def sliced(rng: np.random.Generator, _: Graph, value: Value, array: Any) -> Step:
    key: list[Any] = []
    for extent in value.shape:
        start = int(rng.integers(0, extent))
        stop, step = int(rng.integers(start + 1, extent + 1)), int(rng.integers(1, 3))
        key.append(slice(start, stop, step) if rng.random() < 0.8 else start)
    return value[(*key,)], array[(*key,)]


def reshaped(rng: np.random.Generator, _: Graph, value: Value, array: Any) -> Step:
    rest, factors = array.size, [1]
    while rest > 1:
        factor = next(n for n in range(2, rest + 1) if rest % n == 0)
        factors.append(factor)
        rest //= factor
    shape = tuple(int(n) for n in rng.permutation(factors))
    return value.reshape(*shape), array.reshape(shape)


def transposed(rng: np.random.Generator, _: Graph, value: Value, array: Any) -> Step:
    order = tuple(int(d) for d in rng.permutation(array.ndim))
    return value.transpose(*order), array.transpose(order)


def broadcast(rng: np.random.Generator, graph: Graph, value: Value, array: Any) -> Step:
    shape = (int(rng.integers(1, 4)), *array.shape)
    return graph.broadcast(value, shape), np.broadcast_to(array, shape)


def summed(rng: np.random.Generator, graph: Graph, value: Value, array: Any) -> Step:
    axis = int(rng.integers(0, value.rank))
    return graph.sum(value, axis), array.sum(axis)


def multiplied(_: np.random.Generator, graph: Graph, value: Value, array: Any) -> Step:
    if array.ndim < 2:
        return value * 2.0, array * 2
    swapped = [*range(value.rank - 2), value.rank - 1, value.rank - 2]
    return graph.matmul(value, graph.transpose(value, swapped)), array @ array.swapaxes(-1, -2)


def joined(rng: np.random.Generator, graph: Graph, value: Value, array: Any) -> Step:
    axis = int(rng.integers(0, value.rank))
    return graph.concatenate([value, value], axis), np.concatenate([array, array], axis)


def shifted(_: np.random.Generator, graph: Graph, value: Value, array: Any) -> Step:
    return graph.relu(value - value[:1]) + value, np.maximum(array - array[:1], 0) + array


STEPS = (sliced, reshaped, transposed, broadcast, summed, multiplied, joined, shifted)


@pytest.mark.parametrize("seed", range(80))
def test_random_chain(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, tuple(rng.integers(1, 6, rng.integers(1, 4)))).astype(np.float32)
    graph = Graph()
    value, array = graph.parameter("x", x.shape), x.astype(np.float64)
    for _ in range(rng.integers(3, 9)):
        if array.ndim and array.ndim < 5 and array.size < 2000 and np.abs(array).max() < 1e4:
            value, array = STEPS[rng.integers(0, len(STEPS))](rng, graph, value, array)
    graph.output(value)
    for result in (graph.evaluate(x), graph.compile()(x)):
        assert result.shape == array.shape
        np.testing.assert_allclose(result, array, rtol=1e-5, atol=1e-3)
