"""Whole programs of JAX, forward and backward, compute what JAX computes."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import tlx
from tests.semantics.frontends.jax.checks import check, check_bfloat
from tests.semantics.frontends.jax.programs import BFLOAT, FULL, PROGRAMS, jax

_TOLERANCE: Final = {"resnet gradient": 2e-5}
_EVALUATED: Final = ("autoencoder step", "gpt2 generate", "lstm gradient", "mlp step", "resnet inference", "vit")


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    function, arguments = PROGRAMS[name]
    check(function, *arguments, tolerance=_TOLERANCE.get(name))


@pytest.mark.parametrize("name", BFLOAT)
def test_programs_in_bfloat(name: str) -> None:
    function, arguments = BFLOAT[name]
    check_bfloat(function, *arguments)


@pytest.mark.parametrize("name", ["gpt2 step", "gpt2 generate", "mlp step"])
def test_programs_with_types_of_64_bits(name: str) -> None:
    """Numbers of Python are int64 and float64 then; programs keep the types of their arguments."""
    function, arguments = PROGRAMS[name]
    with jax.enable_x64(True):
        check(function, *arguments)


@pytest.mark.parametrize("name", _EVALUATED)
def test_stages_mean_the_same(name: str) -> None:
    function, arguments = PROGRAMS[name]
    assert not tlx.validate(tlx.jax.lower(function, *arguments), runs=1)


@pytest.mark.long
@pytest.mark.parametrize("name", FULL)
def test_whole_models(name: str) -> None:
    function, arguments = FULL[name]()
    check(function, *arguments, tolerance=1e-4)


def test_training_converges() -> None:
    step, (start, x, y) = PROGRAMS["mlp step"]
    compiled = tlx.jax.jit(step, donate_argnums=0)
    parameters, expected = (jax.tree.map(np.array, start) for _ in range(2))
    losses: list[float] = []
    for _ in range(100):
        parameters, loss = compiled(parameters, x, y)  # in place
        expected, _ = jax.jit(step)(expected, x, y)
        losses.append(float(loss))
    assert losses[-1] < 0.5 * losses[0]
    for a, b in zip(jax.tree.leaves(parameters), jax.tree.leaves(expected), strict=True):
        assert abs(a - b).max() < 1e-4
