"""Row fusion: several passes over the same rows become one kernel if that is valid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tlx.evaluate import Machine
from tlx.ir.parser.module import parse, parse_fully
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.target.costs.memory import Caches
from tlx.target.lookup import find_target
from tlx.target.target import Target

Array = NDArray[Any]
ROW = "<2 x i32> <i32 0, i32 1>"
NONE = "<2 x i32> zeroinitializer"
ONES = "<2 x i32> <i32 1, i32 1>"


def _pair(first: int, second: int) -> str:
    return f"<2 x i32> <i32 {first}, i32 {second}>"


def _target(name: str, l1: int) -> Target:
    """A target with so little L1 cache that small problems are cut into blocks."""
    return replace(find_target(name), caches=Caches(l1=l1, l2=1 << 16, l3=1 << 16))


def softmax(rows: int, cols: int, parameters: str, read: str = "x", write: str = "y") -> str:
    """`y[i] = exp(x[i] - max(x[i])) / sum(...)` for each row."""
    n = rows * cols
    return f"""define void @f({parameters}) {{
  %x.t = call token @llvm.tensor.load(ptr elementtype(float) %{read}, {_pair(rows, cols)}, {ROW}, {NONE}, {NONE})
  %v = call <{n} x float> @llvm.tensor.tovector(token %x.t)
  %max = call <{rows} x float> @llvm.tensor.reduce.max(token %x.t, {_pair(1, cols)}, {ONES})
  %m = call token @llvm.tensor.typeinfo(<{rows} x float> %max, {_pair(rows, 1)}, {ROW}, {NONE})
  %maxima = call <{n} x float> @llvm.tensor.broadcast(token %m, {_pair(rows, cols)}, {ROW})
  %d = fsub <{n} x float> %v, %maxima
  %d.t = call token @llvm.tensor.typeinfo(<{n} x float> %d, {_pair(rows, cols)}, {ROW}, {NONE})
  %e = call <{n} x float> @llvm.tensor.exp(token %d.t)
  %e.t = call token @llvm.tensor.typeinfo(<{n} x float> %e, {_pair(rows, cols)}, {ROW}, {NONE})
  %sum = call <{rows} x float> @llvm.tensor.reduce.add(token %e.t, {_pair(1, cols)}, {ONES})
  %scaled = fmul <{rows} x float> %sum, splat (float 2.0)
  %s = call token @llvm.tensor.typeinfo(<{rows} x float> %scaled, {_pair(rows, 1)}, {ROW}, {NONE})
  %sums = call <{n} x float> @llvm.tensor.broadcast(token %s, {_pair(rows, cols)}, {ROW})
  %q = fdiv <{n} x float> %e, %sums
  store <{n} x float> %q, ptr %{write}
  ret void
}}
"""


def _expected(x: Array) -> Array:
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / (2 * e.sum(axis=1, keepdims=True))


def _kernels(text: str) -> int:
    return text.count("define internal void @tlx.")


APART = "ptr noalias %x, ptr noalias %y"


@pytest.mark.parametrize("stage", ["to-tiles", "legalize"])
@pytest.mark.parametrize(("rows", "cols", "l1"), [(19, 300, 1024), (37, 300, 12000), (100, 9, 1024), (5, 2000, 64)])
@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
def test_softmax_is_one_kernel(target: str, rows: int, cols: int, l1: int, stage: str) -> None:
    module = lower(parse(softmax(rows, cols, APART)), _target(target, l1), options=Options(stop_after=stage))
    assert _kernels(str(module)) == 1
    x = np.random.default_rng(rows).normal(size=(rows, cols)).astype(np.float32) * 5
    y = np.zeros_like(x)
    Machine(parse_fully(str(module))).call("f", x, y)
    assert np.allclose(y, _expected(x), rtol=2e-5, atol=1e-9)


def test_softmax_in_place() -> None:
    rows, cols = 19, 300
    module = lower(parse(softmax(rows, cols, "ptr %x", write="x")), _target("avx512", 1024))
    x = np.random.default_rng(1).normal(size=(rows, cols)).astype(np.float32)
    expected = _expected(x)
    Machine(parse_fully(str(module))).call("f", x)
    assert np.allclose(x, expected, rtol=2e-5)


def test_what_may_overlap_is_not_interleaved() -> None:
    """Result y is x, one row further: row 1 of x must be read before row 0 of y is written."""
    rows, cols = 19, 300
    module = lower(parse(softmax(rows, cols, "ptr %x, ptr %y")), _target("avx512", 1024))
    memory = np.random.default_rng(1).normal(size=(rows + 1, cols)).astype(np.float32)
    expected = _expected(memory[:-1])
    Machine(parse_fully(str(module))).call("f", memory[:-1], memory[1:])
    assert np.allclose(memory[1:], expected, rtol=2e-5)


def test_operations_that_fit_the_cache_are_not_fused() -> None:
    assert _kernels(str(lower(parse(softmax(4, 300, APART)), "avx512"))) > 1


def test_rows_that_other_rows_read_are_not_fused() -> None:
    """Each row less the largest numbers of the first row's own: a broadcast of one row of what is computed."""
    rows, cols, n = 24, 300, 24 * 300
    text = f"""define void @f(ptr noalias %x, ptr noalias %y, ptr noalias %z) {{
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, {_pair(rows, cols)}, {ROW}, {NONE}, {NONE})
  %e = call <{n} x float> @llvm.tensor.exp(token %t)
  store <{n} x float> %e, ptr %z
  %e.t = call token @llvm.tensor.typeinfo(<{n} x float> %e, {_pair(rows, cols)}, {ROW}, {NONE})
  %last = call token @llvm.tensor.load(ptr elementtype(float) %z, {_pair(1, cols)}, {ROW}, {NONE}, {NONE})
  %wide = call <{n} x float> @llvm.tensor.broadcast(token %last, {_pair(rows, cols)}, {ROW})
  %d = fsub <{n} x float> %e, %wide
  %d.t = call token @llvm.tensor.typeinfo(<{n} x float> %d, {_pair(rows, cols)}, {ROW}, {NONE})
  %max = call <{rows} x float> @llvm.tensor.reduce.max(token %d.t, {_pair(1, cols)}, {ONES})
  store <{rows} x float> %max, ptr %y
  ret void
}}
"""
    module = lower(parse(text), _target("avx512", 1024))
    x = np.random.default_rng(1).normal(size=(rows, cols)).astype(np.float32)
    y, z = np.zeros(rows, np.float32), np.zeros_like(x)
    Machine(parse_fully(str(module))).call("f", x, y, z)
    assert np.allclose(y, (np.exp(x) - np.exp(x[:1])).max(axis=1), rtol=1e-5)


def test_an_operand_that_is_also_broadcast_is_not_fused() -> None:
    """Each row less the first row of the same matrix, and the largest of that: the pointer cannot move for both."""
    rows, cols, n = 24, 300, 24 * 300
    text = f"""define void @f(ptr noalias %x, ptr noalias %y) {{
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, {_pair(rows, cols)}, {ROW}, {NONE}, {NONE})
  %v = call <{n} x float> @llvm.tensor.tovector(token %t)
  %first = call token @llvm.tensor.load(ptr elementtype(float) %x, {_pair(1, cols)}, {ROW}, {NONE}, {NONE})
  %wide = call <{n} x float> @llvm.tensor.broadcast(token %first, {_pair(rows, cols)}, {ROW})
  %d = fsub <{n} x float> %v, %wide
  %d.t = call token @llvm.tensor.typeinfo(<{n} x float> %d, {_pair(rows, cols)}, {ROW}, {NONE})
  %max = call <{rows} x float> @llvm.tensor.reduce.max(token %d.t, {_pair(1, cols)}, {ONES})
  %m = call token @llvm.tensor.typeinfo(<{rows} x float> %max, {_pair(rows, 1)}, {ROW}, {NONE})
  %maxima = call <{n} x float> @llvm.tensor.broadcast(token %m, {_pair(rows, cols)}, {ROW})
  %r = fsub <{n} x float> %d, %maxima
  store <{n} x float> %r, ptr %y
  ret void
}}
"""
    module = lower(parse(text), _target("avx512", 1024))
    x = np.random.default_rng(1).integers(-9, 9, (rows, cols)).astype(np.float32)
    y = np.zeros_like(x)
    Machine(parse_fully(str(module))).call("f", x, y)
    d = x - x[:1]
    assert np.array_equal(y, d - d.max(axis=1, keepdims=True))


def test_threads_share_the_rows() -> None:
    options = Options(threads="openmp", thread_cycles=1000)
    text = str(lower(parse(softmax(64, 2000, APART)), _target("avx512", 1024), options=options))
    assert "GOMP_parallel" in text or "kmpc" in text
    assert "tlx.rows." in text
