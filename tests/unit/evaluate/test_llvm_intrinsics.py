"""LLVM's intrinsics against compiled code, bit for bit where the result is exact."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.unit.evaluate.jit import Case, run_both
from tests.unit.evaluate.test_arithmetic import amount, floats, integers, not_nan, size, split, word
from tlx.evaluate import evaluate
from tlx.ir.parser.module import parse, parse_fully
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, IntType, Type, VectorType, mangle

Array = NDArray[Any]
Random = np.random.Generator
FLOATS: list[Type] = [HALF, BFLOAT, FLOAT, DOUBLE]
INTEGERS: list[Type] = [IntType(n) for n in (8, 16, 32, 64, 24)]


def with_vectors(types: list[Type], count: int = 4) -> list[Type]:
    return types + [VectorType(count, t) for t in types]


def call(name: str, result: Type | str, *arguments: str, mangled: Type | None) -> str:
    """A call; its declaration is added by `declared`."""
    suffix = f".{mangle(mangled)}" if mangled else ""
    return f"call {result} @llvm.{name}{suffix}({', '.join(arguments)})"


def declared(cases: list[Case]) -> str:
    """Declarations of the intrinsics that cases call."""
    results: dict[str, str] = {}
    for case in cases:
        for result, name, arguments in re.findall(r"call (.+?) (@[\w.]+)\((.*)\)", case.body):
            types = re.findall(r"(<[^>]*>|\w+) (?:%\w+|false)", arguments)
            results[name] = f"declare {result} {name}({', '.join(types)})"
    return "\n".join(results.values())


def float_intrinsics() -> Iterator[Case]:
    unary = "sqrt fabs floor ceil trunc rint nearbyint round roundeven"
    for type_ in with_vectors(FLOATS, 5):
        text = str(type_)
        for name in unary.split():
            body = f"  %v = {call(name, type_, f'{text} %a', mangled=type_)}"
            yield not_nan(name, text, body, 1)
        for name in "copysign minimum maximum minnum maxnum".split():
            if name in ("minnum", "maxnum"):
                # which zero they give is open
                body = f"  %m = {call(name, type_, f'{text} %a', f'{text} %b', mangled=type_)}\n"
                body += f"  %v = fadd {text} %m, zeroinitializer" if "<" in text else f"  %v = fadd {text} %m, 0.0"
            else:
                body = f"  %v = {call(name, type_, f'{text} %a', f'{text} %b', mangled=type_)}"
            yield not_nan(name, text, body)
        if split(text)[1] in ("float", "double"):
            body = f"  %v = {call('fma', type_, f'{text} %a', f'{text} %b', f'{text} %c', mangled=type_)}"
            yield not_nan("fma", text, body, 3)


def integer_intrinsics() -> Iterator[Case]:
    for type_ in with_vectors(INTEGERS):
        text = str(type_)
        pair = [f"{text} %a", f"{text} %b"]
        for name in "smax smin umax umin sadd.sat ssub.sat uadd.sat usub.sat".split():
            yield integer_case(name, text, call(name, type_, *pair, mangled=type_))
        for name in "ctpop bitreverse".split():
            yield integer_case(name, text, call(name, type_, pair[0], mangled=type_))
        for name in "ctlz cttz abs".split():
            yield integer_case(name, text, call(name, type_, pair[0], "i1 false", mangled=type_))
        for name in "sshl.sat ushl.sat".split():
            yield integer_case(name, text, call(name, type_, *pair, mangled=type_), amount)
        for name in "fshl fshr".split():
            yield integer_case(name, text, call(name, type_, *pair, f"{text} %b", mangled=type_))
        if "i8" not in text and "i24" not in text:
            yield integer_case("bswap", text, call("bswap", type_, pair[0], mangled=type_))


def integer_case(
    name: str, text: str, called: str, right: Callable[[Random, int], int] | None = None, result: str = ""
) -> Case:
    def make(random: Random) -> list[Array]:
        second = integers(random, text, right) if right else integers(random, text)
        return [integers(random, text), second]

    result = result or text
    body = f"  %r = {called}"
    return Case(f"{name.replace('.', '_')}_{word(text)}", (text, text), result, body, (size(result),), make)


def overflow_intrinsics() -> Iterator[Case]:
    for width in (8, 16, 32, 64):
        for name in "sadd ssub smul uadd usub umul".split():
            pair = f"{{i{width}, i1}}"
            body = (
                f"  %p = call {pair} @llvm.{name}.with.overflow.i{width}(i{width} %a, i{width} %b)\n"
                f"  %n = extractvalue {pair} %p, 0\n  %o = extractvalue {pair} %p, 1\n"
                f"  %z = zext i{width} %n to i65\n  %y = zext i1 %o to i65\n  %h = shl i65 %y, 64\n"
                f"  %w = or i65 %z, %h\n  %r = zext i65 %w to i128"
            )
            yield Case(
                f"{name}_{width}",
                (f"i{width}", f"i{width}"),
                "i128",
                body,
                (16,),
                lambda random, w=width: [integers(random, f"i{w}"), integers(random, f"i{w}")],
            )


def reductions() -> Iterator[Case]:
    for element in INTEGERS[:4]:
        type_ = VectorType(8, element)
        for name in "add mul and or xor smax smin umax umin".split():
            called = call(f"vector.reduce.{name}", element, f"{type_} %a", mangled=type_)
            yield integer_case(f"reduce.{name}", str(type_), called, result=str(element))
    for element in (FLOAT, DOUBLE):
        type_ = VectorType(6, element)
        for name in ("fadd", "fmul"):
            called = call(f"vector.reduce.{name}", element, f"{element} %a", f"{type_} %b", mangled=type_)
            yield Case(
                f"reduce_{name}_{element}",
                (str(element), str(type_)),
                str(element),
                f"  %r = {called}",
                (size(str(element)),),
                lambda random, e=element: [normal(random, e, 1), normal(random, e, 6)],
            )


def normal(random: Random, element: Type, count: int) -> Array:
    return random.normal(size=count).astype(np.float32 if element == FLOAT else np.float64)


def saturating_casts() -> Iterator[Case]:
    for element in (FLOAT, DOUBLE):
        for width in (8, 16, 32, 64):
            for name in ("fptosi", "fptoui"):
                type_ = f"<3 x {element}>"
                suffix = f"v3i{width}.{mangle(VectorType(3, element))}"
                body = f"  %r = call <3 x i{width}> @llvm.{name}.sat.{suffix}({type_} %a)"
                yield Case(
                    f"{name}_sat_{element}_{width}",
                    (type_,),
                    f"<3 x i{width}>",
                    body,
                    (3 * width // 8,),
                    lambda random, t=type_: [floats(random, t) * 1000],
                )


def masks() -> Iterator[Case]:
    body = "  %r = call <9 x i1> @llvm.get.active.lane.mask.v9i1.i32(i32 %a, i32 %b)"
    yield Case(
        "lane_mask",
        ("i32", "i32"),
        "<9 x i1>",
        body,
        (2,),
        lambda random: [np.array([random.integers(20)], np.int32), np.array([random.integers(20)], np.int32)],
    )
    body = "  %r = call <8 x i16> @llvm.stepvector.v8i16()"
    yield Case("stepvector", (), "<8 x i16>", body, (16,))


FAMILIES = [float_intrinsics, integer_intrinsics, overflow_intrinsics, reductions, saturating_casts, masks]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_intrinsics_give_what_compiled_code_gives(family: Callable[[], Iterator[Case]]) -> None:
    cases = list(family())
    problems = run_both(cases, declared(cases))
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", "exp exp2 log log2 log10 sin cos tanh sqrt".split())
@pytest.mark.parametrize("type_", FLOATS, ids=str)
def test_elementary_functions(name: str, type_: Type) -> None:
    """Within half an ulp of the value in long double."""
    numbers = np.array([0.1, 0.5, 1.0, 2.5, 3.75])
    text = (
        f"declare <5 x {type_}> @llvm.{name}.v5{mangle(type_)}(<5 x {type_}>)\n"
        f"define <5 x {type_}> @f(<5 x {type_}> %x) {{\n"
        f"  %r = call <5 x {type_}> @llvm.{name}.v5{mangle(type_)}(<5 x {type_}> %x)\n  ret <5 x {type_}> %r\n}}\n"
    )
    got = evaluate(parse(text), "f", numbers)
    exact = getattr(np, name)(numbers.astype(got.dtype).astype(np.longdouble))
    epsilon = {"half": 2.0**-11, "bfloat": 2.0**-8, "float": 2.0**-24, "double": 2.0**-53}[str(type_)]
    assert np.all(np.abs(got.astype(np.longdouble) - exact) <= epsilon * np.abs(exact) * 1.001)


def test_fused_multiply_add_rounds_once() -> None:
    """The product is a tie in float, and the addend decides."""
    text = """\
declare float @llvm.fma.f32(float, float, float)
define float @f(float %a, float %b, float %c) {
  %r = call float @llvm.fma.f32(float %a, float %b, float %c)
  ret float %r
}
"""
    a = np.float32(1 + 2**-12)
    product = float(a) * float(a)  # 1 + 2^-11 + 2^-24: half way between two floats
    assert evaluate(parse(text), "f", a, a, 2.0**-60) == np.nextafter(np.float32(product), np.float32(2))
    assert evaluate(parse(text), "f", a, a, -(2.0**-60)) == np.float32(1 + 2**-11)


def test_matrix_intrinsics() -> None:
    text = """\
declare <6 x i32> @llvm.matrix.multiply.v6i32.v8i32.v12i32(<8 x i32>, <12 x i32>, i32, i32, i32)
declare <8 x i32> @llvm.matrix.transpose.v8i32(<8 x i32>, i32, i32)
declare <8 x i32> @llvm.matrix.column.major.load.v8i32.i64(ptr, i64, i1, i32, i32)
declare void @llvm.matrix.column.major.store.v6i32.i64(<6 x i32>, ptr, i64, i1, i32, i32)
define void @f(ptr %a, <12 x i32> %b, ptr %c) {
  %x = call <8 x i32> @llvm.matrix.column.major.load.v8i32.i64(ptr %a, i64 5, i1 false, i32 4, i32 2)
  %y = call <8 x i32> @llvm.matrix.transpose.v8i32(<8 x i32> %x, i32 4, i32 2)
  %z = call <6 x i32> @llvm.matrix.multiply.v6i32.v8i32.v12i32(<8 x i32> %y, <12 x i32> %b, i32 2, i32 4, i32 3)
  call void @llvm.matrix.column.major.store.v6i32.i64(<6 x i32> %z, ptr %c, i64 3, i1 false, i32 2, i32 3)
  ret void
}
"""
    a = np.arange(10, dtype=np.int32)
    b = np.arange(12, dtype=np.int32) - 5
    c = np.full(9, 77, np.int32)
    evaluate(parse(text), "f", a, b, c)
    expected = a.reshape(2, 5)[:, :4] @ b.reshape(3, 4).T
    np.testing.assert_array_equal(c.reshape(3, 3)[:, :2].T, expected)
    np.testing.assert_array_equal(c.reshape(3, 3)[:, 2], 77)


MASKED = """\
declare <4 x float> @llvm.masked.load.v4f32.p0(ptr, i32, <4 x i1>, <4 x float>)
declare void @llvm.masked.store.v4f32.p0(<4 x float>, ptr, i32, <4 x i1>)
declare <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr>, i32, <4 x i1>, <4 x float>)
declare void @llvm.masked.scatter.v4f32.v4p0(<4 x float>, <4 x ptr>, i32, <4 x i1>)
define void @move(ptr %to, ptr %from, <4 x i1> %mask) {
  %v = call <4 x float> @llvm.masked.load.v4f32.p0(ptr %from, i32 4, <4 x i1> %mask, <4 x float> zeroinitializer)
  call void @llvm.masked.store.v4f32.p0(<4 x float> %v, ptr %to, i32 4, <4 x i1> %mask)
  ret void
}
define void @pick(ptr %to, ptr %from, <4 x i64> %at, <4 x i1> %mask) {
  %p = getelementptr float, ptr %from, <4 x i64> %at
  %v = call <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr> %p, i32 4, <4 x i1> %mask,
                                                       <4 x float> zeroinitializer)
  %q = getelementptr float, ptr %to, <4 x i64> %at
  call void @llvm.masked.scatter.v4f32.v4p0(<4 x float> %v, <4 x ptr> %q, i32 4, <4 x i1> %mask)
  ret void
}
"""


def test_masked_access_touches_active_lanes_only() -> None:
    source, target = np.arange(3, dtype=np.float32) + 1, np.zeros(3, np.float32)
    evaluate(parse(MASKED), "move", target, source, [1, 0, 1, 0])
    np.testing.assert_array_equal(target, [1, 0, 3])
    source, target = np.arange(9, dtype=np.float32), np.zeros(9, np.float32)
    evaluate(parse(MASKED), "pick", target, source, [8, 100, 0, 3], [1, 0, 0, 1])
    np.testing.assert_array_equal(target, [0, 0, 0, 3, 0, 0, 0, 0, 8])


def test_masked_load_through_typed_pointer() -> None:
    text = """\
declare <4 x float> @llvm.masked.load.v4f32.p0v4f32(<4 x float>*, i32, <4 x i1>, <4 x float>)
define <4 x float> @f(<4 x float>* %p) {
  %v = call <4 x float> @llvm.masked.load.v4f32.p0v4f32(<4 x float>* %p, i32 4,
      <4 x i1> <i1 true, i1 true, i1 false, i1 false>, <4 x float> <float 9.0, float 9.0, float 9.0, float 9.0>)
  ret <4 x float> %v
}
"""
    got = evaluate(parse(text), "f", np.array([1, 2], np.float32))
    np.testing.assert_array_equal(got, [1, 2, 9, 9])


@pytest.mark.parametrize(
    ("name", "expected"), [("lrint", [2, -2, 0, 4]), ("llrint", [2, -2, 0, 4]), ("lround", [3, -3, 1, 4])]
)
def test_rounding_to_integers(name: str, expected: list[int]) -> None:
    """`lrint` rounds halves to even numbers, `lround` away from zero."""
    text = f"""
    define <4 x i64> @f(<4 x float> %x) {{
      %y = call <4 x i64> @llvm.{name}.v4i64.v4f32(<4 x float> %x)
      ret <4 x i64> %y
    }}
    declare <4 x i64> @llvm.{name}.v4i64.v4f32(<4 x float>)
    """
    got = evaluate(parse_fully(text), "f", np.array([2.5, -2.5, 0.5, 4], np.float32))
    np.testing.assert_array_equal(np.asarray(got).view(np.int64), expected)


def test_splats_that_opt_folds() -> None:
    """Versions of `opt` before 21 write a splat as a constant expression."""
    one = "insertelement (<4 x i32> undef, i32 7, i32 0)"
    splat = f"shufflevector (<4 x i32> {one}, <4 x i32> undef, <4 x i32> zeroinitializer)"
    text = f"define <4 x i32> @f(<4 x i32> %x) {{ %y = and <4 x i32> %x, {splat}\n ret <4 x i32> %y\n }}"
    got = evaluate(parse_fully(text), "f", np.array([9, 7, 8, -1], np.int32))
    np.testing.assert_array_equal(got, [1, 7, 0, 7])
