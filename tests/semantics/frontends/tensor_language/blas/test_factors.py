"""alpha and beta: constants and values, beta of zero, and atomic updates."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.semantics.frontends.tensor_language.blas.cases import DTYPES, TWO_INPUTS, Case, memrefs
from tlx.frontends import tensor_language as tl

_INSTRUCTIONS = ["axpby", "axpby.t", "sum", "gemm", "gemv", "ger", "hadamard", "cumsum"]


def _case(instruction: str, type_: str = "f32", *, is_open: bool = False) -> Case:
    count = 3 if instruction.split(".", maxsplit=1)[0] in TWO_INPUTS else 2
    stride = "outer" if is_open else "none"
    refs, out = memrefs(instruction, [type_] * count, (19, 5, 6), open_shape=is_open, open_stride=stride)
    return Case(instruction, refs, out, (type_, 1, False), (type_, 1, False))


@pytest.mark.parametrize("instruction", _INSTRUCTIONS)
@pytest.mark.parametrize("is_open", [False, True])
def test_constants(instruction: str, is_open: bool) -> None:
    plain = _case(instruction, is_open=is_open)
    pairs = list(product((0, 1, -2), repeat=2))
    cases = [
        replace(plain, alpha=("f32", alpha, True), beta=("f32", beta, True), name=f"k{n}", seed=n)
        for n, (alpha, beta) in enumerate(pairs)
    ]
    kernels = tl.compile("".join(case.text for case in cases), "native")
    for case in cases:
        case.check(kernels[case.name])


@pytest.mark.parametrize("instruction", _INSTRUCTIONS)
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_zero_times_nan_is_nan(instruction: str, is_open: bool, constant: bool) -> None:
    case = replace(_case(instruction, is_open=is_open), beta=("f32", 0, constant))
    old = np.full(case.out.shape, 1, np.float32)
    old[..., 0] = np.nan
    case.check(tl.compile(case.text, "native")["kernel"], old)


@pytest.mark.parametrize("instruction", _INSTRUCTIONS)
@pytest.mark.parametrize("is_open", [False, True])
def test_fast_beta_forgets(instruction: str, is_open: bool) -> None:
    attributes = '{"fast_beta"=true}'
    case = replace(_case(instruction, is_open=is_open), beta=("f32", 0, True), attributes=attributes)
    inputs, old = case.values()
    expected = case.expected(inputs, np.zeros_like(old))
    arrays = [ref.array(v)[0] for ref, v in zip(case.inputs, inputs, strict=True)]
    out, _ = case.out.array(np.full_like(old, np.nan))
    tl.compile(case.text, "native")["kernel"](*arrays, out, 1.0)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("text", ['{"fast_beta"=false}', '{"fast_beta"=1}', '{"other"=true}'])
def test_other_attributes_do_not(text: str) -> None:
    case = replace(_case("gemm"), beta=("f32", 0, True), attributes=text)
    case.check(tl.compile(case.text, "native")["kernel"], np.full(case.out.shape, np.nan, np.float32))


_FRESH = """
func @k(%A: memref<f32x8x8>, %n: index, %c: bool) {{
  %zero = constant 0.0 : f32
  %one = constant 1.0 : f32
  %0 = constant 0 : index
  %t = alloca : memref<f32x8x8,local>
  {}
}}
"""

_FILLED = """
parallel {{
  %m = constant 1.0 : coopmatrix<f32x8x{},matrix_acc>
  cooperative_matrix_store %m, %t[%0,%0]
}}
axpby %one, %A, %b, %t
"""


@pytest.mark.parametrize(
    ("body", "is_fresh"),
    [
        ("gemm %one, %A, %A, %zero, %t", True),
        ("axpby %one, %A, %zero, %t", True),
        ("%v = subview %t[0:8,2:4] : memref<f32x8x4,local>  hadamard %one, %A, %A, %zero, %t", True),
        ("%v = subview %t[0:8,2] : memref<f32x8,local>  sum %one, %A, %zero, %v", True),
        ("%s = size %t[0] : index  gemm %one, %A, %A, %zero, %t", True),
        ("%v = subview %t[0:8,0:8] : memref<f32x8x8,local>  gemm %one, %A, %v, %zero, %t", False),
        ("gemm %one, %A, %A, %one, %t", False),
        ("store %one, %t[%0,%0]  gemm %one, %A, %A, %zero, %t", False),
        ("%v = subview %t[0:8,2:4] : memref<f32x8x4,local>  store %one, %v[%0,%0]  gemm %one, %A, %A, %zero, %t",
         False),
        ("for %i=%0,%n { gemm %one, %A, %A, %zero, %t }", False),
        ("if %c { store %one, %t[%0,%0] }  gemm %one, %A, %A, %zero, %t", False),
        ("for %i=%0,%n { %u = alloca : memref<f32x8x8,local>  gemm %one, %A, %A, %zero, %u }", True),
    ],
)  # fmt: skip
def test_memory_of_an_alloca_is_read_only_if_written(body: str, is_fresh: bool) -> None:
    """A product that overwrites its output has two operands, one that accumulates has three."""
    module = tl.translate(_FRESH.format(body))
    loads = str(module).split("define dso_local void @k(")[0].count("call token @llvm.tensor.load")
    inputs = 1 if "axpby" in body or "sum" in body else 2
    assert (loads == inputs) == is_fresh


@pytest.mark.parametrize(
    ("body", "is_zeroed"),
    [
        ("gemm %one, %A, %A, %zero, %t", False),
        ("gemm %one, %A, %A, %zero, %t  gemm %one, %A, %A, %one, %t", False),
        ("gemm %one, %A, %A, %zero, %t  for %i=%0,%n { gemm %one, %A, %A, %one, %t }", False),
        ("%v = subview %t[0:8,%0:8] : memref<f32x8x8,local>  gemm %one, %A, %A, %zero, %v  axpby %one, %A, %b, %t",
         False),
        ("%v = fuse %t[0,1] : memref<f32x64,local>  axpby %one, %v, %zero, %v  axpby %one, %A, %b, %t", True),
        ("foreach (%i,%j)=(%0,%0),(%8,%8) { store %zero, %t[%i,%j] }  axpby %one, %A, %b, %t", False),
        ("foreach (%i,%j)=(%0,%0),(%8,%8) { store %zero, %t[%j,%i] }  axpby %one, %A, %b, %t", False),
        ("foreach (%i,%j)=(%0,%0),(%8,%n) { store %zero, %t[%i,%j] }  axpby %one, %A, %b, %t", True),
        ("foreach (%i,%j)=(%0,%0),(%8,%8) { store %zero, %t[%i,%i] }  axpby %one, %A, %b, %t", True),
        ("foreach (%i,%j)=(%0,%0),(%8,%8) { if %c { store %zero, %t[%i,%j] } }  axpby %one, %A, %b, %t", True),
        (_FILLED.format(8), False),
        (_FILLED.format(4), True),
        ("for %i=%0,%8 { gemm %one, %A, %A, %zero, %t }", True),
        ("for %i=%0,%8 { if %c { gemm %one, %A, %A, %zero, %t } }", True),
        ("if %c { gemm %one, %A, %A, %zero, %t } else { hadamard %one, %A, %A, %zero, %t }  axpby %one, %A, %b, %t",
         False),
        ("if %c { gemm %one, %A, %A, %zero, %t }  axpby %one, %A, %b, %t", True),
        ("for %i=%0,%8 { axpby %one, %A, %one, %A  }  gemm %one, %A, %A, %zero, %t  axpby %one, %A, %b, %t", False),
        ("for %i=%0,%8 { %u = alloca : memref<f32x8x8,local>  gemm %one, %A, %A, %one, %u }", True),
        ("%u = alloca : memref<i32x8x8,local>  %z = constant 0 : i32  store %z, %u[%0,%0]  sum %z, %u, %z, %s", False),
        ("gemm %one, %A, %A, %b, %t", True),
        ("axpby.atomic %one, %A, %zero, %t", False),
        ("axpby.atomic %one, %A, %one, %t", True),
    ],
)  # fmt: skip
def test_memory_of_an_alloca_is_zeroed_if_beta_may_read_it_unwritten(body: str, is_zeroed: bool) -> None:
    text = _FRESH.format(body).replace("%c: bool", "%c: bool, %b: f32, %s: memref<i32x8>")
    text = text.replace("%0 = ", "%8 = constant 8 : index\n  %0 = ")
    assert str(tl.translate(text)).count("call void @llvm.memset") == is_zeroed


@pytest.mark.parametrize("rounds", ["for %r=%0,%8", "for %r=%0,%n", "if %c"])
def test_memory_is_zeroed_each_time_an_alloca_runs(rounds: str) -> None:
    body = f"{rounds} {{ %u = alloca : memref<f32x8x8,local>  axpby %one, %A, %one, %u }}"
    function = str(tl.translate(_FRESH.format(body).replace("%0 = ", "%8 = constant 8 : index\n  %0 = ")))
    function = function.split("define dso_local void @k(", maxsplit=1)[0]
    assert function.index("br ") < function.index("call void @llvm.memset")


def test_constants_are_no_operations() -> None:
    case = replace(_case("gemm"), alpha=("f32", 1, True), beta=("f32", 1, True))
    text = str(tl.translate(case.text))
    assert "fmul" not in text
    assert "fadd" in text


# Atomic --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type_", list(DTYPES))
@pytest.mark.parametrize("beta", [0, 1])
def test_atomic_types(type_: str, beta: int) -> None:
    case = replace(_case("gemm.atomic.n.n", type_), beta=(type_, beta, True), alpha=(type_, 2, False))
    case.check(tl.compile(case.text, "native")["kernel"])


@pytest.mark.parametrize("instruction", _INSTRUCTIONS)
@pytest.mark.parametrize("is_open", [False, True])
def test_atomic_instructions(instruction: str, is_open: bool) -> None:
    base, *modifiers = instruction.split(".")
    name = ".".join([base, "atomic", *modifiers])
    for beta in (0, 1):
        case = replace(_case(instruction, is_open=is_open), instruction=name, beta=("f32", beta, True))
        kernel = tl.compile(case.text, "native")["kernel"]
        case.check(kernel)
        if not beta:
            inputs, old = case.values()
            out, _ = case.out.array(np.full_like(old, np.nan))
            kernel(*(r.array(v)[0] for r, v in zip(case.inputs, inputs, strict=True)), out, 1.0)
            np.testing.assert_array_equal(out, case.expected(inputs, np.zeros_like(old)))


def test_atomic_updates_of_all_groups_add_up() -> None:
    text = """
    func @k(%A: memref<f32x5x7>, %c: memref<f32x5>) {
      %one = constant 1.0 : f32
      sum.atomic.n %one, %A, %one, %c
    }"""
    a, c = np.ones((5, 7), np.float32, order="F"), np.zeros(5, np.float32)
    tl.compile(text, "native", threads="openmp").k(a, c, groups=1000)
    np.testing.assert_array_equal(c, np.full(5, 7000, np.float32))
