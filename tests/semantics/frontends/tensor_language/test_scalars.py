"""Arithmetic, comparisons and casts of scalars at the ends of their types, for one work-item and for a subgroup."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pytest

from tests.semantics.frontends.tensor_language.matrix.cases import DTYPES, compiled
from tests.semantics.frontends.tensor_language.scalar_cases import (
    FLOATS,
    INTEGERS,
    PARTS,
    limits,
    nearest,
    numbers,
    paired,
    parts,
    same,
)
from tlx.frontends import tensor_language as tl
from tlx.intrinsics.numpy_types import Array

Operation = Callable[..., Array]

BINARY: Final[dict[str, Operation]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.fmax, "min": np.fmin, "rem": np.fmod,
}  # fmt: skip
BITS: Final[dict[str, Operation]] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
UNARY: Final[dict[str, Operation]] = {"abs": np.abs, "neg": np.negative}
COMPARISONS: Final[dict[str, Operation]] = {
    "equal": np.equal, "not_equal": np.not_equal, "greater_than": np.greater, "less_than": np.less,
    "greater_than_equal": np.greater_equal, "less_than_equal": np.less_equal,
}  # fmt: skip
LOOPS: Final = {
    "one": "for %i=%c0,%n {{ for %j=%c0,%m {{ {body} }} }}",
    "lanes": "foreach (%i,%j)=(%c0,%c0),(%n,%m) {{ {body} }}",
}


def pairwise(type_: str, results: dict[str, tuple[str, str]]) -> tl.CompiledKernels:
    """Kernels that give results, each from an instruction and its type, for all pairs of two vectors."""
    text = ""
    for name, loop in LOOPS.items():
        lines = [f"%a = load %A[%i] : {type_}", f"%b = load %B[%j] : {type_}"]
        for k, (instruction, result) in enumerate(results.values()):
            lines.append(f"%r{k} = {instruction} : {result}")
            value = f"%r{k}"
            if result == "bool":
                lines.append(f"%s{k} = if %r{k} -> (i8) {{ yield (%yes) }} else {{ yield (%no) }}")
                value = f"%s{k}"
            lines.append(f"store {value}, %R{k}[%i,%j]")
        stored = ["i8" if result == "bool" else result for _, result in results.values()]
        outputs = ", ".join(f"%R{k}: memref<{result}x?x?>" for k, result in enumerate(stored))
        body = loop.format(body="\n".join(lines))
        text += f"""
        func @{name}(%A: memref<{type_}x?>, %B: memref<{type_}x?>, {outputs}) {{
            %c0 = constant 0 : index %n = size %A[0] : index %m = size %B[0] : index
            %yes = constant 1 : i8 %no = constant 0 : i8
            {body}
        }}"""
    return compiled(text)


def run_pairwise(type_: str, results: dict[str, tuple[str, str]], a: Array, b: Array) -> list[dict[str, Array]]:
    """What each kernel of `pairwise` gives."""
    kernels = pairwise(type_, results)
    found: list[dict[str, Array]] = []
    for name in kernels:
        arrays = {
            key: np.zeros((len(a), len(b)), DTYPES["i8" if result == "bool" else result], order="F")
            for key, (_, result) in results.items()
        }
        kernels[name](a, b, *arrays.values())
        found.append(arrays)
    return found


@pytest.mark.parametrize("type_", [*INTEGERS, *FLOATS])
def test_arithmetic_and_comparisons(type_: str) -> None:
    operations = BINARY | UNARY | COMPARISONS | (BITS if type_ in INTEGERS else {})
    instructions = {op: (f"{op} %a" if op in UNARY else f"{op} %a, %b", type_) for op in operations}
    instructions |= {op: (f"{op} %a, %b", "bool") for op in COMPARISONS}
    a = b = numbers(type_)
    if type_ in INTEGERS:
        b = a[a != 0]
    wide = np.float32 if type_ in ("bf16", "f16") else DTYPES[type_]
    rows, columns = (x.astype(wide) for x in np.broadcast_arrays(a[:, None], b))
    for got in run_pairwise(type_, instructions, a, b):
        for op, function in operations.items():
            with np.errstate(all="ignore"):
                expected = function(rows) if op in UNARY else function(rows, columns)
                expected = expected.astype(got[op].dtype)
            fits = same(got[op], expected)
            if op in ("max", "min"):
                fits |= got[op] == expected  # of two zeros either
            assert fits.all(), (op, a[np.argwhere(~fits)[0][0]], b[np.argwhere(~fits)[0][1]])


@pytest.mark.parametrize("type_", [*INTEGERS, *FLOATS])
def test_quotients(type_: str) -> None:
    a = b = numbers(type_)
    defined = np.ones((len(a), len(b)), np.bool_)
    if type_ in INTEGERS:
        quotients = [[int(Fraction(int(x), int(y) or 1)) for y in b] for x in a]  # by 0 any number, but no end
        defined[:, b == 0] = False
        low = int(limits(type_).min)
        expected = np.array([[(q - low) % (-2 * low) + low for q in row] for row in quotients], DTYPES[type_])
    else:
        wide = np.float64 if type_ == "f64" else np.float32
        with np.errstate(all="ignore"):
            expected = (a[:, None].astype(wide) / b.astype(wide)).astype(DTYPES[type_])
    for got in run_pairwise(type_, {"div": ("div %a, %b", type_), "rem": ("rem %a, %b", type_)}, a, b):
        assert same(got["div"], expected)[defined].all()


@pytest.mark.parametrize("type_", INTEGERS)
def test_shifts_and_not(type_: str) -> None:
    a = numbers(type_)
    bits = int(limits(type_).bits)
    b = np.array([*range(bits), bits, bits + 3, -1, -bits], DTYPES[type_])  # distances count modulo the bits
    instructions = {"shl": ("shl %a, %b", type_), "shr": ("shr %a, %b", type_), "not": ("not %a", type_)}
    for got in run_pairwise(type_, instructions, a, b):
        assert (got["shl"] == np.left_shift(a[:, None], b % bits)).all()
        assert (got["shr"] == np.right_shift(a[:, None], b % bits)).all()
        assert (got["not"] == ~a[:, None]).all()


def test_truth_values() -> None:
    values = np.array([0, 1], np.int8)
    results = {"and": ("and %p, %q", "bool"), "or": ("or %p, %q", "bool"), "xor": ("xor %p, %q", "bool")}
    results = {"p": ("equal %a, %yes", "bool"), "q": ("equal %b, %yes", "bool"), **results, "not": ("not %p", "bool")}
    renamed = {key: (text.replace("%p", "%r0").replace("%q", "%r1"), t) for key, (text, t) in results.items()}
    p, q = np.indices((2, 2)).astype(np.bool_)
    expected: dict[str, Array] = {"and": p & q, "or": p | q, "xor": p ^ q, "not": ~p}
    for got in run_pairwise("i8", renamed, values, values):
        assert all((got[op] == reference).all() for op, reference in expected.items())


@pytest.mark.parametrize("source", list(DTYPES))
def test_casts_round_once_and_saturate(source: str) -> None:
    targets = [t for t in DTYPES if source not in PARTS or t in PARTS]
    a = numbers(source)
    for got in run_pairwise(source, {t: ("cast %a", t) for t in targets}, a, a[:1]):
        for target in targets:
            with np.errstate(all="ignore"):
                expected = np.array([cast(number, source, target) for number in a], DTYPES[target])
            fits = same(got[target][:, 0], expected)
            assert fits.all(), (target, a[~fits][0], got[target][~fits][0], expected[~fits][0])


def cast(number: Any, source: str, target: str) -> Any:
    """A number of one type as another."""
    if target in PARTS:
        part = PARTS[target]
        real, imaginary = (number.real, number.imag) if source in PARTS else (number, 0.0)
        return paired(np.array(nearest(real, part)), np.array(nearest(imaginary, part)), target)
    if target in FLOATS:
        return nearest(number, target)
    low, high = int(limits(target).min), int(limits(target).max)
    if source in INTEGERS:
        return (int(number) - low) % (high - low + 1) + low
    real = float(number)
    if not np.isfinite(real):
        return 0 if np.isnan(real) else high if real > 0 else low
    return max(low, min(high, int(real)))


@pytest.mark.parametrize("type_", list(PARTS))
def test_complex_numbers(type_: str) -> None:
    part = PARTS[type_]
    info = limits(part)
    ends = np.array([0.0, -0.0, 1.0, -2.5, info.max, -info.max / 2, info.tiny, 3 * info.smallest_subnormal, np.inf])
    a = paired(np.repeat(ends, len(ends)), np.tile(ends, len(ends)), type_)
    results = {op: (f"{op} %a, %b", type_) for op in ("add", "sub", "mul", "div")}
    results |= {op: (f"{op} %a", type_) for op in ("neg", "conj", "exp", "exp2")}
    results |= {op: (f"{op} %a", part) for op in ("abs", "re", "im")}
    results |= {op: (f"{op} %a, %b", "bool") for op in ("equal", "not_equal")}
    rows, columns = np.broadcast_arrays(a[:, None], a)
    (x, y), (u, v) = parts(rows), parts(columns)
    with np.errstate(all="ignore"):
        expected = {
            "add": paired(x + u, y + v, type_), "sub": paired(x - u, y - v, type_),
            "mul": paired(x * u - y * v, x * v + y * u, type_), "neg": paired(-x, -y, type_),
            "conj": paired(x, -y, type_), "re": x, "im": y, "equal": rows == columns, "not_equal": rows != columns,
        }  # fmt: skip
        length = np.abs(rows)
    for got in run_pairwise(type_, results, a, a):
        for op, reference in expected.items():
            assert same(got[op], reference.astype(got[op].dtype)).all(), op
        assert np.allclose(got["abs"], length, rtol=4 * info.eps, atol=0)
        for i, j in np.argwhere(np.isfinite(rows) & np.isfinite(columns) & (columns != 0)):
            check_quotient(a[i], a[j], got["div"][i, j], part)
        is_real = y[:, 0] == 0
        for op, function in (("exp", np.exp), ("exp2", np.exp2)):
            with np.errstate(all="ignore"):
                reference = function(x[is_real, 0])
            real, imaginary = parts(got[op][is_real, 0])
            assert np.allclose(real, reference, rtol=8 * info.eps)
            assert same(imaginary, y[is_real, 0]).all()  # also where the real part is infinite


def check_quotient(a: Any, b: Any, got: Any, part_type: str) -> None:
    """A quotient is right up to a few units in the last place of its length, wherever that is finite."""
    info = limits(part_type)
    x, y, u, v = (Fraction(float(part)) for part in (a.real, a.imag, b.real, b.imag))
    square = u * u + v * v
    exact = [(x * u + y * v) / square, (y * u - x * v) / square]
    length = max(map(abs, exact))
    if length > Fraction(float(info.max)):
        return
    bound = 8 * length * Fraction(float(info.eps)) + 2 * Fraction(float(info.smallest_subnormal))
    for expected, part in zip(exact, (got.real, got.imag), strict=True):
        assert np.isfinite(part), (a, b, got)
        assert abs(Fraction(float(part)) - expected) <= bound, (a, b, got)


def test_complex_division_by_zero() -> None:
    a = np.array([1 + 1j, 0, -2], np.complex64)
    for got in run_pairwise("c32", {"div": ("div %a, %b", "c32")}, a, np.zeros(1, np.complex64)):
        first, second, third = got["div"][:, 0]
        assert (first.real, first.imag) == (np.inf, np.inf)
        assert np.isnan(second.real)
        assert third.real == -np.inf
