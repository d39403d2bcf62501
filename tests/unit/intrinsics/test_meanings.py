"""The meaning of rows of the table against a naive formulation: loops over Python numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pytest

from tlx.intrinsics import RuleError, lookup
from tlx.intrinsics.numpy_types import Array, dtype_of
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I1, I8, I16, I32, I64, Type

Numbers = Sequence[int]
ELEMENTS: Final = (I1, I8, I16, I32, I64, HALF, BFLOAT, FLOAT, DOUBLE)
WIDENING: Final[tuple[tuple[Type, Type], ...]] = (
    *((element, element) for element in ELEMENTS),
    (I8, I32),
    (I1, I8),
    (BFLOAT, FLOAT),
    (HALF, DOUBLE),
)
SEEDS: Final = range(25)


def compute(name: str, arrays: list[Array], dims: Sequence[Numbers], to: Type, scalars: Sequence[Any] = ()) -> Array:
    """The meaning of a row; the type that its rule infers has the extents of what it computes."""
    row = lookup(f"llvm.tensor.{name}")
    assert row is not None
    lists = [tuple(d) for d in dims]
    numbers = [np.array(s, dtype_of(to)) for s in scalars]
    result = row.meaning(arrays, lists, numbers, dtype_of(to))
    types = [TensorType.dense(element_of(array), array.shape) for array in arrays]
    (inferred,) = row.infer(types, lists, to)
    assert inferred == TensorType.dense(to, result.shape)
    assert result.dtype == dtype_of(to)
    return result


def element_of(array: Array) -> Type:
    return next(element for element in ELEMENTS if dtype_of(element) == array.dtype)


def random_array(rng: np.random.Generator, element: Type, shape: Numbers) -> Array:
    """Small numbers, so that sums of products are exact; integers also at the ends of their range."""
    if element == I1:
        return rng.integers(0, 2, shape).astype(np.bool_)
    dtype = dtype_of(element)
    if dtype.kind != "i":
        return rng.integers(-3, 4, shape).astype(dtype)
    ends = np.iinfo(dtype)
    return np.where(
        rng.random(shape) < 0.3, rng.choice([ends.min, ends.max], shape), rng.integers(-9, 9, shape)
    ).astype(dtype)


def ints(rng: np.random.Generator, low: int, high: int, count: int) -> list[int]:
    """As many whole numbers from `low` to below `high`."""
    return [int(k) for k in rng.integers(low, high, count)]


def shuffled(rng: np.random.Generator, count: int) -> list[int]:
    """The numbers below `count` in any order."""
    return sorted(range(count), key=lambda _: rng.random())


def number(x: Any) -> Any:
    """An element as a Python number; one bit is 0 or -1."""
    kind = x.dtype.kind
    return -int(x) if kind == "b" else int(x) if kind == "i" else float(x)


def wrapped(value: Any, to: Type) -> Any:
    """A Python number as an element of a type."""
    dtype = dtype_of(to)
    if dtype.kind == "b":
        return bool(int(value) & 1)
    if dtype.kind == "i":
        bits = 8 * dtype.itemsize
        return (int(value) + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    return np.float64(value).astype(dtype)


def filled(shape: Numbers, to: Type, value: Callable[[tuple[int, ...]], Any]) -> Array:
    """An array whose element at each position is a function of the position."""
    result = np.zeros(shape, dtype_of(to))
    for position in np.ndindex(*shape):
        result[position] = wrapped(value(position), to)
    return result


def cases(count: int) -> list[tuple[int, Type, Type]]:
    pairs = itertools.islice(itertools.cycle(WIDENING), count)
    return [(seed, element, to) for seed, (element, to) in enumerate(pairs)]


# Contraction ---------------------------------------------------------------------------------------------------------


def naive_contract(
    a: Array, b: Array, pairs: Sequence[tuple[int, int]], batch: Sequence[tuple[int, int]], to: Type
) -> Array:
    """Every index of the result, and for it every index of the contracted dimensions."""
    free_a = [d for d in range(a.ndim) if d not in {i for i, _ in (*pairs, *batch)}]
    free_b = [d for d in range(b.ndim) if d not in {j for _, j in (*pairs, *batch)}]
    shape = [a.shape[i] for i, _ in batch] + [a.shape[d] for d in free_a] + [b.shape[d] for d in free_b]

    def value(position: tuple[int, ...]) -> Any:
        of_batch, rest = position[: len(batch)], position[len(batch) :]
        total: Any = 0
        for inner in itertools.product(*(range(a.shape[i]) for i, _ in pairs)):
            at_a, at_b = dict(zip(free_a, rest, strict=False)), dict(zip(free_b, rest[len(free_a) :], strict=False))
            for (i, j), k in [*zip(pairs, inner, strict=True), *zip(batch, of_batch, strict=True)]:
                at_a[i], at_b[j] = k, k
            total += number(a[tuple(at_a[d] for d in range(a.ndim))]) * number(b[tuple(at_b[d] for d in range(b.ndim))])
        return total

    return filled(shape, to, value) if shape else filled((1,), to, lambda _: value(()))


@pytest.mark.parametrize(("seed", "element", "to"), cases(60))
def test_contract(seed: int, element: Type, to: Type) -> None:
    rng = np.random.default_rng(seed)
    contracted, batches = int(rng.integers(0, 3)), int(rng.integers(0, 3))
    least = 0 if contracted + batches else 1
    free_a, free_b = (ints(rng, 1, 4, int(rng.integers(least, 3))) for _ in range(2))
    shared = ints(rng, 1, 4, contracted + batches)
    order_a, order_b = (shuffled(rng, len(shared) + len(free)) for free in (free_a, free_b))
    extents_a = [[*shared, *free_a][k] for k in order_a]
    extents_b = [[*shared, *free_b][k] for k in order_b]
    a, b = random_array(rng, element, extents_a), random_array(rng, element, extents_b)
    places = [(order_a.index(k), order_b.index(k)) for k in range(len(shared))]
    pairs, batch = places[:contracted], places[contracted:]
    lists = [list(zip(*places, strict=True)) or [(-1,), (-1,)] for places in (pairs, batch)]
    axes = [*lists[0], *lists[1]] if batches or seed % 2 else lists[0] if contracted else []
    got = compute("contract", [a, b], axes, to)
    np.testing.assert_array_equal(got, naive_contract(a, b, pairs, batch, to))


@pytest.mark.parametrize("seed", SEEDS)
def test_contract_is_tensordot(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.random((2, 3, 4, 3)), rng.random((3, 4, 2, 3))
    axes = [((1, 2), (0, 1)), ((3,), (3,)), ((0, 2, 1), (2, 1, 3)), ((2, 3, 0, 1), (1, 0, 2, 3))][seed % 4]
    got = compute("contract", [a, b], axes, DOUBLE)
    np.testing.assert_allclose(got, np.atleast_1d(np.tensordot(a, b, axes)), rtol=1e-12)


def test_contract_of_batches_is_matmul() -> None:
    rng = np.random.default_rng(1)
    a, b = random_array(rng, I8, (2, 3, 4, 5)), random_array(rng, I8, (2, 3, 5, 6))
    got = compute("contract", [a, b], [(3,), (2,), (0, 1), (0, 1)], I32)
    np.testing.assert_array_equal(got, compute("matmul", [a, b], [], I32))


# Convolution ---------------------------------------------------------------------------------------------------------


def naive_convolution(x: Array, w: Array, strides: Numbers, holes_x: Numbers, holes_w: Numbers, to: Type) -> Array:
    """For each output: every channel of the group, every position of the kernel, if it lies on an element of `x`."""
    groups = x.shape[1] // w.shape[1]
    spread = [(e - 1) * (h + 1) + 1 for e, h in zip(x.shape[2:], holes_x, strict=True)]
    reach = [(e - 1) * (h + 1) + 1 for e, h in zip(w.shape[2:], holes_w, strict=True)]
    extents = [(s - r) // stride + 1 for s, r, stride in zip(spread, reach, strides, strict=True)]

    def value(position: tuple[int, ...]) -> Any:
        n, o, *place = position
        total: Any = 0
        for c, *k in itertools.product(range(w.shape[1]), *map(range, w.shape[2:])):
            at = [p * s + i * (h + 1) for p, s, i, h in zip(place, strides, k, holes_w, strict=True)]
            if any(i % (h + 1) for i, h in zip(at, holes_x, strict=True)):
                continue
            channel = o // (w.shape[0] // groups) * w.shape[1] + c
            index = tuple(i // (h + 1) for i, h in zip(at, holes_x, strict=True))
            total += number(x[(n, channel, *index)]) * number(w[(o, c, *k)])
        return total

    return filled((x.shape[0], w.shape[0], *extents), to, value)


@pytest.mark.parametrize(("seed", "element", "to"), cases(60))
def test_convolution(seed: int, element: Type, to: Type) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    groups, inside, filters = (int(k) for k in rng.integers(1, 4, 3))
    strides, holes_x, holes_w = (ints(rng, low, low + 3, rank) for low in (1, 0, 0))
    kernel = ints(rng, 1, 4, rank)
    least = [-(-(k - 1) * (h + 1) // (g + 1)) + 1 for k, h, g in zip(kernel, holes_w, holes_x, strict=True)]
    x = random_array(rng, element, (2, groups * inside, *(e + int(rng.integers(4)) for e in least)))
    w = random_array(rng, element, (groups * filters, inside, *kernel))
    ignored = ints(rng, -5, 5, 2)
    full = bool(seed % 2)
    vectors = [[*ignored, *v] if full else v for v in (strides, holes_x, holes_w)]
    got = compute("convolution", [x, w], vectors, to)
    np.testing.assert_array_equal(got, naive_convolution(x, w, strides, holes_x, holes_w, to))


@pytest.mark.parametrize("multiplier", [1, 3])
def test_depthwise_convolution(multiplier: int) -> None:
    """As many groups as channels: each filter sees one of them."""
    rng = np.random.default_rng(multiplier)
    x, w = random_array(rng, I16, (2, 5, 6, 7)), random_array(rng, I16, (5 * multiplier, 1, 3, 2))
    got = compute("convolution", [x, w], [], I32)
    for o in range(5 * multiplier):
        plane = [compute("convolution", [x[n, o // multiplier], w[o, 0]], [], I32) for n in range(2)]
        np.testing.assert_array_equal(got[:, o], plane)


@pytest.mark.parametrize("seed", SEEDS)
def test_convolution_of_matrices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, w = random_array(rng, FLOAT, ints(rng, 5, 9, 2)), random_array(rng, FLOAT, ints(rng, 1, 3, 2))
    vectors = [ints(rng, low, low + 3, 2) for low in (1, 0, 0)]
    expected = naive_convolution(x[None, None], w[None, None], vectors[0], vectors[1], vectors[2], FLOAT)[0, 0]
    np.testing.assert_array_equal(compute("convolution", [x, w], vectors, FLOAT), expected)


def test_holes_of_the_input_are_zeros_and_those_of_the_kernel_skip() -> None:
    """Zero times infinity is NaN: a hole of `x` under an infinite weight shows, one of `w` over infinity does not."""
    ones, weights = np.ones((1, 3), np.float32), np.array([[np.inf, 1]], np.float32)
    spread = compute("convolution", [ones, weights], [(1, 1), (0, 1), (0, 0)], FLOAT)
    np.testing.assert_array_equal(spread, [[np.inf, np.nan, np.inf, np.nan]])
    skipped = compute("convolution", [weights[:, [1, 0, 1]], ones[:, :2]], [(1, 1), (0, 0), (0, 1)], FLOAT)
    np.testing.assert_array_equal(skipped, [[2]])


def test_convolution_without_vectors_moves_by_one() -> None:
    x, w = np.arange(20, dtype=np.float32).reshape(4, 5), np.array([[1, 10], [100, 1000]], np.float32)
    got = compute("convolution", [x, w], [], FLOAT)
    assert got.shape == (3, 4)
    assert got[1, 2] == x[1, 2] + 10 * x[1, 3] + 100 * x[2, 2] + 1000 * x[2, 3]


# Reductions ----------------------------------------------------------------------------------------------------------

FOLDS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "max": max,
    "min": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def naive_reduce(x: Array, fold: Callable[[Any, Any], Any], window: Numbers, strides: Numbers, element: Type) -> Array:
    extents = [(e - w) // s + 1 for e, w, s in zip(x.shape, window, strides, strict=True)]

    def value(position: tuple[int, ...]) -> Any:
        start = [p * s for p, s in zip(position, strides, strict=True)]
        result: Any = None
        for inside in itertools.product(*map(range, window)):
            element = number(x[tuple(i + k for i, k in zip(start, inside, strict=True))])
            result = element if result is None else fold(result, element)
        return result

    return filled(extents, element, value)


@pytest.mark.parametrize("operation", FOLDS)
@pytest.mark.parametrize("element", ELEMENTS)
def test_reduce(operation: str, element: Type) -> None:
    if operation in {"and", "or", "xor"} and dtype_of(element).kind not in "bi":
        return
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rank = int(rng.integers(1, 4))
        extents = ints(rng, 1, 5, rank)
        window = [int(rng.integers(1, min(e, 3) + 1)) for e in extents]
        strides = ints(rng, 1, 4, rank)
        x = random_array(rng, element, extents)
        got = compute(f"reduce.{operation}", [x], [window, strides], element)
        np.testing.assert_array_equal(got, naive_reduce(x, FOLDS[operation], window, strides, element))


@pytest.mark.parametrize("element", [HALF, BFLOAT, FLOAT, DOUBLE])
@pytest.mark.parametrize("operation", ["max", "min", "add", "mul"])
def test_reductions_propagate_nan(operation: str, element: Type) -> None:
    x = np.array([[1, np.nan, 3], [np.inf, 5, -np.inf]]).astype(dtype_of(element))
    got = compute(f"reduce.{operation}", [x], [(1, 3), (1, 1)], element)
    assert np.isnan(got[0, 0])
    expected = {"max": np.inf, "min": -np.inf}.get(operation)
    assert expected is None or got[1, 0] == expected


def test_narrow_floats_are_summed_without_loss() -> None:
    """4096 ones: a sum in half, or in bfloat, would stop at 2048, or at 256."""
    for element in (HALF, BFLOAT):
        ones = np.ones(4096, dtype_of(element))
        assert compute("reduce.add", [ones], [(4096,), (1,)], element).tolist() == [4096]


@pytest.mark.parametrize("operation", ["and", "or", "xor"])
def test_bits_of_floats_are_not_reduced(operation: str) -> None:
    row = lookup(f"llvm.tensor.reduce.{operation}")
    assert row is not None
    for element in (HALF, BFLOAT, FLOAT, DOUBLE):
        with pytest.raises(RuleError, match="bitwise reductions take integers only"):
            row.infer([TensorType.dense(element, (4,))], [(2,), (1,)], element)


# Pad and concat ------------------------------------------------------------------------------------------------------


def naive_pad(x: Array, low: Numbers, high: Numbers, interior: Numbers, value: Any) -> Array:
    extents = [lo + e + (e - 1) * i + hi for e, lo, hi, i in zip(x.shape, low, high, interior, strict=True)]
    result = np.full(extents, value, x.dtype)
    for position in np.ndindex(*extents):
        moved = [p - lo for p, lo in zip(position, low, strict=True)]
        index = [divmod(m, i + 1) for m, i in zip(moved, interior, strict=True)]
        if all(r == 0 and 0 <= q < e for (q, r), e in zip(index, x.shape, strict=True)):
            result[position] = x[tuple(q for q, _ in index)]
    return result


@pytest.mark.parametrize(("seed", "to"), [(seed, ELEMENTS[seed % len(ELEMENTS)]) for seed in range(60)])
def test_pad(seed: int, to: Type) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    extents = ints(rng, 1, 5, rank)
    interior = ints(rng, 0, 3, rank) if seed % 2 else [0] * rank
    spread = [extent + (extent - 1) * between for extent, between in zip(extents, interior, strict=True)]
    low = [ints(rng, 1 - positions, 4, 1)[0] for positions in spread]
    high = [ints(rng, 1 - positions - min(cut, 0), 4, 1)[0] for positions, cut in zip(spread, low, strict=True)]
    x, value = random_array(rng, to, extents), random_array(rng, to, ())
    dims = [low, high, interior] if seed % 2 else [low, high]
    got = compute("pad", [x], dims, to, [value])
    np.testing.assert_array_equal(got, naive_pad(x, low, high, interior, value))


@pytest.mark.parametrize(("seed", "to"), [(seed, ELEMENTS[seed % len(ELEMENTS)]) for seed in range(40)])
def test_concat(seed: int, to: Type) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    axis = int(rng.integers(rank))
    extents = ints(rng, 1, 5, rank)
    parts = [
        random_array(rng, to, [int(rng.integers(1, 4)) if d == axis else e for d, e in enumerate(extents)])
        for _ in range(int(rng.integers(1, 5)))
    ]
    got = compute("concat", parts, [(axis,)], to)
    start = 0
    for part in parts:
        length = part.shape[axis]
        np.testing.assert_array_equal(np.take(got, range(start, start + length), axis), part)
        start += length
    assert got.shape[axis] == start
