"""Broadcasts, scans and reductions over the subgroup: all types and sizes, all work-items or some of them."""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np
import pytest

import tlx.frontends.tensor_language as tl
from tlx.frontends.tensor_language.runtime.arguments import dtype_of
from tlx.frontends.tensor_language.types import NUMBERS, ScalarType
from tlx.intrinsics.numpy_types import Array

INTEGERS: Final = ("i8", "i16", "i32", "i64", "index")
ORDERED: Final = (*INTEGERS, "bf16", "f16", "f32", "f64")
SIZES: Final = (1, 8, 16, 32)
KINDS: Final = ("reduce", "inclusive_scan", "exclusive_scan")
COLUMNS: Final = 3  # subgroups
UNTOUCHED: Final = 77


def kernel(type_: str, size: int, ops: tuple[str, ...]) -> str:
    """Each operation on all work-items, and on those whose flag is set: a column of the output each."""
    names = [f"subgroup_{kind}_{op}" for kind in KINDS for op in ops]
    count = size * COLUMNS
    lines = [f"%r{k} = {name} %x : {type_}\n store %r{k}, %Y[%i,%c{k}]" for k, name in enumerate(names)]
    masked = [f"%r{k} = {name} %x : {type_}\n store %r{k}, %Z[%i,%c{k}]" for k, name in enumerate(names)]
    constants = "\n".join(f"%c{k} = constant {k} : index" for k in range(len(names)))
    return f"""
func @run(%X: memref<{type_}x{count}>, %F: memref<i32x{count}>, %Y: memref<{type_}x{count}x{len(names)}>,
          %Z: memref<{type_}x{count}x{len(names)}>)
    attributes {{subgroup_size={size}, work_group_size=[{count},1]}} {{
  {constants}
  parallel {{
    %local = subgroup_local_id : i32
    %linear = subgroup_linear_id : i32
    %size = subgroup_size : i32
    %base = mul %linear, %size : i32
    %item = add %base, %local : i32
    %i = cast %item : index
    %x = load %X[%i] : {type_}
    {chr(10).join(lines)}
    %flag = load %F[%i] : i32
    %zero = constant 0 : i32
    %set = not_equal %flag, %zero : bool
    if %set {{
      {chr(10).join(masked).replace("%r", "%m")}
    }}
  }}
}}"""


def values(type_: ScalarType, count: int) -> Array:
    """Small numbers, whose sums are exact in floats; integers of any size, whose sums wrap."""
    chance = np.random.default_rng(count)
    if type_.kind == "int":
        return chance.integers(-(1 << (type_.bits - 1)), 1 << (type_.bits - 1), count).astype(dtype_of(type_))
    real = chance.integers(-4, 5, count)
    if type_.kind == "complex":
        return (real + 1j * chance.integers(-4, 5, count)).astype(dtype_of(type_))
    return real.astype(dtype_of(type_))


def expected(kind: str, op: str, type_: ScalarType, inputs: list[Any]) -> list[Any]:
    """What each of the work-items that take part gets."""
    join: Any = {"add": operator.add, "max": max, "min": min}[op]
    totals = [inputs[0]]
    for value in inputs[1:]:
        totals.append(join(totals[-1], value))
    if kind == "reduce":
        return [totals[-1]] * len(inputs)
    return totals if kind == "inclusive_scan" else [identity(op, type_), *totals[:-1]]


def identity(op: str, type_: ScalarType) -> Any:
    """What an exclusive scan begins with."""
    if op == "add":
        return 0
    if type_.kind == "float":
        return float("-inf" if op == "max" else "inf")
    return -(1 << (type_.bits - 1)) if op == "max" else (1 << (type_.bits - 1)) - 1


def in_type(type_: ScalarType, numbers: list[Any]) -> Array:
    """Exact numbers in a type; integers wrap."""
    if type_.kind != "int":
        return np.array(numbers).astype(dtype_of(type_))
    half = 1 << (type_.bits - 1)
    return np.array([(n + half) % (2 * half) - half for n in numbers], dtype_of(type_))


@pytest.mark.parametrize("name", [*ORDERED, "c32", "c64"])
@pytest.mark.parametrize("size", SIZES)
def test_operations(name: str, size: int) -> None:
    type_ = NUMBERS[name]
    ops = ("add",) if type_.kind == "complex" else ("add", "max", "min")
    target = ("generic", "avx2", "native")[(size + len(name)) % 3]
    run = tl.compile(kernel(name, size, ops), target).run
    count = size * COLUMNS
    x = values(type_, count)
    flags = (np.arange(count) % 7 % 3 != 1).astype(np.int32)
    flags[size : 2 * size] = 0
    flags[2 * size - 1] = 1
    actual, masked = (np.full((count, len(KINDS) * len(ops)), UNTOUCHED, x.dtype, order="F") for _ in range(2))
    run(x, flags, actual, masked)
    exact = x.tolist()
    for k, (kind, op) in enumerate((kind, op) for kind in KINDS for op in ops):
        for first in range(0, count, size):
            lanes = list(range(first, first + size))
            reference = in_type(type_, expected(kind, op, type_, [exact[i] for i in lanes]))
            np.testing.assert_array_equal(actual[lanes, k], reference, f"{kind} {op} of all")
            active = [i for i in lanes if flags[i]]
            partial = np.full(size, UNTOUCHED, x.dtype)
            if active:
                some = in_type(type_, expected(kind, op, type_, [exact[i] for i in active]))
                partial[[i - first for i in active]] = some
            np.testing.assert_array_equal(masked[lanes, k], partial, f"{kind} {op} of {active}")


def test_narrow_floats_are_rounded_once() -> None:
    """256 + 1 is no bf16, but 256 + 1 + 1 is."""
    text = """
    func @run(%X: memref<bf16x16>, %Y: memref<bf16x16>) {
      parallel {
        %l = subgroup_local_id : i32
        %i = cast %l : index
        %x = load %X[%i] : bf16
        %r = subgroup_inclusive_scan_add %x : bf16
        store %r, %Y[%i]
      }
    }"""
    bf16 = dtype_of(NUMBERS["bf16"])
    x = np.array([256] + [1] * 15).astype(bf16)
    y = np.zeros(16, bf16)
    tl.compile(text).run(x, y)
    np.testing.assert_array_equal(y, np.cumsum(x.astype(np.float32)).astype(bf16))
    assert y[2] == 258


@pytest.mark.parametrize(("op", "identity"), [("max", -np.inf), ("min", np.inf)])
def test_maximum_of_nan(op: str, identity: float) -> None:
    """NaN gives way to any number, and stays where there is none, for all work-items as for some of them."""
    text = f"""
    func @run(%X: memref<f32x8>, %Y: memref<f32x8x3>, %n: i32) attributes {{subgroup_size=8}} {{
      %c0 = constant 0 : index
      %c1 = constant 1 : index
      %c2 = constant 2 : index
      parallel {{
        %l = subgroup_local_id : i32
        %i = cast %l : index
        %x = load %X[%i] : f32
        %runs = greater_than_equal %l, %n : bool
        if %runs {{
          %a = subgroup_reduce_{op} %x : f32
          %b = subgroup_inclusive_scan_{op} %x : f32
          %c = subgroup_exclusive_scan_{op} %x : f32
          store %a, %Y[%i,%c0]
          store %b, %Y[%i,%c1]
          store %c, %Y[%i,%c2]
        }}
      }}
    }}"""
    run = tl.compile(text).run
    x = np.full(8, np.nan, np.float32)
    for first in (0, 2):
        y = np.zeros((8, 3), np.float32, order="F")
        run(x, y, first)
        assert np.isnan(y[first:, :2]).all()
        assert y[first, 2] == identity


@pytest.mark.parametrize("name", [*ORDERED, "c32", "c64"])
def test_broadcast(name: str) -> None:
    """From a constant lane, and from one that is known only at run time and loaded by each work-item."""
    text = f"""
    func @run(%X: memref<{name}x32>, %K: memref<i32x32>, %Y: memref<{name}x32x3>, %n: i32)
        attributes {{subgroup_size=16, work_group_size=[16,2]}} {{
      %c0 = constant 0 : index
      %c1 = constant 1 : index
      %c2 = constant 2 : index
      %five = constant 5 : i32
      parallel {{
        %l = subgroup_local_id : i32
        %s = subgroup_linear_id : i32
        %size = subgroup_size : i32
        %b = mul %s, %size : i32
        %g = add %b, %l : i32
        %i = cast %g : index
        %x = load %X[%i] : {name}
        %p = subgroup_broadcast %x, %five : {name}
        store %p, %Y[%i,%c0]
        %q = subgroup_broadcast %x, %n : {name}
        store %q, %Y[%i,%c1]
        %high = greater_than_equal %l, %five : bool
        if %high {{
          %k = load %K[%i] : i32
          %r = subgroup_broadcast %x, %k : {name}
          store %r, %Y[%i,%c2]
        }}
      }}
    }}"""
    type_ = NUMBERS[name]
    x = values(type_, 32)
    lanes = np.repeat(np.array([9, 15], np.int32), 16)
    y = np.full((32, 3), UNTOUCHED, x.dtype, order="F")
    tl.compile(text).run(x, lanes, y, 11)
    for s in (0, 16):
        assert (y[s : s + 16, 0] == x[s + 5]).all()
        assert (y[s : s + 16, 1] == x[s + 11]).all()
        assert (y[s : s + 5, 2] == np.array(UNTOUCHED, x.dtype)).all()
        assert (y[s + 5 : s + 16, 2] == x[s + lanes[s]]).all()
