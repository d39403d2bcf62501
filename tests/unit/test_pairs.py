"""Arithmetic of bfloat registers as pairs of float ones: all patterns, against floats rounded by ml_dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tlx.evaluate import Machine
from tlx.ir.builder import Builder, new_function
from tlx.ir.reader import parse
from tlx.ir.types import BFLOAT, FLOAT, I8, I16, VectorType
from tlx.lower.legalize.elementwise import apply
from tlx.lower.legalize.pairs import is_paired
from tlx.lower.ordinary import Operation
from tlx.target import find

BF16 = np.dtype(ml_dtypes.bfloat16)
PATTERNS = np.arange(1 << 16, dtype=np.uint16)
LANES = 2048
TARGETS = ["generic", "avx2", "avx512"]
Array = NDArray[Any]


def _applied(target: str, operation: Operation, *values: Array) -> Array:
    """An operation on arrays of bfloat, a register of 2048 at a time, by the evaluator."""
    module = parse("")
    pointer = module.pointer_to(I8)
    made = new_function(module, "f", [(pointer, "", "out"), *((pointer, "", f"x{i}") for i in range(len(values)))], "")
    b = Builder(module, made)
    out, *sources = (argument.value for argument in made.arguments)
    registers = [b.load(VectorType(LANES, I16), source, 1) for source in sources]
    b.store(apply(b, find(target), operation, BFLOAT, [BFLOAT] * len(values), registers), out, 1)
    b.ret()
    machine = Machine(parse(str(module), wanted=lambda _text: True))
    result = np.zeros(values[0].shape, BF16)
    for at in range(0, result.size, LANES):
        part = np.zeros(LANES, BF16)
        machine.call("f", part.view(np.uint8), *(v[at : at + LANES].copy().view(np.uint8) for v in values))
        result[at : at + LANES] = part
    return result


def _check(result: Array, exact: Array) -> None:
    expected = exact.astype(BF16)
    nan = np.isnan(exact)
    assert np.array_equal(np.isnan(result), nan)
    assert np.array_equal(result[~nan].view(np.uint16), expected[~nan].view(np.uint16))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("opcode", ["fadd", "fsub", "fmul", "fdiv"])
@np.errstate(all="ignore")
def test_results_are_rounded_to_nearest_even(target: str, opcode: str) -> None:
    rng = np.random.default_rng(0)
    near = PATTERNS ^ rng.integers(0, 1 << 10, PATTERNS.size).astype(np.uint16)
    x = np.concatenate([PATTERNS, PATTERNS]).view(BF16)
    y = np.concatenate([rng.permutation(PATTERNS), near]).view(BF16)
    compute = {"fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide}[opcode]
    _check(_applied(target, Operation(opcode), x, y), compute(x.astype(np.float32), y.astype(np.float32)))


@pytest.mark.parametrize("target", TARGETS)
@np.errstate(all="ignore")
def test_what_is_exact_is_not_rounded(target: str) -> None:
    x = PATTERNS.view(BF16)
    single = x.astype(np.float32)
    _check(_applied(target, Operation("call", callee="llvm.floor"), x), np.floor(single))
    _check(_applied(target, Operation("call", callee="llvm.roundeven"), x), np.rint(single))


def test_only_registers_larger_than_those_of_float_are_taken_apart() -> None:
    module = parse("")
    b = Builder(module, new_function(module, "f", [(module.pointer_to(I8), "", "p")], ""))
    source = b.function.arguments[0].value
    wide, narrow = (b.load(VectorType(count, I16), source, 1) for count in (32, 16))
    assert is_paired(find("avx512"), BFLOAT, [BFLOAT, BFLOAT], wide)
    assert not is_paired(find("avx512"), BFLOAT, [BFLOAT], narrow)
    assert is_paired(find("avx2"), BFLOAT, [BFLOAT], narrow)
    assert not is_paired(find("avx512"), BFLOAT, [FLOAT], wide)
