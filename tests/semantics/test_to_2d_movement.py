"""Operations that move elements, and reductions: the same memory after stage 1, and after compilation."""

from __future__ import annotations

import numpy as np
import pytest

from tests.semantics.to_2d_contract import check_contract, poisoned
from tests.semantics.to_2d_movement import Movement
from tlx.evaluate import Machine
from tlx.ir.module import Module
from tlx.ir.reader import parse
from tlx.judge import check_module
from tlx.numpy_types import Array
from tlx.pipeline import Options, lower

KINDS = (
    "broadcast",
    "broadcast.scalar",
    "reshape.block",
    "reshape.permute",
    "pad",
    "concat",
    *(f"reduce.{name}" for name in ("add", "mul", "max", "min", "and", "or", "xor")),
)
EACH = 30
"""Programs of each kind."""


def run(program: Movement, module: Module) -> list[Array]:
    """Memory after a call."""
    arrays = [array.copy() for array in program.given]
    Machine(module).call("f", *arrays, program.argument)
    return arrays


def assert_same(program: Movement, expected: list[Array], got: list[Array]) -> None:
    for index, (first, second) in enumerate(zip(expected, got, strict=True)):
        message = f"{program.kind} {program.seed}, array {index}\n{program.text}"
        np.testing.assert_array_equal(second.astype(np.float64), first.astype(np.float64), message)


@pytest.mark.parametrize("kind", KINDS)
def test_stage_1_keeps_the_meaning(kind: str) -> None:
    for seed in range(EACH):
        program = Movement(kind, seed, typed=seed % 3 == 0, large=seed % 10 == 9)
        expected = run(program, parse(program.text))
        module = parse(program.text)
        lower(module, "generic", options=Options(stop_after="to-2d"))
        check_contract(module)
        check_module(module, "to-2d")
        assert_same(program, expected, run(program, module))
        assert_same(program, expected, run(program, poisoned(parse(str(module)))))
