"""Functions of users that compute a workload of the table are recognised, so that other libraries can be compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tlx.bench.user_workload import user_workload
from tlx.bench.workloads import convolutions, elementwise, products
from tlx.tuning.workload import Workload

RECOGNISED = (
    *(products.product("f32", 8, 16, 32, columns) for columns in ("", "a", "b", "ab")),
    products.product("bf16", 8, 16, 32, vnni=True),
    products.product("bf16->bf16", 8, 16, 32),
    products.product("u8s8", 8, 16, 32),
    products.product("f64", 8, 16, 32, accumulates=True),
    products.batch("f32", 5, (4, 8, 16)),
    products.batch("bf16", 5, (4, 8, 16), reduced=True),
    products.batch("bf16", 5, (4, 8, 16), reduced=True, vnni=True, accumulates=True),
    convolutions.convolution("f32", 4, 8, 6, 3, 1),
    convolutions.convolution("bf16", 4, 4, 6, 3, 1, groups=4),
)
OTHERS = (
    products.product("f32", 8, 16, 32, "c"),
    products.layer("f32", 8, 16, 32),
    elementwise.pointwise("add", "f32", 1024),
    elementwise.of_rows("softmax", "f32", 4, 32),
)
ACCUMULATING = """define void @f(ptr noalias %x, ptr noalias %w, ptr noalias %y) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 8, i32 4>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %w, <2 x i32> <i32 4, i32 6>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call token @llvm.tensor.load(ptr elementtype(float) %y, <2 x i32> <i32 8, i32 6>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <48 x float> @llvm.tensor.smma(token %c, token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<48 x float> %m, <2 x i32> <i32 8, i32 6>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <2 x i32> zeroinitializer)
  ret void
}
"""


def _of_user(text: str, folder: Path) -> Workload:
    path = folder / "user.ll"
    path.write_text(text)
    return user_workload(str(path), None, {})


@pytest.mark.parametrize("work", RECOGNISED, ids=lambda work: work.name)
def test_a_workload_is_recognised(work: Workload, tmp_path: Path) -> None:
    found = _of_user(work.text(), tmp_path)
    assert found.problem == work.problem
    assert found.buffers == work.buffers
    assert found.expected is not None


@pytest.mark.parametrize("work", OTHERS, ids=lambda work: work.name)
def test_what_computes_something_else_is_not(work: Workload, tmp_path: Path) -> None:
    assert _of_user(work.text(), tmp_path).problem is None


@pytest.mark.parametrize(
    ("old", "new"), [("ret void", "store float 0.0, ptr %x\n  ret void"), ("%y, token %t", "%x, token %t")]
)
def test_a_changed_product_is_not(old: str, new: str, tmp_path: Path) -> None:
    assert old in ACCUMULATING
    assert _of_user(ACCUMULATING.replace(old, new), tmp_path).problem is None


def test_parameters_may_have_any_order_and_names(tmp_path: Path) -> None:
    work = _of_user(ACCUMULATING, tmp_path)
    assert work.name == "f f32 8x6x4"
    assert work.order == ("a", "b", "c")
    assert work.accumulates
    arrays = work.arrays()
    assert work.expected is not None
    work.reset_output(arrays)
    arrays["c"] += arrays["a"] @ arrays["b"]
    work.check(arrays["c"], work.expected(arrays), "numpy")
