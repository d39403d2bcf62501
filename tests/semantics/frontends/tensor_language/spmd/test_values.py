"""Values in lanes: complex numbers, functions, stores to one element, ids."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import tlx.frontends.tensor_language as tl
from tests.semantics.frontends.tensor_language.spmd.item import ITEM
from tlx.frontends.tensor_language.runtime.arguments import dtype_of
from tlx.frontends.tensor_language.types import NUMBERS


def test_the_last_of_several_stores_to_one_element_wins() -> None:
    text = f"""
func @run(%X: memref<c32x16>, %Y: memref<c32>, %Z: memref<f32x4>, %n: i32) {{
  %three = constant 3 : index
  %zero = constant 0 : index
  parallel {{ {ITEM}
    %x = load %X[%i] : c32
    %some = less_than %l, %n : bool
    if %some {{
      store %x, %Y[]
      %r = re %x : f32
      %k = and %i, %three : index
      store %r, %Z[%k]
    }}
  }}
}}"""
    x = (np.arange(16) - 1j * np.arange(16)).astype(np.complex64)
    y, z = np.array(77, np.complex64), np.full(4, 77, np.float32)
    tl.compile(text).run(x, y, z, 11)
    assert y == x[10]
    np.testing.assert_array_equal(z, [8, 9, 10, 7])


_COMPLEX: Final[dict[str, Any]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


@pytest.mark.parametrize("type_", ["c32", "c64"])
def test_complex_numbers(type_: str) -> None:
    """Arithmetic, selection and loop-carried values of each work-item."""
    ops = "\n".join(f"%r{k} = {op} %x, %y : {type_}\nstore %r{k}, %R[%i,%c{k}]" for k, op in enumerate(_COMPLEX))
    text = f"""
func @run(%X: memref<{type_}x16>, %Y: memref<{type_}x16>, %R: memref<{type_}x16x5>) {{
  %c0 = constant 0 : index
  %c1 = constant 1 : index
  %c2 = constant 2 : index
  %c3 = constant 3 : index
  %c4 = constant 4 : index
  %zero = constant 0 : i32
  parallel {{ {ITEM}
    %x = load %X[%i] : {type_}
    %y = load %Y[%i] : {type_}
    {ops}
    %same = not_equal %x, %y : bool
    %p = if %same -> ({type_}) {{
      %q = for %k=%zero,%l init(%z=%x) -> ({type_}) {{
        %w = add %z, %y : {type_}
        yield (%w)
      }}
      yield (%q)
    }} else {{
      %n = conj %x : {type_}
      yield (%n)
    }}
    store %p, %R[%i,%c4]
  }}
}}"""
    chance = np.random.default_rng(1)
    dtype = dtype_of(NUMBERS[type_])
    x, y = ((chance.integers(1, 9, 16) + 1j * chance.integers(1, 9, 16)).astype(dtype) for _ in range(2))
    x[::3] = y[::3]
    r = np.zeros((16, 5), dtype, order="F")
    tl.compile(text).run(x, y, r)
    for k, op in enumerate(_COMPLEX.values()):
        np.testing.assert_allclose(r[:, k], op(x, y), rtol=1e-6)
    np.testing.assert_array_equal(r[:, 4], np.where(x == y, x.conj(), x + np.arange(16) * y))


def test_math_functions_under_masks() -> None:
    text = f"""
func @run(%X: memref<f32x24>, %Y: memref<f32x24>) attributes {{subgroup_size=8,work_group_size=[24,1]}} {{
  %zero = constant 0.0 : f32
  parallel {{ {ITEM}
    %x = load %X[%i] : f32
    %positive = greater_than %x, %zero : bool
    %y = if %positive -> (f32) {{
      %a = log %x : f32
      yield (%a)
    }} else {{
      %a = exp %x : f32
      yield (%a)
    }}
    store %y, %Y[%i]
  }}
}}"""
    x = np.random.default_rng(1).normal(size=24).astype(np.float32)
    y = np.zeros(24, np.float32)
    tl.compile(text).run(x, y)
    np.testing.assert_allclose(y, np.where(x > 0, np.log(np.abs(x)), np.exp(x)), rtol=1e-5)


def test_ids_of_work_items() -> None:
    """`linear = x + y * num_subgroups.x`, in a grid of work-groups."""
    names = ["subgroup_id.x", "subgroup_id.y", "subgroup_id.z", "subgroup_linear_id", "subgroup_local_id"]
    names += ["num_subgroups.x", "num_subgroups.y", "num_subgroups.z", "subgroup_size"]
    stores = "\n".join(
        f"%v{k} = {name} : i32\n%k{k} = constant {k} : index\nstore %v{k}, %R[%i,%k{k},%n]"
        for k, name in enumerate(names)
    )
    text = f"""
func @run(%R: memref<i32x96x9x6>) attributes {{subgroup_size=8, work_group_size=[32,3]}} {{
  %x = group_id.x : index
  %y = group_id.y : index
  %nx = num_groups.x : index
  %row = mul %y, %nx : index
  %n = add %row, %x : index
  parallel {{ {ITEM} {stores}
  }}
}}"""
    r = np.full((96, 9, 6), -1, np.int32, order="F")
    tl.compile(text).run(r, groups=(2, 3))
    item = np.arange(96)
    linear = item // 8
    expected = [
        linear % 4,
        linear // 4,
        0 * item,
        linear,
        item % 8,
        0 * item + 4,
        0 * item + 3,
        0 * item + 1,
        0 * item + 8,
    ]
    np.testing.assert_array_equal(r, np.repeat(np.stack(expected, axis=1)[:, :, None], 6, axis=2))
