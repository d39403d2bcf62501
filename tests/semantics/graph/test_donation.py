"""Memory of results: donated parameters, and the buffers that results are made in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tlx import TlxError
from tlx.graph import Graph, Value

Results = Callable[[Graph, Value, Value], tuple[Any, Any, Any]]


def update(g: Graph, a: Value, b: Value) -> tuple[Any, Any, Any]:
    new = g.dynamic_update_slice(a, b[:1], [2, 0])
    return new, a + b, g.sum(a) + g.sum(new)


CASES: dict[str, Results] = {
    "swapped": lambda _, a, b: (b, a, a @ b),
    "of each other": lambda _, a, b: (a - 0.5 * (b @ a), b + a.T, a * b),
    "transposed": lambda _, a, b: (a.T, b + a, a),
    "unchanged": lambda _, a, b: (a, b * 2, a + 1),
    "updated": update,
}


@pytest.mark.parametrize("name", CASES)
def test_results_take_the_memory_of_parameters(name: str) -> None:
    results: list[list[Any]] = []
    for donated in (False, True):
        graph = Graph("f")
        parameters = [graph.parameter(n, (4, 4), donated=donated) for n in "ab"]
        first, second, third = CASES[name](graph, *parameters)
        graph.output(first, "x", parameters[0] if donated else None)
        graph.output(second, "y", parameters[1] if donated else None)
        graph.output(third, "z")
        for run in (graph.evaluate, graph.compile()):
            a, b = (np.arange(16 * k, 16 * k + 16, dtype="f4").reshape(4, 4) / 8 for k in range(2))
            x, y, z = run(a, b)
            assert (x is a, y is b) == (donated, donated)
            results.append([x, y, z])
    for other in results[1:]:
        for actual, expected in zip(other, results[0], strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("first", "second", "third"),
    [((0, 4), (0, 4), (8, 12)), ((0, 4), (2, 6), (8, 12)), ((4, 8), (0, 4), (2, 6)), ((0, 4), (3, 7), (6, 10)),
     ((0, 4), (4, 8), (0, 4)), ((2, 6), (2, 6), (2, 6)), ((3, 7), (0, 4), (6, 10))],
)  # fmt: skip
def test_arrays_that_share_memory_are_copied(
    first: tuple[int, int], second: tuple[int, int], third: tuple[int, int]
) -> None:
    """Two donated ones, and one that is only read."""
    graph = Graph("f")
    x, y, z = (graph.parameter(name, (4,), donated=name != "z") for name in "xyz")
    graph.output(x + z, into=x)
    graph.output(y * 2 + graph.reverse(z, [0]), into=y)
    graph.output(graph.dynamic_update_slice(graph.concatenate([z, x], 0), z[:1], [4]))
    apart = [np.arange(a, b, dtype="f4") for a, b in (first, second, third)]
    expected = [np.array(r) for r in graph.evaluate(*apart)]
    for run in (graph.evaluate, graph.compile()):
        memory = np.arange(12, dtype="f4")
        results = run(*(memory[a:b] for a, b in (first, second, third)))
        for result, other in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, other)


def test_arrays_that_do_not_share_memory_are_overwritten() -> None:
    graph = Graph("f")
    parameters = [graph.parameter(name, (4,), donated=name != "z") for name in "xyz"]
    for parameter in parameters[:2]:
        graph.output(parameter + parameters[2], into=parameter)
    memory = np.arange(12, dtype="f4")
    function = graph.compile()
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)):
        x, y, z = (memory[4 * k : 4 * k + 4] for k in order)
        results = function(x, y, z)
        assert results[0] is x
        assert results[1] is y


def test_arrays_that_cannot_be_written_are_copied() -> None:
    graph = Graph("f")
    x = graph.parameter("x", (4,), donated=True)
    graph.output(x + 1, into=x)
    array = np.zeros(4, "f4")
    array.flags.writeable = False
    assert graph.compile()(array).tolist() == [1, 1, 1, 1]
    assert array.tolist() == [0, 0, 0, 0]


def test_errors() -> None:
    graph = Graph("f")
    x, y = graph.parameter("x", (4,), donated=True), graph.parameter("y", (4,))
    graph.output(x + 1, into=x)
    for value, into, message in (
        (y, y, "is not a donated parameter whose memory"),
        (graph.sum(y), x, "is not a donated parameter whose memory"),
        (y, x, "already belongs to another result"),
    ):
        with pytest.raises(TlxError, match=message):
            graph.output(value, into=into)


def test_results_are_made_in_their_place() -> None:
    graph = Graph("f")
    x, i = graph.parameter("x", (100, 64)), graph.parameter("i", (), "int32")
    y = graph.dynamic_update_slice(x, x[:1] + 1, [i, 0])
    graph.output(y, "y")
    graph.output(y[2], "row")
    graph.output(graph.dynamic_update_slice(y, x[:1] + 2, [0, 0]), "z")
    graph.output(y, "again")
    text = graph.text()
    assert text.count("alloca") + text.count("@malloc(") == 0
    array = np.arange(6400, dtype="f4").reshape(100, 64)
    expected, changed = array.copy(), array.copy()
    expected[2] = array[0] + 1
    changed[2], changed[0] = expected[2], array[0] + 2
    for run in (graph.evaluate, graph.compile()):
        for actual, wanted in zip(run(array, np.int32(2)), (expected, expected[2], changed, expected), strict=True):
            np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("shape", [(), (3, 5), (1 << 20,)], ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "float32", "bfloat16"])
def test_results_begin_at_a_cache_line(shape: tuple[int, ...], dtype: str) -> None:
    graph = Graph("f")
    x = graph.parameter("x", shape, dtype)
    graph.output(x + x, "sum")
    graph.output(x, "same")
    function = graph.compile()
    for _ in range(3):
        results = function(np.ones(shape, x.dtype))
        assert [r.ctypes.data % 64 for r in results] == [0, 0]
        assert [np.all(r.astype("f4") == n) for r, n in zip(results, (2, 1), strict=True)] == [True, True]
