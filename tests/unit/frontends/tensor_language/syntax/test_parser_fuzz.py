"""Mutants of kernels: the parser raises nothing but a `ProgramError`."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.unit.frontends.tensor_language.syntax.kernels import KERNELS
from tests.unit.frontends.tensor_language.syntax.mutants import mutant, outcome, tokens_of
from tlx.frontends.tensor_language import parse


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_kernels_parse(kernel: str) -> None:
    assert parse(kernel).functions
    assert "".join(tokens_of(kernel)) == kernel


@pytest.mark.parametrize("seed", range(4))
def test_mutants_parse_or_are_errors(seed: int) -> None:
    outcomes = Counter(outcome(mutant(random.Random(f"{seed}:{n}")), check=False) for n in range(500))
    # Mutants that all fail, or none, would test little.
    assert outcomes["does not parse"] > 250
    assert outcomes["parses"] > 10
