"""Operations on tensors of run-time size after stage 1: each computes what numpy does, at sizes around its blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

from tlx.diagnostics import EvaluationError
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.lower.options import Options
from tlx.lower.pipeline import lower

H: Final = "<vscale x 1 x float>"
ROWS: Final = "<2 x i32> <i32 0, i32 1>"
ONES: Final = "<2 x i32> <i32 1, i32 1>"
FIRST: Final = "<1 x i32> zeroinitializer"
SECOND: Final = "<1 x i32> <i32 1>"
CALL: Final = f"call {H} @llvm.tensor"
ZEROS: Final = "<2 x i32> zeroinitializer"
SIZES: Final = [(1, 1), (5, 3), (4, 37), (18, 266)]

# The vectors <m, n>, <n, m>, <m>, <n>, <m, 1>, <1, n> and <m * n>.
VECTORS: Final = """
  %m. = insertelement <2 x i32> <i32 1, i32 1>, i32 %m, i32 0
  %n. = insertelement <2 x i32> <i32 1, i32 1>, i32 %n, i32 0
  %.n = insertelement <2 x i32> <i32 1, i32 1>, i32 %n, i32 1
  %mn = insertelement <2 x i32> %m., i32 %n, i32 1
  %nm = insertelement <2 x i32> %n., i32 %m, i32 1
  %v1 = insertelement <1 x i32> zeroinitializer, i32 %m, i32 0
  %v2 = insertelement <1 x i32> zeroinitializer, i32 %n, i32 0
  %mxn = mul i32 %m, %n
  %flat = insertelement <1 x i32> zeroinitializer, i32 %mxn, i32 0"""


def load(name: str, pointer: str, shape: str, layout: str = ROWS) -> str:
    return (
        f"  %{name} = call token @llvm.tensor.load(ptr elementtype(float) %{pointer}, <2 x i32> %{shape}, {layout}, "
        f"{ZEROS}, {ZEROS})"
    )


def row(name: str, pointer: str) -> str:
    return (
        f"  %{name} = call token @llvm.tensor.load(ptr elementtype(float) %{pointer}, <1 x i32> %v2, {FIRST}, {FIRST}, "
        f"{FIRST})"
    )


def store(value: str, shape: str) -> str:
    return (
        f"  %stored = call token @llvm.tensor.typeinfo({H} %{value}, <2 x i32> %{shape}, {ROWS}, {ZEROS})\n"
        f"  call void @llvm.tensor.store(ptr %c, token %stored, {ZEROS})"
    )


def function(*lines: str) -> str:
    body = "\n".join(lines)
    return f"define void @f(ptr %a, ptr %b, ptr noalias %c, i32 %m, i32 %n) {{{VECTORS}\n{body}\n  ret void\n}}\n"


A, B = load("x", "a", "mn"), load("y", "b", "mn")
VECTOR_A, VECTOR_B = (f"  %{v} = {CALL}.tovector(token %{t})" for v, t in (("u", "x"), ("w", "y")))

CASES: Final[dict[str, tuple[str, Callable[[Array, Array], Any]]]] = {
    "contraction over the first dimensions": (
        function(A, B, f"  %r = {CALL}.contract(token %x, token %y, {FIRST}, {FIRST})",
                 "  %nn = insertelement <2 x i32> %n., i32 %n, i32 1", store("r", "nn")),
        lambda a, b: a.T @ b,
    ),
    "elementwise product of a batch of rows": (
        function(A, B, f"  %r = {CALL}.contract(token %x, token %y, {SECOND}, {SECOND}, {FIRST}, {FIRST})",
                 store("r", "m.")),
        lambda a, b: (a * b).sum(axis=1),
    ),
    "outer product": (
        function(load("x", "a", "m."), load("y", "b", ".n"), f"  %r = {CALL}.matmul(token %x, token %y)",
                 store("r", "mn")),
        lambda a, b: np.outer(a.flat[: a.shape[0]], b.flat[: b.shape[1]]),
    ),
    "column-major left operand": (
        function(load("x", "a", "nm", "<2 x i32> <i32 1, i32 0>"), row("y", "b"),
                 f"  %s = {CALL}.contract(token %x, token %y, {SECOND}, {FIRST})",
                 store("s", "m.")),
        lambda a, b: a.reshape(a.shape[1], a.shape[0]).T @ b[0],
    ),
    "transpose": (
        function(A, f"  %r = {CALL}.transpose(token %x)", store("r", "nm")),
        lambda a, _: a.T,
    ),
    "permutation to one dimension": (
        function(A, f"  %r = {CALL}.reshape.permute(token %x, <2 x i32> <i32 1, i32 0>, <1 x i32> %flat)",
                 store("r", "nm")),
        lambda a, _: a.T,
    ),
    "row repeated": (
        function(row("x", "a"), B, VECTOR_B,
                 f"  %u = {CALL}.broadcast(token %x, <2 x i32> %mn, {SECOND})",
                 f"  %r = fadd {H} %u, %w", store("r", "mn")),
        lambda a, b: a[0] + b,
    ),
    "number repeated": (
        function(A, f"  %r = {CALL}.broadcast(token %x, float 2.5)", store("r", "mn")),
        lambda a, _: np.full_like(a, 2.5),
    ),
    "rows joined": (
        function(A, B, f"  %r = {CALL}.concat(token %x, token %y, i32 0)",
                 "  %twice = shl i32 %m, 1", "  %shape = insertelement <2 x i32> %mn, i32 %twice, i32 0",
                 store("r", "shape")),
        lambda a, b: np.concatenate((a, b)),
    ),
    "sums of rows": (
        function(A, f"  %r = {CALL}.reduce.add(token %x, <2 x i32> %.n, {ONES})",
                 store("r", "m.")),
        lambda a, _: a.sum(axis=1),
    ),
    "maxima of columns": (
        function(A, f"  %r = {CALL}.reduce.max(token %x, <2 x i32> %m., {ONES})",
                 store("r", ".n")),
        lambda a, _: a.max(axis=0),
    ),
    "function": (
        function(A, f"  %r = {CALL}.relu(token %x)", store("r", "mn")),
        lambda a, _: np.maximum(a, 0),
    ),
    "a value with two uses in one expression": (
        function(A, VECTOR_A, B, VECTOR_B, f"  %d = fsub {H} %u, %w", f"  %q = fmul {H} %d, %d",
                 f"  %big = fcmp ogt {H} %q, splat (float 9.0)",
                 f"  %r = select <vscale x 1 x i1> %big, {H} %d, {H} %q", store("r", "mn")),
        lambda a, b: np.where((a - b) ** 2 > 9, a - b, (a - b) ** 2),
    ),
    "a splat that is computed at run time": (
        function(A, VECTOR_A, "  %s = uitofp i32 %n to float", f"  %i = insertelement {H} poison, float %s, i64 0",
                 f"  %all = shufflevector {H} %i, {H} poison, <vscale x 1 x i32> zeroinitializer",
                 f"  %p = fmul {H} %u, %all", f"  %r = call {H} @llvm.fabs.nxv1f32({H} %p)", store("r", "mn"))
        + f"declare {H} @llvm.fabs.nxv1f32({H})\n",
        lambda a, _: np.abs(a * a.shape[1]),
    ),
    "a vector carried by a loop": (
        function("  br label %start", "start:", A, VECTOR_A, B, VECTOR_B, "  br label %loop", "loop:",
                 f"  %sum = phi {H} [ %u, %start ], [ %next, %loop ]", "  %i = phi i32 [ 0, %start ], [ %j, %loop ]",
                 f"  %next = fadd {H} %sum, %w", "  %j = add i32 %i, 1", "  %more = icmp ult i32 %j, 3",
                 "  br i1 %more, label %loop, label %end", "end:", store("next", "mn")),
        lambda a, b: a + 3 * b,
    ),
    "two vectors that a loop exchanges": (
        function("  br label %start", "start:", A, VECTOR_A, B, VECTOR_B, "  br label %loop", "loop:",
                 f"  %p = phi {H} [ %u, %start ], [ %q, %loop ]", f"  %q = phi {H} [ %w, %start ], [ %p, %loop ]",
                 "  %i = phi i32 [ 0, %start ], [ %j, %loop ]", "  %j = add i32 %i, 1", "  %more = icmp ult i32 %j, 4",
                 "  br i1 %more, label %loop, label %end", "end:", store("p", "mn")),
        lambda _, b: b,
    ),
    "an operand that is overwritten after its load": (
        function(A, B, f"  call void @llvm.tensor.store(ptr %a, token %y, {ZEROS})", VECTOR_A, store("u", "mn")),
        lambda a, _: a,
    ),
}  # fmt: skip


def stage1(text: str) -> Module:
    return lower(parse(text), "generic", options=Options(stop_after="to-2d"))


@pytest.mark.parametrize("name", CASES)
def test_computes_what_numpy_does(name: str) -> None:
    text, meaning = CASES[name]
    machine = Machine(stage1(text))
    for rows, columns in SIZES:
        rng = np.random.default_rng(rows)
        a, b = (rng.integers(-4, 5, (rows, columns)).astype(np.float32) for _ in range(2))
        expected = np.asarray(meaning(a.copy(), b), np.float32).ravel()
        c = np.zeros(expected.size, np.float32)
        machine.call("f", a, b, c, rows, columns)
        np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize(
    ("line", "rows", "columns"),
    [
        (f"  %r = {CALL}.matmul(token %x, token %y)", 3, 5),  # 3x5 times 3x5
        (f"  %r = {CALL}.contract(token %x, token %y, {SECOND}, {FIRST})", 3, 5),
        (f"  %r = {CALL}.reshape.permute(token %x, {ROWS}, <1 x i32> %v1)", 3, 5),  # 15 elements as 3
        (f"  %r = {CALL}.tovector(token %x)", 0, 5),
    ],
    ids=["product", "contraction", "reshape", "extent"],
)
def test_wrong_sizes_trap(line: str, rows: int, columns: int) -> None:
    machine = Machine(stage1(function(A, B, line, store("r", "m."))))
    arrays = [np.zeros(max(1, rows * columns), np.float32) for _ in range(3)]
    with pytest.raises(EvaluationError, match=r"llvm\.trap"):
        machine.call("f", *arrays, rows, columns)
