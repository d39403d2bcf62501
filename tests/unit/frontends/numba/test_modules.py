"""Kernels made of functions of a module or a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tlx
from tests.support.tools import require_module

numba = require_module("numba")

SCALE = """
define i32 @scale(ptr %x, ptr align 4 %y, i32 %n, i1 %twice, double %d, float %f) {
  %v = load <8 x float>, ptr %x, align 4
  %factor = select i1 %twice, float 2.0, float %f
  %i = insertelement <8 x float> undef, float %factor, i32 0
  %s = shufflevector <8 x float> %i, <8 x float> undef, <8 x i32> zeroinitializer
  %w = fmul <8 x float> %v, %s
  store <8 x float> %w, ptr %y, align 4
  %r = add i32 %n, 1
  ret i32 %r
}
"""
PRODUCT = """
define void @product(ptr %a, ptr %b, ptr %c) {
  %x = call token @llvm.tensor.load(ptr %a, <2 x i32> <i32 5, i32 7>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr %b, <2 x i32> <i32 7, i32 9>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <45 x float> @llvm.tensor.matmul(token %x, token %y)
  %z = call token @llvm.tensor.typeinfo(<45 x float> %m, <2 x i32> <i32 5, i32 9>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %z, <2 x i32> zeroinitializer)
  ret void
}
"""  # noqa: E501
TENSOR_LANGUAGE = """
func @product(%alpha: f32, %A: memref<f32x6x5>, %B: memref<f32x5x4>, %C: memref<f32x6x4>) {
    %zero = constant 0.0 : f32
    gemm %alpha, %A, %B, %zero, %C
}
"""
STARTED = """
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @init, ptr null }]
@state = internal global i32 0
define internal void @init() {
  %old = load i32, ptr @state
  %new = add i32 %old, 7
  store i32 %new, ptr @state
  ret void
}
define i32 @state_of() {
  %s = load i32, ptr @state
  ret i32 %s
}
"""


def test_a_file_with_tensors(tmp_path: Path) -> None:
    path = tmp_path / "product.ll"
    path.write_text(PRODUCT)
    product: Any = tlx.numba.compile(path)

    @numba.njit(parallel=True)
    def run(a: Any, b: Any) -> Any:
        c = np.empty((len(a), 5, 9), np.float32)
        for i in numba.prange(len(a)):
            product(a[i], b, c[i])
        return c

    a = np.random.default_rng(0).normal(size=(4, 5, 7)).astype("f4")
    b = np.random.default_rng(1).normal(size=(7, 9)).astype("f4")
    np.testing.assert_allclose(run(a, b), a @ b, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match=r"argument 2 \(c\): expected 45 elements or more, got shape \(5, 8\)"):
        product(a[0], b, np.empty((5, 8), "f4"))
    read_only = np.frombuffer(bytes(180), "f4")
    with pytest.raises(tlx.ArgumentError, match=r"argument 2 \(c\): expected a writable array"):
        product(a[0], b, read_only)


def test_the_tensor_language(tmp_path: Path) -> None:
    path = tmp_path / "product.tl"
    path.write_text(TENSOR_LANGUAGE)
    from_file: Any = tlx.numba.compile(path, entry="product")
    from_text: Any = tlx.numba.compile(TENSOR_LANGUAGE, language="tl", entry="product")
    a, b = (np.random.default_rng(0).normal(size=shape).astype("f4") for shape in ((6, 5), (5, 4)))
    for kernel in (from_file, from_text):
        c = np.zeros((4, 6), "f4")  # memrefs are column-major
        names = kernel.parameters
        assert names[0] == "alpha"
        kernel(2.0, a.T.copy(), b.T.copy(), c, *[1] * (len(names) - 4))
        np.testing.assert_allclose(c.T, 2 * a @ b, rtol=1e-5, atol=1e-5)


def test_numbers() -> None:
    scale: Any = tlx.numba.compile(SCALE)

    @numba.njit
    def run(x: Any, y: Any, n: Any) -> Any:
        return scale(x, y, n, False, 1, 0.5) + scale(x, y, n, twice=True, d=1.0, f=0)

    x, y = np.arange(8, dtype="f4"), np.zeros(8, "f4")
    assert run(x, y, 3) == 8
    np.testing.assert_array_equal(y, 2 * x)
    assert scale(x, y, -1, False, 1.0, 0.5) == 0
    np.testing.assert_array_equal(y, x / 2)
    with pytest.raises(ValueError, match=r"argument 2 \(n\): expected an integer of i32, got 1099511627776"):
        run(x, y, 1 << 40)
    with pytest.raises(tlx.ArgumentError, match=r"argument 2 \(n\): expected a number for i32, got float64"):
        scale(x, y, 1.5, True, 1.0, 1.0)
    with pytest.raises(tlx.ArgumentError, match=r"argument 0 \(x\): expected float32 array, got array\(float64"):
        scale(x.astype("f8"), y, 1, True, 1.0, 1.0)
    with pytest.raises(tlx.ArgumentError, match=r"argument 0 \(x\): expected a contiguous array"):
        scale(np.zeros(16, "f4")[::2], y, 1, True, 1.0, 1.0)
    with pytest.raises(tlx.ArgumentError, match="scale takes 6 arguments"):
        scale(x, y)


def test_arguments_by_name() -> None:
    """Also those whose names mean something to kernels of graphs, or to Python."""
    text = SCALE.replace("%y", "%out").replace("%x", "%self")
    scale: Any = tlx.numba.compile(text)
    assert scale.parameters[:2] == ("self", "out")
    x, y = np.arange(8, dtype="f4"), np.zeros(8, "f4")
    scale(out=y, self=x, n=1, twice=True, d=1.0, f=0.0)
    np.testing.assert_array_equal(y, 2 * x)
    with pytest.raises(tlx.ArgumentError, match="does not take 'out': the module's function writes to its arguments"):
        tlx.numba.compile(SCALE)(x, y, 1, True, 1.0, 0.0, out=y)


def test_constructors_run_before_the_first_call() -> None:
    state_of: Any = tlx.numba.compile(STARTED)

    @numba.njit
    def run() -> Any:
        return state_of(), state_of()

    assert run() == (7, 7)


def test_modules_with_equal_names() -> None:
    """Functions and globals of two modules do not meet, in one function of Numba and in two."""
    one: Any = tlx.numba.compile(STARTED)
    other: Any = tlx.numba.compile(STARTED.replace("i32 %old, 7", "i32 %old, 9"))

    @numba.njit
    def run() -> Any:
        return one(), other()

    assert run() == (7, 9)
    assert (one(), other()) == (7, 9)


@pytest.mark.parametrize(
    ("source", "entry", "message"),
    [
        ("nothing.ll", None, "could not open input file 'nothing.ll': No such file"),
        (PRODUCT + SCALE, None, "name the function with entry=: one of @product, @scale"),
        ("declare void @f()\n", None, "the module defines no function$"),
        (PRODUCT, "scale", "defines no function @scale; it defines @product"),
        ("define void @f(half %x) {\n  ret void\n}\n", None, r"(?s)<string>:1:1: error: .*@f passes half by value"),
        ("define void @f(ptr byval(i64) %x) {\n  ret void\n}\n", None, "byval"),
        ('define void @f(ptr "tlx-constant" %x) {\n  ret void\n}\n', None, "prepared arguments"),
        ("define void @f(ptr %x) {\n  ret i32 1\n}\n", None, r"<string>:2:\d+: error"),
    ],
)
def test_errors(source: str, entry: str | None, message: str) -> None:
    with pytest.raises(tlx.TlxError, match=message):
        tlx.numba.compile(source, entry=entry)


def test_missing_functions() -> None:
    text = "declare void @nowhere(ptr)\ndefine void @f(ptr %x) {\n  call void @nowhere(ptr %x)\n  ret void\n}\n"
    kernel: Any = tlx.numba.compile(text)
    with pytest.raises(Exception, match="f calls functions that are not in this process: nowhere"):
        kernel(np.zeros(1))
