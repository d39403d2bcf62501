"""Instructions used by mathematical functions, compared with the processor's results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.unit.evaluate.jit import Case, run_both

Array = NDArray[Any]
CPU = Path("/proc/cpuinfo")
FLAGS = set(CPU.read_text().split()) if CPU.exists() else set[str]()
DECLARATIONS = """\
declare <16 x float> @llvm.x86.avx512.mask.reduce.ps.512(<16 x float>, i32, <16 x float>, i16, i32)
declare <8 x double> @llvm.x86.avx512.mask.reduce.pd.512(<8 x double>, i32, <8 x double>, i8, i32)
declare <16 x float> @llvm.x86.avx512.vfmadd.ps.512(<16 x float>, <16 x float>, <16 x float>, i32)
declare <8 x double> @llvm.x86.avx512.vfmadd.pd.512(<8 x double>, <8 x double>, <8 x double>, i32)
declare <16 x float> @llvm.x86.avx512.permvar.sf.512(<16 x float>, <16 x i32>)
declare <16 x float> @llvm.x86.avx512.vpermi2var.ps.512(<16 x float>, <16 x i32>, <16 x float>)
"""
SINGLE, DOUBLE, WORDS = "<16 x float>", "<8 x double>", "<16 x i32>"


def _numbers(random: np.random.Generator, count: int, dtype: Any) -> Array:
    """Of all sizes, ties and infinities among them."""
    numbers = random.normal(size=count) * 2.0 ** random.integers(-40, 60, count).astype(float)
    halves = random.integers(-9, 9, count) / 2
    mixed = np.where(random.random(count) < 0.3, halves, numbers)
    return np.where(random.random(count) < 0.1, np.copysign(np.inf, mixed), mixed).astype(dtype)


def _floats(random: np.random.Generator) -> Array:
    return _numbers(random, 16, np.float32)


def _words(random: np.random.Generator) -> Array:
    return random.integers(-(1 << 31), 1 << 31, 16).astype(np.int32)


CASES = [
    Case(
        "fraction_of_floats",
        (SINGLE,),
        SINGLE,
        f"  %r = call {SINGLE} @llvm.x86.avx512.mask.reduce.ps.512({SINGLE} %a, i32 8, {SINGLE} %a, i16 -1, i32 4)",
        (64,),
        lambda random: [_floats(random)],
    ),
    Case(
        "fraction_of_doubles",
        (DOUBLE,),
        DOUBLE,
        f"  %r = call {DOUBLE} @llvm.x86.avx512.mask.reduce.pd.512({DOUBLE} %a, i32 8, {DOUBLE} %a, i8 -1, i32 4)",
        (64,),
        lambda random: [_numbers(random, 8, np.float64)],
    ),
    *(
        Case(
            f"sum_of_{name}_rounded_up",
            (type_, type_, type_),
            type_,
            f"  %r = call {type_} @llvm.x86.avx512.vfmadd.{suffix}.512({type_} %a, {type_} %b, {type_} %c, i32 10)",
            (64,),
            lambda random, count=count, kind=kind: [_numbers(random, count, kind) for _ in range(3)],
        )
        for name, type_, suffix, count, kind in (
            ("floats", SINGLE, "ps", 16, np.float32),
            ("doubles", DOUBLE, "pd", 8, np.float64),
        )
    ),
    Case(
        "picked",
        (SINGLE, WORDS),
        SINGLE,
        f"  %r = call {SINGLE} @llvm.x86.avx512.permvar.sf.512({SINGLE} %a, {WORDS} %b)",
        (64,),
        lambda random: [_floats(random), _words(random)],
    ),
    Case(
        "picked_of_two",
        (SINGLE, WORDS, SINGLE),
        SINGLE,
        f"  %r = call {SINGLE} @llvm.x86.avx512.vpermi2var.ps.512({SINGLE} %a, {WORDS} %b, {SINGLE} %c)",
        (64,),
        lambda random: [_floats(random), _words(random), _floats(random)],
    ),
]


@pytest.mark.skipif("avx512dq" not in FLAGS, reason="no AVX-512")
def test_intrinsics_give_what_the_processor_gives() -> None:
    assert not run_both(CASES, DECLARATIONS, repeats=20)
