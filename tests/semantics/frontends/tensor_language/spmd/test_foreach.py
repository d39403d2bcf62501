"""`foreach` and `foreach_tile` visit every index exactly once."""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np
import pytest

import tlx.frontends.tensor_language as tl
from tests.semantics.frontends.tensor_language.guarded import at_end, at_start

TARGETS: Final = ("generic", "avx2", "native")
INTEGERS: Final = ("i8", "i16", "i32", "i64", "index")
RANGES: Final = [(0, 0), (0, 1), (0, 15), (0, 16), (0, 17), (3, 40), (5, 4), (0, 100), (-3, 90), (-128, 127)]


@pytest.mark.parametrize("type_", INTEGERS)
@pytest.mark.parametrize("lanes", [1, 8, 16, 32])
def test_one_mode(type_: str, lanes: int) -> None:
    """Ranges known when the kernel runs, of any integer type, from negative numbers too."""
    text = f"""
func @run(%from: {type_}, %to: {type_}, %Y: memref<i32x256>, %Z: memref<{type_}x256>)
    attributes {{subgroup_size={lanes}}} {{
  foreach (%k)=(%from),(%to) {{
    %w = cast %k : index
    %shift = constant 128 : index
    %at = add %w, %shift : index
    %old = load %Y[%at] : i32
    %one = constant 1 : i32
    %new = add %old, %one : i32
    store %new, %Y[%at]
    store %k, %Z[%at]
  }}
}}"""
    run = tl.compile(text, TARGETS[lanes % 3]).run
    for start, stop in RANGES:
        y = np.zeros(256, np.int32)
        z = np.zeros(256, {"index": "int64"}.get(type_, type_.replace("i", "int")))
        run(start, stop, y, z)
        expected = np.zeros(256, np.int32)
        expected[start + 128 : max(start, stop) + 128] = 1
        np.testing.assert_array_equal(y, expected)
        np.testing.assert_array_equal(z, np.arange(-128, 128) * expected)


def test_extreme_bounds() -> None:
    """Ranges at the ends of the types."""
    text = "\n".join(
        f"""
func @{type_}(%from: {type_}, %to: {type_}, %N: memref<i64>, %S: memref<{type_}>) {{
  foreach (%k)=(%from),(%to) {{
    %one = constant 1 : i64
    %o = atomic_add %one, %N[] : i64
    %p = atomic_add %k, %S[] : {type_}
  }}
}}"""
        for type_ in ("i8", "i16", "i32", "i64")
    )
    kernels = tl.compile(text)
    for bits in (8, 16, 32, 64):
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        for start, stop in ((high - 21, high), (low, low + 37), (high, low), (high, high), (low, low)):
            n, s = np.array(0), np.array(0, f"int{bits}")
            kernels[f"i{bits}"](start, stop, n, s)
            inside = range(start, stop)
            assert n == len(inside)
            assert (int(s) - sum(inside)) % (1 << bits) == 0


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("lower", "upper"), [((0, 0, 0), (21, 3, 2)), ((2, 1, 1), (16, 4, 3)), ((1, 0, 0), (17, 0, 5))]
)
def test_three_modes(target: str, lower: tuple[int, ...], upper: tuple[int, ...]) -> None:
    """Bounds known when the kernel is compiled, and when it runs; arrays that end at forbidden memory."""
    body = """
    %x = load %X[%i,%j,%k] : f32
    %p = mul %x, %x : f32
    store %p, %Y[%i,%j,%k]
  }
}"""
    constants = "\n".join(
        f"%{name}{m} = constant {bound} : index"
        for name, bounds in (("f", lower), ("t", upper))
        for m, bound in enumerate(bounds)
    )
    names = "(%f0,%f1,%f2),(%t0,%t1,%t2)"
    parameters = ",".join(f"%{name}{m}: index" for name in "ft" for m in range(3))
    text = f"""
func @known(%X: memref<f32x?x?x?>, %Y: memref<f32x?x?x?>) {{
  {constants}
  foreach (%i,%j,%k)={names} {{ {body}
func @given(%X: memref<f32x?x?x?>, %Y: memref<f32x?x?x?>, {parameters}) {{
  foreach (%i,%j,%k)={names} {{ {body}"""
    kernels = tl.compile(text, target)
    shape = tuple(max(1, n) for n in upper)
    x = at_end(np.random.default_rng(1).normal(size=shape).astype(np.float32))
    inside = tuple(slice(a, b) for a, b in zip(lower, upper, strict=True))
    for place in (at_end, at_start):
        expected = np.full(shape, -1, np.float32)
        expected[inside] = x[inside] ** 2
        for kernel, more in ((kernels.known, ()), (kernels.given, (*lower, *upper))):
            y = place(np.full(shape, -1, np.float32))
            kernel(x, y, *more)
            np.testing.assert_array_equal(y, expected)


def test_masked_remainders_of_all_widths() -> None:
    """The last lanes' elements lie in forbidden memory."""
    types = {"i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "f16": "f2", "f32": "f4", "f64": "f8"}
    types |= {"c32": "c8", "c64": "c16"}
    text = "\n".join(
        f"""
func @{type_}(%X: memref<{type_}x?>, %Y: memref<{type_}x?,strided<2>>, %Z: memref<{type_}x?>) {{
  %zero = constant 0 : index
  %n = size %X[0] : index
  %one = constant 1 : index
  foreach (%i)=(%zero),(%n) {{
    %x = load %X[%i] : {type_}
    store %x, %Y[%i]
    %m = sub %n, %one : index
    %r = sub %m, %i : index
    store %x, %Z[%r]
  }}
}}"""
        for type_ in types
    )
    for target in TARGETS:
        kernels = tl.compile(text, target)
        for (type_, dtype), n in product(types.items(), (1, 7, 21)):
            for place in (at_end, at_start):
                values = np.random.default_rng(n).integers(-9, 9, n).astype(dtype)
                x, y, z = place(values), place(np.full(2 * n - 1, 3, dtype)), place(np.full(n, 3, dtype))
                kernels[type_](x, y[::2], z)
                np.testing.assert_array_equal(y[::2], values)
                np.testing.assert_array_equal(y[1::2], np.full(n - 1, 3, dtype))
                np.testing.assert_array_equal(z, values[::-1])


@pytest.mark.parametrize("rows", [16, 32])
@pytest.mark.parametrize("known", [True, False])
def test_tiles(rows: int, known: bool) -> None:
    """Every tile once, clipped at the end of the range, by a subgroup of the work-group."""
    bounds = {"a": 3, "b": 70, "c": -2, "d": 9}
    parameters = "" if known else ", %a: i32, %b: i32, %c: i32, %d: i32"
    constants = "\n".join(f"%{n} = constant {v} : i32" for n, v in bounds.items()) if known else ""
    text = f"""
func @run(%N: memref<i32x128x16>, %I: memref<i32x128x16>, %J: memref<i32x128x16>, %S: memref<i32x4>{parameters})
    attributes {{subgroup_size=16, work_group_size=[32,2]}} {{
  {constants}
  foreach_tile (%i,%j)=(%a,%c),(%b,%d) as (%m,%n)<=({rows},4) {{
    %s = subgroup_linear_id : i32
    %si = cast %s : index
    %one = constant 1 : i32
    %two = constant 2 : i32
    %sixteen = constant 16 : i32
    %zero = constant 0 : i32
    %lane = subgroup_local_id : i32
    %is_first = equal %lane, %zero : bool
    if %is_first {{
      %count = atomic_add %one, %S[%si] : i32
    }}
    for %y=%zero,%n {{
      for %x=%lane,%m,%sixteen {{
        %p = add %i, %x : i32
        %q = add %j, %y : i32
        %q2 = add %q, %two : i32
        %pi = cast %p : index
        %qi = cast %q2 : index
        %old = load %N[%pi,%qi] : i32
        %new = add %old, %one : i32
        store %new, %N[%pi,%qi]
        store %m, %I[%pi,%qi]
        store %n, %J[%pi,%qi]
      }}
    }}
  }}
}}"""
    n, i, j = (np.zeros((128, 16), np.int32, order="F") for _ in range(3))
    s = np.zeros(4, np.int32)
    tl.compile(text).run(n, i, j, s, *(() if known else bounds.values()))
    expected = [np.zeros((128, 16), np.int32) for _ in range(3)]
    for x, y in product(range(3, 70, rows), range(-2, 9, 4)):
        height, width = min(rows, 70 - x), min(4, 9 - y)
        tile = slice(x, x + height), slice(y + 2, y + 2 + width)
        for array, value in zip(expected, (1, height, width), strict=True):
            array[tile] = value
    for actual, reference in zip((n, i, j), expected, strict=True):
        np.testing.assert_array_equal(actual, reference)
    tiles = -(-67 // rows) * 3
    np.testing.assert_array_equal(s, [len(range(k, tiles, 4)) for k in range(4)])


def test_no_tiles() -> None:
    text = """
func @run(%S: memref<i32>, %a: i64, %b: i64) {
  %one = constant 1 : i32
  foreach_tile (%i)=(%a),(%b) as (%m)<=(16) {
    store %one, %S[]
  }
  foreach_tile (%k)=(%b),(%b) as (%n)<=(16) {
    store %one, %S[]
  }
}"""
    run = tl.compile(text).run
    for bounds, ran in (((4, 4), 0), ((4, -4), 0), ((4, 5), 1)):
        s = np.array(0, np.int32)
        run(s, *bounds)
        assert s == ran
