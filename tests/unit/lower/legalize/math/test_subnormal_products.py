"""Products by sigmoids: the instruction's bits, without instructions that a subnormal sigmoid would make slow."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tlx
from tests.unit.lower.legalize.math.functions import DTYPES, ELEMENTS, RUNNABLE, TYPE_NAMES, lanes_of
from tests.unit.lower.legalize.math.test_subnormal import logged, watched
from tlx.evaluate import Machine
from tlx.ir.builder import Builder, new_function
from tlx.ir.parser.module import parse
from tlx.ir.types import BFLOAT, I8, FloatType, Type, VectorType
from tlx.lower.legalize.strength_reduction import products_with_subnormals
from tlx.lower.operations import ElementwiseOp
from tlx.target.lookup import find_target

Array = NDArray[Any]
KINDS: dict[Type, Any] = {**DTYPES, BFLOAT: np.dtype(ml_dtypes.bfloat16)}
WORDS = {2: np.uint16, 4: np.uint32, 8: np.uint64}
SIZE = 4096


def factors(element: FloatType, size: int) -> Array:
    """Numbers from 0 to 1, most of them subnormal."""
    random, kind = np.random.default_rng(7), DTYPES[element]
    least = np.finfo(kind).smallest_subnormal
    small = (random.integers(1, 1 << random.integers(1, np.finfo(kind).nmant, size)) * least).astype(kind)
    return np.where(random.random(size) < 0.2, random.choice(np.array([0, 1, 0.3, 1e-30], kind), size), small)


@pytest.mark.parametrize("element", ELEMENTS, ids=TYPE_NAMES)
def test_no_subnormal_numbers_in_arithmetic(element: FloatType) -> None:
    target, module = find_target("avx2"), parse("")
    pointer, lanes, kind = module.pointer_to(I8), lanes_of(target, element), np.dtype(DTYPES[element])
    function = new_function(module, "f", [(pointer, "", p) for p in ("out", "by", "in", "log")], "nounwind", "")
    b = Builder(module, function)
    out, by, source, log = (argument.value for argument in function.arguments)
    operands = [[b.load(VectorType(lanes, element), place, 1)] for place in (by, source)]
    (product,) = products_with_subnormals(b, target, ElementwiseOp("fmul"), element, *operands)
    b.store(product, out, 1)
    b.ret()
    size = 0
    for block in function.blocks:
        for instruction in list(block.instructions):
            if values := watched(instruction):
                after = Builder(module, function, block, block.instructions.index(instruction) + 1)
                size = logged(after, log, values, size)
    machine = Machine(parse(str(module)))
    x = factors(element, 64 * lanes)
    y = np.random.default_rng(8).uniform(90, 150, x.size).astype(kind) * np.where(np.arange(x.size) % 3, -1, 1)
    y[::lanes] = np.finfo(kind).max
    result, logs = np.zeros_like(x), np.zeros(size // kind.itemsize, kind)
    for i in range(0, x.size, lanes):
        logs[:] = 0
        part = slice(i, i + lanes)
        machine.call("f", result[part], x[part], y[part].astype(kind), logs)
        if (x[part] < np.finfo(kind).tiny).any():
            assert not ((logs != 0) & (np.abs(logs) < np.finfo(kind).tiny)).any(), (x[part], y[part])
    assert np.array_equal(result, x * y.astype(kind))


@cache
def compiled(element: Type) -> Any:
    place = ", ".join(["<1 x i32> zeroinitializer"] * 3)
    load = f"call token @llvm.tensor.load(ptr elementtype({element})"
    text = f"""define void @f(ptr noalias %y, ptr noalias %x, ptr noalias %s, ptr noalias %by) {{
      %t = {load} %x, <1 x i32> <i32 {SIZE}>, {place})
      %u = {load} %by, <1 x i32> <i32 {SIZE}>, {place})
      %e = call <{SIZE} x {element}> @llvm.tensor.sigmoid(token %t)
      store <{SIZE} x {element}> %e, ptr %s
      %b = call <{SIZE} x {element}> @llvm.tensor.tovector(token %u)
      %q = fmul <{SIZE} x {element}> %b, %e
      store <{SIZE} x {element}> %q, ptr %y
      ret void
    }}"""
    return tlx.compile(text, "avx2")["f"]


@pytest.mark.skipif("avx2" not in RUNNABLE, reason="needs AVX2")
@pytest.mark.parametrize("element", [*ELEMENTS, BFLOAT], ids=str)
def test_products_have_the_bits_of_the_instruction(element: Type) -> None:
    kind, random = np.dtype(KINDS[element]), np.random.default_rng(9)
    word = WORDS[kind.itemsize]
    lowest = -746 if kind.itemsize == 8 else -105
    x = random.uniform(lowest, 1, SIZE)
    x[:100:3] = [np.nan, np.inf, -np.inf, 0.0] * 8 + [-0.0, 1e5]
    numbers = random.uniform(-1, 1, SIZE) * np.exp2(random.integers(-140, 128, SIZE))
    numbers[2000:2100:4] = [np.nan, np.inf, -np.inf, 0.0, -0.0] * 5
    x = x.astype(kind)
    for by in (x, numbers.astype(kind)):
        result, sigmoids = np.zeros_like(x), np.zeros_like(x)
        compiled(element)(result, x, sigmoids, by)
        with np.errstate(all="ignore"):
            wide = kind if kind.itemsize > 2 else np.dtype(np.float32)
            expected = (by.astype(wide) * sigmoids.astype(wide)).astype(kind)
        nan = np.isnan(expected)
        assert np.array_equal(np.isnan(result), nan)
        wrong = np.flatnonzero((result.view(word) != expected.view(word)) & ~nan)
        assert not wrong.size, (by[wrong[:4]], sigmoids[wrong[:4]], result[wrong[:4]], expected[wrong[:4]])
