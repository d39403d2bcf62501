"""Views of views, groups, sizes and null pointers: what each of them addresses."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from tests.semantics.frontends.tensor_language.matrix.cases import compiled, random
from tlx.api.arguments import ArgumentError
from tlx.intrinsics.numpy_types import Array

VIEWS: Final = """
func @slices(%A: memref<f32x4x?x6x?,strided<?,?,?,?>>, %R: memref<f32x2x?>, %i: index, %n: index, %j: index) {
    %c0 = constant 0 : index %c2 = constant 2 : index
    %S = subview %A[1:2, %i:%n, 2:0, %j] : memref<f32x2x?,strided<?,?>>
    for %x=%c0,%c2 {
        foreach (%y)=(%c0),(%n) { %v = load %S[%x,%y] : f32 store %v, %R[%x,%y] }
    }
}
func @sizes(%A: memref<f32x4x?x6x?,strided<2,?,?,?>>, %R: memref<indexx8>, %i: index, %n: index) {
    %c0 = constant 0 : index %c1 = constant 1 : index %c2 = constant 2 : index %c3 = constant 3 : index
    %c4 = constant 4 : index %c5 = constant 5 : index %c6 = constant 6 : index
    %s0 = size %A[0] : index %s1 = size %A[1] : index %s2 = size %A[2] : index %s3 = size %A[3] : index
    store %s0, %R[%c0] store %s1, %R[%c1] store %s2, %R[%c2] store %s3, %R[%c3]
    %S = subview %A[0:4, %i:%n, 0:6, %i:1] : memref<f32x4x?x6x1,strided<2,?,?,?>>
    %t1 = size %S[1] : index %t3 = size %S[3] : index
    store %t1, %R[%c4] store %t3, %R[%c5]
    %F = fuse %S[2,3] : memref<f32x4x?x6,strided<2,?,?>>
    %t = size %F[2] : index
    store %t, %R[%c6]
}
func @expanded(%A: memref<f32x?x6,strided<?,?>>, %R: memref<f32x?x6>, %n: index) {
    %c0 = constant 0 : index %c6 = constant 6 : index
    %E = expand %A[0->%n x 4] : memref<f32x?x4x6,strided<?,?,?>>
    %S = subview %E[0:%n, 1, 0:6] : memref<f32x?x6,strided<?,?>>
    for %x=%c0,%n { for %y=%c0,%c6 { %v = load %S[%x,%y] : f32 store %v, %R[%x,%y] } }
}
func @expanded_last(%A: memref<f32x6x?>, %R: memref<f32x6x?>, %n: index) {
    %c0 = constant 0 : index %c6 = constant 6 : index %c2 = constant 2 : index
    %E = expand %A[1->3 x %n] : memref<f32x6x3x?,strided<1,6,18>>
    foreach (%x,%y)=(%c0,%c0),(%c6,%n) { %v = load %E[%x,%c2,%y] : f32 store %v, %R[%x,%y] }
}
func @fused(%A: memref<f32x2x3x?>, %R: memref<f32x?>) {
    %c0 = constant 0 : index %c5 = constant 5 : index
    %all = fuse %A[0,2] : memref<f32x?>
    %n = size %all[0] : index
    foreach (%i)=(%c0),(%n) { %v = load %all[%i] : f32 store %v, %R[%i] }
    %G = fuse %A[0,1] : memref<f32x6x?>
    %m = size %G[1] : index
    for %i=%c0,%m { %v = load %G[%c5,%i] : f32 %w = neg %v : f32 store %w, %R[%i] }
}
"""


def test_views_of_views() -> None:
    kernels = compiled(VIEWS)
    a = random("f32", (4, 7, 6, 5))
    every_other = np.asfortranarray(np.repeat(a, 2, axis=0))[::2]
    every_third = np.asfortranarray(np.repeat(a, 3, axis=2))[:, :, ::3]
    for strided in (a, every_other, every_third):
        r = np.zeros((2, 3), np.float32, order="F")
        kernels.slices(strided, r, 2, 3, 4)
        assert np.array_equal(r, a[1:3, 2:5, 2, 4])
    sizes = np.zeros(8, np.int64)
    kernels.sizes(every_other, sizes, 1, 3)
    assert sizes.tolist() == [4, 7, 6, 5, 3, 1, 6, 0]


def test_modes_split_and_joined() -> None:
    kernels = compiled(VIEWS)
    a = random("f32", (12, 6))
    r = np.zeros((3, 6), np.float32, order="F")
    kernels.expanded(a, r, 3)
    assert np.array_equal(r, a.reshape(3, 4, 6, order="F")[:, 1])
    kernels.expanded(np.asfortranarray(np.repeat(a, 2, axis=0))[::2], r, 3)
    assert np.array_equal(r, a.reshape(3, 4, 6, order="F")[:, 1])
    a = random("f32", (6, 12))
    r = np.zeros((6, 4), np.float32, order="F")
    kernels.expanded_last(a, r, 4)
    assert np.array_equal(r, a.reshape(6, 3, 4, order="F")[:, 2])
    a = random("f32", (2, 3, 4))
    r = np.zeros(24, np.float32)
    kernels.fused(a, r)
    assert np.array_equal(r[4:], a.reshape(-1, order="F")[4:])
    assert np.array_equal(r[:4], -a.reshape(6, 4, order="F")[5])


@pytest.mark.parametrize("type_", ["i8", "bf16", "f16", "f64", "c32", "c64"])
def test_no_modes_at_all(type_: str) -> None:
    kernels = compiled(f"""
        func @twice(%A: memref<{type_}>, %B: memref<{type_}x?x?x?x?x?>, %R: memref<{type_}>) {{
            %c0 = constant 0 : index %c1 = constant 1 : index
            %T = alloca : memref<{type_},local>
            %a = load %A[] : {type_}
            %b = load %B[%c1,%c0,%c1,%c0,%c1] : {type_}
            %s = add %a, %b : {type_}
            store %s, %T[]
            %t = load %T[] : {type_}
            store %t, %R[]
        }}""")
    a, b = random(type_, (1,))[0], random(type_, (2, 1, 2, 1, 2))
    copied, r = np.array(a), np.zeros((), b.dtype)
    kernels.twice(copied, b, r)
    assert r == (a + b[1, 0, 1, 0, 1]).astype(b.dtype)


GROUPS: Final = """
func @last_entries(%G: group<memref<f32x?x3,strided<1,?>>x?, offset: ?>, %R: memref<f32x?x3>, %rows: memref<indexx?>) {
    %n = size %G[0] : index
    %c0 = constant 0 : index %c1 = constant 1 : index %c3 = constant 3 : index
    for %g=%c0,%n {
        %M = load %G[%g] : memref<f32x?x3,strided<1,?>>
        %m = size %M[0] : index
        store %m, %rows[%g]
        %last = sub %m, %c1 : index
        for %j=%c0,%c3 { %v = load %M[%last,%j] : f32 store %v, %R[%g,%j] }
    }
    %one = constant 1.0 : f32
    foreach (%g,%j)=(%c0,%c0),(%n,%c3) {      ; a member each work-item
        %M = load %G[%g] : memref<f32x?x3,strided<1,?>>
        %m = size %M[0] : index
        %last = sub %m, %c1 : index
        %v = load %M[%last,%j] : f32
        %w = load %R[%g,%j] : f32
        %x = add %v, %w : f32
        store %x, %R[%g,%j]
    }
}
func @swap(%G: group<memref<f64x2>x2, offset: 1>) {
    %c0 = constant 0 : index %c1 = constant 1 : index
    %M = load %G[%c1] : memref<f64x2>
    %v = load %M[%c0] : f64 %w = load %M[%c1] : f64
    store %w, %M[%c0] store %v, %M[%c1]
}
func @present(%A: memref<f32x?>, %G: group<memref<f32x?>x?, offset: ?>, %R: memref<i8x16x2>) {
    %c0 = constant 0 : index %c1 = constant 1 : index %yes = constant 1 : i8 %two = constant 2 : i8
    %a = associated %A : bool
    if %a { store %two, %R[%c0,%c0] }
    %g = associated %G : bool
    if %g {
        %n = size %G[0] : index
        foreach (%i)=(%c1),(%n) {
            %M = load %G[%i] : memref<f32x?>
            %m = associated %M : bool
            if %m { store %yes, %R[%i,%c0] }
        }
        for %i=%c0,%n {
            %M = load %G[%i] : memref<f32x?>
            %m = associated %M : bool
            if %m { store %yes, %R[%i,%c1] }
        }
    }
}
"""


def members() -> list[Array]:
    return [random("f32", (rows + 2, 4), rows)[:rows, :3] for rows in (3, 5, 2)]


def test_members_of_groups() -> None:
    kernels = compiled(GROUPS)
    group = members()
    rows, r = np.zeros(3, np.int64), np.zeros((3, 3), np.float32, order="F")
    kernels.last_entries(group, r, rows, G_offset=1)
    assert rows.tolist() == [3, 5, 2]
    whole = [random("f32", (len(m) + 2, 4), len(m)) for m in group]
    assert np.array_equal(r, 2 * np.array([w[len(m), :3] for m, w in zip(group, whole, strict=True)]))
    pair = [np.arange(3.0), np.arange(5.0, 8.0)]
    kernels.swap([p[:2] for p in pair])
    assert pair[1].tolist() == [5, 7, 6]
    assert pair[0].tolist() == [0, 1, 2]


def test_null_pointers() -> None:
    kernels = compiled(GROUPS)
    a = np.zeros(9, np.float32)

    def present(one: Array | None, group: list[Array | None] | None, offset: int) -> list[list[int]]:
        r = np.zeros((16, 2), np.int8, order="F")
        kernels.present(one, group, r, G_offset=offset)
        return r[:3].tolist()

    assert present(None, [a[:3], None, a[3:6]], 2) == [[0, 1], [0, 0], [1, 1]]
    assert present(a, [None, a[:2]], 0) == [[2, 0], [1, 1], [0, 0]]
    assert present(None, None, 0) == [[0, 0], [0, 0], [0, 0]]


def test_unused_groups_must_be_passed() -> None:
    kernels = compiled("func @k(%G: group<memref<f32x4>x?>) { }")
    with pytest.raises(ArgumentError, match="does not test it with 'associated'"):
        kernels.k(None)
