"""Factorizations and systems of equations compute what JAX computes, whose own are LAPACK's."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import tlx
from tests.semantics.frontends.jax.checks import check
from tlx.bench.models.programs import jax, jnp, lax, normal

_rng: Final = np.random.default_rng(3)
_A: Final = normal(_rng, 5, 5) + 3 * np.eye(5, dtype="f4")
_B: Final = normal(_rng, 5, 2)
_MANY: Final = normal(_rng, 3, 4, 4)
_POSITIVE: Final = _A @ _A.T + np.eye(5, dtype="f4")
_linalg: Final = jax.scipy.linalg

FUNCTIONS: Final[dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "cholesky": (lambda x: (jnp.linalg.cholesky(x), jnp.linalg.cholesky(x, upper=True)), (_POSITIVE,)),
    "cholesky of others is NaN": (jnp.linalg.cholesky, (np.stack([-_POSITIVE, _POSITIVE]),)),
    "gradient of cholesky": (jax.grad(lambda x: jnp.linalg.cholesky(x).sum()), (_POSITIVE,)),
    "cho_solve": (lambda a, b: _linalg.cho_solve(_linalg.cho_factor(a), b), (_POSITIVE, _B)),
    "solve_triangular": (
        lambda a, b: [
            _linalg.solve_triangular(a, b, lower=lower, trans=trans, unit_diagonal=unit)
            for lower in (False, True)
            for trans in (0, 1)
            for unit in (False, True)
        ],
        (_A / 4, _B),
    ),
    "triangular systems from the right": (
        lambda a, b: lax.linalg.triangular_solve(a, b.T, left_side=False, lower=True),
        (_A, _B),
    ),
    "lu": (lax.linalg.lu, (normal(_rng, 2, 5, 3),)),
    "solve": (lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.solve(a, b[:, 0])), (_A, _B)),
    "many": (lambda a: (jnp.linalg.inv(a), jnp.linalg.det(a), jnp.linalg.slogdet(a)), (_MANY,)),
    "gradient of solve": (jax.grad(lambda a, b: (jnp.linalg.solve(a, b) ** 2).sum(), (0, 1)), (_A, _B)),
    "expm": (_linalg.expm, (_MANY[0],)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operations(name: str) -> None:
    function, arguments = FUNCTIONS[name]
    check(function, *arguments, tolerance=1e-4)


def test_operations_of_stablehlo() -> None:
    """For other machines, JAX writes StableHLO's operations instead of calls of LAPACK."""

    def function(a: Any, b: Any) -> Any:
        factor = jnp.linalg.cholesky(a)
        return _linalg.solve_triangular(factor, b, lower=True, trans=1)

    text = jax.export.export(jax.jit(function), platforms=["tpu"])(_POSITIVE, _B).mlir_module()
    assert "stablehlo.cholesky" in text
    assert "stablehlo.triangular_solve" in text
    result = np.zeros_like(_B)
    tlx.compile(text, language="stablehlo")(_POSITIVE, _B, result)
    np.testing.assert_allclose(result, function(_POSITIVE, _B), rtol=1e-4, atol=1e-5)
