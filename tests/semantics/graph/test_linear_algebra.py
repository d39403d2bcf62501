"""Factorizations and triangular systems of `tlx.graph`: by the evaluator and as machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.semantics.graph.checks import Array, check
from tlx import TlxError
from tlx.graph import Graph, Value

SHAPES = [(1, 1), (5, 5), (2, 3, 6, 6)]


def positive(shape: tuple[int, ...], dtype: str = "f4") -> Array:
    """Symmetric, positive definite matrices."""
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    return x @ np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1], dtype=dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("lower", [False, True])
def test_cholesky(shape: tuple[int, ...], dtype: str, lower: bool) -> None:
    """The other triangle is not read."""
    x = positive(shape, dtype)
    hidden = np.triu(np.full(shape, np.nan, dtype), 1)
    given = x + (hidden if lower else np.swapaxes(hidden, -1, -2))

    def factor(x: Array) -> Array:
        whole = np.where(np.isnan(x), np.swapaxes(x, -1, -2), x)
        result = np.linalg.cholesky(whole)
        return result if lower else np.swapaxes(result, -1, -2)

    def build(g: Graph, a: Value) -> Value:
        return g.cholesky(a, lower=lower)

    check(build, factor, given, tolerance={"f4": 2e-6, "f8": 1e-14}[dtype])


def test_matrices_that_are_not_positive_definite_have_no_factor() -> None:
    graph = Graph()
    graph.output(graph.cholesky(graph.parameter("x", (3, 3))))
    assert np.isnan(graph.compile()(-np.eye(3, dtype="f4"))).any()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("unit_diagonal", [False, True])
def test_triangular_systems(shape: tuple[int, ...], lower: bool, transposed: bool, unit_diagonal: bool) -> None:
    """What is not read is NaN."""
    rng, n = np.random.default_rng(1), shape[-1]
    a = (rng.normal(size=shape) / n + 2 * np.eye(n)).astype("f4")
    b = rng.normal(size=(*shape[:-1], 3)).astype("f4")
    ones = np.ones((n, n), bool)
    unread = ~np.tril(ones, -int(unit_diagonal)) if lower else ~np.triu(ones, int(unit_diagonal))

    def build(g: Graph, a: Value, b: Value) -> Value:
        return g.triangular_solve(a, b, lower=lower, transposed=transposed, unit_diagonal=unit_diagonal)

    def solve(a: Array, b: Array) -> Array:
        matrix = np.where(unread, 0.0, a) + (np.eye(n) if unit_diagonal else 0.0)
        return np.linalg.solve(np.swapaxes(matrix, -1, -2) if transposed else matrix, b)

    check(build, solve, np.where(unread, np.float32(np.nan), a), b, tolerance=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (3, 7, 4), (2, 4, 7)])
def test_lu(shape: tuple[int, ...]) -> None:
    rng, (m, n) = np.random.default_rng(2), shape[-2:]
    x = rng.normal(size=shape).astype("f4")
    graph = Graph()
    for value in graph.lu(graph.parameter("x", shape)):
        graph.output(value)
    for factors, pivots in (graph.evaluate(x), graph.compile()(x)):
        assert pivots.dtype == np.int32
        matrices = zip(x.reshape(-1, m, n), factors.reshape(-1, m, n), pivots.reshape(-1, min(m, n)), strict=True)
        for matrix, factor, exchanged in matrices:
            rows = matrix.copy()
            for k, other in enumerate(exchanged):
                rows[[k, other]] = rows[[other, k]]
            low = np.tril(factor, -1)[:, : min(m, n)] + np.eye(m, min(m, n))
            np.testing.assert_allclose(low @ np.triu(factor)[: min(m, n)], rows, rtol=1e-5, atol=1e-6)
            assert np.abs(low).max() <= 1


def test_a_singular_matrix_has_factors() -> None:
    graph = Graph()
    for value in graph.lu(graph.parameter("x", (3, 3))):
        graph.output(value)
    factors, pivots = graph.compile()(np.ones((3, 3), "f4"))
    np.testing.assert_array_equal(factors, [[1, 1, 1], [1, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(pivots, [0, 1, 2])


def test_lu_does_not_change_the_rows_above_the_one_that_it_eliminates() -> None:
    """Infinity times zero would be NaN."""
    graph = Graph()
    for value in graph.lu(graph.parameter("x", (2, 2))):
        graph.output(value)
    x = np.array([[2, 1], [1, np.inf]], "f4")
    for factors, _ in (graph.evaluate(x), graph.compile()(x)):
        np.testing.assert_array_equal(factors, [[2, 1], [0.5, np.inf]])


def test_no_elements() -> None:
    graph = Graph()
    x = graph.parameter("x", (0, 3, 3))
    for value in (graph.cholesky(x), graph.triangular_solve(x, x), *graph.lu(x)):
        graph.output(value)
    assert [r.shape for r in graph.compile()(np.zeros((0, 3, 3), "f4"))] == [(0, 3, 3)] * 3 + [(0, 3)]


Wrong = Callable[[Graph, Value], Any]
WRONG: list[tuple[str, Wrong]] = [
    (r"cholesky: the operand has shape \(2, 3\): expected square", lambda g, x: g.cholesky(x)),
    (r"lu: the operand has shape \(2\): expected matrices", lambda g, x: g.lu(x[:, 0])),
    ("cholesky: not defined for float16", lambda g, x: g.cholesky(g.convert(x @ x.T, "float16"))),
    (r"triangular_solve: a is \(2, 2\) and b \(3, 2\)", lambda g, x: g.triangular_solve(x @ x.T, x.T)),
    (
        "triangular_solve: the operands are float32 and float64",
        lambda g, x: g.triangular_solve(x @ x.T, g.convert(x, "float64")),
    ),
]


@pytest.mark.parametrize(("message", "wrong"), WRONG)
def test_errors(message: str, wrong: Wrong) -> None:
    graph = Graph()
    with pytest.raises(TlxError, match=message):
        wrong(graph, graph.parameter("x", (2, 3)))
