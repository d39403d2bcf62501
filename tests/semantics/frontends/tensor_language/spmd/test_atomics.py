"""Atomic loads, stores and updates: all types and orders, one address or many, one thread or several."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import pytest

import tlx.frontends.tensor_language as tl
from tlx.frontends.tensor_language.runtime.arguments import dtype_of
from tlx.frontends.tensor_language.types import NUMBERS

REALS: Final = ("i8", "i16", "i32", "i64", "index", "bf16", "f16", "f32", "f64")
EVERY: Final = (*REALS, "c32", "c64")
LANES: Final = """
    %l = subgroup_local_id : i32
    %s = subgroup_linear_id : i32
    %size = subgroup_size : i32
    %b = mul %s, %size : i32
    %g = add %b, %l : i32
    %i = cast %g : index
"""
JOINS: Final[dict[str, Any]] = {"add": np.add, "max": np.maximum, "min": np.minimum}


def numbers(name: str, count: int) -> np.ndarray[Any, Any]:
    """Small numbers of a type."""
    chance = np.random.default_rng(count)
    real = chance.integers(-4, 5, count)
    imaginary = chance.integers(-4, 5, count)
    return (real + 1j * imaginary if NUMBERS[name].kind == "complex" else real).astype(dtype_of(NUMBERS[name]))


def localized(kernels: str, name: str, count: int) -> str:
    """Kernels that do to local memory what they did to `%A`, which is brought there and back."""
    copy = f"foreach (%t)=(%none),(%all) {{{{ %e = load %{{}}[%t] : {name}  store %e, %{{}}[%t] }}}}"
    head = f"""
  %none = constant 0 : index
  %all = constant {count} : index
  %A = alloca : memref<{name}x{count},local>
  {copy.format("G", "A")}
"""
    result: list[str] = []
    for kernel in re.split(r"\n(?=func )", kernels.strip()):
        signature, body = kernel.replace("%A:", "%G:").split("} {", 1)
        result.append(f"{signature}}} {{{head}{body.rstrip().removesuffix('}')}{copy.format('A', 'G')}\n}}")
    return "\n".join(result)


@pytest.mark.parametrize("space", ["global", "local"])
@pytest.mark.parametrize("name", EVERY)
def test_updates(name: str, space: str) -> None:
    """Of one element by all work-items, of one by some, of many by all; the old values are as if in order."""
    ops = ("add",) if NUMBERS[name].kind == "complex" else ("add", "max", "min")
    kernels = "\n".join(
        f"""
func @{op}(%V: memref<{name}x32>, %K: memref<indexx32>, %A: memref<{name}x4>, %O: memref<{name}x32x3>)
    attributes {{subgroup_size=16, work_group_size=[32,1]}} {{
  %c0 = constant 0 : index
  %c1 = constant 1 : index
  %c2 = constant 2 : index
  parallel {{ {LANES}
    %v = load %V[%i] : {name}
    %k = load %K[%i] : index
    %o = atomic_{op} %v, %A[%c0] : {name}
    store %o, %O[%i,%c0]
    %four = constant 4 : i32
    %some = greater_than %l, %four : bool
    if %some {{
      %p = atomic_{op}.device.acquire_release %v, %A[%c1] : {name}
      store %p, %O[%i,%c1]
    }}
    %q = atomic_{op}.subgroup.sequentially_consistent %v, %A[%k] : {name}
    store %q, %O[%i,%c2]
  }}
}}"""
        for op in ops
    )
    kernels = localized(kernels, name, 4) if space == "local" else kernels
    compiled = tl.compile(kernels, ("generic", "avx2", "native")[len(name) % 3])
    v = numbers(name, 32)
    k = np.random.default_rng(2).integers(2, 4, 32)
    for op in ops:
        join = JOINS[op]
        a = numbers(name, 4)
        actual = np.full((32, 3), 9, v.dtype, order="F")
        expected, memory = actual.copy(order="F"), a.copy()
        compiled[op](v, k, a, actual)
        for s in (0, 16):
            for column, places in enumerate(([0] * 16, [1] * 16, k[s : s + 16])):
                for lane, place in enumerate(places):
                    if column != 1 or lane > 4:
                        expected[s + lane, column] = memory[place]
                        memory[place] = join(memory[place], v[s + lane])
        np.testing.assert_array_equal(a, memory)
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("name", EVERY)
def test_loads_and_stores(name: str) -> None:
    text = f"""
func @run(%V: memref<{name}x16>, %A: memref<{name}x16>, %B: memref<{name}x16>, %C: memref<{name}>,
          %D: memref<{name}>) {{
  %c3 = constant 3 : index
  parallel {{ {LANES}
    %c15 = constant 15 : index
    %r = sub %c15, %i : index
    %x = atomic_load.acquire %V[%r] : {name}
    atomic_store.release %x, %A[%i]
    %y = atomic_load.cross_device.sequentially_consistent %V[%c3] : {name}
    %odd = constant 1 : i32
    %bit = and %l, %odd : i32
    %set = equal %bit, %odd : bool
    if %set {{
      atomic_store %y, %B[%i]
    }}
    atomic_store %x, %C[]
  }}
  %z = atomic_load %V[%c3] : {name}
  atomic_store.sequentially_consistent %z, %D[]
}}"""
    v = numbers(name, 16)
    a, b = np.full(16, 9, v.dtype), np.full(16, 9, v.dtype)
    c, d = np.array(9, v.dtype), np.array(9, v.dtype)
    tl.compile(text).run(v, a, b, c, d)
    np.testing.assert_array_equal(a, v[::-1])
    np.testing.assert_array_equal(b[1::2], np.full(8, v[3]))
    np.testing.assert_array_equal(b[::2], np.full(8, 9, v.dtype))
    assert c in v
    assert d == v[3]


def test_an_update_in_a_collective_region_is_made_once() -> None:
    """Its old value is uniform: it may be a bound of a collective loop, and the condition of a collective `if`."""
    text = """
func @run(%N: memref<i32>, %Y: memref<i32x8>) attributes {work_group_size=[32,2]} {
  %one = constant 1 : i32
  %zero = constant 0 : i32
  %old = atomic_add %one, %N[] : i32
  %sum = for %k=%zero,%old init(%a=%zero) -> (i32) {
    %b = atomic_max %k, %N[] : i32
    %c = add %a, %b : i32
    yield (%c)
  }
  %some = greater_than %old, %one : bool
  %i = cast %zero : index
  if %some {
    store %sum, %Y[%i]
  }
}"""
    n, y = np.array(3, np.int32), np.zeros(8, np.int32)
    tl.compile(text).run(n, y, groups=2)
    assert n == 5
    assert y[0] == 5 + 5 + 5 + 5


@pytest.mark.parametrize("threads", ["none", "openmp"])
def test_histogram(threads: tl.Threads) -> None:
    """Many work-groups on several threads: integers, floats by exchange, and half precision."""
    text = f"""
func @run(%X: memref<i32x?>, %H: memref<i32x8>, %F: memref<f32x8>, %D: memref<f64x8>, %M: memref<f32>,
          %N: memref<f16>, %C: memref<c32>) attributes {{subgroup_size=16, work_group_size=[32,1]}} {{
  %group = group_id.x : index
  %n = constant 32 : index
  %first = mul %group, %n : index
  parallel {{ {LANES}
    %at = add %first, %i : index
    %x = load %X[%at] : i32
    %k = cast %x : index
    %one = constant 1 : i32
    %f = constant 1.0 : f32
    %d = constant 0.5 : f64
    %h = constant 1.0 : f16
    %c = constant [1.0, -2.0] : c32
    %v = cast %at : f32
    %r0 = atomic_add %one, %H[%k] : i32
    %r1 = atomic_add %f, %F[%k] : f32
    %r2 = atomic_add %d, %D[%k] : f64
    %r3 = atomic_max %v, %M[] : f32
    %r4 = atomic_add %h, %N[] : f16
    %r5 = atomic_add %c, %C[] : c32
  }}
}}"""
    x = np.random.default_rng(1).integers(0, 8, 1024).astype(np.int32)
    h, f, d = np.zeros(8, np.int32), np.zeros(8, np.float32), np.zeros(8)
    m, n, c = np.array(0, np.float32), np.array(0, np.float16), np.array(0, np.complex64)
    tl.compile(text, threads=threads).run(x, h, f, d, m, n, c, groups=32)
    counts = np.bincount(x, minlength=8)
    np.testing.assert_array_equal(h, counts)
    np.testing.assert_array_equal(f, counts)
    np.testing.assert_array_equal(d, counts / 2)
    assert m == 1023
    assert n == 1024
    assert c == 1024 - 2048j


@pytest.mark.parametrize("size", [1, 16, 64, 128])
def test_updates_by_some_work_items_of_subgroups_of_any_size(size: int) -> None:
    text = f"""
func @run(%V: memref<f32x{size}>, %A: memref<f32x1>) attributes {{subgroup_size={size}, work_group_size=[{size},1]}} {{
  %zero = constant 0 : index
  %half = constant 0.5 : f32
  parallel {{ {LANES}
    %v = load %V[%i] : f32
    %some = less_than %v, %half : bool
    if %some {{ %old = atomic_add %v, %A[%zero] : f32 }}
  }}
}}"""
    v = np.random.default_rng(size).integers(-4, 5, size).astype(np.float32)
    a = np.zeros(1, np.float32)
    tl.compile(text).run(v, a)
    np.testing.assert_array_equal(a, [v[v < 0.5].sum()])


@pytest.mark.parametrize("name", EVERY)
def test_only_global_memory_needs_atomic_instructions(name: str) -> None:
    """Only the thread of a work-group sees its local memory; that of a kernel is shared by all threads."""
    kernel = """
func @k(%v: {0}, %A: memref<{0}x64>) {{
  %T = alloca : memref<{0}x64,local>
  %0 = constant 0 : index
  %c8 = constant 8 : index
  %one = constant {1} : {0}
  %a = subview %A[0:8] : memref<{0}x8>
  %M = subview %{2}[%c8:8] : memref<{0}x8{3}>
  atomic_store.sequentially_consistent %v, %M[%0]
  axpby.atomic %one, %a, %one, %M
  parallel {{
    %E = expand %M[0->2x4] : memref<{0}x2x4{3}>
    %o = atomic_add.acquire_release %v, %E[%0,%0] : {0}
    %l = atomic_load.acquire %M[%0] : {0}
    %m = constant {1} : coopmatrix<{0}x2x4,matrix_acc>
    %n = cooperative_matrix_atomic_add %m, %E[%0,%0] : coopmatrix<{0}x2x4,matrix_acc>
    cooperative_matrix_atomic_store %n, %E[%0,%0]
    %q = cooperative_matrix_atomic_load %E[%0,%0] : coopmatrix<{0}x2x4,matrix_acc>
  }}
}}"""
    one = {"complex": "[1.0,0.0]", "float": "1.0"}.get(NUMBERS[name].kind, "1")
    atomic = re.compile(r"\b(atomicrmw|cmpxchg|load atomic|store atomic)\b")
    assert not atomic.search(str(tl.translate(kernel.format(name, one, "T", ",local"))))
    assert len(atomic.findall(str(tl.translate(kernel.format(name, one, "A", ""))))) >= 7
