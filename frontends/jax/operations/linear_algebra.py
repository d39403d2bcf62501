"""Linear algebra: StableHLO's operations, and the LAPACK functions that JAX calls for CPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from tlx.frontends.jax.translation import OperationContext, Results, TranslationRule
from tlx.graph import Graph, Value


def _cholesky(c: OperationContext) -> Results:
    return [c.graph.cholesky(c.operands[0], lower=c.attribute("lower", False))]


def _triangular_solve(c: OperationContext) -> Results:
    transposed = str(c.attribute("transpose_a")) in ("TRANSPOSE", "ADJOINT")
    return [
        _solve(
            c,
            left=c.attribute("left_side"),
            lower=c.attribute("lower"),
            transposed=transposed,
            unit_diagonal=c.attribute("unit_diagonal"),
        )
    ]


def _solve(c: OperationContext, *, left: bool, lower: bool, transposed: bool, unit_diagonal: bool) -> Value:
    """The solution of `op(a) x = b`, or of `x op(a) = b`, whose transpose is `op(a).T x.T = b.T`."""
    a, b = c.operands
    if left:
        return c.graph.triangular_solve(a, b, lower=lower, transposed=transposed, unit_diagonal=unit_diagonal)
    x = c.graph.triangular_solve(
        a, _matrix_transpose(c.graph, b), lower=lower, transposed=not transposed, unit_diagonal=unit_diagonal
    )
    return _matrix_transpose(c.graph, x)


def _matrix_transpose(g: Graph, x: Value) -> Value:
    return g.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])


# LAPACK --------------------------------------------------------------------------------------------------------


def _potrf(c: OperationContext) -> Results:
    """The factor, and 0, or 1 if the matrix is not positive definite."""
    g = c.graph
    factor = g.cholesky(c.operands[0], lower=_is_flag(c, "uplo", "L"))
    if not c.needed[1]:
        return [factor, None]
    n = factor.shape[-1]
    is_elsewhere = g.not_equal(g.iota((n, n), 0, "int32"), g.iota((n, n), 1, "int32"))
    is_definite = g.reduce("all", (factor > 0.0) | is_elsewhere, (-2, -1))
    return [factor, g.where(is_definite, np.int32(0), np.int32(1))]


def _trsm(c: OperationContext) -> Results:
    return [
        _solve(
            c,
            left=_is_flag(c, "side", "L"),
            lower=_is_flag(c, "uplo", "L"),
            transposed=not _is_flag(c, "trans_x", "N"),
            unit_diagonal=_is_flag(c, "diag", "U"),
        )
    ]


def _getrf(c: OperationContext) -> Results:
    """The factors, the exchanged rows counted from 1, and 0."""
    g = c.graph
    factors, pivots = g.lu(c.operands[0])
    return [factors, pivots + 1, g.full(c.operation.types[2].shape or (), 0, "int32")]


def _is_flag(c: OperationContext, name: str, letter: str) -> bool:
    configuration: Mapping[str, Any] = c.attribute("mhlo.backend_config")
    return int(configuration[name]) == ord(letter)


LAPACK: Final[dict[str, Callable[[OperationContext], Results]]] = {
    f"lapack_{kind}{name}_ffi": rule
    for kind in "sd"
    for name, rule in (("potrf", _potrf), ("trsm", _trsm), ("getrf", _getrf))
}
"""Functions of LAPACK that are translated: Cholesky's factor, triangular systems, LU factors."""

RULES: Final[dict[str, TranslationRule]] = {
    "stablehlo.cholesky": TranslationRule(_cholesky, "`cholesky(x, lower=)`"),
    "stablehlo.triangular_solve": TranslationRule(
        _triangular_solve, "`triangular_solve(a, b, lower=, transposed=, unit_diagonal=)`"
    ),
}
