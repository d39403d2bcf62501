"""Right operands with interleaved rows, read in place or packed: each stage is compared with the input."""

from __future__ import annotations

import pytest

from tlx.api.validation import validate
from tlx.ir.parser.module import parse
from tlx.lower.options import Options
from tlx.lower.pipeline import lower

_ZERO = "<3 x i32> zeroinitializer"
_MATRIX = "<2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"


def _product(operation: str, element: str, result: str, size: tuple[int, int, int], width: int) -> str:
    """MxK times K/v x N x v: by a contraction over the groups and their rows, or by rows that are permuted back."""
    m, n, groups = size
    k, lhs = groups * width, f"token %lhs, token %{'b' if operation == 'contract' else 'rhs'}"
    lies, rows = f"<3 x i32> <i32 0, i32 1, i32 2>, {_ZERO}, {_ZERO}", f"<2 x i32> <i32 {k}, i32 {n}>"
    groups_of_b = f"<3 x i32> <i32 {groups}, i32 {n}, i32 {width}>, {lies}"
    shape = f"<3 x i32> <i32 {m}, i32 {groups}, i32 {width}>, {lies}"
    if operation != "contract":
        shape = f"<2 x i32> <i32 {m}, i32 {k}>, {_MATRIX}, <2 x i32> zeroinitializer"
    axes = ", <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 0, i32 2>" if operation == "contract" else ""
    first = "" if operation in ("contract", "matmul") else "token %acc, "
    return f"""define void @f(ptr noalias %c, ptr %x, ptr %y) {{
  %acc = call token @llvm.tensor.typeinfo(<{m * n} x {result}> zeroinitializer, <2 x i32> <i32 {m}, i32 {n}>, {_MATRIX})
  %lhs = call token @llvm.tensor.load(ptr elementtype({element}) %x, {shape})
  %b = call token @llvm.tensor.load(ptr elementtype({element}) %y, {groups_of_b})
  %v = call <{k * n} x {element}> @llvm.tensor.reshape.permute(token %b, <3 x i32> <i32 0, i32 2, i32 1>, {rows})
  %rhs = call token @llvm.tensor.typeinfo(<{k * n} x {element}> %v, {rows}, {_MATRIX})
  %p = call <{m * n} x {result}> @llvm.tensor.{operation}({first}{lhs}{axes})
  %t = call token @llvm.tensor.typeinfo(<{m * n} x {result}> %p, <2 x i32> <i32 {m}, i32 {n}>, {_MATRIX})
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}}
"""


_TARGETS = [
    ("avx512", "cooperlake", "dpbf16ps.512", "vpdpbusd.512"),
    ("avx2", "alderlake", "", "vpdpbusd.256"),
    ("avx2", "sierraforest", "", "vpdpb"),
]


@pytest.mark.parametrize(("target", "cpu", "floats", "integers"), _TARGETS, ids=["avx512", "avx2", "avx2-int8"])
def test_groups(target: str, cpu: str, floats: str, integers: str) -> None:
    cases = [("contract", "bfloat"), ("matmul", "bfloat")]
    cases += [(operation, "i8") for operation in ("contract", "smma", "umma", "usmma", "summa")]
    for number, (operation, element) in enumerate(cases):
        size = (3, 32, 4) if number % 2 else (5, 21, 3)
        result, width, name = ("float", 2, floats) if element == "bfloat" else ("i32", 4, integers)
        text, options = _product(operation, element, result, size, width), Options(cpu=cpu)
        assert validate(text, target, options=options) == []
        lowered = str(lower(parse(text), target, options=options))
        assert name in lowered
        if name:
            assert "tlx.copy" not in lowered
            assert "tlx.transpose" not in lowered
