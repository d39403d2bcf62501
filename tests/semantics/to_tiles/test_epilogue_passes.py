"""Products whose K is split into passes, with an epilogue in the last one: each stage is evaluated and compared.

Partial sums stay in C or in a temporary matrix.
"""

from __future__ import annotations

import re
from itertools import product
from typing import Final

import pytest

from tests.support.tools import quick_by_target
from tlx.api.validation import validate
from tlx.diagnostics import UsageError
from tlx.lower.knobs import FixedKnobs, Knobs
from tlx.lower.options import Options
from tlx.lower.remarks import Remarks

_DIMS: Final = "<2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
_TARGETS: Final = ("generic", "avx2", "avx512", "amx")
_SIZES: Final = ((7, 37, 23), (13, 16, 24), (35, 50, 41), (1, 19, 17))


def _load(name: str, element: str, pointer: str, rows: int, cols: int) -> str:
    shape = f"<2 x i32> <i32 {rows}, i32 {cols}>"
    operands = f"ptr elementtype({element}) %{pointer}, {shape}, {_DIMS}, <2 x i32> zeroinitializer"
    return f"  %{name} = call token @llvm.tensor.load({operands})\n"


def _product(size: tuple[int, int, int], types: tuple[str, str], kind: str) -> str:
    """C = f(A @ B): f adds a row, a column, a matrix or C itself, and may take the maximum with 0, narrow or reduce."""
    (m, n, k), (element, result) = size, types
    is_float = result != "i32"
    vector = out = f"<{m * n} x {result}>"
    layout = f"<2 x i32> <i32 {m}, i32 {n}>, {_DIMS}"
    accumulates = kind == "accumulated" or not is_float
    others = {"column": ("x", m, 1), "matrix": ("x", m, n), "in place": ("c", m, n)}
    body = _load("lhs", element, "a", m, k) + _load("rhs", element, "b", k, n)
    body += _load("acc", result, "c", m, n) if accumulates else ""
    body += _load("other", result, *others.get(kind, ("x", 1, n)))
    operation = "mma" if is_float else "smma"
    body += f"""  %p = call {vector} @llvm.tensor.{operation if accumulates else "matmul"}(\
{"token %acc, " if accumulates else ""}token %lhs, token %rhs)
  %o = call {vector} @llvm.tensor.broadcast(token %other, <2 x i32> <i32 {m}, i32 {n}>, <2 x i32> <i32 0, i32 1>)
  %y = {"fadd" if is_float else "add"} {vector} %p, %o
"""
    if kind == "relu":
        compare = "fcmp ogt" if is_float else "icmp sgt"
        body += f"  %m = {compare} {vector} %y, zeroinitializer\n"
        body += f"  %z = select <{m * n} x i1> %m, {vector} %y, {vector} zeroinitializer\n"
    elif kind == "narrowed":
        out = f"<{m * n} x {'bfloat' if is_float else 'i8'}>"
        body += f"  %z = {'fptrunc' if is_float else 'trunc'} {vector} %y to {out}\n"
    elif kind == "reduced":
        out, window = f"<{m} x {result}>", f"<2 x i32> <i32 1, i32 {n}>, <2 x i32> <i32 1, i32 1>"
        body += f"  %y.t = call token @llvm.tensor.typeinfo({vector} %y, {layout})\n"
        body += f"  %z = call {out} @llvm.tensor.reduce.add(token %y.t, {window})\n"
    stored = "z" if kind in ("relu", "narrowed", "reduced") else "y"
    return f"""define void @f(ptr %c, ptr noalias %a, ptr noalias %b, ptr noalias %x) {{
{body}  store {out} %{stored}, ptr %c
  ret void
}}
"""


_KINDS: Final = ("row", "column", "matrix", "in place", "accumulated", "relu", "narrowed", "reduced")
_CASES: Final = [(("float", "float"), kind) for kind in _KINDS] + [
    (types, kind)
    for types in (("bfloat", "float"), ("half", "half"), ("i8", "i32"))
    for kind in ("row", "in place", "narrowed")
    if (types[1], kind) != ("half", "narrowed")
]


@pytest.mark.parametrize(("case", "target"), quick_by_target(product(_SIZES, _CASES), _TARGETS, len(_KINDS)))
def test_passes_do_not_change_what_an_epilogue_computes(
    case: tuple[tuple[int, int, int], tuple[tuple[str, str], str]], target: str
) -> None:
    """A matrix unit that adds up all of K in registers refuses `kc` and says so; the product is right without it."""
    size, (types, kind) = case
    text, remarks = _product(size, types, kind), Remarks()
    options = Options(knobs=FixedKnobs(Knobs(kc=8)), remarks=remarks)
    try:
        differences = validate(text, target, options=options, runs=1)
    except UsageError as refusal:
        if target != "amx" or "added up in registers; leave out kc" not in str(refusal):
            raise
        differences = validate(text, target, runs=1)
    else:
        assert any(re.search(r"blocks M \d+, N \d+, K 8\b", remark.message) for remark in remarks)
    assert differences == []


@pytest.mark.parametrize("target", _TARGETS)
@pytest.mark.parametrize("kind", _KINDS)
def test_decision_seeds_split_k(target: str, kind: str) -> None:
    text, lengths, seeds = _product((9, 21, 24), ("float", "float"), kind), set[str](), iter(range(16))
    while not lengths & {"8", "12"}:
        seed, remarks = next(seeds), Remarks()
        options = Options(decision_seed=seed, remarks=remarks)
        assert validate(text, target, options=options, runs=1) == []
        lengths.update(re.findall(r"blocks M \d+, N \d+, K (\d+)", " ".join(r.message for r in remarks)))


@pytest.mark.parametrize("kind", ["row", "in place"])
def test_threads_have_partial_sums_of_their_own(kind: str) -> None:
    options = Options(knobs=FixedKnobs(Knobs(kc=8)), threads="openmp", thread_cycles=100)
    assert validate(_product((33, 50, 41), ("float", "float"), kind), "avx2", options=options, runs=1) == []
