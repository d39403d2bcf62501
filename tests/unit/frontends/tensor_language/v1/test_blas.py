"""Collective instructions of the first version: modifiers, factors, atomic updates."""

from __future__ import annotations

import pytest

from tests.unit.frontends.tensor_language.v1.texts import PARAMETERS, body, converted, read, v2
from tlx.diagnostics import Source
from tlx.frontends.tensor_language.check import check_program
from tlx.frontends.tensor_language.syntax import parser

_A = "memref<f32x16x8>"
_GEMM = f"f32, {_A}, memref<f32x8x4>, f32, memref<f32x16x4>"


@pytest.mark.parametrize("modifiers", [".n.n", ".n.t", ".t.n", ".t.t"])
def test_gemm_keeps_its_transposes(modifiers: str) -> None:
    new = "" if modifiers == ".n.n" else modifiers
    assert body(f"gemm{modifiers} %a, %A, %B, %b, %C : {_GEMM}") == v2(f"gemm{new} %a, %A, %B, %b, %C")


def test_factors_become_values() -> None:
    assert body(f"gemm.n.n 1.0, %A, %B, 0.0, %C : {_GEMM}") == v2(
        "%c1_f32 = constant 1.0 : f32",
        "%c0_f32 = constant 0.0 : f32",
        "gemm %c1_f32, %A, %B, %c0_f32, %C",
    )


def test_atomic_stands_before_the_transposes() -> None:
    text = f"gemm.n.t.atomic %a, %A, %B, 1.0, %C : {_GEMM}"
    assert body(text) == v2("%c1_f32 = constant 1.0 : f32\ngemm.atomic.n.t %a, %A, %B, %c1_f32, %C")


def test_axpby() -> None:
    assert body(f"axpby.n %a, %A, %b, %A : f32, {_A}, f32, {_A}") == v2("axpby %a, %A, %b, %A")
    assert body(f"axpby.t %a, %A, %b, %A : f32, {_A}, f32, {_A}") == v2("axpby.t %a, %A, %b, %A")


def test_gemv() -> None:
    types = f"f32, {_A}, memref<f32x8>, f32, memref<f32x16>"
    assert body(f"gemv.n %a, %A, %v, %b, %w : {types}") == v2("gemv %a, %A, %v, %b, %w")
    assert body(f"gemv.t %a, %A, %v, %b, %w : {types}") == v2("gemv.t %a, %A, %v, %b, %w")


def test_ger() -> None:
    types = f"f32, memref<f32x16>, memref<f32x8>, f32, {_A}"
    assert body(f"ger %a, %w, %v, %b, %A : {types}") == v2("ger %a, %w, %v, %b, %A")


@pytest.mark.parametrize("name", ["hadamard", "hadamard_product"])
def test_hadamard_has_two_names(name: str) -> None:
    types = "f32, memref<f32x8>, memref<f32x8>, f32, memref<f32x8>"
    assert body(f"{name} %a, %v, %v, %b, %v : {types}") == v2("hadamard %a, %v, %v, %b, %v")


def test_sum() -> None:
    assert body(f"sum.n %a, %A, %b, %w : f32, {_A}, f32, memref<f32x16>") == v2("sum %a, %A, %b, %w")
    assert body("sum.n %a, %v, %b, %s : f32, memref<f32x8>, f32, memref<f32>") == v2("sum %a, %v, %b, %s")


@pytest.mark.parametrize("beta", ["0.0", "1.0"])
@pytest.mark.parametrize(
    "text",
    [
        f"axpby.t.atomic %a, %A, BETA, %A : f32, {_A}, f32, {_A}",
        f"sum.t.atomic %a, %A, BETA, %v : f32, {_A}, f32, memref<f32x8>",
        f"gemv.t.atomic %a, %A, %w, BETA, %v : f32, {_A}, memref<f32x16>, f32, memref<f32x8>",
        f"ger.atomic %a, %w, %v, BETA, %A : f32, memref<f32x16>, memref<f32x8>, f32, {_A}",
        "hadamard.atomic %a, %v, %v, BETA, %v : f32, memref<f32x8>, memref<f32x8>, f32, memref<f32x8>",
    ],
)
def test_updates_by_all_groups_stay_atomic(text: str, beta: str) -> None:
    assert ".atomic" in body(text.replace("BETA", beta)).splitlines()[1]


@pytest.mark.parametrize("beta", ["0.5", "%b"])
def test_atomic_updates_of_shared_memory_take_any_factor(beta: str) -> None:
    kernel = f"func @f({PARAMETERS}) {{ gemm.n.n.atomic %a, %A, %B, {beta}, %C : {_GEMM} }}"
    text = converted(kernel)
    assert '"wide_factors"=true' in text
    assert "gemm.atomic %a, %A, %B, %" in text
    assert parser.parse(Source("v2.tl", text)) == read(kernel)


@pytest.mark.parametrize(("alpha", "wide"), [("f32", False), ("f64", True)])
def test_alpha_may_be_as_wide_as_the_output(alpha: str, wide: bool) -> None:
    kernel = f"func @f(%a: {alpha}, %A: memref<f32x4>, %B: memref<f64x4>)"
    text = converted(f"{kernel} {{ axpby.n %a, %A, 0.0, %B : {alpha}, memref<f32x4>, f32, memref<f64x4> }}")
    assert ('"wide_factors"' in text) == wide
    check_program(parser.parse(Source("v2.tl", text)))


def test_atomic_updates_of_local_memory_need_not_be_atomic_with_another_factor() -> None:
    text = f"""
        %t = alloca -> memref<f32x16x4>
        gemm.n.n.atomic %a, %A, %B, %b, %t : {_GEMM}
        gemm.n.n.atomic %a, %A, %B, 1.0, %t : {_GEMM}
    """
    assert body(text).splitlines()[1:] == [
        "gemm %a, %A, %B, %b, %t",
        "%c1_f32 = constant 1.0 : f32",
        "gemm.atomic %a, %A, %B, %c1_f32, %t",
    ]
