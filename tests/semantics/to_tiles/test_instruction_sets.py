"""Products by the instructions of each extension: each stage is evaluated and compared with the input.

That holds on any machine: the evaluator knows what the instructions do.
"""

from __future__ import annotations

import pytest

from tests.support.tools import quick
from tlx.api.validation import validate
from tlx.ir.parser.module import parse
from tlx.lower.options import Options
from tlx.lower.pipeline import lower

_LOAD = "<2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)"
_SIZES = quick([(1, 8, 4), (9, 21, 13), (7, 16, 1), (5, 33, 8), (3, 3, 3)], 3)


def _product(operation: str, lhs: str, rhs: str, result: str, m: int, n: int, k: int) -> str:
    """`c += a @ b` by an mma of MxK and KxN, or `c = a @ b` by a matmul."""
    acc = f"ptr elementtype({result}) %c, <2 x i32> <i32 {m}, i32 {n}>, {_LOAD}"
    first = "" if operation == "matmul" else "token %acc, "
    return f"""define void @f(ptr %c, ptr noalias %a, ptr noalias %b) {{
  %acc = call token @llvm.tensor.load({acc}
  %lhs = call token @llvm.tensor.load(ptr elementtype({lhs}) %a, <2 x i32> <i32 {m}, i32 {k}>, {_LOAD}
  %rhs = call token @llvm.tensor.load(ptr elementtype({rhs}) %b, <2 x i32> <i32 {k}, i32 {n}>, {_LOAD}
  %m = call <{m * n} x {result}> @llvm.tensor.{operation}({first}token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<{m * n} x {result}> %m, <2 x i32> <i32 {m}, i32 {n}>, <2 x i32> <i32 0, i32 1>,
                                        <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}}
"""


_BYTES = [
    ("avx2", "haswell", {"smma": "pmadd.wd", "umma": "pmadd.wd", "usmma": "pmadd.wd", "summa": "pmadd.wd"}),
    ("avx2", "alderlake", {"smma": "vpdpbusd", "umma": "vpdpbusd", "usmma": "vpdpbusd", "summa": "vpdpbusd"}),
    ("avx2", "sierraforest", {"smma": "vpdpbssd", "umma": "vpdpbuud", "usmma": "vpdpbusd", "summa": "vpdpbusd"}),
    ("avx512", "skylake-avx512", {"smma": "pmaddw.d", "umma": "pmaddw.d", "usmma": "pmaddw.d", "summa": "pmaddw.d"}),
    ("vsx", "", {"smma": "vmsummbm", "umma": "vmsumubm", "usmma": "vmsummbm", "summa": "vmsummbm"}),
    ("avx512", "cascadelake", {"smma": "vpdpbusd", "umma": "vpdpbusd", "usmma": "vpdpbusd", "summa": "vpdpbusd"}),
]


@pytest.mark.parametrize(("target", "cpu", "names"), _BYTES, ids=lambda v: v if isinstance(v, str) else "")
@pytest.mark.parametrize("operation", ["smma", "umma", "usmma", "summa"])
@pytest.mark.parametrize("size", _SIZES, ids=str)
def test_bytes(target: str, cpu: str, names: dict[str, str], operation: str, size: tuple[int, int, int]) -> None:
    text, options = _product(operation, "i8", "i8", "i32", *size), Options(cpu=cpu)
    assert validate(text, target, options=options) == []
    assert names[operation] in str(lower(parse(text), target, options=options))


@pytest.mark.parametrize(("operation", "name"), [("smma", ""), ("umma", "u"), ("usmma", "su"), ("summa", "su")])
@pytest.mark.parametrize("features", [(), ("+zvl256b",)], ids=str)
@pytest.mark.parametrize("size", _SIZES, ids=str)
def test_bytes_by_zvqdotq(operation: str, name: str, features: tuple[str, ...], size: tuple[int, int, int]) -> None:
    text = _product(operation, "i8", "i8", "i32", *size)
    options = Options(triple="riscv64-linux-gnu", features=("+experimental-zvqdotq", *features))
    assert validate(text, "rvv", options=options) == []
    assert f"@llvm.riscv.vqdot{name}.nxv2i32.nxv8i8.i64(" in str(lower(parse(text), "rvv", options=options))


def test_signed_times_unsigned_bytes_with_vnni_int8_alone() -> None:
    """The machine could have AVX-VNNI-INT8 without AVX-VNNI."""
    for operation in ("usmma", "summa"):
        text, options = _product(operation, "i8", "i8", "i32", 9, 21, 13), Options(features=("+avxvnniint8",))
        assert validate(text, "avx2", options=options) == []
        assert "@llvm.x86.avx2.vpdpbsud.256(" in str(lower(parse(text), "avx2", options=options))


@pytest.mark.parametrize(
    ("target", "cpu", "name"),
    [
        ("avx2", "haswell", "avx2.pmadd.wd"),
        ("avx2", "alderlake", "avx512.vpdpwssd.256"),
        ("avx512", "skylake-avx512", "avx512.pmaddw.d.512"),
        ("avx512", "cascadelake", "avx512.vpdpwssd.512"),
        ("vsx", "", "vmsumshm"),
    ],
)
@pytest.mark.parametrize("size", _SIZES, ids=str)
@pytest.mark.parametrize("result", ["i16", "i32"])
def test_words(target: str, cpu: str, name: str, size: tuple[int, int, int], result: str) -> None:
    """Sums wrap as those of i32 do: -32768 * -32768, twice, too. The smallest products need no instruction."""
    text, options = _product("matmul", "i16", "i16", result, *size), Options(cpu=cpu)
    assert validate(text, target, options=options) == []
    if size[0] > 3:
        assert f".{name}(" in str(lower(parse(text), target, options=options))


@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize("seed", range(8))
def test_no_dot_product_of_i16_reads_wider_integers(target: str, seed: int) -> None:
    """A of i32, too small to be copied, was truncated to i16 where B of i16 was streamed; the seeds stream it."""
    text = _product("smma", "i32", "i16", "i32", 3, 64, 16)
    assert validate(text, target, options=Options(decision_seed=seed)) == []


def test_unsigned_words_are_not_multiplied_as_signed() -> None:
    text = _product("umma", "i16", "i16", "i32", 9, 21, 13)
    assert validate(text, "avx2") == []
    assert "pmadd" not in str(lower(parse(text), "avx2"))


@pytest.mark.parametrize("size", [(33, 20, 35), (32, 33, 32)], ids=str)
@pytest.mark.parametrize("result", ["half", "float"])
def test_halves_on_tiles(size: tuple[int, int, int], result: str) -> None:
    """By TDPFP16PS where the processor has it, or by a function in its place."""
    text = _product("smma", "half", "half", result, *size)
    for options in (Options(cpu="graniterapids"), Options(cpu="graniterapids", emulate_matrix=True)):
        assert validate(text, "amx", options=options) == []
        name = "@tlx.tdpfp16ps(" if options.emulate_matrix else "@llvm.x86.tdpfp16ps("
        assert name in str(lower(parse(text), "amx", options=options))
    assert "tdpfp16ps" not in str(lower(parse(text), "amx", options=Options(cpu="sapphirerapids")))


@pytest.mark.parametrize("size", [(9, 21, 14), (5, 33, 8), (1, 8, 4), (3, 3, 3), (4, 10, 6), (7, 12, 1)], ids=str)
@pytest.mark.parametrize("result", ["bfloat", "float"])
def test_widening_loads_of_bfloat(size: tuple[int, int, int], result: str) -> None:
    """A single row is no product."""
    text, options = _product("matmul", "bfloat", "bfloat", result, *size), Options(cpu="sierraforest")
    assert validate(text, "avx2", options=options) == []
    if size[0] > 1:
        assert "@llvm.x86.vcvtneobf162ps" in str(lower(parse(text), "avx2", options=options))
