"""Kernels of the first version, compiled and run against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.frontends.tensor_language.v1.kernels import KERNELS
from tlx.frontends import tensor_language
from tlx.frontends.tensor_language.runtime.kernels import CompiledKernel

Array = np.ndarray[Any, Any]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def compiled(name: str) -> CompiledKernel:
    """The first kernel of one of the programs."""
    kernels = tensor_language.compile(KERNELS[name], std="v1")
    return kernels[kernels.program.functions[0].name.text]


def random(rng: np.random.Generator, *shape: int, dtype: str = "f4") -> Array:
    """Small whole numbers, whose sums are exact, in column-major order."""
    return np.asfortranarray(rng.integers(-4, 5, shape).astype(dtype))


def test_fused(rng: np.random.Generator) -> None:
    members = [random(rng, 20, 9, dtype="f8") for _ in range(3)]
    stiff, mass = random(rng, 9, 9, dtype="f8"), random(rng, 9, 12, dtype="f8")
    out = random(rng, 20, 12, 3, dtype="f8")
    expected = out + np.stack([0.5 * (m @ stiff.T) @ mass for m in members], axis=2)
    compiled("fused")(0.5, members, stiff, mass, out, groups=3)
    np.testing.assert_array_equal(out, expected)


def test_groups(rng: np.random.Generator) -> None:
    a = [random(rng, 9 + g, 8 + g) for g in range(2)]
    b = [np.concatenate([np.zeros(64, "f4"), random(rng, 8, 8).ravel(order="F")]) for _ in range(2)]
    inner = [v[64:].reshape(8, 8, order="F") for v in b]
    out = random(rng, 8, 8, 2)
    expected = out + np.stack([a[1 - g][:8, :8].T @ inner[g] for g in range(2)], axis=2)
    members = [v[:64].reshape(8, 8, order="F") for v in b]
    compiled("groups")(a, members, out, groups=2)
    np.testing.assert_array_equal(out, expected)


def test_choices() -> None:
    x = np.array([-2.0, 0.5, 3.0, 1.0, 9.0], "f4")
    compiled("choices")(x, 1.0)
    np.testing.assert_array_equal(x, np.array([-2.0, 0.5, 1.0, 1.0, 1.0], "f4"))


def test_loops(rng: np.random.Generator) -> None:
    a, x = random(rng, 8, 8, 5), random(rng, 8)
    expected = x + a[::2].sum(axis=(0, 2))
    compiled("loops")(a, x)
    np.testing.assert_array_equal(x, expected)


def test_local_views(rng: np.random.Generator) -> None:
    x, y = random(rng, 6), random(rng, 6)
    expected = y + (x + 0.5 * x)
    compiled("local views")(x, y)
    np.testing.assert_array_equal(y, expected)


def test_views(rng: np.random.Generator) -> None:
    a = random(rng, 32, 16, 12)
    expected = a.copy(order="F")
    expected[0, 0, 0] = a[1, 3 + 1, 6] = 5.0  # the second half of the last mode begins at 6
    expected[1, 3 + 1, 6] = 5.0
    compiled("views")(a, 1, 0)
    np.testing.assert_array_equal(a, expected)


def test_small_integers() -> None:
    x = np.arange(-32, 32, dtype="i1")
    y = np.zeros(64, "i2")
    compiled("small integers")(x, y)
    np.testing.assert_array_equal(y, x.astype("i2") >> 1)


@pytest.mark.parametrize(("flag", "i", "stored"), [(True, 1, 0.5), (False, 1, 7.0), (True, 3, 7.0)])
def test_scalars(flag: bool, i: int, stored: float) -> None:
    out = np.full(2, 7, "f4")
    compiled("scalars")(5, flag, i, -2.0, out)  # 2 / (4 i) is stored if it is a quarter or more
    np.testing.assert_array_equal(out, np.array([stored, 7.0], "f4"))


def test_atomic_updates_with_any_factor() -> None:
    text = """
    func @f(%a: f64, %b: f64, %A: memref<f32x5>, %B: memref<f64x5>, %C: memref<i8x5>, %D: memref<i32x5>) {
        axpby.n.atomic %a, %A, %b, %B : f64, memref<f32x5>, f64, memref<f64x5>
        axpby.n.atomic 2, %C, -3, %D : i8, memref<i8x5>, i8, memref<i32x5>
    }"""
    a, b = np.arange(5, dtype="f4"), np.arange(5, dtype="f8") + 7
    c, d = np.arange(5, dtype="i1"), np.arange(5, dtype="i4") - 2
    expected = 0.1 * a.astype("f8") + 0.3 * b, 2 * c.astype("i4") - 3 * d
    tensor_language.compile(text, std="v1").f(0.1, 0.3, a, b, c, d)
    np.testing.assert_array_equal(b, expected[0])
    np.testing.assert_array_equal(d, expected[1])
