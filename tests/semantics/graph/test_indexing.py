"""Dynamic slices and updates, gathers and scatters of `tlx.graph` against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.semantics.graph.checks import Array, check, names, random

TYPES = [np.dtype(t) for t in (np.float32, np.int8, np.bool_)]
LARGE = (70, 80)  # more than 16 KiB of floats


@pytest.mark.parametrize("dtype", TYPES, ids=names)
@pytest.mark.parametrize("start", [-3, 0, 2, 9])
def test_dynamic_slices_are_clamped(start: int, dtype: np.dtype[Any]) -> None:
    x, at = random(np.random.default_rng(1), (6, 7), dtype), np.array(start, np.int32)
    row = min(max(start, 0), 4)
    check(lambda g, a, i: g.dynamic_slice(a, (i, 3), (2, 4)), lambda a, _: a[row : row + 2, 3:7], x, at)
    check(lambda g, a, i: g.dynamic_slice(a.T, (1, i), (4, 2)), lambda a, _: a.T[1:5, row : row + 2], x, at)
    check(
        lambda g, a, i: g.dynamic_slice(~a if dtype.kind == "b" else a + a, (i, 3), (2, 4))[0, 1:],
        sliced(dtype, row),
        x,
        at,
    )


def sliced(dtype: np.dtype[Any], row: int) -> Callable[[Array, Array], Array]:
    def slice_(a: Array, _: Array) -> Array:
        return (~a if dtype.kind == "b" else a + a)[row, 4:7]

    return slice_


@pytest.mark.parametrize("shape", [(6, 7), LARGE])
@pytest.mark.parametrize("start", [-3, 1, 99])
def test_dynamic_updates(start: int, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    x, at = rng.standard_normal(shape).astype(np.float32), np.array(start, np.int64)
    row = min(max(start, 0), shape[0] - 2)

    def updated(a: Array, _: Array) -> Array:
        result = a.copy()
        result[row : row + 2, 2:5] = a[:2, :3] * 2
        return result

    check(lambda g, a, i: g.dynamic_update_slice(a, a[:2, :3] * 2.0, (i, 2)), updated, x, at)
    check(lambda g, a, i: g.exp(g.dynamic_update_slice(a, a[:2, :3] * 2.0, (i, 2))) * 2.0,
          lambda a, i: np.exp(updated(a, i)) * 2, x, at, terms=2000)  # fmt: skip


def test_update_of_everything() -> None:
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    check(lambda g, a: g.dynamic_update_slice(a, a * 2, (0, 0)) + a, lambda a: a * 3, x)


@pytest.mark.parametrize("dtype", TYPES, ids=names)
def test_take(dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(3)
    x = random(rng, (5, 6, 4), dtype)
    for axis in (0, 1, -1):
        index = rng.integers(0, x.shape[axis], (3, 2)).astype(np.uint8)
        check(lambda g, a, i, d=axis: g.take(a, i, d), lambda a, i, d=axis: np.take(a, i, d), x, index)
    one = np.array(2, np.int32)
    check(lambda g, a, i: g.take(a, i, 1), lambda a, i: np.take(a, i, 1), x, one)
    many = rng.integers(0, 5, 900).astype(np.int32)
    check(lambda g, a, i: g.take(a, i) if dtype.kind == "b" else g.take(a, i) + g.take(a, i), doubled(dtype), x, many)


def doubled(dtype: np.dtype[Any]) -> Callable[[Array, Array], Array]:
    def rows(a: Array, i: Array) -> Array:
        return a[i] if dtype.kind == "b" else a[i] + a[i]

    return rows


def test_gather_of_boxes() -> None:
    x = np.arange(42, dtype=np.float32).reshape(6, 7)
    starts = np.array([[0, 0], [3, 2], [9, -4]], np.int32)

    def boxes(a: Array, _: Array) -> Array:
        return np.stack([a[i : i + 2, j : j + 3] for i, j in ((0, 0), (3, 2), (4, 0))])

    check(lambda g, a, i: g.gather(a, i, (0, 1), (2, 3)), boxes, x, starts)
    columns = np.array([[1], [4]], np.int32)
    check(lambda g, a, i: g.gather(a.T * 2.0, i, (0,), (1, 6)), lambda a, _: a.T[[1, 4]][:, None] * 2, x, columns)


@pytest.mark.parametrize(("combine", "ufunc"), [("set", None), ("add", np.add), ("maximum", np.maximum)])
def test_scatter_ignores_what_is_outside(combine: str, ufunc: Any) -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((5, 6)).astype(np.float32)
    starts = np.array([[1], [4], [1], [5], [-1]], np.int32)

    def scattered(a: Array, i: Array) -> Array:
        result = a.copy()
        for row, new in zip(i[:, 0], np.tile(a[:1] * 3, (5, 1)), strict=True):
            if 0 <= row < 5:
                result[row] = new if ufunc is None else ufunc(result[row], new)
        return result

    check(
        lambda g, a, i: g.scatter(a, i, (0,), g.broadcast((a[:1] * 3.0)[None], (5, 1, 6)), combine),
        scattered,
        x,
        starts,
    )
    point = np.array([[2, 3]], np.int64)

    def pointed(a: Array, _: Array) -> Array:
        result = a.copy()
        result[2, 3] = a[0, 0] if ufunc is None else ufunc(a[2, 3], a[0, 0])
        return result

    check(lambda g, a, i: g.scatter(a, i, (0, 1), a[:1, :1][None], combine), pointed, x, point)


def test_key_value_cache() -> None:
    """A row is written at a position, and all rows up to it are read."""
    rng = np.random.default_rng(5)
    cache, position = rng.standard_normal((8, 4)).astype(np.float32), np.array(3, np.int32)

    def attended(a: Array, _: Array) -> Array:
        rows = a.copy()
        rows[3] = a[0] + 1
        scores = np.where(np.arange(8) <= 3, rows @ a[0], -1e9)
        powers = np.exp(scores - scores.max())
        return powers / powers.sum() @ rows

    def build(g: Any, a: Any, i: Any) -> Any:
        rows = g.dynamic_update_slice(a, a[:1] + 1.0, (i, 0))
        scores = g.where(g.iota((8,), 0) <= i, rows @ a[0], -1e9)
        return g.softmax(scores) @ rows

    check(build, attended, cache, position, terms=20)


@pytest.mark.parametrize("dtype", TYPES, ids=names)
@pytest.mark.parametrize(("shape", "axes"), [((3, 4), (0, 1)), ((40,), (0,)), ((2, 30, 3), (1,)), ((20, 30), (0, -1))])
def test_reverse(shape: tuple[int, ...], axes: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    x = random(np.random.default_rng(6), shape, dtype)
    check(lambda g, a: g.reverse(a, axes), lambda a: np.flip(a, axes), x)
    check(lambda g, a: g.reverse(a.T, 0).T, lambda a: np.flip(a, -1), x)
