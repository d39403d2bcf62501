"""Loads and stores of cooperative matrices: transposed, checked, strided, at the edge of forbidden memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.semantics.frontends.tensor_language.guarded import at_end, at_start
from tests.semantics.frontends.tensor_language.matrix.cases import DTYPES, compiled, random, same, strided

Array = np.ndarray[Any, np.dtype[Any]]

CHECKS = ("", ".rows_checked", ".cols_checked", ".both_checked")
POSITIONS = [(0, 0), (3, 2), (-2, -1), (14, 9), (-20, 3), (40, 40)]


def load_text(type_: str, shape: tuple[int, int], modifiers: str, strides: str) -> str:
    rows, columns = shape
    return f"""
    func @load(%A: memref<{type_}x?x?,strided<{strides}>>, %x: index, %y: index,
               %R: memref<{type_}x{rows}x{columns}>) {{
        parallel {{
            %c0 = constant 0 : index
            %m = cooperative_matrix_load{modifiers} %A[%x,%y] : coopmatrix<{type_}x{rows}x{columns},matrix_acc>
            cooperative_matrix_store %m, %R[%c0,%c0]
        }}
    }}"""


def store_text(type_: str, shape: tuple[int, int], modifiers: str, strides: str) -> str:
    rows, columns = shape
    return f"""
    func @store(%M: memref<{type_}x{rows}x{columns}>,
                %A: memref<{type_}x?x?,strided<{strides}>>, %x: index, %y: index) {{
        parallel {{
            %c0 = constant 0 : index
            %m = cooperative_matrix_load %M[%c0,%c0] : coopmatrix<{type_}x{rows}x{columns},matrix_acc>
            cooperative_matrix_store{modifiers} %m, %A[%x,%y]
        }}
    }}"""


def places(shape: tuple[int, int], modifiers: str, position: tuple[int, int]) -> Array:
    """Row and column in the memref of each entry, [rows, columns, 2]."""
    i, j = np.indices(shape)
    x, y = position
    return np.stack([x + j, y + i] if ".t" in modifiers else [x + i, y + j], axis=-1)


def inside(where: Array, modifiers: str, extents: tuple[int, ...]) -> Array:
    """Which entries are read or written."""
    first = (where[..., 0] >= 0) & (where[..., 0] < extents[0])
    second = (where[..., 1] >= 0) & (where[..., 1] < extents[1])
    along_rows, along_columns = (second, first) if ".t" in modifiers else (first, second)
    mask = np.ones(where.shape[:2], bool)
    if "rows" in modifiers or "both" in modifiers:
        mask &= along_rows
    if "cols" in modifiers or "both" in modifiers:
        mask &= along_columns
    return mask


def loaded(a: Array, shape: tuple[int, int], modifiers: str, position: tuple[int, int]) -> Array:
    where = places(shape, modifiers, position)
    mask = inside(where, modifiers, a.shape)
    result = np.zeros(shape, a.dtype)
    result[mask] = a[where[mask][:, 0], where[mask][:, 1]]
    return result


def fits(a: Array, shape: tuple[int, int], modifiers: str, position: tuple[int, int]) -> bool:
    """Whether the unchecked directions stay inside."""
    where = places(shape, modifiers, position)
    mask = inside(where, modifiers, a.shape)
    every = inside(where, modifiers.split(".")[1] + "both" if ".t" in modifiers else "both", a.shape)
    return bool((every == mask).all())


@pytest.mark.parametrize("transpose", ["", ".n", ".t"])
@pytest.mark.parametrize("check", CHECKS)
def test_load(transpose: str, check: str) -> None:
    modifiers = transpose + check
    tried = 0
    for shape in ((16, 8), (8, 1), (32, 7)):
        kernel = compiled(load_text("f32", shape, modifiers, "1,?"))
        a = random("f32", (45, 41))
        for position in POSITIONS:
            if not fits(a, shape, modifiers, position):
                continue
            tried += 1
            result = random("f32", shape, seed=9)
            kernel.load(a, *position, result)
            same(result, loaded(a, shape, modifiers, position))
    assert tried > (12 if check == ".both_checked" else 5)


@pytest.mark.parametrize("transpose", ["", ".t"])
@pytest.mark.parametrize("check", CHECKS)
def test_store(transpose: str, check: str) -> None:
    modifiers = transpose + check
    for shape in ((16, 8), (8, 1), (32, 7)):
        kernel = compiled(store_text("f32", shape, modifiers, "1,?"))
        m = random("f32", shape)
        for position in POSITIONS:
            around = random("f32", (49, 45), seed=3)
            a = around[2:47, 2:43]
            if not fits(a, shape, modifiers, position):
                continue
            expected = around.copy()
            where = places(shape, modifiers, position)
            mask = inside(where, modifiers, (45, 41))
            expected[where[mask][:, 0] + 2, where[mask][:, 1] + 2] = m[mask]
            kernel.store(m, a, *position)
            same(around, expected)


@pytest.mark.parametrize("type_", [t for t in DTYPES if t != "index"])
@pytest.mark.parametrize("modifiers", ["", ".t.both_checked"])
def test_types(type_: str, modifiers: str) -> None:
    shape = (16, 8)
    a, result = random(type_, (40, 30)), random(type_, shape, seed=1)
    compiled(load_text(type_, shape, modifiers, "1,?")).load(a, 5, 20, result)
    same(result, loaded(a, shape, modifiers, (5, 20)))
    target = random(type_, (40, 30), seed=2)
    expected = target.copy()
    where = places(shape, modifiers, (5, 20))
    mask = inside(where, modifiers, (40, 30))
    expected[where[mask][:, 0], where[mask][:, 1]] = a[:16, :8][mask]
    compiled(store_text(type_, shape, modifiers, "1,?")).store(np.asfortranarray(a[:16, :8]), target, 5, 20)
    same(target, expected)


@pytest.mark.parametrize("modifiers", ["", ".t", ".rows_checked", ".t.both_checked"])
@pytest.mark.parametrize("type_", ["f32", "bf16", "c32"])
def test_first_stride(modifiers: str, type_: str) -> None:
    shape = (16, 8)
    a = strided(random(type_, (40, 30)), 3)
    result = random(type_, shape, seed=1)
    compiled(load_text(type_, shape, modifiers, "?,?")).load(a, 4, 6, result)
    same(result, loaded(a, shape, modifiers, (4, 6)))
    target = strided(random(type_, (40, 30), seed=5), 3)
    whole = target.base
    assert whole is not None
    expected = np.array(whole)
    where = places(shape, modifiers, (4, 6))
    expected[3 * where[..., 0], where[..., 1]] = result
    compiled(store_text(type_, shape, modifiers, "?,?")).store(result, target, 4, 6)
    same(np.array(whole), expected)


@pytest.mark.parametrize("transpose", ["", ".t"])
@pytest.mark.parametrize("place", [at_end, at_start])
@pytest.mark.parametrize("type_", ["i8", "bf16", "f32", "f64"])
def test_checked_access_never_leaves_the_memref(transpose: str, place: Any, type_: str) -> None:
    modifiers, shape = f"{transpose}.both_checked", (16, 8)
    load, store = (compiled(text(type_, shape, modifiers, "1,?")) for text in (load_text, store_text))
    a = place(random(type_, (21, 13)))
    for position in [(10, 9), (20, 12), (-15, -7), (-3, 11), (18, -5)]:
        result = random(type_, shape, seed=1)
        load.load(a, *position, result)
        same(result, loaded(a, shape, modifiers, position))
        expected = a.copy()
        where = places(shape, modifiers, position)
        mask = inside(where, modifiers, (21, 13))
        expected[where[mask][:, 0], where[mask][:, 1]] = result[mask]
        store.store(result, a, *position)
        same(a, expected)


@pytest.mark.parametrize("target", ["generic", "avx2"])
def test_targets(target: str) -> None:
    for modifiers in ("", ".t", ".both_checked"):
        a, result = random("f32", (40, 34)), random("f32", (32, 8), seed=1)
        compiled(load_text("f32", (32, 8), modifiers, "1,?"), target).load(a, 1, 2, result)
        if modifiers != ".t":
            same(result, loaded(a, (32, 8), modifiers, (1, 2)))


@pytest.mark.parametrize("op", ["add", "max", "min"])
@pytest.mark.parametrize("type_", ["i8", "i32", "i64", "bf16", "f16", "f32", "f64"])
def test_atomic_update(op: str, type_: str) -> None:
    rows, columns = 8, 4
    text = f"""
    func @update(%M: memref<{type_}x{rows}x{columns}>, %A: memref<{type_}x?x?>, %x: index, %y: index,
                 %R: memref<{type_}x{rows}x{columns}>) {{
        parallel {{
            %c0 = constant 0 : index
            %m = cooperative_matrix_load %M[%c0,%c0] : coopmatrix<{type_}x{rows}x{columns},matrix_acc>
            %o = cooperative_matrix_atomic_{op}.both_checked.device.acquire_release %m, %A[%x,%y]
                : coopmatrix<{type_}x{rows}x{columns},matrix_acc>
            cooperative_matrix_store %o, %R[%c0,%c0]
        }}
    }}"""
    function: Any = {"add": np.add, "max": np.maximum, "min": np.minimum}[op]
    m, a = random(type_, (rows, columns)), random(type_, (20, 10), seed=1)
    result = random(type_, (rows, columns), seed=2)
    expected, old = a.copy(), loaded(a, (rows, columns), ".both_checked", (15, 8))
    expected[15:20, 8:10] = function(a[15:20, 8:10], m[:5, :2])
    compiled(text).update(m, a, 15, 8, result)
    same(a, expected)
    same(result, old)


def test_atomic_load_and_store() -> None:
    text = """
    func @copy(%A: memref<f64x8x?>, %B: memref<f64x8x?>) {
        parallel {
            %c0 = constant 0 : index
            %c2 = constant 2 : index
            %m = cooperative_matrix_atomic_load.t.cols_checked.device.acquire %A[%c2,%c0]
                : coopmatrix<f64x4x8,matrix_acc>
            cooperative_matrix_atomic_store.t.both_checked %m, %B[%c0,%c2]
        }
    }"""
    a, b = random("f64", (8, 5)), random("f64", (8, 5), seed=1)
    expected = b.copy()
    matrix = loaded(a, (4, 8), ".t.cols_checked", (2, 0))
    expected[:, 2:5] = matrix.T[:, :3]
    compiled(text).copy(a, b)
    same(b, expected)


def test_prefetch_changes_nothing() -> None:
    text = """
    func @prefetch(%A: memref<f32x?x?>, %x: index) {
        parallel {
            cooperative_matrix_prefetch 0, %A[%x,%x], 64, 16
            cooperative_matrix_prefetch 7, %A[%x,%x], 64, 16
        }
    }"""
    a = random("f32", (80, 20))
    before = a.copy()
    compiled(text).prefetch(a, 1)
    same(a, before)


@pytest.mark.parametrize("turn", ["", ".t"])
@pytest.mark.parametrize("type_", ["f32", "bf16", "i8", "c32"])
def test_overlapping_lines_are_stored_in_order(turn: str, type_: str) -> None:
    """Lines are longer than the stride: each overwrites the end of the one before."""
    rows, columns = (3, 8) if turn else (8, 3)
    text = f"""
func @run(%X: memref<{type_}x8x3>, %R: memref<{type_}x5x6>) {{
  parallel {{
    %0 = constant 0 : index
    %m = cooperative_matrix_load{turn} %X[%0,%0] : coopmatrix<{type_}x{rows}x{columns},matrix_acc>
    cooperative_matrix_store{turn} %m, %R[%0,%0]
  }}
}}"""
    x, r = random(type_, (8, 3)), random(type_, (5, 6), 1)
    expected = r.copy(order="F")
    flat = expected.reshape(-1, order="F")
    for line in range(3):
        flat[5 * line : 5 * line + 8] = x[:, line]
    compiled(text).run(x, r)
    same(r, flat.reshape(5, 6, order="F"))
