"""Every arithmetic, comparison, cast and element instruction against the same code compiled by LLVM, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.unit.evaluate.jit import Case, run_both
from tlx.diagnostics import EvaluationError
from tlx.evaluate import evaluate
from tlx.ir.parser.module import parse

Array = NDArray[Any]
Random = np.random.Generator

FLOATS: dict[str, Any] = {"half": np.float16, "bfloat": ml_dtypes.bfloat16, "float": np.float32, "double": np.float64}
SHORT = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
INTEGERS = ["i1", "i8", "i16", "i32", "i64", "i128", "i7", "i24", "i48"]
VECTORS = ["<4 x i8>", "<3 x i16>", "<4 x i32>", "<7 x i64>", "<2 x i128>", "<9 x i1>", "<16 x i8>"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, np.inf, -np.inf, 1e-7, 6e4, 255.5, -0.49999997, 1e-40]


def bits(type_: str) -> int:
    """Bits of an integer or float scalar or vector of them."""
    count, element = split(type_)
    widths = {"half": 16, "bfloat": 16, "float": 32, "double": 64}
    return count * (widths[element] if element in widths else int(element[1:]))


def split(type_: str) -> tuple[int, str]:
    if not type_.startswith("<"):
        return 1, type_
    count, _, element = type_.strip("<>").split()
    return int(count), element


def size(type_: str) -> int:
    return (bits(type_) + 7) // 8


def word(type_: str) -> str:
    """A type as part of a function's name."""
    return "".join(c for c in type_ if c.isalnum())


def pack(numbers: Sequence[int], width: int) -> Array:
    whole = sum((n & ((1 << width) - 1)) << k * width for k, n in enumerate(numbers))
    return np.frombuffer(whole.to_bytes((len(numbers) * width + 7) // 8, "little"), np.uint8)


def integer(random: Random, width: int) -> int:
    """Small, large and special numbers."""
    kind = random.integers(4)
    if kind == 0:
        return int(random.choice([0, 1, -1, 2, 1 << (width - 1), (1 << (width - 1)) - 1])) if width < 63 else 1
    if kind == 1:
        return int(random.integers(-100, 100))
    return int.from_bytes(random.bytes((width + 7) // 8), "little")


def integers(random: Random, type_: str, make: Callable[[Random, int], int] = integer) -> Array:
    count, element = split(type_)
    width = int(element[1:])
    return pack([make(random, width) for _ in range(count)], width)


def floats(random: Random, type_: str) -> Array:
    """Random and special numbers, no NaN: which NaN comes out of an operation is not fixed."""
    count, element = split(type_)
    numbers = random.normal(0, 10, count) * 10.0 ** random.integers(-3, 4, count)
    chosen = np.where(random.random(count) < 0.4, random.choice(SPECIAL, count), numbers)
    with np.errstate(all="ignore"):
        return normal(chosen.astype(FLOATS[element]), element)


def normal(numbers: Array, element: str) -> Array:
    """The numbers; zero for those that are subnormal in bfloat, as AVX512-BF16 drops them."""
    return np.where(np.abs(numbers) < 1e-30, np.zeros_like(numbers), numbers) if element == "bfloat" else numbers


def integer_binaries() -> Iterator[Case]:
    for type_ in INTEGERS + VECTORS:
        for opcode in "add sub mul and or xor".split():
            yield binary(opcode, type_, integer)
        if bits(type_) // split(type_)[0] > 64 and type_ != "i128":
            continue
        for opcode in "udiv urem sdiv srem".split():
            yield binary(opcode, type_, nonzero)
        for opcode in "shl lshr ashr".split():
            yield binary(opcode, type_, amount)


def nonzero(random: Random, width: int) -> int:
    number = integer(random, width) & ((1 << width) - 1)
    return number if 0 < number < (1 << width) - 1 else 1


def amount(random: Random, width: int) -> int:
    return int(random.integers(width))


def binary(opcode: str, type_: str, right: Callable[[Random, int], int]) -> Case:
    def make(random: Random) -> list[Array]:
        left = integers(random, type_)
        if opcode in ("sdiv", "srem") and split(type_)[1] == "i1":
            left = np.zeros_like(left)
        return [left, integers(random, type_, right)]

    body = f"  %r = {opcode} {type_} %a, %b"
    return Case(f"{opcode}_{word(type_)}", (type_, type_), type_, body, (size(type_),), make)


def float_binaries() -> Iterator[Case]:
    for element in FLOATS:
        for type_ in (element, f"<5 x {element}>"):
            for opcode in "fadd fsub fmul fdiv frem".split():
                yield not_nan(opcode, type_, f"  %v = {opcode} {type_} %a, %b")
            yield Case(
                f"fneg_{word(type_)}",
                (type_,),
                type_,
                f"  %r = fneg {type_} %a",
                (size(type_),),
                lambda random, t=type_: [floats(random, t)],
            )


def not_nan(name: str, type_: str, body: str, count: int = 2) -> Case:
    """A case whose result is replaced by 42 where it is NaN."""
    vector = type_.startswith("<")
    i1 = f"<{split(type_)[0]} x i1>" if vector else "i1"
    answer = (
        "0x4045000000000000"
        if split(type_)[1] in ("float", "double")
        else {"half": "0xH5140", "bfloat": "0xR4228"}[split(type_)[1]]
    )
    element = split(type_)[1]
    other = "<" + ", ".join(f"{element} {answer}" for _ in range(split(type_)[0])) + ">" if vector else answer
    body += f"\n  %nan = fcmp uno {type_} %v, %v\n  %r = select {i1} %nan, {type_} {other}, {type_} %v"
    return Case(
        f"{name.replace('.', '_')}_{word(type_)}",
        (type_,) * count,
        type_,
        body,
        (size(type_),),
        lambda random: [floats(random, type_) for _ in range(count)],
    )


def comparisons() -> Iterator[Case]:
    for type_ in ["i1", "i8", "i32", "i64", "i128", "i7", "<4 x i8>", "<3 x i64>", "<9 x i1>"]:
        result = f"<{split(type_)[0]} x i1>" if type_.startswith("<") else "i1"
        for predicate in "eq ne ugt uge ult ule sgt sge slt sle".split():
            yield Case(
                f"icmp_{predicate}_{word(type_)}",
                (type_, type_),
                result,
                f"  %r = icmp {predicate} {type_} %a, %b",
                (size(result),),
                lambda random, t=type_: [integers(random, t), integers(random, t)],
            )
    for element in FLOATS:
        for type_ in (element, f"<9 x {element}>") if element != "bfloat" else (element,):  # LLVM 22 aborts on v9bf16
            result = "<9 x i1>" if type_ != element else "i1"
            for predicate in "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split():
                yield Case(
                    f"fcmp_{predicate}_{word(type_)}",
                    (type_, type_),
                    result,
                    f"  %r = fcmp {predicate} {type_} %a, %b",
                    (size(result),),
                    lambda random, t=type_: [with_nan(random, t), with_nan(random, t)],
                )


def with_nan(random: Random, type_: str) -> Array:
    numbers = floats(random, type_)
    numbers[random.random(len(numbers)) < 0.3] = np.nan
    return numbers


def integer_casts() -> Iterator[Case]:
    widths = [1, 7, 8, 16, 24, 32, 48, 64, 128]
    for narrow in widths:
        for wide in (w for w in widths if w > narrow):
            for opcode, source, target in (("zext", narrow, wide), ("sext", narrow, wide), ("trunc", wide, narrow)):
                for a, b in ((f"i{source}", f"i{target}"), (f"<4 x i{source}>", f"<4 x i{target}>")):
                    yield cast(opcode, a, b, lambda random, t=a: [integers(random, t)])


def cast(opcode: str, a: str, b: str, make: Callable[[Random], list[Array]]) -> Case:
    return Case(f"{opcode}_{word(a)}_{word(b)}", (a,), b, f"  %r = {opcode} {a} %a to {b}", (size(b),), make)


def float_casts() -> Iterator[Case]:
    order = ["half", "float", "double"]
    pairs = [(a, b) for a in order for b in order if order.index(a) < order.index(b)]
    pairs += [("bfloat", "float"), ("bfloat", "double")]
    for narrow, wide in pairs:
        for opcode, source, target in (("fpext", narrow, wide), ("fptrunc", wide, narrow)):
            if (source, target) == ("double", "bfloat"):
                continue  # LLVM calls __truncdfbf2, which libgcc 12 lacks
            for a, b in ((source, target), (f"<5 x {source}>", f"<5 x {target}>")):
                yield cast(opcode, a, b, lambda random, t=a, to=target: [normal(floats(random, t), to)])
    for element in FLOATS:
        for width in (8, 16, 32, 64):
            for opcode in ("sitofp", "uitofp"):
                if element == "bfloat" and width == 64:
                    continue  # LLVM converts through float and rounds twice
                yield cast(opcode, f"i{width}", element, lambda random, w=width: [integers(random, f"i{w}")])
                yield cast(
                    opcode,
                    f"<4 x i{width}>",
                    f"<4 x {element}>",
                    lambda random, w=width: [integers(random, f"<4 x i{w}>")],
                )
            for opcode in ("fptosi", "fptoui"):
                yield cast(opcode, element, f"i{width}", lambda random, e=element: [in_range(random, e)])
                yield cast(
                    opcode,
                    f"<4 x {element}>",
                    f"<4 x i{width}>",
                    lambda random, e=element: [in_range(random, f"<4 x {e}>")],
                )


def in_range(random: Random, type_: str) -> Array:
    count, element = split(type_)
    return (random.random(count) * 127).astype(FLOATS[element])


def bitcasts() -> Iterator[Case]:
    groups = [
        ["i32", "float", "<4 x i8>", "<2 x half>", "<2 x i16>", "<32 x i1>", "<2 x bfloat>", "<8 x i4>"],
        ["i64", "double", "<2 x float>", "<64 x i1>", "<8 x i8>", "<4 x i16>"],
        ["<4 x i32>", "i128", "<2 x double>", "<16 x i8>"],
        ["i8", "<8 x i1>", "<2 x i4>"],
    ]
    for group in groups:
        for a in group:
            for b in group:
                yield cast("bitcast", a, b, lambda random, t=a: [np.frombuffer(random.bytes(size(t)), np.uint8)])


def elements() -> Iterator[Case]:
    def random_bytes(*types: str) -> Callable[[Random], list[Array]]:
        return lambda random: [np.frombuffer(random.bytes(size(t)), np.uint8) for t in types]

    for type_ in ["<4 x i32>", "<8 x i8>", "<16 x i1>", "<3 x i64>", "<2 x i128>", "<4 x float>"]:
        count, element = split(type_)
        name = word(type_)

        def index(random: Random, t: str = type_, n: int = count) -> list[Array]:
            return [np.frombuffer(random.bytes(size(t)), np.uint8), np.array([random.integers(n)])]

        body = f"  %r = extractelement {type_} %a, i64 %b"
        yield Case(f"extractelement_{name}", (type_, "i64"), element, body, (size(element),), index)
        body = f"  %e = extractelement {type_} %a, i32 1\n  %r = insertelement {type_} %a, {element} %e, i64 %b"
        yield Case(f"insertelement_{name}", (type_, "i64"), type_, body, (size(type_),), index)
        mask = "<i32 3, i32 0, i32 1, i32 1>"
        wide = f"<4 x {element}>"
        body = f"  %r = shufflevector {type_} %a, {type_} %b, <4 x i32> {mask}"
        yield Case(f"shuffle_{name}", (type_, type_), wide, body, (size(wide),), random_bytes(type_, type_))
        body = f"  %r = shufflevector {type_} %a, {type_} poison, <4 x i32> zeroinitializer"
        yield Case(f"broadcast_{name}", (type_,), wide, body, (size(wide),), random_bytes(type_))
        body = f"  %r = select <{count} x i1> %c, {type_} %a, {type_} %b"
        mask = f"<{count} x i1>"
        yield Case(
            f"select_{name}", (type_, type_, mask), type_, body, (size(type_),), random_bytes(type_, type_, mask)
        )


FAMILIES = [
    integer_binaries,
    float_binaries,
    comparisons,
    integer_casts,
    float_casts,
    bitcasts,
    elements,
]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_instructions_give_what_compiled_code_gives(family: Callable[[], Iterator[Case]]) -> None:
    problems = run_both(list(family()))
    assert not problems, "\n".join(problems)


def evaluated(body: str, result: str, *operands: tuple[str, str]) -> Any:
    """The value of `%r` in a function on constants."""
    parameters = ", ".join(f"{type_} %{name}" for name, (type_, _) in zip("abc", operands, strict=False))
    values = ", ".join(f"{type_} {value}" for type_, value in operands)
    text = f"define {result} @g({parameters}) {{\n{body}\n  ret {result} %r\n}}\n"
    text += f"define {result} @f() {{\n  %v = call {result} @g({values})\n  ret {result} %v\n}}\n"
    return evaluate(parse(text), "f")


def test_double_to_bfloat_rounds_once() -> None:
    # 1 + 2^-8 + 2^-40: to float it is 1 + 2^-8, half way between two bfloats, which would go to even, 1.
    number = 1 + 2**-8 + 2**-40
    spelling = f"0x{int(np.float64(number).view(np.uint64)):016X}"
    assert evaluated("  %r = fptrunc double %a to bfloat", "bfloat", ("double", spelling)) == 1 + 2**-7


@pytest.mark.parametrize(("element", "tie"), [("float", 36), ("bfloat", 52)])
@pytest.mark.parametrize("opcode", ["sitofp", "uitofp"])
def test_long_integers_to_float_round_once(opcode: str, element: str, tie: int) -> None:
    """A number just above the middle between two neighbours; to double it is the middle, which goes to even."""
    number = 2**60 + 2**tie + 1
    got = evaluated(f"  %r = {opcode} i64 %a to {element}", element, ("i64", str(number)))
    assert float(got) == 2**60 + 2 ** (tie + 1)


@pytest.mark.parametrize(
    ("opcode", "a", "b", "expected"),
    [
        ("udiv", -1, 10, ((1 << 128) - 1) // 10),
        ("sdiv", -7, 2, -3),
        ("urem", -1, 10, ((1 << 128) - 1) % 10),
        ("srem", -7, 2, -1),
    ],
)
def test_wide_division(opcode: str, a: int, b: int, expected: int) -> None:
    got = evaluated(f"  %r = {opcode} i128 %a, %b", "i128", ("i128", str(a)), ("i128", str(b)))
    assert got % (1 << 128) == expected % (1 << 128)


@pytest.mark.parametrize("opcode", ["udiv", "sdiv", "urem", "srem"])
@pytest.mark.parametrize(("type_", "a", "b"), [("i32", "7", "0"), ("<2 x i8>", "<i8 1, i8 2>", "<i8 1, i8 0>")])
def test_division_by_zero_is_an_error(opcode: str, type_: str, a: str, b: str) -> None:
    with pytest.raises(EvaluationError, match="division by zero") as caught:
        evaluated(f"  %r = {opcode} {type_} %a, %b", type_, (type_, a), (type_, b))
    assert caught.value.span is not None
    assert "%r = " in caught.value.render()


def test_overflowing_division_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="-2147483648 / -1 in i32"):
        evaluated("  %r = sdiv i32 %a, %b", "i32", ("i32", "-2147483648"), ("i32", "-1"))


def test_undefined_lanes_are_nan() -> None:
    body = "  %r = shufflevector <2 x float> %a, <2 x float> poison, <3 x i32> <i32 1, i32 poison, i32 0>"
    got = evaluated(body, "<3 x float>", ("<2 x float>", "<float 1.0, float 2.0>"))
    np.testing.assert_array_equal(got, np.array([2, np.nan, 1], np.float32))


def test_aggregates() -> None:
    body = """\
  %s = insertvalue { i32, { i8, [2 x i16] } } zeroinitializer, i32 %a, 0
  %t = insertvalue { i32, { i8, [2 x i16] } } %s, i16 7, 1, 1, 1
  %x = extractvalue { i32, { i8, [2 x i16] } } %t, 1
  %r = insertvalue { i8, [2 x i16] } %x, i8 -1, 0"""
    assert evaluated(body, "{ i8, [2 x i16] }", ("i32", "5")) == (-1, (0, 7))


def test_constant_vectors_of_other_elements() -> None:
    body = "  %r = add <2 x i32> %a, bitcast (<2 x float> <float 1.0, float -2.0> to <2 x i32>)"
    got = evaluated(body, "<2 x i32>", ("<2 x i32>", "<i32 1, i32 2>"))
    np.testing.assert_array_equal(got, np.array([0x3F800001, 0xC0000002], np.uint32).view(np.int32))


@pytest.mark.parametrize(
    ("endianness", "lanes"), [("e", [0x5566, 0x3344, 0x1122, 0]), ("E", [0, 0x1122, 0x3344, 0x5566])]
)
def test_bitcasts_number_lanes_by_the_data_layout(endianness: str, lanes: list[int]) -> None:
    text = f"""\
target datalayout = "{endianness}"

define <4 x i16> @scalar(i64 %x) {{
  %r = bitcast i64 %x to <4 x i16>
  ret <4 x i16> %r
}}

define <2 x i32> @vector(<4 x i16> %x) {{
  %r = bitcast <4 x i16> %x to <2 x i32>
  ret <2 x i32> %r
}}
"""
    halves = evaluate(parse(text), "scalar", 0x112233445566)
    assert halves.tolist() == lanes
    assert evaluate(parse(text), "vector", halves).tolist() == (
        [0x33445566, 0x1122] if endianness == "e" else [0x1122, 0x33445566]
    )


def test_deinterleaving_undoes_interleaving() -> None:
    body = """\
  %both = call <4 x i16> @llvm.vector.interleave2.v4i16(<2 x i16> %a, <2 x i16> <i16 3, i16 4>)
  %apart = call { <2 x i16>, <2 x i16> } @llvm.vector.deinterleave2.v4i16(<4 x i16> %both)
  %second = extractvalue { <2 x i16>, <2 x i16> } %apart, 1
  %high = shufflevector <4 x i16> %both, <4 x i16> poison, <2 x i32> <i32 2, i32 3>
  %r = sub <2 x i16> %second, %high"""
    got = evaluated(body, "<2 x i16>", ("<2 x i16>", "<i16 1, i16 2>"))
    np.testing.assert_array_equal(got, np.array([3 - 2, 4 - 4], np.int16))
