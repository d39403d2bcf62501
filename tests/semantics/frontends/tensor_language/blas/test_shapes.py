"""BLAS instructions on matrices of all shapes and strides, constant and at run time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from tests.semantics.frontends.tensor_language.blas.cases import TWO_INPUTS, Case, memrefs
from tlx.frontends import tensor_language as tl

_INSTRUCTIONS: Final = [
    "axpby", "axpby.t", "sum", "sum.t", "gemm", "gemm.t.n", "gemm.n.t", "gemm.t.t", "gemv", "gemv.t", "ger",
    "hadamard", "cumsum",
]  # fmt: skip
_KNOWN: Final[list[dict[str, Any]]] = [{}, {"extra": 3}, {"first": 2}, {"extra": 2, "open_stride": "outer"}]
_OPEN: Final[list[dict[str, Any]]] = [
    {"open_shape": True, "open_stride": "outer"},
    {"open_shape": True, "open_stride": "outer", "extra": 2},
    {"open_shape": True, "open_stride": "all"},
    {"open_shape": True, "open_stride": "all", "first": 3, "extra": 1},
]
_SIZES: Final = [(1, 1, 1), (3, 5, 2), (16, 8, 8), (33, 17, 9), (1, 40, 7), (65, 1, 70), (130, 3, 70), (64, 64, 64)]
_EMPTY: Final = [(0, 5, 3), (4, 0, 3), (4, 5, 0), (40, 40, 0), (0, 0, 0)]


def _case(instruction: str, sizes: tuple[int, int, int], how: dict[str, Any], type_: str = "f32") -> Case:
    count = 3 if instruction.split(".", maxsplit=1)[0] in TWO_INPUTS else 2
    refs, out = memrefs(instruction, [type_] * count, sizes, **how)
    mode = len(out.shape) - 1 if instruction == "cumsum" and sizes[2] % 2 else 0
    return Case(instruction, refs, out, (type_, 1.5, False), (type_, -0.5, False), mode=mode, seed=sum(sizes))


@pytest.mark.parametrize("target", ["generic", "native"])
@pytest.mark.parametrize("instruction", _INSTRUCTIONS)
def test_constant_shapes(instruction: str, target: str) -> None:
    sizes = _SIZES if instruction == "gemm" and target == "native" else [(3, 5, 2), (33, 17, 9)]
    cases = [_case(instruction, s, how) for s in sizes for how in _KNOWN]
    cases = [replace(case, name=f"k{k}") for k, case in enumerate(cases)]
    kernels = tl.compile("".join(case.text for case in cases), target)
    for case in cases:
        case.check(kernels[case.name])


@pytest.mark.parametrize("target", ["generic", "native"])
@pytest.mark.parametrize("instruction", _INSTRUCTIONS)
def test_run_time_shapes(instruction: str, target: str) -> None:
    shapes = _OPEN if target == "native" else _OPEN[::3]
    cases = {
        f"k{k}_m{mode}": (how, mode)
        for k, how in enumerate(shapes)
        for mode in ([0, 1] if "cum" in instruction else [0])
    }
    texts = [replace(_case(instruction, (3, 5, 2), how), name=n, mode=mode).text for n, (how, mode) in cases.items()]
    kernels = tl.compile("".join(texts), target)
    for name, (how, mode) in cases.items():
        for sizes in [*_SIZES, *_EMPTY]:
            replace(_case(instruction, sizes, how), name=name, mode=mode).check(kernels[name])


@pytest.mark.parametrize("instruction", ["gemm.n.t", "gemv.t", "axpby.t", "cumsum", "ger"])
@pytest.mark.parametrize("type_", ["i8", "bf16", "f64", "c32"])
def test_types_of_unknown_shapes(instruction: str, type_: str) -> None:
    kernel = None
    for sizes in [(33, 17, 9), (33, 17, 40), (5, 0, 3)]:
        case = _case(instruction, sizes, _OPEN[2], type_)
        case = replace(case, mode=0, alpha=(type_, 2, False), beta=(type_, -1, False))
        kernel = kernel or tl.compile(case.text, "native")["kernel"]
        case.check(kernel)


@pytest.mark.parametrize("order", [1, 3, 4])
@pytest.mark.parametrize("is_open", [False, True])
def test_running_sums_of_any_order(order: int, is_open: bool) -> None:
    from tests.semantics.frontends.tensor_language.blas.cases import Ref, packed

    shape = (19, 3, 4, 2)[:order]
    ref = Ref("f32", shape, packed(shape, extra=1), is_open, "outer" if is_open else "none")
    for mode in range(order):
        case = Case("cumsum", (ref,), ref, ("f32", 2, False), ("f32", 1, True), mode=mode)
        case.check(tl.compile(case.text, "native")["kernel"])


@pytest.mark.parametrize("how", [{}, {"open_shape": True}])
def test_vectors_and_scalars(how: dict[str, Any]) -> None:
    """Operands of order 0 and 1."""
    from tests.semantics.frontends.tensor_language.blas.cases import Ref

    scalar = Ref("f32", (), ())
    for length, step in ((1, 1), (7, 1), (40, 1), (40, 3)):
        vector = Ref("f32", (length,), (step,), **how)
        for case in (
            Case("axpby", (vector,), vector, ("f32", 2, False), ("f32", -1, False)),
            Case("hadamard", (vector, vector), vector, ("f32", 2, False), ("f32", -1, False)),
            Case("sum", (vector,), scalar, ("f32", 2, False), ("f32", -1, False)),
            Case("axpby", (scalar,), scalar, ("f32", 2, False), ("f32", -1, False)),
        ):
            case.check(tl.compile(case.text, "native")["kernel"])
