"""sqrt, tanh and pow of scalars, of vectors with a lane each work-item, and of cooperative matrices, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

from tests.semantics.frontends.tensor_language.matrix.cases import DTYPES
from tests.semantics.frontends.tensor_language.scalar_cases import limits
from tlx.frontends import tensor_language as tl

Array = np.ndarray[Any, np.dtype[Any]]
EXACT: Final[dict[str, Callable[..., Any]]] = {"sqrt": np.sqrt, "tanh": np.tanh, "pow": np.power}
SIZE: Final = 256
SPECIAL: Final = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, -3.0, np.inf, -np.inf, np.nan)
COUNT: Final = {"sqrt": 1, "tanh": 1, "pow": 2}

# How each use reads %x and %y, applies the operation and writes %z.
COLLECTIVE: Final = """
    for %i=%c0,%n {{
        %a = load %x[%i] : {type}
        %b = load %y[%i] : {type}
        %r = {op} {operands} : {type}
        store %r, %z[%i]
    }}"""
VARYING: Final = """
    foreach (%i)=(%c0),(%n) {{
        %a = load %x[%i] : {type}
        %b = load %y[%i] : {type}
        %r = {op} {operands} : {type}
        store %r, %z[%i]
    }}"""
MATRIX: Final = """
    %A = expand %x[0->16 x 16] : memref<{type}x16x16>
    %B = expand %y[0->16 x 16] : memref<{type}x16x16>
    %C = expand %z[0->16 x 16] : memref<{type}x16x16>
    parallel {{
        %a = cooperative_matrix_load %A[%c0,%c0] : coopmatrix<{type}x16x16,matrix_acc>
        %b = cooperative_matrix_load %B[%c0,%c0] : coopmatrix<{type}x16x16,matrix_acc>
        %r = {op} {operands} : coopmatrix<{type}x16x16,matrix_acc>
        cooperative_matrix_store %r, %C[%c0,%c0]
    }}"""
USES: Final = {"collective": COLLECTIVE, "varying": VARYING, "matrix": MATRIX}
TARGETS: Final = ("native", "generic")


def computed(op: str, type_: str, use: str, x: Array, y: Array, target: str) -> Array:
    memory = f"memref<{type_}x{SIZE}>"
    body = USES[use].format(op=op, type=type_, operands=", ".join(("%a", "%b")[: COUNT[op]]))
    head = f"func @f(%x: {memory}, %y: {memory}, %z: {memory})"
    text = f"{head} {{\n%c0 = constant 0 : index\n%n = constant {SIZE} : index{body}\n}}"
    assert tl.parse(tl.text(tl.parse(text))) == tl.parse(text)
    z = np.zeros_like(x)
    tl.compile(text, target).f(x, y, z)
    return z


def inputs(op: str, type_: str) -> tuple[Array, Array]:
    """The special numbers with each other, and random ones."""
    rng = np.random.default_rng(7)
    pairs = [(a, b) for a in SPECIAL for b in SPECIAL]
    left = SIZE - len(pairs)
    scale = 6.0 if op == "tanh" else 2.0
    x = np.concatenate([[a for a, _ in pairs], np.exp(rng.normal(size=left) * scale) * rng.choice([1, 1, -1], left)])
    y = np.concatenate([[b for _, b in pairs], rng.normal(size=left) * 2])
    most = float(limits(type_).max)
    x = np.where(np.isfinite(x), np.clip(x, -most, most), x)
    return x.astype(DTYPES[type_]), y.astype(DTYPES[type_])


def ulps(found: Array, expected: Any, type_: str) -> Array:
    """How many units of the last place the numbers are off."""
    info = limits(type_)
    exponent = np.maximum(np.frexp(expected)[1] - 1, int(info.minexp))
    return np.abs(found.astype(np.longdouble) - expected) / np.ldexp(np.longdouble(1), exponent - int(info.nmant))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("type_", ["bf16", "f16", "f32", "f64"])
@pytest.mark.parametrize("op", EXACT)
def test_results_are_close_to_the_exact_ones(op: str, type_: str, use: str, target: str) -> None:
    x, y = inputs(op, type_)
    z = computed(op, type_, use, x, y, target)
    with np.errstate(all="ignore"):
        exact = EXACT[op](*(v.astype(np.longdouble) for v in (x, y)[: COUNT[op]]))
        rounded = exact.astype(np.float64).astype(DTYPES[type_]).astype(np.float64)
    wide = z.astype(np.float64)
    finite = np.isfinite(rounded) & (rounded != 0)
    np.testing.assert_array_equal(wide[~finite], rounded[~finite])
    np.testing.assert_array_equal(
        np.signbit(wide[~finite & ~np.isnan(rounded)]), np.signbit(rounded[~finite & ~np.isnan(rounded)])
    )
    most = 0.5 if op == "sqrt" else 4.0 if type_ in ("f32", "f64") else 0.501
    assert np.max(ulps(z[finite], exact[finite], type_)) <= most


def test_version_1_has_none_of_them() -> None:
    with pytest.raises(tl.ProgramError, match="'sqrt' is not an instruction of version 1: version 2 has it"):
        tl.parse("func @f(%x: f32) { %y = sqrt %x : f32 }", std="v1")
