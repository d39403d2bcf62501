"""No argument makes an instruction slow: on many machines, those with subnormal operands or results take microcode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.unit.lower.legalize.math.functions import DTYPES, ELEMENTS, TARGETS, TYPE_NAMES, errors, lanes_of
from tlx.evaluate import Machine
from tlx.ir.builder import Builder, new_function
from tlx.ir.instructions import Instruction
from tlx.ir.parser.module import parse
from tlx.ir.types import DOUBLE, FLOAT, I8, FloatType, VectorType
from tlx.ir.values import Value
from tlx.lower.legalize.math import emit_math_function
from tlx.lower.legalize.math.arithmetic import lanes_of as lanes_of_register
from tlx.lower.legalize.math.exponential import raised_exp
from tlx.lower.operations import FULL_ACCURACY, Accuracy
from tlx.target.lookup import find_target
from tlx.target.target import Target

FLAT = ("exp", "exp2", "sigmoid", "tanh", "erfc", "log", "log2", "log10")
ARITHMETIC = ("fmul", "fdiv", "fadd", "fsub")
LARGE_ARGUMENTS = (1.0, -1.0, 2.0, 8.5, 88.0, 3e38, np.inf, -np.inf, -3e38, -1e9, -200.0, -151.0, -149.5, -126.5)
SMALL_ARGUMENTS = (0.0, -0.0, 1e-3, -1e-5, 1e-12, 3e-16, -1e-18, 1e-22, -1e-30, 1e-36, -1e-38)


def arguments(element: FloatType) -> NDArray[Any]:
    """Arguments of any size, most of them where results of the exponential functions become subnormal and zero."""
    kind = DTYPES[element]
    least, bias = (-149, 126) if element == FLOAT else (-1074, 1022)
    subnormal = [sign * m * 2.0**least for sign in (1, -1) for m in (1, 2, 77, 2.0**20 - 1, 2.0**22)]
    powers = np.linspace(-bias - 2, least - 3, 41)
    near = np.concatenate([powers, powers * np.log(2), np.sqrt(-powers * np.log(2))])
    few = [*LARGE_ARGUMENTS, *SMALL_ARGUMENTS, *subnormal, np.nan, 1e-200 if element == DOUBLE else 0.0]
    with np.errstate(all="ignore"):
        return np.concatenate([near, few]).astype(kind)


def logged(b: Builder, log: Value, values: Sequence[Value], offset: int) -> int:
    """Store values that are registers from an offset on; the offset behind them."""
    for value in values:
        if isinstance(value.type, VectorType) and isinstance(value.type.element, FloatType):
            b.store(value, b.gep(I8, log, offset), 1)
            offset += value.type.count * value.type.element.bits // 8
    return offset


def instrumented(name: str, element: FloatType, target: Target, accuracy: Accuracy = FULL_ACCURACY) -> tuple[str, int]:
    """As `instrumented_code`, of a function."""
    return instrumented_code(lambda b, x: emit_math_function(b, target, name, x, element, accuracy), element, target)


def instrumented_code(emit: Callable[[Builder, Value], Value], element: FloatType, target: Target) -> tuple[str, int]:
    """`@f(out, in, log)`: code for one register; operands and results of arithmetic are stored to `log`."""
    module = parse("")
    pointer = module.pointer_to(I8)
    function = new_function(module, "f", [(pointer, "", p) for p in ("out", "in", "log")], "nounwind", "")
    b = Builder(module, function)
    out, source, log = (argument.value for argument in function.arguments)
    register = VectorType(lanes_of(target, element), element)
    b.store(emit(b, b.load(register, source, 1)), out, 1)
    b.ret()
    size = 0
    for block in function.blocks:
        for instruction in list(block.instructions):
            values = watched(instruction)
            if values:
                after = Builder(module, function, block, block.instructions.index(instruction) + 1)
                size = logged(after, log, values, size)
    return str(module), size


def watched(instruction: Instruction) -> list[Value]:
    """Values of an instruction that may not be subnormal; sums and differences may have subnormal operands."""
    callee = instruction.text.partition("@")[2]
    if instruction.opcode in ("fadd", "fsub"):
        return [instruction.value]
    if instruction.opcode in ARITHMETIC or callee.startswith(("llvm.fmuladd", "llvm.x86.avx512.mask.scalef")):
        return [*instruction.operands, instruction.value]
    return []


@pytest.mark.parametrize("target", TARGETS, ids=[t.name for t in TARGETS])
@pytest.mark.parametrize("element", ELEMENTS, ids=TYPE_NAMES)
@pytest.mark.parametrize("name", FLAT)
def test_no_subnormal_numbers_in_arithmetic(name: str, element: FloatType, target: Target) -> None:
    text, size = instrumented(name, element, target)
    machine, kind, lanes = Machine(parse(text)), DTYPES[element], lanes_of(target, element)
    x = arguments(element)
    x = np.concatenate([x, np.ones(-x.size % lanes, kind)])
    result, log = np.zeros_like(x), np.zeros(size // x.itemsize, kind)
    for i in range(0, x.size, lanes):
        machine.call("f", result[i : i + lanes], x[i : i + lanes], log)
        subnormal = (log != 0) & (np.abs(log) < np.finfo(kind).tiny)
        assert not subnormal.any(), x[i : i + lanes][np.flatnonzero(subnormal) % lanes]
    finite = np.isfinite(x) & np.isfinite(result)
    assert np.max(errors(name, x[finite], result[finite])) < 4
    assert np.isnan(result[np.isnan(x)]).all()


@pytest.mark.parametrize("target", TARGETS, ids=[t.name for t in TARGETS])
@pytest.mark.parametrize("name", FLAT)
def test_none_for_results_of_16_bits(name: str, target: Target) -> None:
    text, size = instrumented(name, FLOAT, target, Accuracy(short=True))
    machine, lanes = Machine(parse(text)), lanes_of(target, FLOAT)
    sizes = np.linspace(80, 500, 16 * lanes)
    x = np.concatenate([sizes, -sizes]).astype(np.float32)
    result, log = np.zeros_like(x), np.zeros(size // 4, np.float32)
    for i in range(0, x.size, lanes):
        machine.call("f", result[i : i + lanes], x[i : i + lanes], log)
        subnormal = (log != 0) & (np.abs(log) < np.finfo(np.float32).tiny)
        assert not subnormal.any(), x[i : i + lanes][np.flatnonzero(subnormal) % lanes]


def test_none_before_powers_are_rounded_to_bfloat() -> None:
    target = find_target("avx512")
    functions = target.instructions.functions
    assert functions is not None
    text, size = instrumented_code(
        lambda b, x: raised_exp(lanes_of_register(b, target, x, FLOAT), functions, x), FLOAT, target
    )
    machine, lanes = Machine(parse(text)), lanes_of(target, FLOAT)
    x = arguments(FLOAT)
    x = np.where(x > 0, -x, x)
    x = np.concatenate([x, np.zeros(-x.size % lanes, np.float32)])
    result, log = np.zeros_like(x), np.zeros(size // 4, np.float32)
    for i in range(0, x.size, lanes):
        machine.call("f", result[i : i + lanes], x[i : i + lanes], log)
        assert not ((log != 0) & (np.abs(log) < np.finfo(np.float32).tiny)).any(), x[i : i + lanes]
    assert np.all(result[~np.isnan(x)] >= np.finfo(np.float32).tiny)
