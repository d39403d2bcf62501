"""extract, insert and apply: the mapping from work-items and components to entries of a cooperative matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.semantics.frontends.tensor_language.matrix.cases import compiled, random, same

Array = np.ndarray[Any, np.dtype[Any]]

SIZES = {"i8": 1, "f16": 2, "f32": 4, "f64": 8}
CASES = [
    ("f32", 16, 8, "matrix_acc", 16),
    ("f32", 32, 3, "matrix_acc", 16),
    ("f32", 8, 8, "matrix_a", 16),
    ("f32", 8, 3, "matrix_a", 16),
    ("f64", 32, 4, "matrix_b", 8),
    ("i8", 32, 4, "matrix_b", 16),
    ("i8", 64, 5, "matrix_b", 16),
    ("i8", 64, 5, "matrix_a", 32),
    ("f16", 64, 2, "matrix_b", 16),
    ("f32", 1, 32, "matrix_acc", 16),
]


def entry(component: int, item: int, shape: tuple[int, int], size: int, use: str, bytes_: int) -> tuple[int, int]:
    """The inverse of L = i + k1 I + j I K1 + k2 I K1 J at `item + component * size`."""
    rows, columns = shape
    i_count = min(rows, size)
    j_count = -(-i_count * columns // size) * size // i_count
    k1_count = max(1, 2 // bytes_) if use == "matrix_b" and rows > size else 1
    number = item + component * size
    number, i = divmod(number, i_count)
    number, k1 = divmod(number, k1_count)
    k2, j = divmod(number, j_count)
    return i + (k1 + k2 * k1_count) * i_count, j


def components(shape: tuple[int, int], size: int) -> int:
    return -(-shape[0] * shape[1] // size)


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
def test_extract_and_insert(case: tuple[str, int, int, str, int]) -> None:
    type_, rows, columns, use, size = case
    shape = (rows, columns)
    count = components(shape, size)
    for component in sorted({0, 1 % count, count // 2, count - 1}):
        text = f"""
        func @both(%A: memref<{type_}x{rows}x{columns}>, %V: memref<{type_}x{size}>,
                   %R: memref<{type_}x{rows}x{columns}>)
                attributes {{subgroup_size = {size}}} {{
            parallel {{
                %c0 = constant 0 : index
                %lane32 = subgroup_local_id : i32
                %lane = cast %lane32 : index
                %a = cooperative_matrix_load %A[%c0,%c0] : coopmatrix<{type_}x{rows}x{columns},{use}>
                %v = cooperative_matrix_extract %a[{component}] : {type_}
                store %v, %V[%lane]
                %new = cast %lane32 : {type_}
                %b = cooperative_matrix_insert %new, %a[{component}] : coopmatrix<{type_}x{rows}x{columns},{use}>
                cooperative_matrix_store %b, %R[%c0,%c0]
            }}
        }}"""
        a, v, r = random(type_, shape), random(type_, (size,), 1), random(type_, shape, 2)
        compiled(text).both(a, v, r)
        expected = a.copy()
        for item in range(size):
            row, column = entry(component, item, shape, size, use, SIZES[type_])
            if column < columns:
                assert v[item] == a[row, column]
                expected[row, column] = item
        same(r, expected)


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
def test_apply(case: tuple[str, int, int, str, int]) -> None:
    """Indices, values, values captured from outside, and control flow that differs between entries."""
    type_, rows, columns, use, size = case
    shape = (rows, columns)
    text = f"""
    func @apply(%A: memref<{type_}x{rows}x{columns}>, %R: memref<{type_}x{rows}x{columns}>)
            attributes {{subgroup_size = {size}}} {{
        parallel {{
            %c0 = constant 0 : index
            %lane = subgroup_local_id : i32
            %three = constant 3 : i32
            %a = cooperative_matrix_load %A[%c0,%c0] : coopmatrix<{type_}x{rows}x{columns},{use}>
            %b = cooperative_matrix_apply (%i,%j,%v)=%a -> coopmatrix<{type_}x{rows}x{columns},{use}> {{
                %below = less_than_equal %j, %i : bool
                %w = if %below -> ({type_}) {{
                    %d = sub %i, %j : i32
                    %e = rem %d, %three : i32
                    %f = cast %e : {type_}
                    %g = add %v, %f : {type_}
                    yield (%g)
                }} else {{
                    %h = cast %lane : {type_}
                    yield (%h)
                }}
                yield (%w)
            }}
            cooperative_matrix_store %b, %R[%c0,%c0]
        }}
    }}"""
    a, r = random(type_, shape), random(type_, shape, 2)
    compiled(text).apply(a, r)
    expected = a.copy()
    for component in range(components(shape, size)):
        for item in range(size):
            row, column = entry(component, item, shape, size, use, SIZES[type_])
            if column < columns:
                expected[row, column] = a[row, column] + (row - column) % 3 if column <= row else item
    same(r, expected)


@pytest.mark.parametrize("target", ["generic", "avx2"])
def test_functions_in_apply(target: str) -> None:
    text = """
    func @exp(%A: memref<f32x16x8>, %R: memref<f32x16x8>) {
        parallel {
            %c0 = constant 0 : index
            %a = cooperative_matrix_load %A[%c0,%c0] : coopmatrix<f32x16x8,matrix_acc>
            %b = cooperative_matrix_apply (%i,%j,%v)=%a -> coopmatrix<f32x16x8,matrix_acc> {
                %e = exp %v : f32
                yield (%e)
            }
            cooperative_matrix_store %b, %R[%c0,%c0]
        }
    }"""
    a, r = random("f32", (16, 8)), random("f32", (16, 8), 1)
    compiled(text, target).exp(a, r)
    np.testing.assert_allclose(r, np.exp(a.astype(float)), rtol=1e-6)
