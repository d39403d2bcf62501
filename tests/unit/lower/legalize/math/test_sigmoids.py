"""Sigmoids of several registers: as exact as one, by a short path where no result is subnormal."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tlx
from tests.unit.lower.legalize.math.functions import RUNNABLE, lanes_of
from tests.unit.lower.legalize.math.test_subnormal import arguments, logged, watched
from tlx.evaluate import Machine
from tlx.ir.builder import Builder, new_function
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, I8, VectorType
from tlx.lower.legalize.strength_reduction import sigmoids_with_subnormals
from tlx.target.lookup import find_target

Array = NDArray[Any]
SIZE = 4096
FARTHEST = 87.0
TINY = np.finfo(np.float32).tiny


def lowered(count: int) -> tuple[Module, int]:
    """`@f(out, in, log)`: sigmoids of some registers; operands and results of arithmetic are stored to `log`."""
    target, module = find_target("avx2"), parse("")
    function = new_function(module, "f", [(module.pointer_to(I8), "", p) for p in ("out", "in", "log")], "nounwind", "")
    b, register = Builder(module, function), VectorType(lanes_of(target, FLOAT), FLOAT)
    out, source, log = (argument.value for argument in function.arguments)
    places = [4 * register.count * i for i in range(count)]
    registers = [b.load(register, b.gep(I8, source, place), 1) for place in places]
    for place, result in zip(places, sigmoids_with_subnormals(b, target, FLOAT, registers), strict=True):
        b.store(result, b.gep(I8, out, place), 1)
    b.ret()
    size = 0
    for block in function.blocks:
        for instruction in list(block.instructions):
            if values := watched(instruction):
                after = Builder(module, function, block, block.instructions.index(instruction) + 1)
                size = logged(after, log, values, size)
    return module, size


def exact(x: Array) -> Array:
    with np.errstate(all="ignore"):
        return 1 / (1 + np.exp(-x.astype(np.float64)))


def ulps(y: Array, x: Array) -> Array:
    expected = exact(x)
    unit = np.spacing(np.maximum(np.abs(expected), TINY).astype(np.float32)).astype(np.float64)
    return np.abs(y - expected) / unit


def test_no_subnormal_numbers_in_arithmetic() -> None:
    module, size = lowered(2)
    machine, x = Machine(parse(str(module))), np.random.default_rng(3).permutation(arguments(FLOAT))
    x = np.resize(x, -(-x.size // 16) * 16)
    for part in (*x.reshape(-1, 16), *np.linspace(-FARTHEST, FARTHEST, 160, dtype=np.float32).reshape(-1, 16)):
        result, logs = np.zeros(16, np.float32), np.zeros(size // 4, np.float32)
        machine.call("f", result, part, logs)
        assert not ((logs != 0) & (np.abs(logs) < TINY)).any(), part
        number = ~np.isnan(part)
        assert np.array_equal(np.isnan(result), ~number)
        assert np.max(ulps(result, part)[number], initial=0) < 2.1


def test_normal_results_take_few_instructions() -> None:
    """Clamps, and the rounding of subnormal results, are on the other path."""
    module, _ = lowered(2)
    short = next(
        block for function in module.functions for block in function.blocks if block.name.startswith("rare.not")
    )
    arithmetic = [i for i in short.instructions if i.opcode not in ("store", "getelementptr", "br", "bitcast")]
    assert len(arithmetic) <= 2 * 15
    assert not any(i.opcode in ("select", "fcmp") for i in arithmetic)


@cache
def compiled() -> Any:
    place = ", ".join(["<1 x i32> zeroinitializer"] * 3)
    return tlx.compile(
        f"""define void @f(ptr noalias %y, ptr noalias %x) {{
          %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 {SIZE}>, {place})
          %e = call <{SIZE} x float> @llvm.tensor.sigmoid(token %t)
          store <{SIZE} x float> %e, ptr %y
          ret void
        }}""",
        "avx2",
    )["f"]


@pytest.mark.skipif("avx2" not in RUNNABLE, reason="needs AVX2")
@pytest.mark.parametrize("farthest", [1, 20, FARTHEST, 87.4, 110, 3e38])
def test_error(farthest: float) -> None:
    x = np.random.default_rng(5).uniform(-farthest, farthest, SIZE).astype(np.float32)
    x[:2], x[7::300], x[11::500] = (farthest, -farthest), np.nan, -0.0
    y = np.zeros_like(x)
    compiled()(y, x)
    number = ~np.isnan(x)
    assert np.array_equal(np.isnan(y), ~number)
    assert np.max(ulps(y, x)[number]) < 2.1


@pytest.mark.parametrize(("target", "element"), [("avx512", FLOAT), ("avx2", BFLOAT), ("avx2", DOUBLE)])
def test_no_branch_where_code_is_short_or_the_type_is_another(target: str, element: Any) -> None:
    module = parse("")
    function = new_function(module, "f", [(module.pointer_to(I8), "", "in")], "nounwind", "")
    b = Builder(module, function)
    register = b.load(VectorType(8, element), function.arguments[0].value, 1)
    assert not sigmoids_with_subnormals(b, find_target(target), element, [register])
    assert len(function.blocks) == 1
