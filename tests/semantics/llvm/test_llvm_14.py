"""LLVM 14 reads tensor programs with typed pointers, optimises them, and does so again once they are lowered."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from tests.support.tools import HANG_S, require
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse, parse_fully
from tlx.lower import pipeline

PROGRAM: Final = Path(__file__).with_name("operations_typed.ll")
NAMES: Final = ("convolution", "layer", "moves", "contraction", "functions")
SIZE: Final = 128
INEXACT: Final = {"functions": 8 * 2.0**-24}
"""Two functions within 4 ulp each. What is computed of small whole numbers otherwise is exact in any order."""


@cache
def original() -> str:
    """The program, its calls mangled and declared: LLVM has no overloads."""
    module = parse(PROGRAM.read_text(), PROGRAM.name)
    pipeline.verify(module)
    return str(module)


@cache
def optimised(text: str) -> str:
    command = [require("opt-14"), "-O2", "-S"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stderr[:2000]
    return done.stdout


@cache
def results(text: str) -> dict[str, Array]:
    machine = Machine(parse_fully(text))
    result: dict[str, Array] = {}
    for name in NAMES:
        generator = np.random.default_rng(0)
        y, a, b = (generator.integers(-4, 5, SIZE).astype(np.float32) for _ in range(3))
        machine.call(name, y, a, b)
        result[name] = y
    return result


def check(text: str) -> None:
    expected = results(original())
    for name, result in results(text).items():
        np.testing.assert_allclose(result, expected[name], INEXACT.get(name, 0), 0, err_msg=name)


def test_optimised_before_lowering() -> None:
    text = optimised(original())
    assert text.count("@llvm.tensor.") > len(NAMES)
    assert "float* " in text
    check(text)


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
def test_optimised_before_and_after_lowering(target: str) -> None:
    lowered = pipeline.lower_text(optimised(original()), "optimised.ll", target)
    assert "@llvm.tensor." not in lowered
    check(lowered)
    check(optimised(lowered))
