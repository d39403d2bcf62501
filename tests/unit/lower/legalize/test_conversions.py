"""Conversions of bfloat and half without instructions for them: every pattern, against ml_dtypes and numpy."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tlx
from tests.unit.lower.legalize.register_functions import GENERIC
from tlx.evaluate import Machine
from tlx.ir.builder import Builder, new_function
from tlx.ir.parser.module import parse, parse_fully
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I8, I32, Type, VectorType
from tlx.lower.legalize.conversions import convert_register
from tlx.lower.legalize.registers import register_element
from tlx.target.lookup import find_target
from tlx.target.target import Target

Array = NDArray[Any]
BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES: dict[Type, np.dtype[Any]] = {
    BFLOAT: BF16,
    HALF: np.dtype(np.float16),
    FLOAT: np.dtype(np.float32),
    DOUBLE: np.dtype(np.float64),
}
PATTERNS = np.arange(1 << 16, dtype=np.uint16)
LANES = 2048


@np.errstate(all="ignore")
def _floats() -> NDArray[np.float32]:
    """Random bits, and what lies around values of the narrow types: ties, just above and just below."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 1 << 14, np.uint64).astype(np.uint32)
    values = [bits.view(np.float32)]
    for dtype in (np.dtype(np.float16), BF16):
        some = rng.choice(PATTERNS, 1 << 12).view(dtype).astype(np.float32)
        values += [some, np.nextafter(some, np.float32(np.inf)), np.nextafter(some, np.float32(-np.inf))]
        step = 1 << (13 if dtype == np.float16 else 16)
        halfway = some.view(np.uint32) + np.uint32(step // 2)
        values += [(halfway + np.uint32(d)).view(np.float32) for d in (0, 1, 0xFFFFFFFF)]
    special = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519.996, 65520, 65536, 2**-14, 2**-24, 2**-25, 2**-26, 1e-45],
        np.float32,
    )
    last = np.concatenate([*values, special, -special, np.array([0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)])
    return np.resize(last, -(-last.size // LANES) * LANES)


def _converted(target: Target, opcode: str, source: Type, to: Type, values: Array) -> Array:
    """Values through `convert_register`, by the evaluator."""
    module = parse("")
    pointer = module.pointer_to(I8)
    made = new_function(module, "f", [(pointer, "", "out"), (pointer, "", "in")], "nounwind", "")
    b = Builder(module, made)
    out, into = (argument.value for argument in made.arguments)
    register = b.load(VectorType(LANES, register_element(source)), into, 1)
    b.store(convert_register(b, target, opcode, register, source, to), out, 1)
    b.ret()
    machine = Machine(parse_fully(str(module)))
    result = np.zeros(values.shape, DTYPES[to])
    for at in range(0, values.size, LANES):
        part = np.zeros(LANES, DTYPES[to])
        machine.call("f", part.view(np.uint8), values[at : at + LANES].copy().view(np.uint8))
        result[at : at + LANES] = part
    return result


@np.errstate(all="ignore")
def _check(result: Array, expected: Array) -> None:
    """The same bits; any NaN for a NaN."""
    nan = np.isnan(expected)
    assert np.array_equal(np.isnan(result), nan)
    unsigned = {2: np.uint16, 4: np.uint32, 8: np.uint64}[result.dtype.itemsize]
    assert np.array_equal(result[~nan].view(unsigned), expected[~nan].view(unsigned))


def _cast(values: Array, to: Type) -> Array:
    with np.errstate(all="ignore"):
        return values.astype(DTYPES[to])


@pytest.mark.parametrize("source", [BFLOAT, HALF], ids=str)
@pytest.mark.parametrize("to", [FLOAT, DOUBLE], ids=str)
@pytest.mark.parametrize("target", ["generic", "avx2"])
def test_every_pattern_is_widened_exactly(source: Type, to: Type, target: str) -> None:
    values = PATTERNS.view(DTYPES[source])
    _check(_converted(find_target(target), "fpext", source, to, values), _cast(values, to))


@pytest.mark.parametrize("to", [BFLOAT, HALF], ids=str)
@pytest.mark.parametrize("target", ["generic", "avx2"])
def test_floats_are_rounded_to_nearest_even(to: Type, target: str) -> None:
    values = _floats()
    _check(_converted(find_target(target), "fptrunc", FLOAT, to, values), _cast(values, to))


@pytest.mark.parametrize("narrow", [BFLOAT, HALF], ids=str)
def test_widening_and_rounding_back_is_exact(narrow: Type) -> None:
    values = PATTERNS.view(DTYPES[narrow])
    wide = _converted(GENERIC, "fpext", narrow, FLOAT, values)
    _check(_converted(GENERIC, "fptrunc", FLOAT, narrow, wide), values)


def test_other_conversions_are_plain_casts() -> None:
    module = parse("")
    b = Builder(module, new_function(module, "f", [(module.pointer_to(I8), "", "p")], ""))
    register = b.load(VectorType(4, I8), b.function.arguments[0].value, 1)
    for opcode in ("sext", "zext"):
        convert_register(b, GENERIC, opcode, register, I8, I32)
        assert b.block.instructions[-1].text.strip().endswith(f"= {opcode} <4 x i8> {register} to <4 x i32>")


_LOOP = """
define void @f(ptr %out, ptr %in) "tlx-stage"="tiles" {
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %at = mul i64 %i, 64
  %from = getelementptr SOURCE, ptr %in, i64 %at
  %to = getelementptr TARGET, ptr %out, i64 %at
  %x = call token @llvm.tensor.load(ptr elementtype(SOURCE) %from, <2 x i32> <i32 1, i32 64>, <2 x i32> <i32 0, i32 1>,
    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <64 x SOURCE> @llvm.tensor.tovector(token %x)
  %w = OPCODE <64 x SOURCE> %v to <64 x TARGET>
  %y = call token @llvm.tensor.typeinfo(<64 x TARGET> %w, <2 x i32> <i32 1, i32 64>, <2 x i32> <i32 0, i32 1>,
    <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %to, token %y, <2 x i32> zeroinitializer)
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, COUNT
  br i1 %more, label %loop, label %end

end:
  ret void
}
"""


@pytest.mark.parametrize("narrow", [BFLOAT, HALF], ids=str)
@pytest.mark.parametrize("opcode", ["fpext", "fptrunc"])
def test_compiled_code_converts_the_same(narrow: Type, opcode: str) -> None:
    source, to = (narrow, FLOAT) if opcode == "fpext" else (FLOAT, narrow)
    values = PATTERNS.view(DTYPES[narrow]) if opcode == "fpext" else _floats()
    text = _LOOP.replace("SOURCE", str(source)).replace("TARGET", str(to)).replace("OPCODE", opcode)
    code = tlx.compile(text.replace("COUNT", str(values.size // 64)), target="generic")
    result = np.zeros(values.shape, DTYPES[to])
    code.f(result, values)
    _check(result, _cast(values, to))


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
@pytest.mark.parametrize("name", ["lrint", "llrint", "lround", "llround"])
def test_rounding_to_integers_calls_no_library(name: str, target: str) -> None:
    """LLVM would call the C library for each element; results that do not fit are some number."""
    text = f"""
    define void @f(ptr noalias %x, ptr noalias %y) {{
      %v = load <600 x float>, ptr %x
      %w = call <600 x i64> @llvm.{name}.v600i64.v600f32(<600 x float> %v)
      store <600 x i64> %w, ptr %y
      ret void
    }}
    declare <600 x i64> @llvm.{name}.v600i64.v600f32(<600 x float>)
    """
    compiled = tlx.compile(text, target)
    assert not re.search(rf"call [^\\n]*@llvm\\.{name}\\.", compiled.lowered)
    x = np.linspace(-9, 9, 600, dtype=np.float32)
    x[:10] = np.arange(10) - 4.5
    y = np.zeros(600, np.int64)
    compiled["f"](x, y)
    away = np.trunc(x + np.copysign(np.float32(0.5), x))
    np.testing.assert_array_equal(y, away if "round" in name else np.rint(x))
    x[:] = np.nan
    compiled["f"](x, y)
