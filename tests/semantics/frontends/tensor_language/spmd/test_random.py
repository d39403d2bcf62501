"""Random divergent kernels compute what the interpreter computes for one work-item at a time.

More of them: python -m tests.semantics.frontends.tensor_language.spmd.test_random --seed 1000 --count 500
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tlx.frontends.tensor_language as tl
from tests.semantics.frontends.tensor_language.spmd.interpreter import run
from tests.semantics.frontends.tensor_language.spmd.programs import INPUTS, SLOTS, Generated, generate
from tests.support.tools import quick
from tlx.diagnostics import TlxWarning
from tlx.frontends.tensor_language.syntax.printer import print_program

TARGETS = ("generic", "avx2", "native")


@pytest.mark.parametrize("seed", quick(range(45), 12))
def test_random_kernels(seed: int) -> None:
    check(seed, TARGETS[seed % 3])


def check(seed: int, target: str) -> None:
    """Compare a kernel's code with its meaning."""
    made = generate(seed)
    arrays, scalars = _arguments(seed, made)
    expected = {name: array.copy(order="F") for name, array in arrays.items()}
    run(made.program.functions[0], expected, scalars, made.shape)
    with warnings.catch_warnings():  # of barriers: the generator knows better
        warnings.simplefilter("ignore", TlxWarning)
        kernels = tl.compile(made.program, target)
    kernels.kernel(*arrays.values(), *scalars.values())
    for name, array in arrays.items():
        assert np.array_equal(array, expected[name], equal_nan=array.dtype == np.float32), (
            f"seed {seed}, {target}: %{name} differs\n{_difference(array, expected[name])}\n"
            f"{print_program(made.program)}"
        )


def _arguments(seed: int, made: Generated) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    chance = np.random.default_rng(seed)
    items = made.items
    arrays: dict[str, NDArray[Any]] = {
        "A": chance.integers(-20, 20, INPUTS).astype(np.int32),
        "F": chance.normal(size=INPUTS).astype(np.float32) * 10,
        "X": np.full(items, -1, np.int32),
        "B": np.full((items, SLOTS), 12345, np.int32, order="F"),
        "G": np.full((items, SLOTS), 0.5, np.float32, order="F"),
    }
    return arrays, {"p": int(chance.integers(-5, 12)), "q": np.float32(chance.normal())}


def _difference(found: NDArray[Any], expected: NDArray[Any]) -> str:
    same = np.isclose(found, expected, rtol=0, atol=0, equal_nan=True)
    places = np.argwhere(~same)[:5]
    return "\n".join(f"  {tuple(p)}: {found[tuple(p)]}, expected {expected[tuple(p)]}" for p in places)


def main() -> None:
    """Run many seeds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--target", choices=TARGETS)
    options = parser.parse_args()
    for seed in range(options.seed, options.seed + options.count):
        try:
            check(seed, options.target or TARGETS[seed % 3])
        except Exception as error:  # noqa: BLE001
            sys.stdout.write(f"seed {seed}: {type(error).__name__}: {error}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
