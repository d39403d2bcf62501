"""Products, arithmetic, casts, reductions and constants of cooperative matrices, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.semantics.frontends.tensor_language.matrix.cases import DTYPES, REAL, compiled, random, same

Array = np.ndarray[Any, np.dtype[Any]]

WIDE: dict[str, Any] = {"bf16": np.float64, "f16": np.float64, "f32": np.float64, "f64": np.float64}


def wide(values: Array, type_: str) -> Array:
    return values.astype(WIDE.get(type_, values.dtype))


def product_kernel(a: str, b: str, c: str, d: str, sizes: tuple[int, int, int], size: int) -> str:
    m, n, k = sizes
    return f"""
    func @product(%A: memref<{a}x{m}x{k}>, %B: memref<{b}x{k}x{n}>, %C: memref<{c}x{m}x{n}>, %D: memref<{d}x{m}x{n}>)
            attributes {{subgroup_size = {size}}} {{
        parallel {{
            %c0 = constant 0 : index
            %a = cooperative_matrix_load %A[%c0,%c0] : coopmatrix<{a}x{m}x{k},matrix_a>
            %b = cooperative_matrix_load %B[%c0,%c0] : coopmatrix<{b}x{k}x{n},matrix_b>
            %c = cooperative_matrix_load %C[%c0,%c0] : coopmatrix<{c}x{m}x{n},matrix_acc>
            %d = cooperative_matrix_mul_add %a, %b, %c : coopmatrix<{d}x{m}x{n},matrix_acc>
            cooperative_matrix_store %d, %D[%c0,%c0]
        }}
    }}"""


@pytest.mark.parametrize("sizes", [(16, 16, 16), (8, 1, 7), (32, 8, 16), (48, 32, 8), (16, 7, 32)], ids=str)
@pytest.mark.parametrize(
    "types",
    [
        ("f32", "f32", "f32", "f32"),
        ("f64", "f64", "f64", "f64"),
        ("f16", "f16", "f16", "f16"),
        ("bf16", "bf16", "f32", "f32"),
        ("bf16", "bf16", "bf16", "bf16"),
        ("f16", "f16", "f32", "f16"),
        ("i8", "i8", "i32", "i32"),
        ("i8", "i8", "i8", "i8"),
        ("i8", "i16", "i64", "i32"),
        ("i8", "f32", "f32", "f64"),
        ("f32", "f16", "f64", "f32"),
        ("c32", "c32", "c32", "c32"),
        ("f32", "c32", "c64", "c64"),
    ],
    ids="-".join,
)
def test_mul_add(types: tuple[str, str, str, str], sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    size = 16 if m % 16 == 0 else 8
    a, b, c = random(types[0], (m, k)), random(types[1], (k, n), 1), random(types[2], (m, n), 2)
    d = random(types[3], (m, n), 3)
    compiled(product_kernel(*types, sizes, size)).product(a, b, c, d)
    exact = wide(c, types[2])
    exact = exact + wide(a, types[0]).astype(exact.dtype) @ wide(b, types[1]).astype(exact.dtype)
    same(d, exact.astype(DTYPES[types[2]]).astype(DTYPES[types[3]]))


@pytest.mark.parametrize("target", ["generic", "avx2"])
@pytest.mark.parametrize(
    "types", [("f32",) * 4, ("bf16", "bf16", "f32", "f32"), ("i8", "i8", "i32", "i32")], ids="-".join
)
def test_mul_add_on_targets(types: tuple[str, str, str, str], target: str) -> None:
    a, b, c = random(types[0], (16, 32)), random(types[1], (32, 16), 1), random(types[2], (16, 16), 2)
    d = random(types[3], (16, 16), 3)
    compiled(product_kernel(*types, (16, 16, 32), 16), target).product(a, b, c, d)
    same(d, wide(c, types[2]) + wide(a, types[0]).astype(wide(c, types[2]).dtype) @ wide(b, types[1]).astype(float))


@pytest.mark.parametrize("type_", REAL)
def test_arithmetic(type_: str) -> None:
    ops = ("add", "sub", "mul", "div", "rem", "max", "min")
    parameters = ", ".join(f"%{op}: memref<{type_}x16x8>" for op in ops)
    body = "".join(
        f"""
            %c_{op} = {op} %a, %b : coopmatrix<{type_}x16x8,matrix_acc>
            cooperative_matrix_store %c_{op}, %{op}[%c0,%c0]"""
        for op in ops
    )
    text = f"""
    func @ops(%A: memref<{type_}x16x8>, %B: memref<{type_}x16x8>, {parameters}) {{
        parallel {{
            %c0 = constant 0 : index
            %a = cooperative_matrix_load %A[%c0,%c0] : coopmatrix<{type_}x16x8,matrix_acc>
            %b = cooperative_matrix_load %B[%c0,%c0] : coopmatrix<{type_}x16x8,matrix_acc>{body}
        }}
    }}"""
    a, b = random(type_, (16, 8)), random(type_, (16, 8), 1)
    b[b == 0] = 3
    results = [random(type_, (16, 8), 2) for _ in ops]
    compiled(text).ops(a, b, *results)
    x, y = wide(a, type_), wide(b, type_)
    quotient: Array = np.trunc(x / y) if type_.startswith("i") else x / y
    expected = (x + y, x - y, x * y, quotient, np.fmod(x, y), np.maximum(x, y), np.minimum(x, y))
    for result, values in zip(results, expected, strict=True):
        same(result, values.astype(DTYPES[type_]))


@pytest.mark.parametrize("type_", ["i8", "i16", "i32", "i64", "bf16", "f16", "f32", "f64", "c32", "c64"])
def test_unary_scale_construct_constant(type_: str) -> None:
    constant = "3" if type_.startswith("i") else "[1.5,0.5]" if type_.startswith("c") else "1.5"
    text = f"""
    func @ops(%s: {type_}, %A: memref<{type_}x8x8>, %N: memref<{type_}x8x8>, %S: memref<{type_}x8x8>,
              %K: memref<{type_}x8x8>) attributes {{subgroup_size = 8}} {{
        parallel {{
            %c0 = constant 0 : index
            %a = cooperative_matrix_load %A[%c0,%c0] : coopmatrix<{type_}x8x8,matrix_acc>
            %n = neg %a : coopmatrix<{type_}x8x8,matrix_acc>
            %t = cooperative_matrix_scale %s, %a : coopmatrix<{type_}x8x8,matrix_acc>
            %one = constant {constant} : coopmatrix<{type_}x8x8,matrix_acc>
            %two = cooperative_matrix_construct %s : coopmatrix<{type_}x8x8,matrix_acc>
            %k = add %one, %two : coopmatrix<{type_}x8x8,matrix_acc>
            cooperative_matrix_store %n, %N[%c0,%c0]
            cooperative_matrix_store %t, %S[%c0,%c0]
            cooperative_matrix_store %k, %K[%c0,%c0]
        }}
    }}"""
    a = random(type_, (8, 8))
    results = [random(type_, (8, 8), seed) for seed in (1, 2, 3)]
    scalar = complex(0.5, -2) if type_.startswith("c") else -2
    compiled(text).ops(scalar, a, *results)
    number: Any = complex(1.5, 0.5) if type_.startswith("c") else 3 if type_.startswith("i") else 1.5
    same(results[0], -a)
    same(results[1], (wide(a, type_) * scalar).astype(DTYPES[type_]))
    same(results[2], np.full((8, 8), number + scalar).astype(DTYPES[type_]))


@pytest.mark.parametrize("source", [t for t in DTYPES if t != "index"])
def test_cast(source: str) -> None:
    """To every type that a type may be cast to: complex numbers stay complex."""
    targets = [t for t in DTYPES if t != "index" and (t.startswith("c") or not source.startswith("c"))]
    parameters = ", ".join(f"%R{k}: memref<{t}x16x4>" for k, t in enumerate(targets))
    casts = "".join(
        f"""
            %b{k} = cast %a : coopmatrix<{t}x16x4,matrix_b>
            cooperative_matrix_store %b{k}, %R{k}[%c0,%c0]"""
        for k, t in enumerate(targets)
    )
    text = f"""
    func @cast(%A: memref<{source}x16x4>, {parameters}) {{
        parallel {{
            %c0 = constant 0 : index
            %a = cooperative_matrix_load %A[%c0,%c0] : coopmatrix<{source}x16x4,matrix_acc>{casts}
        }}
    }}"""
    a, results = random(source, (16, 4)), [random(t, (16, 4), 1) for t in targets]
    compiled(text).cast(a, *results)
    for target, result in zip(targets, results, strict=True):
        whole = np.trunc(wide(a, source)) if target.startswith("i") else wide(a, source)
        same(result, whole.astype(DTYPES[target]))


@pytest.mark.parametrize("type_", ["i8", "i32", "i64", "bf16", "f16", "f32", "f64"])
@pytest.mark.parametrize("op", ["add", "max", "min"])
@pytest.mark.parametrize("shape", [(16, 8), (32, 1), (16, 33)], ids=str)
def test_reduce(type_: str, op: str, shape: tuple[int, int]) -> None:
    m, n = shape
    text = f"""
    func @reduce(%A: memref<{type_}x{m}x{n}>, %R: memref<{type_}x{m}x1>, %C: memref<{type_}x1x{n}>) {{
        parallel {{
            %c0 = constant 0 : index
            %a = cooperative_matrix_load %A[%c0,%c0] : coopmatrix<{type_}x{m}x{n},matrix_acc>
            %r = cooperative_matrix_reduce_{op}.row %a : coopmatrix<{type_}x{m}x1,matrix_acc>
            %c = cooperative_matrix_reduce_{op}.column %a : coopmatrix<{type_}x1x{n},matrix_acc>
            cooperative_matrix_store %r, %R[%c0,%c0]
            cooperative_matrix_store %c, %C[%c0,%c0]
        }}
    }}"""
    a, r, c = random(type_, (m, n)), random(type_, (m, 1), 1), random(type_, (1, n), 2)
    compiled(text).reduce(a, r, c)
    function: Any = {"add": np.add, "max": np.maximum, "min": np.minimum}[op]
    values = wide(a, type_)
    same(r, function.reduce(values, axis=1, keepdims=True, dtype=values.dtype).astype(DTYPES[type_]))
    same(c, function.reduce(values, axis=0, keepdims=True, dtype=values.dtype).astype(DTYPES[type_]))


def test_maximum_ignores_nan() -> None:
    text = """
    func @maximum(%A: memref<f32x16x4>, %R: memref<f32x16x1>) {
        parallel {
            %c0 = constant 0 : index
            %a = cooperative_matrix_load %A[%c0,%c0] : coopmatrix<f32x16x4,matrix_acc>
            %r = cooperative_matrix_reduce_max.row %a : coopmatrix<f32x16x1,matrix_acc>
            cooperative_matrix_store %r, %R[%c0,%c0]
        }
    }"""
    a, r = random("f32", (16, 4)), random("f32", (16, 1))
    a[3, 1] = np.nan
    a[5, :] = np.nan
    compiled(text).maximum(a, r)
    expected = np.array([np.fmax.reduce(row) for row in a])
    same(r[:, 0], expected)


def test_matrices_go_through_loops_and_branches() -> None:
    text = """
    func @power(%n: index, %A: memref<f64x16x16>, %R: memref<f64x16x16>) {
        %c0 = constant 0 : index
        %limit = constant 3 : index
        %many = greater_than %n, %limit : bool
        parallel {
            %a = cooperative_matrix_load %A[%c0,%c0] : coopmatrix<f64x16x16,matrix_a>
            %start = cooperative_matrix_load %A[%c0,%c0] : coopmatrix<f64x16x16,matrix_b>
            %none = constant 0.0 : coopmatrix<f64x16x16,matrix_acc>
            %p = for %i=%c0,%n init(%b=%start) -> (coopmatrix<f64x16x16,matrix_b>) {
                %c = cooperative_matrix_mul_add %a, %b, %none : coopmatrix<f64x16x16,matrix_acc>
                %d = cast %c : coopmatrix<f64x16x16,matrix_b>
                yield (%d)
            }
            %r = if %many -> (coopmatrix<f64x16x16,matrix_b>) {
                %s = neg %p : coopmatrix<f64x16x16,matrix_b>
                yield (%s)
            } else {
                yield (%p)
            }
            cooperative_matrix_store %r, %R[%c0,%c0]
        }
    }"""
    a, r = random("f64", (16, 16)), random("f64", (16, 16), 1)
    for n in (0, 1, 3, 5):
        compiled(text).power(n, a, r)
        expected = np.linalg.matrix_power(a, n + 1) * (-1 if n > 3 else 1)
        np.testing.assert_allclose(r, expected, rtol=1e-12)
