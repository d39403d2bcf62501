"""Loops, branches, scopes, local memory and ids in collective regions, and integers that wrap around."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from tests.semantics.frontends.tensor_language.matrix.cases import DTYPES, compiled
from tlx.intrinsics.numpy_types import Array

INTEGERS: Final = ("i8", "i16", "i32", "i64", "index")


@pytest.mark.parametrize("type_", INTEGERS)
def test_ranges_up_to_the_ends_of_their_type(type_: str) -> None:
    kernels = compiled(f"""
        func @count(%from: {type_}, %to: {type_}, %step: {type_}, %last: memref<{type_}>, %R: memref<i32>) {{
            %zero = constant 0 : i32 %one = constant 1 : i32
            %n, %l = for %i=%from,%to,%step init(%m=%zero,%k=%from) -> (i32,{type_}) {{
                %next = add %m, %one : i32
                yield (%next, %i)
            }}
            store %n, %R[]
            store %l, %last[]
        }}
        func @by_one(%from: {type_}, %to: {type_}, %R: memref<i32>) {{
            %zero = constant 0 : i32 %one = constant 1 : i32
            %n = for %i=%from,%to init(%m=%zero) -> (i32) {{ %next = add %m, %one : i32 yield (%next) }}
            store %n, %R[]
        }}""")
    low, high = int(np.iinfo(DTYPES[type_]).min), int(np.iinfo(DTYPES[type_]).max)
    cases = [
        (high - 27, high, 13),
        (high - 1, high, high),
        (low, high, high),
        (-5, 5, 3),
        (5, -5, 1),
        (3, 3, 7),
        (low, low + 9, 4),
    ]
    for start, stop, step in cases:
        rounds = range(start, stop, step)
        last, r = np.zeros((), DTYPES[type_]), np.zeros((), np.int32)
        kernels.count(start, stop, step, last, r)
        assert (r, last) == (len(rounds), rounds[-1] if rounds else start)
    for start, stop in [(high - 3, high), (low, low + 5), (4, 4), (1, -1), (-100, 27)]:
        r = np.zeros((), np.int32)
        kernels.by_one(start, stop, r)
        assert r == len(range(start, stop))


def test_many_loop_carried_values_are_swapped() -> None:
    kernels = compiled("""
        func @rotate(%rounds: i32, %R: memref<f64x4>, %p: bool) {
            %zero = constant 0 : i32
            %a = constant 1 : i8 %b = constant 2.0 : f32 %c = constant [3.0,4.0] : c64
            %x, %y, %z, %q = for %i=%zero,%rounds init(%x=%a,%y=%b,%z=%c,%q=%p) -> (i8,f32,c64,bool) {
                %re = re %z : f64
                %im = im %z : f64
                %x8 = cast %re : i8
                %y32 = cast %x : f32
                %s = cast %y : c64
                %unit = constant [0.0,1.0] : c64
                %t = cast %im : c64
                %u = mul %t, %unit : c64
                %v = add %s, %u : c64
                %n = not %q : bool
                yield (%x8, %y32, %v, %n)
            }
            %c0 = constant 0 : index %c1 = constant 1 : index %c2 = constant 2 : index %c3 = constant 3 : index
            %xf = cast %x : f64
            %yf = cast %y : f64
            %zf, %g = if %q -> (f64, f64) {
                %r = re %z : f64
                %w = im %z : f64
                yield (%r, %w)
            } else {
                %r = im %z : f64       ; another %r: regions side by side may use one name
                yield (%r, %xf)
            }
            store %xf, %R[%c0] store %yf, %R[%c1] store %zf, %R[%c2] store %g, %R[%c3]
        }""")
    for rounds in (0, 1, 2, 3):
        x, y, re, q = 1.0, 2.0, 3.0, False
        for _ in range(rounds):
            x, y, re, q = re, x, y, not q
        r = np.zeros(4)
        kernels.rotate(rounds, r, False)
        assert r.tolist() == ([x, y, re, 4.0] if q else [x, y, 4.0, x])


def test_local_memory_lives_as_long_as_its_region() -> None:
    kernels = compiled("""
        func @many(%R: memref<f32x1>, %n: index) {
            %c0 = constant 0 : index %c2 = constant 2 : index %c1023 = constant 1023 : index
            %yes = constant true : bool
            for %i=%c0,%n {
                %large = alloca : memref<f32x1024x1024,local>      ; all rounds together would be 8 GB
                %small = alloca {alignment=64} : memref<f64x3x3,local>
                %f = cast %i : f32
                store %f, %large[%c1023,%c1023]
                %d = cast %i : f64
                store %d, %small[%c2,%c2]
                if %yes {
                    %inner = alloca : memref<f32x1024x256,local>
                    store %f, %inner[%c0,%c2]
                    %v = load %inner[%c0,%c2] : f32
                    store %v, %R[%c0]
                }
                %v = load %large[%c1023,%c1023] : f32
                %w = load %small[%c2,%c2] : f64
                %x = cast %w : f32
                %y = add %v, %x : f32
                %z = load %R[%c0] : f32
                %s = add %y, %z : f32
                store %s, %R[%c0]
                lifetime_stop %large
            } attributes {unroll=4}
            for %i=%c0,%n { } attributes {unroll=true}
            for %i=%c0,%n { } attributes {unroll=false, "mine"=[1, {alignment=2}, "x"]}
        }""")
    r = np.zeros(1, np.float32)
    kernels.many(r, 2000)
    assert r[0] == 3 * 1999


def test_ids_of_work_groups_in_three_dimensions() -> None:
    kernels = compiled("""
        func @ids(%R: memref<indexx6x?x?x?>) attributes {work_group_size=[64,2], subgroup_size=32} {
            %x = group_id.x : index %y = group_id.y : index %z = group_id.z : index
            %nx = num_groups.x : index %ny = num_groups.y : index %nz = num_groups.z : index
            %0 = constant 0 : index %1 = constant 1 : index %2 = constant 2 : index
            %5 = constant 5 : index %4 = constant 4 : index %3 = constant 3 : index
            store %x, %R[%0,%x,%y,%z] store %y, %R[%1,%x,%y,%z] store %z, %R[%2,%x,%y,%z]
            %mx = mul %nx, %ny : index
            %m = mul %mx, %nz : index
            store %m, %R[%3,%x,%y,%z]
            %sx = num_subgroups.x : i32 %sy = num_subgroups.y : i32 %sz = num_subgroups.z : i32 %s = subgroup_size : i32
            %xy = shl %sx, %sy : i32
            %xyz = shl %xy, %sz : i32
            %t = cast %xyz : index
            store %t, %R[%4,%x,%y,%z]
            %u = cast %s : index
            store %u, %R[%5,%x,%y,%z]
        }""")
    r = np.zeros((6, 2, 3, 4), np.int64, order="F")
    kernels.ids(r, groups=(2, 3, 4))
    assert np.array_equal(r[:3], np.indices((2, 3, 4)))
    assert [set(entry.ravel().tolist()) for entry in r[3:]] == [{24}, {2 << 2 << 1}, {32}]


@pytest.mark.parametrize(("rows", "columns", "size"), [(8, 1, 8), (24, 2, 8), (3, 2, 1), (48, 1, 16), (20, 1, 4)])
def test_subgroup_size_that_divides_the_work_group(rows: int, columns: int, size: int) -> None:
    kernels = compiled(f"""
        func @items(%R: memref<i32x?>, %S: memref<i32>) attributes {{work_group_size=[{rows},{columns}]}} {{
            %s = subgroup_size : i32
            store %s, %S[]
            parallel {{
                %local = subgroup_local_id : i32
                %id = subgroup_linear_id : i32
                %first = mul %id, %s : i32
                %item = add %first, %local : i32
                %i = cast %item : index
                store %item, %R[%i]
            }}
        }}""")
    r, s = np.zeros(rows * columns, np.int32), np.zeros((), np.int32)
    kernels.items(r, s)
    assert r.tolist() == list(range(rows * columns))
    assert s == size


WRAPPED: Final = """
func @foreach(%A: memref<i64x512>, %R: memref<i64x100>) {
    %c0 = constant 0 : i8 %c100 = constant 100 : i8 %c200 = constant 200 : index
    foreach (%i)=(%c0),(%c100) {
        %sum = add %i, %c100 : i8          ; wraps around from 28 on
        %place = cast %sum : index
        %p = add %place, %c200 : index
        %v = load %A[%p] : i64
        %k = cast %i : index
        store %v, %R[%k]
    }
}
func @for(%A: memref<i64x512>, %R: memref<i64x16x16>) {
    parallel {
        %c0 = constant 0 : index %c1 = constant 1 : index %c2 = constant 2 : i8
        %c120 = constant 120 : i8 %c127 = constant 127 : i8
        %local = subgroup_local_id : i32
        %column = cast %local : index
        %narrow = cast %local : i8
        %start = sub %c120, %narrow : i8   ; work-item 0 is over the end while others still run
        %rounds = for %i=%start,%c127,%c2 init(%k=%c0) -> (index) {
            %p = cast %i : index
            %v = load %A[%p] : i64
            store %v, %R[%k,%column]
            %next = add %k, %c1 : index
            yield (%next)
        }
    }
}
"""


def test_lanes_that_wrap_around_are_not_neighbours_in_memory() -> None:
    kernels = compiled(WRAPPED)
    a = np.arange(512)
    r = np.zeros(100, np.int64)
    kernels.foreach(a, r)
    assert r.tolist() == [(i + 100 + 128) % 256 - 128 + 200 for i in range(100)]
    r = np.zeros((16, 16), np.int64, order="F")
    kernels["for"](a, r)
    expected: Array = np.zeros((16, 16), np.int64)
    for item in range(16):
        rounds = range(120 - item, 127, 2)
        expected[: len(rounds), item] = rounds
    assert np.array_equal(r, expected)


def test_nested_regions_of_all_kinds() -> None:
    kernels = compiled("""
        func @mixed(%A: memref<f32x8x8>, %C: memref<f32x8x8>, %flag: bool, %n: index, %S: memref<f32>) {
            %one = constant 1.0 : f32 %zero = constant 0.0 : f32 %half = constant 0.5 : f32
            %c0 = constant 0 : index %c8 = constant 8 : index
            %r = if %flag -> (f32) {
                %large = alloca : memref<f32x256x256,local>
                %T = subview %large[0:8,0:8] : memref<f32x8x8,strided<1,256>,local>
                axpby.t %one, %A, %zero, %T
                for %i=%c0,%n {
                    gemm %one, %T, %T, %zero, %C
                    axpby %half, %C, %zero, %T
                    foreach (%x,%y)=(%c0,%c0),(%c8,%c8) {
                        %v = load %T[%x,%y] : f32
                        %w = add %v, %one : f32
                        store %w, %T[%x,%y]
                    }
                }
                %s = alloca : memref<f32,local>
                store %zero, %s[]
                %all = fuse %C[0,1] : memref<f32x64>
                sum %one, %all, %zero, %s
                %v = load %s[] : f32
                yield (%v)
            } else {
                parallel {
                    %l = subgroup_local_id : i32
                    %f = cast %l : f32
                    %v = subgroup_reduce_add %f : f32
                    store %v, %S[]
                }
                %v = load %S[] : f32
                yield (%v)
            }
            store %r, %S[]
        }""")
    a = np.asfortranarray(np.random.default_rng(0).random((8, 8)).astype(np.float32))
    c, s = np.zeros_like(a), np.zeros((), np.float32)
    kernels.mixed(a, c, True, 3, s)
    product: Array = np.zeros_like(a)
    t = a.T.astype(np.float64)
    for _ in range(3):
        product = t @ t
        t = product / 2 + 1
    np.testing.assert_allclose(c, product, rtol=1e-5)
    np.testing.assert_allclose(s, product.sum(), rtol=1e-5)
    kernels.mixed(a, c, False, 3, s)
    assert s == sum(range(16))
