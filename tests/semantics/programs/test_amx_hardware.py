"""Random programs on AMX itself: asked for by name, on a machine that has it (`make test-amx`).

Nothing but Python, llvmlite, numpy, click, pytest and ml_dtypes is needed:

    PYTHONPATH=. python3 -m pytest -m amx_hardware tests/semantics -s

The compiled modules ask the kernel for tile permission themselves, in their constructors.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

import ml_dtypes
import numpy as np
import pytest

import tlx
from tests.semantics.programs.floats import products
from tests.semantics.programs.harness import RUN_ONLY, Job, Report, run
from tests.semantics.programs.test_floats import AMX_TYPES, check
from tests.semantics.to_tiles.test_split_fp16 import product, with_special
from tests.unit.legalize.x86.test_semantics import AMX, vnni
from tlx.evaluate import evaluate
from tlx.ir.parser.module import parse
from tlx.legalize.x86.amx import FP16_SPLIT_COSTS
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.target.host import cpu_flags, missing_features
from tlx.target.lookup import find_target

pytestmark = pytest.mark.amx_hardware

_ARCH_PRCTL: Final = 158
_REQUEST_PERMISSION: Final = 0x1023
_TILE_DATA: Final = 18
_TILES: Final = ((16, 32), (32, 16))
JOBS = [
    *(Job("tiles-any", "amx", 15, part, (RUN_ONLY,)) for part in range(12)),
    *(Job("tiles-large", "amx", 5, part, (RUN_ONLY,)) for part in range(8)),
    *(Job("shapes", "amx", 3, part, (RUN_ONLY,)) for part in range(4)),
    *(Job("small", "amx", 5, part) for part in range(4)),
]


@pytest.fixture(autouse=True)
def machine_with_amx() -> None:
    """Fail, rather than skip, where there is no AMX: these tests are only run on purpose."""
    lacking = missing_features(find_target("amx"), cpu_flags())
    if lacking:
        pytest.fail(f"this machine cannot run these tests: its processor has no {', '.join(lacking)}", pytrace=False)


def test_random_programs(capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.monotonic()
    report = Report()
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 1)) as pool:
        for part in pool.map(run, JOBS):
            report.add(part)
    seconds = time.monotonic() - begun
    with capsys.disabled():
        sys.stdout.write(
            f"\nAMX: {report.programs} programs ({report.functions} functions), {len(report.failures)} mismatches, "
            f"{report.tiled} kernels with tdp* instructions, {seconds:.0f} s\n"
        )
    if report.failures:
        pytest.fail("\n\n".join(report.failures), pytrace=False)
    assert report.programs == sum(len(job.seeds) for job in JOBS)
    assert report.tiled > 0


def test_permission_is_granted() -> None:
    """What the modules' constructors ask for."""
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA)
    assert result == 0, f"the kernel refuses tiles: {os.strerror(ctypes.get_errno())}"


def test_tiles_of_halves_agree_with_the_evaluator() -> None:
    """Any bits: subnormals of half are what they are, those of float are zeros."""
    target = find_target("amx+amx-fp16")
    if missing_features(target, cpu_flags()):
        pytest.skip("this processor has no AMX-FP16")
    test_permission_is_granted()
    text, generator = AMX.replace("NAME", "tdpfp16ps"), np.random.default_rng(3)
    compiled = tlx.compile(text.replace(") {", f") {' '.join(target.function_attributes)} {{"), target)
    for scale in (1.0, 1e-5, 1e-38):
        a, b = (generator.integers(0, 1 << 16, shape).astype(np.uint16).view(np.float16) for shape in _TILES)
        a[::2], b[:, 1:] = (generator.normal(0, 1e-5, shape).astype(np.float16) for shape in ((8, 32), (32, 15)))
        c = (generator.standard_normal((16, 16)) * scale).astype(np.float32)
        evaluated = c.copy()
        packed, arguments = vnni(b, 2), (64, 64, 64, 16, 64, 64)
        compiled["multiply"](a, packed, c, *arguments)
        evaluate(parse(text), "multiply", a, packed, evaluated, *arguments)
        np.testing.assert_array_equal(c, evaluated)


def test_parts_of_halves_agree_with_the_evaluator() -> None:
    """Infinities, NaN, subnormals and all else, bit by bit."""
    amx = find_target("amx")
    assert amx.matrix is not None
    timing = replace(amx.matrix.costs, fp16_split=replace(FP16_SPLIT_COSTS, max_vector_share=float("inf")))
    target = replace(amx, matrix=replace(amx.matrix, costs=timing))
    test_permission_is_granted()
    text, generator = product(130, 140, 150), np.random.default_rng(5)
    compiled, lowered = tlx.compile(text, target), lower(parse(text), target)
    for many in (0.0, 0.001, 0.3):
        a, b = (with_special(generator, shape, many) for shape in ((130, 150), (150, 140)))
        c, evaluated = (np.zeros((130, 140), np.float32) for _ in range(2))
        compiled["f"](c, a, b)
        evaluate(lowered, "f", evaluated, a, b)
        np.testing.assert_array_equal(c, evaluated)


def test_floats() -> None:
    check(products(AMX_TYPES), find_target("amx"), Options())


@pytest.mark.parametrize("k", [96, 416, 544, 800, 1184])
def test_epilogues_beside_products(k: int) -> None:
    """Long ones, and one whose operand is the result's memory, beside few and many steps of K: as without AMX."""
    m, n, generator = 96, 160, np.random.default_rng(k)
    g = tlx.Graph("f")
    rest = g.parameter("rest", (m, n), "bfloat16", donated=True)
    product_ = g.parameter("x", (m, k), "bfloat16") @ g.parameter("w", (k, n), "bfloat16")
    g.output(g.tanh(product_) * product_ + rest, into=rest)
    x, w = (generator.normal(0, k**-0.25, shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (k, n)))
    old = generator.normal(0, 1, (m, n)).astype(ml_dtypes.bfloat16)
    results = [g.compile(target)(old.copy(), x, w).astype(np.float32) for target in ("amx", "avx512")]
    np.testing.assert_allclose(*results, rtol=2**-6, atol=2**-6)
