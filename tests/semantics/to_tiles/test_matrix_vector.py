"""Products with a vector, by the instructions of each extension: each stage is evaluated and compared with the input.

That holds on any machine: the evaluator knows what the instructions do.
"""

from __future__ import annotations

import pytest

from tlx.api.validation import validate
from tlx.ir.parser.module import parse
from tlx.lower.options import Options
from tlx.lower.pipeline import lower

_DENSE = "<2 x i32> zeroinitializer"
_ROW, _COLUMN = "<2 x i32> <i32 0, i32 1>", "<2 x i32> <i32 1, i32 0>"


def _product(operation: str, element: str, result: str, rows: int, k: int, *, is_row: bool = False) -> str:
    """`c = a @ b` with b of one column, or a of one row and b column-major."""
    m, n = (1, rows) if is_row else (rows, 1)
    a, c = f"<2 x i32> <i32 {m}, i32 {k}>, {_ROW}", f"<2 x i32> <i32 {m}, i32 {n}>, {_ROW}, {_DENSE}"
    b = f"<2 x i32> <i32 {n}, i32 {k}>, {_COLUMN}" if is_row else f"<2 x i32> <i32 {k}, i32 {n}>, {_ROW}"
    return f"""define void @f(ptr noalias %c, ptr %a, ptr %b) {{
  %acc = call token @llvm.tensor.typeinfo(<{rows} x {result}> zeroinitializer, {c})
  %lhs = call token @llvm.tensor.load(ptr elementtype({element}) %a, {a}, {_DENSE}, {_DENSE})
  %rhs = call token @llvm.tensor.load(ptr elementtype({element}) %b, {b}, {_DENSE}, {_DENSE})
  %m = call <{rows} x {result}> @llvm.tensor.{operation}(token %acc, token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<{rows} x {result}> %m, {c})
  call void @llvm.tensor.store(ptr %c, token %t, {_DENSE})
  ret void
}}
"""


_SIGNS = ("smma", "umma", "usmma", "summa")
_BYTES = [
    ("generic", "", ("", "", "", "")),
    ("avx2", "haswell", ("avx2.pmadd.wd",) * 4),
    ("avx2", "alderlake", ("vpdpbusd.256",) * 4),
    ("avx2", "sierraforest", ("vpdpbssd.256", "vpdpbuud.256", "vpdpbusd.256", "vpdpbusd.256")),
    ("avx512", "skylake-avx512", ("pmaddw.d.512",) * 4),
    ("avx512", "cascadelake", ("vpdpbusd.512",) * 4),
    ("amx", "sapphirerapids", ("vpdpbusd.512",) * 4),
]


@pytest.mark.parametrize(("target", "cpu", "names"), _BYTES, ids=lambda v: v if isinstance(v, str) else "")
def test_bytes(target: str, cpu: str, names: tuple[str, ...]) -> None:
    for is_row, (operation, name) in enumerate(zip(_SIGNS, names, strict=True)):
        text = _product(operation, "i8", "i32", 5, 70, is_row=is_row % 3 > 0)
        options = Options(cpu=cpu)
        assert validate(text, target, options=options) == []
        lowered = str(lower(parse(text), target, options=options))
        assert name in lowered
        assert "tdpb" not in lowered


_FLOATS = [
    ("generic", "", "llvm.fmuladd"),
    ("avx2", "haswell", "llvm.fma.v8f32"),
    ("avx512", "skylake-avx512", "llvm.fma.v16f32"),
    ("avx512", "cooperlake", "dpbf16ps.512"),
    ("amx", "sapphirerapids", "dpbf16ps.512"),
]


@pytest.mark.parametrize(("target", "cpu", "name"), _FLOATS, ids=lambda v: v)
@pytest.mark.parametrize("size", [(1, 72), (19, 67)], ids=str)
def test_bfloats(target: str, cpu: str, name: str, size: tuple[int, int]) -> None:
    text, options = _product("smma", "bfloat", "float", *size), Options(cpu=cpu)
    assert validate(text, target, options=options) == []
    assert name in str(lower(parse(text), target, options=options))


@pytest.mark.parametrize(("target", "element"), [("generic", "float"), ("avx2", "half"), ("avx512", "double")])
def test_multiply_adds(target: str, element: str) -> None:
    result = "double" if element == "double" else "float"
    text = _product("smma", element, result, 19, 67)
    assert validate(text, target) == []
    assert ("@llvm.fmuladd." if target == "generic" else "@llvm.fma.") in str(lower(parse(text), target))


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
@pytest.mark.parametrize(("operation", "element", "result"), [("smma", "i16", "i32"), ("summa", "i16", "i64")])
def test_wider_integers(target: str, operation: str, element: str, result: str) -> None:
    assert validate(_product(operation, element, result, 9, 40), target) == []


def _finished(rows: int, k: int, result: str, added: str, *, is_row: bool, pitch: int = 0) -> str:
    """`c = relu(round(added + a @ b) * scale + bias)`: `added` is c itself or other memory; c's rows may lie apart."""
    m, n = (1, rows) if is_row else (rows, 1)
    shape, pitches = f"<2 x i32> <i32 {m}, i32 {n}>, {_ROW}, {_DENSE}", f"<2 x i32> <i32 0, i32 {pitch}>"
    a = f"<2 x i32> <i32 {m}, i32 {k}>, {_ROW}"
    b = f"<2 x i32> <i32 {n}, i32 {k}>, {_COLUMN}" if is_row else f"<2 x i32> <i32 {k}, i32 {n}>, {_ROW}"
    c, f = f"<{rows} x {result}>", f"<{rows} x float>"
    rounded = "" if result == "float" else f"  %y = fptrunc {f} %biased to {c}\n"
    value = "%biased" if result == "float" else "%y"
    return f"""define void @f(ptr {"noalias " if added != "c" else ""}%c, ptr %a, ptr %b, ptr %d, ptr %x, float %s) {{
  %old = call token @llvm.tensor.load(ptr elementtype(float) %{added}, {shape}, {pitches})
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, {a}, {_DENSE}, {_DENSE})
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, {b}, {_DENSE}, {_DENSE})
  %m = call {f} @llvm.tensor.smma(token %old, token %lhs, token %rhs)
  %tx = call token @llvm.tensor.load(ptr elementtype(float) %x, {shape}, {_DENSE})
  %bias = call {f} @llvm.tensor.tovector(token %tx)
  %one = insertelement {f} undef, float %s, i32 0
  %scale = shufflevector {f} %one, {f} undef, <{rows} x i32> zeroinitializer
  %scaled = fmul {f} %m, %scale
  %biased = fadd {f} %scaled, %bias
{rounded}  %t = call token @llvm.tensor.typeinfo({c} {value}, {shape})
  %r = call {c} @llvm.tensor.relu(token %t)
  %u = call token @llvm.tensor.typeinfo({c} %r, {shape})
  call void @llvm.tensor.store(ptr %c, token %u, {pitches})
  ret void
}}
"""


@pytest.mark.parametrize(("target", "cpu"), [("generic", ""), ("avx2", "haswell"), ("avx512", "cooperlake")])
@pytest.mark.parametrize(("added", "result"), [("c", "float"), ("d", "bfloat")])
def test_epilogues_of_sums(target: str, cpu: str, added: str, result: str) -> None:
    for is_row, pitch in ((False, 0), (True, 0), (False, 3)):
        text, options = _finished(19, 70, result, added, is_row=is_row, pitch=pitch), Options(cpu=cpu)
        assert validate(text, target, options=options) == []
        assert "@tlx.reduce.add.rows.19x70." in str(lower(parse(text), target, options=options))
