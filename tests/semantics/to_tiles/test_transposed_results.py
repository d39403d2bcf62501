"""Products whose results are stored transposed: each stage is evaluated and compared.

Wide tiles go through memory, from where they are transposed a register of each row at a time.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import pytest

from tests.support.tools import quick_by_target
from tlx.api.validation import validate

_DIMS: Final = "<2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
_TARGETS: Final = ("generic", "avx2", "avx512", "amx", "neon", "sve")
_SIZES: Final = ((27, 48, 9), (7, 37, 23), (33, 100, 5), (3, 80, 4))
_KINDS: Final = ("plain", "accumulated", "residual", "long", "narrowed", "long and narrowed")
_TYPES: Final = (("float", "float"), ("bfloat", "float"), ("i8", "i32"))


def _load(name: str, element: str, pointer: str, rows: int, cols: int, pitch: int = 0, order: str = "0, i32 1") -> str:
    shape = f"<2 x i32> <i32 {rows}, i32 {cols}>, <2 x i32> <i32 {order}>, <2 x i32> zeroinitializer"
    operands = f"ptr elementtype({element}) %{pointer}, {shape}, <2 x i32> <i32 0, i32 {pitch}>"
    return f"  %{name} = call token @llvm.tensor.load({operands})\n"


def _program(size: tuple[int, int, int], types: tuple[str, str], kind: str) -> str:
    """C = transpose(f(A @ B)): f adds a transposed matrix, computes an exponential or a quotient, or narrows."""
    (m, n, k), (element, result) = size, types
    is_float = result != "i32"
    vector, out = f"<{m * n} x {result}>", result
    body = _load("lhs", element, "a", m, k) + _load("rhs", element, "b", k, n)
    accumulates = not is_float or kind == "accumulated"
    body += _load("acc", result, "x", m, n) if accumulates else ""
    operation = ("mma" if is_float else "smma") if accumulates else "matmul"
    body += f"  %p = call {vector} @llvm.tensor.{operation}({'token %acc, ' * accumulates}token %lhs, token %rhs)\n"
    value = "p"
    if kind == "residual":
        body += _load("other", result, "x", n, m)
        body += f"  %r = call {vector} @llvm.tensor.transpose(token %other, <2 x i32> <i32 1, i32 0>)\n"
        body += f"  %s = {'fadd' if is_float else 'add'} {vector} %p, %r\n"
        value = "s"
    if "long" in kind:
        body += (
            f"  %e = call {vector} @llvm.exp({vector} %p)\n  %l = fadd {vector} %e, %p\n"
            if is_float
            else f"  %e = sdiv {vector} %p, splat (i32 7)\n  %l = mul {vector} %e, %e\n"
        )
        value = "l"
    if "narrowed" in kind:
        out = "bfloat" if is_float else "i8"
        body += f"  %z = {'fptrunc' if is_float else 'trunc'} {vector} %{value} to <{m * n} x {out}>\n"
        value = "z"
    layout = f"<2 x i32> <i32 {m}, i32 {n}>, {_DIMS}"
    body += f"  %y = call token @llvm.tensor.typeinfo(<{m * n} x {out}> %{value}, {layout})\n"
    body += f"  %t = call <{m * n} x {out}> @llvm.tensor.transpose(token %y, <2 x i32> <i32 1, i32 0>)\n"
    return f"""define void @f(ptr noalias %c, ptr noalias %a, ptr noalias %b, ptr noalias %x) {{
{body}  store <{m * n} x {out}> %t, ptr %c
  ret void
}}
"""


@pytest.mark.parametrize(("case", "target"), quick_by_target(product(_SIZES, _TYPES, _KINDS), _TARGETS, len(_KINDS)))
def test_transposed_results(case: tuple[tuple[int, int, int], tuple[str, str], str], target: str) -> None:
    assert validate(_program(*case), target, runs=1) == []
