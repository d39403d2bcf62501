"""BLAS instructions on every combination of types that may meet, and rounding once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.semantics.frontends.tensor_language.blas.cases import (
    DTYPES,
    TWO_INPUTS,
    Case,
    Ref,
    common,
    exact,
    memrefs,
    packed,
    rounded,
)
from tests.support.tools import quick
from tlx.frontends import tensor_language as tl
from tlx.frontends.tensor_language.types import NUMBERS, promotable
from tlx.intrinsics.numpy_types import Array

_SIZES = (17, 5, 3)
_LARGE = (33, 17, 40)  # enough for blocks
_PARTS = 4
_INSTRUCTIONS = ["gemm.n.t", "hadamard", "gemv", "ger", "axpby.t", "sum", "cumsum"]


def _fits(narrow: str | None, wide: str) -> bool:
    return narrow is not None and promotable(NUMBERS[narrow], NUMBERS[wide])


def _types(instruction: str) -> list[tuple[str, ...]]:
    """Types of inputs and output that an instruction takes."""
    if instruction.split(".", maxsplit=1)[0] not in TWO_INPUTS:
        return [(a, b) for a in DTYPES for b in DTYPES if _fits(a, b)]
    triples = [(a, b, c) for a in DTYPES for b in DTYPES for c in DTYPES if _fits(common(a, b), c)]
    return triples if instruction.startswith("gemm") else triples[_INSTRUCTIONS.index(instruction) :: 5]


def _case(instruction: str, types: tuple[str, ...], *, is_open: bool) -> Case:
    """A kernel with alpha of the inputs' common type and beta of the narrowest one."""
    inputs = common(*types[:2]) if len(types) == 3 else types[0]
    assert inputs is not None
    alpha: complex = {"int": 2, "float": 1.5, "complex": 1.5 + 0.5j}[NUMBERS[inputs].kind]
    sizes = _LARGE if is_open and instruction.startswith("gemm") else _SIZES
    refs, out = memrefs(instruction, types, sizes, open_shape=is_open, open_stride="outer" if is_open else "none")
    beta = "i8" if _fits("i8", types[-1]) else types[-1]
    name = "_".join([instruction.replace(".", "_"), *types, "open" if is_open else "known"])
    return Case(instruction, refs, out, (inputs, alpha, False), (beta, -1, False), name=name, seed=len(name))


def _cases(instruction: str, target: str) -> list[Case]:
    """All combinations of types on this machine, some of them on others."""
    types = _types(instruction)
    known = [_case(instruction, t, is_open=False) for t in (types if target == "native" else types[::7])]
    return known + [_case(instruction, t, is_open=True) for t in types[:: 4 if target == "native" else 9]]


@pytest.mark.parametrize("instruction", _INSTRUCTIONS)
@pytest.mark.parametrize("target", ["generic", "native"])
@pytest.mark.parametrize("part", quick(range(_PARTS)))
def test_types(instruction: str, target: str, part: int) -> None:
    """LLVM optimises the first part; on every combination it would take most of the time."""
    cases = _cases(instruction, target)[part::_PARTS]
    kernels = tl.compile("".join(case.text for case in cases), target, opt_level=0 if part else 2)
    for case in cases:
        case.check(kernels[case.name])


@pytest.mark.parametrize("types", [*_types("gemm.n.t")[::23], ("i8", "i8", "f32"), ("bf16", "bf16", "bf16")])
@pytest.mark.parametrize("instruction", ["gemm.n.t", "gemm.t.n"])
def test_tiles_of_known_shape(instruction: str, types: tuple[str, ...]) -> None:
    """Only the leading dimensions are known when the kernel runs."""
    case = _case(instruction, types, is_open=False)
    refs, out = memrefs(instruction, types, _LARGE, extra=3, open_stride="outer")
    packed_out = replace(out, open_stride="none")
    cases = [replace(case, inputs=refs, out=o, name=f"k{n}") for n, o in enumerate((out, packed_out))]
    kernels = tl.compile("".join(case.text for case in cases), "native")
    for one in cases:
        one.check(kernels[one.name])


def test_there_are_many_combinations() -> None:
    assert len(_types("gemm.n.t")) > 200
    assert len(_types("sum")) > 40


@pytest.mark.parametrize("type_", ["bf16", "f16"])
@pytest.mark.parametrize("is_open", [False, True])
def test_narrow_sums_are_rounded_once(type_: str, is_open: bool) -> None:
    """64 products of 9 and 1.25: in narrow steps each addition would round."""
    stride = "outer" if is_open else "none"
    refs, out = memrefs("gemm", [type_] * 3, (16, 3, 64), open_shape=is_open, open_stride=stride)
    case = Case("gemm", refs, out, (type_, 1, True), (type_, 1, True), name="k")
    kernel = tl.compile(case.text, "native")["k"]
    a, b = np.full((16, 64), 3, DTYPES[type_], order="F"), np.full((64, 3), 3, DTYPES[type_], order="F")
    c = np.full((16, 3), 1.25, DTYPES[type_], order="F")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, np.full((16, 3), 577.25).astype(DTYPES[type_]))


def test_small_integers_are_summed_up_in_32_bits() -> None:
    """Intermediate sums exceed what f32 represents exactly; the result is exact."""
    n = 1301
    refs = Ref("i8", (16, n), packed((16, n))), Ref("i8", (n, 4), packed((n, 4)))
    out = Ref("f64", (16, 4), packed((16, 4)))
    kernel = tl.compile(Case("gemm", refs, out, ("i8", 1, True), ("f64", 0, True), name="k").text, "native")["k"]
    a, b = np.full((16, n), 127, np.int8, order="F"), np.full((n, 4), -127, np.int8, order="F")
    c = np.zeros((16, 4), order="F")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, np.full((16, 4), -127.0 * 127 * n))


def test_integers_wrap() -> None:
    """The result of integers is that of modular arithmetic in the output's type."""
    rng = np.random.default_rng(5)
    for type_ in ("i8", "i16", "i32", "i64"):
        limits = np.iinfo(DTYPES[type_])
        refs, out = memrefs("gemm", [type_] * 3, (17, 5, 9))
        case = Case("gemm", refs, out, (type_, 1, False), (type_, 1, False), name="k")
        a, b, c = (_any_integers(rng, type_, shape) for shape in ((17, 9), (9, 5), (17, 5)))
        alpha, beta = int(limits.max), int(limits.min) + 3
        wide = alpha * (exact(a, type_) @ exact(b, type_)) + beta * exact(c, type_)
        expected = rounded(wide, type_)
        tl.compile(case.text, "native")["k"](a, b, c, alpha, beta)
        np.testing.assert_array_equal(c, expected)


def _any_integers(rng: np.random.Generator, type_: str, shape: tuple[int, ...]) -> Array:
    limits = np.iinfo(DTYPES[type_])
    return np.asfortranarray(rng.integers(limits.min, limits.max, shape, DTYPES[type_], endpoint=True))
