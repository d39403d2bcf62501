"""The mathematical functions as code: without calls, on registers of any length, the same in the evaluator."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tlx
from tests.unit.lower.legalize.math.functions import (
    DTYPES,
    ELEMENTS,
    NAMES,
    RUNNABLE,
    TARGETS,
    TYPE_NAMES,
    computed,
    errors,
    lanes_of,
    program,
)
from tlx.evaluate import Machine
from tlx.ir.builder import Builder, new_function
from tlx.ir.parser.module import parse
from tlx.ir.types import FLOAT, HALF, FloatType, VectorType
from tlx.ir.values import zero
from tlx.llvm.codegen import emit_code
from tlx.lower.legalize.math import emit_math_function
from tlx.target.lookup import find_target
from tlx.target.target import Target

each_name = pytest.mark.parametrize("name", NAMES)
each_element = pytest.mark.parametrize("element", ELEMENTS, ids=TYPE_NAMES)
each_target = pytest.mark.parametrize("target", TARGETS, ids=[t.name for t in TARGETS])
ARGUMENTS = (0.0, -0.0, 0.37, 1.0, 2.5, 7.75, 19.5, 1e-30)


@each_target
@each_element
@each_name
def test_no_calls(name: str, element: FloatType, target: Target) -> None:
    text = program(name, element, target, lanes_of(target, element))
    assembly = emit_code(text, "asm", 1, triple="x86_64-unknown-linux-gnu").decode()
    assert "ret" in assembly
    assert not re.findall(r"\bcall\w*\b.*", assembly)
    assert not re.findall(r"\bjmp\s+[a-z_]\w*(?:@PLT)?\s*#\s*TAILCALL", assembly)


def test_sigmoid_of_floats_is_short() -> None:
    """A vector of floats takes at most 28 instructions with AVX2, besides those that load constants."""
    text = program("sigmoid", FLOAT, find_target("avx2"), 8)
    assembly = emit_code(text, "asm", 1, triple="x86_64-unknown-linux-gnu").decode()
    instructions = re.findall(r"(?m)^\s+(v\w+)", assembly)
    computing = [i for i in instructions if not i.startswith(("vmov", "vbroadcast", "vpbroadcast", "vzero"))]
    assert 15 < len(computing) <= 28, computing


@pytest.mark.parametrize("lanes", [1, 3, 19])
@each_element
@each_name
def test_any_length(name: str, element: FloatType, lanes: int) -> None:
    """Lanes do not depend on how many there are."""
    generic = find_target("generic")
    x = np.resize(np.array(ARGUMENTS, DTYPES[element]), 2 * lanes)
    result = np.zeros_like(x)
    tlx.compile(program(name, element, generic, lanes), "generic", opt_level=0)["f"](result, x, x.size)
    np.testing.assert_array_equal(result, computed(name, x, "generic"))


@pytest.mark.parametrize("target", ["generic", "avx512"])
@each_element
@each_name
def test_evaluator_agrees(name: str, element: FloatType, target: str) -> None:
    lanes = lanes_of(find_target(target), element)
    x = np.resize(np.array(ARGUMENTS, DTYPES[element]), max(lanes, len(ARGUMENTS)))
    result = np.zeros_like(x)
    Machine(parse(program(name, element, find_target(target), lanes))).call("f", result, x, x.size)
    finite = np.isfinite(result)
    np.testing.assert_array_equal(result[~finite], computed(name, x, "generic")[~finite])
    assert np.max(errors(name, x[finite], result[finite])) < 2.5


def test_unknown_function_is_named() -> None:
    module = parse("")
    b = Builder(module, new_function(module, "f", [], "", ""))
    with pytest.raises(ValueError, match="no vector code for 'sqrt' on generic; there is code for exp, "):
        emit_math_function(b, find_target("generic"), "sqrt", zero(VectorType(4, FLOAT)), FLOAT)


def test_other_types_are_named() -> None:
    module = parse("")
    b = Builder(module, new_function(module, "f", [], "", ""))
    with pytest.raises(TypeError, match="take vectors of float or double, not <4 x half> of half"):
        emit_math_function(b, find_target("generic"), "exp", zero(VectorType(4, HALF)), HALF)


NEST = """
define void @f(ptr noalias %out, ptr noalias %a, ptr noalias %b) {
  %x = call token @llvm.tensor.load(ptr %a, <2 x i32> <i32 37, i32 19>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 19>)
  %y = call token @llvm.tensor.load(ptr %b, <2 x i32> <i32 19, i32 45>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 45>)
  %p = call <1665 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<1665 x float> %p, <2 x i32> <i32 37, i32 45>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer)
  %s = call <1665 x float> @llvm.tensor.sin(token %t)
  %r = call token @llvm.tensor.typeinfo(<1665 x float> %s, <2 x i32> <i32 37, i32 45>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %out, token %r, <2 x i32> <i32 0, i32 45>)
  ret void
}
"""


@pytest.mark.parametrize("target", RUNNABLE)
def test_branches_in_loops(target: str) -> None:
    """The branch for huge arguments cuts blocks of loop nests, whose phis follow."""
    random = np.random.default_rng(2)
    a = random.uniform(-1, 1, (37, 19)).astype(np.float32)
    b = random.integers(-3, 4, (19, 45)).astype(np.float32)
    a[3], a[20] = 2.0**60, -(2.0**90)
    product, result = np.zeros((2, 37, 45), np.float32)
    tlx.compile(NEST.replace("token %r,", "token %t,"), target)["f"](product, a, b)
    tlx.compile(NEST, target)["f"](result, a, b)
    assert np.max(np.abs(product)) > 1e27
    assert np.max(errors("sin", product.ravel(), result.ravel())) < 1.7
