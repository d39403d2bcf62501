"""Stage 1 on random programs: the same memory afterwards, trees of the specified forms, deterministic output."""

from __future__ import annotations

import numpy as np
import pytest

from tests.semantics.to_2d.contract import check_contract, poisoned
from tests.semantics.to_2d.random.programs import Program
from tests.support.tools import quick
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.tensors.calls import canonicalise
from tlx.llvm.verification import check_module
from tlx.lower.context import LoweringContext
from tlx.lower.to_2d import to_2d
from tlx.target.lookup import find_target

EACH = 40
"""Programs of each case."""


def run(program: Program, module: Module) -> tuple[list[Array], object]:
    """Memory after a call, and its result."""
    arguments = program.inputs()
    result = Machine(module).call("f", *arguments, program.seed % 2)
    return program.memory, result


def assert_same(expected: tuple[list[Array], object], got: tuple[list[Array], object]) -> None:
    """Integers must agree bit for bit; sums of floats may be rounded in another order."""
    for one, other in zip((*expected[0], expected[1]), (*got[0], got[1]), strict=True):
        if one is None:
            continue
        first, second = np.asarray(one), np.asarray(other)
        if first.dtype.kind in "iu":
            np.testing.assert_array_equal(first, second)
        else:
            np.testing.assert_allclose(second.astype(float), first.astype(float), rtol=1e-2, equal_nan=True)


def lowered(text: str) -> Module:
    module = parse(text)
    canonicalise(module)
    to_2d(module, LoweringContext(find_target("generic")))
    return module


@pytest.mark.parametrize("typed", [False, True], ids=["opaque", "typed"])
@pytest.mark.parametrize("control", [False, True], ids=["straight", "control"])
@pytest.mark.parametrize("chunk", quick(range(3)))
def test_same_meaning(chunk: int, control: bool, typed: bool) -> None:
    for seed in range(chunk * EACH, (chunk + 1) * EACH):
        program = Program(seed, typed=typed, control=control)
        expected = run(program, parse(program.text))
        module = lowered(program.text)
        check_contract(module)
        check_module(module, "to-2d")
        once = run(program, module)
        assert_same(expected, once)
        assert_same(once, run(program, poisoned(parse(str(module)))))
        again = parse(str(module))
        to_2d(again, LoweringContext(find_target("generic")))
        assert_same(once, run(program, again))
