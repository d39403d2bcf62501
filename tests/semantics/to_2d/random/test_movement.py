"""Operations that move elements, and reductions: the same memory after each stage of lowering, and compiled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tlx
from tests.semantics.to_2d.contract import check_contract, poisoned
from tests.semantics.to_2d.random.movement import Movement
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.llvm.verification import check_module
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.target.costs.blocks import ReductionCosts
from tlx.target.lookup import find_target
from tlx.target.target import Target

MOVES = ("broadcast", "broadcast.scalar", "reshape.block", "reshape.permute", "pad", "concat")
REDUCTIONS = tuple(f"reduce.{name}" for name in ("add", "mul", "max", "min", "and", "or", "xor"))
EACH = 30
"""Programs of each kind in stage 1."""
FEW = 6
"""Programs of each kind in the other stages, and compiled."""


def program_of(kind: str, seed: int) -> Movement:
    return Movement(kind, seed, typed=seed % 3 == 0, large=seed % 10 == 9)


def run(program: Movement, module: Module) -> list[Array]:
    """Memory after a call."""
    arrays = [array.copy() for array in program.given]
    Machine(module).call("f", *arrays, program.argument)
    return arrays


def assert_same(program: Movement, expected: list[Array], got: list[Array]) -> None:
    for index, (first, second) in enumerate(zip(expected, got, strict=True)):
        message = f"{program.kind} {program.seed}, array {index}\n{program.text}"
        np.testing.assert_array_equal(second.astype(np.float64), first.astype(np.float64), message)


def check_stage_1(kind: str, seed: int, target: Target | str = "generic") -> None:
    program = program_of(kind, seed)
    expected = run(program, parse(program.text))
    module = parse(program.text)
    lower(module, target, options=Options(stop_after="to-2d"))
    check_contract(module)
    check_module(module, "to-2d")
    assert_same(program, expected, run(program, module))
    assert_same(program, expected, run(program, poisoned(parse(str(module)))))


@pytest.mark.parametrize("kind", MOVES + REDUCTIONS)
def test_stage_1_means_the_same(kind: str) -> None:
    for seed in range(EACH):
        check_stage_1(kind, seed)


@pytest.mark.parametrize("kind", ["reduce.add", "reduce.max", "reduce.xor"])
def test_windows_are_reduced_in_several_passes(kind: str) -> None:
    """Lower small tensors and windows as large ones: with several passes, and with loops around temporaries."""
    generic = find_target("generic")
    small = replace(
        generic,
        block_costs=replace(
            generic.block_costs, reductions=ReductionCosts(max_temporary_bytes=200, max_unrolled_window=3)
        ),
    )
    for seed in range(1000, 1000 + EACH):
        check_stage_1(kind, seed, small)


STAGES = (("to-tiles", "generic"), ("legalize", "generic"), ("legalize", "avx2"), ("legalize", "avx512"))


@pytest.mark.parametrize(("stage", "target"), STAGES)
@pytest.mark.parametrize("kind", MOVES + REDUCTIONS)
def test_later_stages_mean_the_same(kind: str, stage: str, target: str) -> None:
    for seed in range(100, 100 + FEW):
        program = program_of(kind, seed)
        expected = run(program, parse(program.text))
        module = parse(program.text)
        lower(module, target, options=Options(stop_after=stage))
        assert_same(program, expected, run(program, module))


@pytest.mark.parametrize("kind", MOVES + REDUCTIONS)
def test_machine_code_means_the_same_as_the_input(kind: str) -> None:
    for seed in range(200, 200 + FEW):
        program = program_of(kind, seed)
        expected = run(program, parse(program.text))
        arrays = [array.copy() for array in program.given]
        tlx.compile(program.text, "generic")["f"](*arrays, program.argument)
        assert_same(program, expected, arrays)
