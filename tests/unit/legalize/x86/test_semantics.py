"""Target intrinsics against formulas, and against the processor where it has the instructions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.unit.evaluate.jit import Case, run_both
from tests.unit.legalize.x86.tile_loop import DECLARED, POWER
from tlx.diagnostics import EvaluationError
from tlx.evaluate import evaluate
from tlx.ir.parser.module import parse

Array = NDArray[Any]
BF16 = ml_dtypes.bfloat16
CPU = Path("/proc/cpuinfo")
FLAGS = set(CPU.read_text().split()) if CPU.exists() else set[str]()

# AMX -----------------------------------------------------------------------------------------------------------------

AMX = """\
declare x86_amx @llvm.x86.tilezero.internal(i16, i16)
declare x86_amx @llvm.x86.tileloadd64.internal(i16, i16, ptr, i64)
declare void @llvm.x86.tilestored64.internal(i16, i16, ptr, i64, x86_amx)
declare x86_amx @llvm.x86.NAME.internal(i16, i16, i16, x86_amx, x86_amx, x86_amx)
declare x86_amx @llvm.x86.cast.vector.to.tile.v256i32(<256 x i32>)
declare <256 x i32> @llvm.x86.cast.tile.to.vector.v256i32(x86_amx)
define void @multiply(ptr %a, ptr %b, ptr %c, i64 %sa, i64 %sb, i64 %sc, i16 %m, i16 %n4, i16 %k4) {
  %rows = udiv i16 %k4, 4
  %ta = call x86_amx @llvm.x86.tileloadd64.internal(i16 %m, i16 %k4, ptr %a, i64 %sa)
  %tb = call x86_amx @llvm.x86.tileloadd64.internal(i16 %rows, i16 %n4, ptr %b, i64 %sb)
  %tc = call x86_amx @llvm.x86.tileloadd64.internal(i16 %m, i16 %n4, ptr %c, i64 %sc)
  %z = call x86_amx @llvm.x86.tilezero.internal(i16 %m, i16 %n4)
  %p = call x86_amx @llvm.x86.NAME.internal(i16 %m, i16 %n4, i16 %k4, x86_amx %z, x86_amx %ta, x86_amx %tb)
  %r = call x86_amx @llvm.x86.NAME.internal(i16 %m, i16 %n4, i16 %k4, x86_amx %tc, x86_amx %ta, x86_amx %tb)
  call void @llvm.x86.tilestored64.internal(i16 %m, i16 %n4, ptr %c, i64 %sc, x86_amx %r)
  ret void
}
define void @move(ptr %from, ptr %to) {
  %v = load <256 x i32>, ptr %from
  %t = call x86_amx @llvm.x86.cast.vector.to.tile.v256i32(<256 x i32> %v)
  %u = call <256 x i32> @llvm.x86.cast.tile.to.vector.v256i32(x86_amx %t)
  %x = bitcast <256 x i32> %u to x86_amx
  %y = bitcast x86_amx %x to <256 x i32>
  store <256 x i32> %y, ptr %to
  ret void
}
"""


def vnni(b: Array, q: int) -> Array:
    """`K x N -> K/q x N*q`."""
    k, n = b.shape
    return np.ascontiguousarray(b.reshape(k // q, q, n).transpose(0, 2, 1)).reshape(k // q, n * q)


def call_multiply(name: str, a: Array, b: Array, c: Array) -> None:
    """Add a @ b to c, with `b` in rows and columns."""
    packed = vnni(b, 4 // a.itemsize)
    evaluate(
        parse(AMX.replace("NAME", name)),
        "multiply",
        a,
        packed,
        c,
        a.strides[0],
        packed.strides[0],
        c.strides[0],
        a.shape[0],
        4 * c.shape[1],
        a.shape[1] * a.itemsize,
    )


@pytest.mark.parametrize("signs", ["ss", "su", "us", "uu"])
@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 64), (3, 5, 12), (1, 1, 4)])
def test_amx_integer_products(signs: str, m: int, n: int, k: int) -> None:
    random = np.random.default_rng(1)
    kinds = {"s": np.int8, "u": np.uint8}
    a = random.integers(0, 256, (m, k)).astype(np.uint8).view(kinds[signs[0]])
    b = random.integers(0, 256, (k, n)).astype(np.uint8).view(kinds[signs[1]])
    c = random.integers(-(2**31), 2**31, (m, n)).astype(np.int32)
    expected = (c.astype(np.int64) + a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    call_multiply(f"tdpb{signs}d", a, b, c)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize(("name", "kind"), [("tdpbf16ps", BF16), ("tdpfp16ps", np.float16)])
@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 32), (5, 7, 6)])
def test_amx_float_products(name: str, kind: Any, m: int, n: int, k: int) -> None:
    random = np.random.default_rng(2)
    a, b = (random.integers(-9, 9, shape).astype(kind) for shape in ((m, k), (k, n)))
    c = random.integers(-99, 99, (m, n)).astype(np.float32)
    expected = c + a.astype(np.float32) @ b.astype(np.float32)
    call_multiply(name, a, b, c)
    np.testing.assert_array_equal(c, expected)


def test_amx_bfloat_subnormals_are_zeros() -> None:
    a, b = np.full((1, 2), 1e-39, BF16), np.full((2, 1), 1e30, BF16)
    c = np.zeros((1, 1), np.float32)
    call_multiply("tdpbf16ps", a, b, c)
    assert c[0, 0] == 0


def test_amx_rows_outside_an_array_are_errors() -> None:
    a, b, c = np.zeros((4, 8), np.int8), np.zeros((8, 4), np.int8), np.zeros((4, 4), np.int32)
    text = parse(AMX.replace("NAME", "tdpbssd"))
    with pytest.raises(EvaluationError, match=r"tile load, row 3, of 8 bytes .* argument %a .* which has 24 bytes"):
        evaluate(text, "multiply", a[:3].copy(), vnni(b, 4), c, 8, 16, 16, 4, 16, 8)


def test_amx_shapes_beyond_a_tile_are_errors() -> None:
    data = np.zeros(4096, np.int8)
    with pytest.raises(EvaluationError, match="tile of 17 rows of 8 bytes"):
        evaluate(parse(AMX.replace("NAME", "tdpbssd")), "multiply", data, data, data, 8, 16, 16, 17, 16, 8)


def test_amx_casts() -> None:
    source, target = np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
    evaluate(parse(AMX.replace("NAME", "tdpbssd")), "move", source, target)
    np.testing.assert_array_equal(source, target)


def test_tiles_can_be_carried_through_a_loop() -> None:
    c = np.zeros(1, np.int32)
    evaluate(parse(DECLARED + POWER), "power", np.array([1, 2, 3, -4], np.int8), c, 5)
    assert c[0] == 5 * 30


# AVX -----------------------------------------------------------------------------------------------------------------


def dot_case(name: str, bits: int, element: str, feature_free_name: str) -> Case:
    lanes = bits // 32
    count = bits // int(element[1:])
    acc, operand = f"<{lanes} x i32>", f"<{count} x {element}>"
    return Case(
        feature_free_name,
        (acc, operand, operand),
        acc,
        f"  %r = call {acc} @llvm.x86.{name}.{bits}({acc} %a, {operand} %b, {operand} %c)",
        (bits // 8,) * 4,
    )


def declarations(cases: list[Case]) -> str:
    result: dict[str, str] = {}
    for case in cases:
        callee = case.body.split("@")[1].split("(")[0]
        result[callee] = f"declare {case.result} @{callee}({', '.join(case.types)})"
    return "\n".join(result.values())


def integer_dots() -> list[tuple[str, Case]]:
    result: list[tuple[str, Case]] = []
    for bits in (128, 256, 512):
        for name, element in (("vpdpbusd", "i8"), ("vpdpbusds", "i8"), ("vpdpwssd", "i16"), ("vpdpwssds", "i16")):
            case = dot_case(f"avx512.{name}", bits, element, f"{name}_{bits}")
            result.append(("avx512_vnni", case))
    return result


def multiply_adds() -> list[tuple[str, Case]]:
    results: list[tuple[str, Case]] = []
    for name, element, bits, feature in (
        ("sse2.pmadd.wd", "i16", 128, "sse2"),
        ("avx2.pmadd.wd", "i16", 256, "avx2"),
        ("avx512.pmaddw.d.512", "i16", 512, "avx512bw"),
        ("ssse3.pmadd.ub.sw.128", "i8", 128, "ssse3"),
        ("avx2.pmadd.ub.sw", "i8", 256, "avx2"),
        ("avx512.pmaddubs.w.512", "i8", 512, "avx512bw"),
    ):
        operand = f"<{bits // int(element[1:])} x {element}>"
        result = f"<{bits // 32} x i32>" if element == "i16" else f"<{bits // 16} x i16>"
        body = f"  %r = call {result} @llvm.x86.{name}({operand} %a, {operand} %b)"
        results.append((feature, Case(name.replace(".", "_"), (operand, operand), result, body, (bits // 8,) * 3)))
    return results


def bfloats(random: np.random.Generator, count: int) -> Array:
    """Random numbers of all sizes, some of them subnormal."""
    numbers = random.normal(size=count) * 2.0 ** random.integers(-66, 60, count).astype(float)
    return np.where(random.random(count) < 0.1, 1e-39, numbers).astype(np.float32)


def bfloat_cases() -> list[tuple[str, Case]]:
    result: list[tuple[str, Case]] = []
    for bits in (128, 256, 512):
        n = bits // 32
        acc, operand, half = f"<{n} x float>", f"<{2 * n} x bfloat>", f"<{n} x bfloat>"

        def operands(random: np.random.Generator, n: int = n) -> list[Array]:
            return [bfloats(random, n), bfloats(random, 2 * n).astype(BF16), bfloats(random, 2 * n).astype(BF16)]

        body = f"  %r = call {acc} @llvm.x86.avx512bf16.dpbf16ps.{bits}({acc} %a, {operand} %b, {operand} %c)"
        result.append(("avx512_bf16", Case(f"dpbf16ps_{bits}", (acc, operand, operand), acc, body, (4 * n,), operands)))
        body = f"  %r = call {operand} @llvm.x86.avx512bf16.cvtne2ps2bf16.{bits}({acc} %a, {acc} %b)"
        result.append(
            (
                "avx512_bf16",
                Case(
                    f"cvtne2_{bits}",
                    (acc, acc),
                    operand,
                    body,
                    (4 * n,),
                    lambda random, n=n: [bfloats(random, n), bfloats(random, n)],
                ),
            )
        )
        if bits > 128:
            body = f"  %r = call {half} @llvm.x86.avx512bf16.cvtneps2bf16.{bits}({acc} %a)"
            result.append(
                (
                    "avx512_bf16",
                    Case(f"cvtne_{bits}", (acc,), half, body, (2 * n,), lambda random, n=n: [bfloats(random, n)]),
                )
            )
    return result


def permutations() -> list[tuple[str, Case]]:
    result: list[tuple[str, Case]] = []
    for name, element, feature in (("qi", "i8", "avx512_vbmi"), ("hi", "i16", "avx512bw")):
        type_ = f"<{512 // int(element[1:])} x {element}>"
        body = f"  %r = call {type_} @llvm.x86.avx512.permvar.{name}.512({type_} %a, {type_} %b)"
        result.append((feature, Case(f"permvar_{name}", (type_, type_), type_, body, (64, 64, 64))))
    return result


@pytest.mark.parametrize("family", [integer_dots, multiply_adds, bfloat_cases, permutations], ids=lambda f: f.__name__)
def test_intrinsics_give_what_the_processor_gives(family: Any) -> None:
    """Cases whose instruction this processor lacks are left out; the formulas below hold everywhere."""
    cases = [case for feature, case in family() if feature in FLAGS]
    problems = run_both(cases, declarations(cases), repeats=20)
    assert not problems, "\n".join(problems)


def evaluated(case: Case, *args: Array) -> Array:
    """The result's bytes."""
    from tests.unit.evaluate.jit import function_text

    out = np.zeros(case.sizes[0], np.uint8)
    evaluate(parse(declarations([case]) + "\n" + function_text(case)), case.name, out, *args)
    return out


@pytest.mark.parametrize("element", ["i8", "i32"])
@pytest.mark.parametrize("bits", [128, 256, 512])
def test_byte_dots(bits: int, element: str) -> None:
    """By formula; operands as bytes or, as older LLVMs have them, as dwords."""
    random = np.random.default_rng(4)
    n = bits // 32
    acc = random.integers(-99, 99, n).astype(np.int32)
    a, b = (random.integers(0, 256, 4 * n).astype(np.uint8) for _ in range(2))
    for name, lhs, rhs in (
        ("avx512.vpdpbusd", np.uint8, np.int8),
        ("avx2.vpdpbssd", np.int8, np.int8),
        ("avx2.vpdpbsud", np.int8, np.uint8),
        ("avx2.vpdpbuud", np.uint8, np.uint8),
    ):
        products = a.view(lhs).astype(np.int32) * b.view(rhs).astype(np.int32)
        got = evaluated(dot_case(name, bits, element, "dot"), acc, a, b).view(np.int32)
        np.testing.assert_array_equal(got, acc + products.reshape(n, 4).sum(1))


def test_bfloat_dot_takes_old_operands() -> None:
    """<16 x i32> where LLVM 17 and later have <32 x bfloat>."""
    types = ("<16 x float>", "<16 x i32>", "<16 x i32>")
    call = ", ".join(f"{t} %{x}" for t, x in zip(types, "abc", strict=True))
    body = f"  %r = call <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512({call})"
    random = np.random.default_rng(6)
    a, b = (random.integers(-9, 9, 32).astype(BF16) for _ in range(2))
    acc = random.integers(-9, 9, 16).astype(np.float32)
    got = evaluated(Case("old", types, "<16 x float>", body, (64,)), acc, a, b).view(np.float32)
    expected = acc + (a.astype(np.float32) * b.astype(np.float32)).reshape(16, 2).sum(1)
    np.testing.assert_array_equal(got, expected)


def test_half_conversion() -> None:
    body = "  %r = call <4 x float> @llvm.x86.vcvtph2ps.128(<8 x i16> %a)"
    case = Case("half", ("<8 x i16>",), "<4 x float>", body, (16,))
    numbers = np.array([1.5, -2, 65504, 6e-8, 0, 0, 0, 0], np.float16)
    np.testing.assert_array_equal(evaluated(case, numbers).view(np.float32), numbers[:4].astype(np.float32))


_WIDENED = {0x3F80: 0x3F800000, 0x0001: 0x00010000, 0x8040: 0x80400000, 0x7F81: 0x7F810000, 0xFF80: 0xFF800000}


@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize(("name", "first"), [("vcvtneebf162ps", 0), ("vcvtneobf162ps", 1), ("vbcstnebf162ps", None)])
def test_bfloats_are_widened_as_they_are_loaded(name: str, first: int | None, lanes: int) -> None:
    """The bits move up: subnormals stay, and so do NaNs that signal, as nothing consults MXCSR."""
    words = np.resize(np.array([*_WIDENED], np.uint16), 2 * lanes)
    expected = [_WIDENED[int(w)] for w in (words[:1].repeat(lanes) if first is None else words[first::2])]
    result = f"<{lanes} x float>"
    text = f"""
declare {result} @llvm.x86.{name}{32 * lanes}(ptr)
define void @f(ptr %from, ptr %to) {{
  %r = call {result} @llvm.x86.{name}{32 * lanes}(ptr %from)
  store {result} %r, ptr %to, align 4
  ret void
}}
"""
    out = np.zeros(lanes, np.uint32)
    evaluate(parse(text), "f", words if first is not None else words[:1].copy(), out)
    assert out.tolist() == expected


@pytest.mark.parametrize(("name", "first"), [("vcvtneeph2ps256", 0), ("vcvtneoph2ps256", 1), ("vbcstnesh2ps256", None)])
def test_halves_are_widened_as_they_are_loaded(name: str, first: int | None) -> None:
    numbers = np.resize(np.array([1.5, -6e-8, 65504, np.inf, 3, -0.0, 7], np.float16), 16)
    text = f"""
declare <8 x float> @llvm.x86.{name}(ptr)
define void @f(ptr %from, ptr %to) {{
  %r = call <8 x float> @llvm.x86.{name}(ptr %from)
  store <8 x float> %r, ptr %to, align 4
  ret void
}}
"""
    out = np.zeros(8, np.float32)
    evaluate(parse(text), "f", numbers, out)
    expected = numbers[:1].repeat(8) if first is None else numbers[first::2]
    np.testing.assert_array_equal(out, expected.astype(np.float32))


def test_a_widening_load_stays_in_bounds() -> None:
    text = """
declare <8 x float> @llvm.x86.vcvtneebf162ps256(ptr)
define void @f(ptr %from, ptr %to) {
  %r = call <8 x float> @llvm.x86.vcvtneebf162ps256(ptr %from)
  store <8 x float> %r, ptr %to, align 4
  ret void
}
"""
    with pytest.raises(EvaluationError, match="of 32 bytes"):
        evaluate(parse(text), "f", np.zeros(15, np.uint16), np.zeros(8, np.float32))
