"""Products of arbitrary floats are as close to the exact ones as sums in float (or double) must be."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import tlx
from tests.semantics.machines.programs import check_half
from tests.semantics.programs.floats import TYPES, Product, products
from tests.support.tools import require_processor
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse
from tlx.ir.types import BFLOAT, HALF
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.target.costs.memory import Caches
from tlx.target.host import best_target, cpu_flags
from tlx.target.lookup import find_target
from tlx.target.target import Target

AMX_TYPES = [(operand, result) for operand, result in TYPES if operand in (BFLOAT, HALF)]


def text(cases: list[Product]) -> str:
    return "\n".join(case.text for case in cases)


def assert_close(case: Product, before: list[Array], got: Array) -> None:
    error = case.error(before, got)
    assert error <= 1, f"{case}: the error is {error:.2f} times what is allowed"


def native(name: str) -> Target:
    target = find_target(name)
    require_processor(name)
    return best_target([target], cpu_flags(), Caches())


@pytest.mark.parametrize("name", ["generic", "avx2", "avx512"])
def test_machine_code(name: str) -> None:
    check(products(), native(name), Options())


def test_arithmetic_on_half() -> None:
    name = "avx512+avx512fp16"
    require_processor(name)
    check_half(partial(tlx.compile, target=name))


def test_emulated_amx() -> None:
    check(products(AMX_TYPES), find_target("amx+amx-fp16"), Options(emulate_matrix=True), level=0)


def check(cases: list[Product], target: Target, options: Options, level: int = 2) -> None:
    compiled = tlx.compile(text(cases), target, opt_level=level, options=options)
    generator = np.random.default_rng(11)
    for case in cases:
        before = case.operands(generator)
        c = before[0].copy()
        compiled[case.name](c, *before[1:])
        assert_close(case, before, c)


@pytest.mark.parametrize("stage", [None, "to-2d", "to-tiles"])
def test_evaluated(stage: str | None) -> None:
    cases = [case for case in products() if case.shape in ((17, 33, 100), (1, 1, 1))]
    module = parse(text(cases))
    if stage:
        module = lower(module, "avx512", options=Options(stop_after=stage))
    machine = Machine(module)
    generator = np.random.default_rng(12)
    for case in cases:
        before = case.operands(generator)
        c = before[0].copy()
        machine.call(case.name, c, *before[1:])
        assert_close(case, before, c)


def test_bound_is_tight() -> None:
    """One unit in the last place of a float is too much for a short sum, and sums in bfloat are for a long one."""
    generator = np.random.default_rng(13)
    for case in products():
        before = case.operands(generator)
        m, n, k = case.shape
        if (m, n, k) == (17, 33, 100):
            c, a, b = (array.astype(np.float64) for array in before)
            exact = a @ b + (c if case.adds else 0.0)
            assert case.error(before, (exact * (1 + 2.0**-6)).astype(before[0].dtype)) > 1
