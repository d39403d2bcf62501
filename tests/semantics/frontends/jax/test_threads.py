"""Training steps with --threads=openmp: the same bytes for every number of threads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

import tlx
from tests.semantics.frontends.jax.programs import PROGRAMS, Program, jax
from tests.support.tools import require_openmp
from tlx.bench.models.programs import (
    autoencoder_arguments,
    autoencoder_step,
    gpt2_loss,
    gpt2_parameters,
    mlp_arguments,
    mlp_step,
)
from tlx.llvm import openmp
from tlx.lower.options import Options

_COUNTS: Final = (1, 2, 3, 7)
_THREADED: Final = Options(threads="openmp")
_STEPS: Final[dict[str, Program]] = {
    "mlp step": (mlp_step, mlp_arguments((784, 512, 256, 10), 64)),
    "autoencoder step": (autoencoder_step, autoencoder_arguments((1, 16, 32), 28, 8)),
    "gpt2 gradient": (jax.value_and_grad(gpt2_loss), (gpt2_parameters(128, 2, 500, 64), np.arange(64, dtype="i4"))),
}
"""Sizes at which loops, kernels and whole calls are shared by the team."""


def results(program: Program, options: Options) -> list[list[bytes]]:
    """The bytes of the results for each number of threads."""
    require_openmp()
    function, arguments = program
    compiled = tlx.jax.jit(function, options=options)
    found: list[list[bytes]] = []
    for threads in _COUNTS:
        openmp.set_threads(threads)
        leaves: list[Any] = jax.tree.leaves(compiled(*arguments))
        found.append([np.asarray(leaf).tobytes() for leaf in leaves])
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", _STEPS)
def test_training_steps_give_the_same_bytes(name: str) -> None:
    alone, *others = results(_STEPS[name], _THREADED)
    assert others == [alone] * len(others)


@pytest.mark.parametrize("name", _STEPS)
def test_small_training_steps_give_the_same_bytes(name: str) -> None:
    """Every kernel and loop runs on several threads, however short it is."""
    alone, *others = results(PROGRAMS[name], replace(_THREADED, thread_cycles=0))
    assert others == [alone] * len(others)
