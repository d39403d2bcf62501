"""Each operation of `tlx.graph` against numpy, on random shapes: by the evaluator and as machine code."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from tests.semantics.graph.checks import Array, check, names, random
from tlx.graph import Graph, Value
from tlx.graph.elementwise import RELATIONS
from tlx.graph.value import splat_value

FLOATS = [np.dtype(t) for t in (np.float32, np.float64, np.float16, bfloat16)]
INTEGERS = [np.dtype(t) for t in (np.int8, np.int32, np.int64, np.uint8, np.uint32)]

ROUNDING = 2**-7  # of the narrow floats
BROADCASTS = [((3, 5), (3, 5)), ((4, 1, 6), (5, 1)), ((7,), ()), ((2, 3, 4), (4,)), ((1, 8), (9, 1)), ((), ())]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=names)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum"])
def test_arithmetic_broadcasts(name: str, dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(7)
    for left, right in BROADCASTS[:: 1 if dtype == np.float32 else 3]:
        x, y = random(rng, left, dtype), random(rng, right, dtype)
        check(lambda g, a, b: g.binary(name, a, b), getattr(np, name), x, y, terms=4)


@pytest.mark.parametrize("dtype", FLOATS, ids=names)
def test_floats_divide(dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(8)
    x, y = random(rng, (5, 7), dtype), rng.uniform(1, 2, (7,)).astype(dtype)
    check(lambda _, a, b: a / b, np.divide, x, y)
    check(lambda g, a, b: g.binary("remainder", a, b), np.fmod, x, y, terms=4)
    check(lambda _, a, b: np.fmod(a, b), np.fmod, x, y, terms=4)
    check(lambda _, a, b: a % b, np.remainder, x, y, terms=4)
    check(lambda _, a, b: b**a, lambda a, b: b**a, x, y, terms=4)


def truncated(x: Array, y: Array) -> Array:
    wide = np.where(y == 0, 1, y).astype(object)
    quotient = np.abs(x.astype(object)) // np.abs(wide) * np.where((x < 0) == (y < 0), 1, -1)
    return np.where(y == 0, -1, quotient)


@pytest.mark.parametrize("dtype", INTEGERS, ids=names)
def test_integers_divide_as_in_xla(dtype: np.dtype[Any]) -> None:
    limits = np.iinfo(dtype)
    values = np.array([limits.min, limits.max, 0, 1, 7, 13, limits.max - 1], dtype)
    divisors = np.array([0, 1, 3, limits.max, 5 if dtype.kind == "u" else -1], dtype)
    x, y = (a.copy() for a in np.broadcast_arrays(values[:, None], divisors[None, :]))

    def quotient(a: Array, b: Array) -> Array:
        return (truncated(a, b) & ((1 << limits.bits) - 1)).astype(np.uint64).astype(dtype)

    def rest(a: Array, b: Array) -> Array:
        wide = np.where(b == 0, 1, b).astype(object)
        exact = a.astype(object) - truncated(a, wide) * wide
        return np.where(b == 0, a.astype(object), exact).astype(dtype)

    check(lambda _, a, b: a / b, quotient, x, y)
    check(lambda g, a, b: g.binary("remainder", a, b), rest, x, y)


@pytest.mark.parametrize("dtype", FLOATS, ids=names)
def test_modulo_of_zeros_and_infinities(dtype: np.dtype[Any]) -> None:
    x = np.array([-4, 4, -0.0, 0.0, -0.0, -1, 1, 5, -7.5, 3], dtype)
    y = np.array([2, -2, 2, -2, np.inf, np.inf, -np.inf, 3, 2.5, 0], dtype)
    check(lambda _, a, b: a % b, np.remainder, x, y)
    check(lambda _, a, b: 1 / (a % b), lambda a, b: 1 / np.remainder(a, b), x, y)  # the sign of zeros


@pytest.mark.parametrize("dtype", INTEGERS, ids=names)
def test_modulo_has_the_sign_of_the_divisor(dtype: np.dtype[Any]) -> None:
    limits = np.iinfo(dtype)
    values = np.array([limits.min, limits.max, 0, 1, 7, 13, limits.max - 1], dtype)
    divisors = np.array([1, 3, limits.max, 5 if dtype.kind == "u" else -1, 7 if dtype.kind == "u" else -7], dtype)
    x, y = (a.copy() for a in np.broadcast_arrays(values[:, None], divisors[None, :]))
    check(lambda _, a, b: a % b, np.remainder, x, y)
    check(lambda _, a, b: np.remainder(a, b), np.remainder, x, y)
    check(lambda _, b: values[:, None] % b, lambda b: values[:, None] % b, y)


@pytest.mark.parametrize("dtype", INTEGERS, ids=names)
def test_bits(dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(9)
    x, y = random(rng, (6, 5), dtype), random(rng, (5,), dtype)
    for name in ("and", "or", "xor"):
        check(lambda g, a, b, name=name: g.binary(name, a, b), getattr(np, f"bitwise_{name}"), x, y)
    check(lambda _, a: ~a, np.invert, x)
    bits = np.iinfo(dtype).bits
    amounts = np.array([0, 1, 3, bits - 1, bits], dtype)
    by = np.minimum(amounts, bits - 1)
    left = np.where(amounts < bits, np.left_shift(x, by), 0)
    beyond = 0 if dtype.kind == "u" else np.where(x < 0, -1, 0)
    right = np.where(amounts < bits, np.right_shift(x, by), beyond)
    check(lambda _, a, b: a << b, lambda _, __: left, x, amounts)
    check(lambda _, a, b: a >> b, lambda _, __: right, x, amounts)


def larger(x: Array, y: Array) -> Array:
    return np.where(x > y, x, y)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=names)
def test_comparisons_select(dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(10)
    x, y = random(rng, (6, 5), dtype), random(rng, (6, 1), dtype)
    x[0], y[0] = 1, 1
    if dtype.kind not in "iu":
        x[1, 0] = np.nan
    for relation, ufunc in (("eq", "equal"), ("ne", "not_equal"), ("lt", "less"), ("ge", "greater_equal")):
        check(lambda g, a, b, r=relation: g.compare(r, a, b), getattr(np, ufunc), x, y)
    check(lambda g, a, b: g.where(a > b, a, b), larger, x, y)
    check(lambda g, a: g.clamp(0, a, 1), lambda a: np.clip(a, 0, 1), x)


@pytest.mark.parametrize("dtype", FLOATS, ids=names)
def test_functions(dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(11)
    x = random(rng, (4, 9), dtype)
    for name in ("exp", "exp2", "sin", "cos", "tanh", "floor", "ceil", "sign", "negative", "abs"):
        check(lambda g, a, n=name: g.unary(n, a), getattr(np, name), x, terms=4)
    positive = rng.uniform(0.5, 4, (4, 9)).astype(dtype)
    for name in ("log", "log2", "log10", "sqrt"):
        check(lambda g, a, n=name: g.unary(n, a), getattr(np, name), positive, terms=4)
    check(lambda g, a: g.unary("rsqrt", a), lambda a: 1 / np.sqrt(a), positive, terms=4)
    check(lambda g, a: g.sigmoid(a), lambda a: 1 / (1 + np.exp(-a)), x, terms=4)
    check(lambda g, a: g.unary("round", a * 4.0), lambda a: np.rint(a * 4.0), x)
    check(lambda g, a: g.unary("truncate", a * 4.0), lambda a: np.trunc(a * 4), x)
    x[0, :3] = np.inf, -np.inf, np.nan
    check(lambda g, a: g.unary("is_finite", a), np.isfinite, x)


@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, np.dtype(bool)], ids=names)
@pytest.mark.parametrize("target", [*FLOATS, *INTEGERS, np.dtype(bool)], ids=names)
def test_conversions(source: np.dtype[Any], target: np.dtype[Any]) -> None:
    x = random(np.random.default_rng(12), (5, 6), source)
    if source.kind not in "biu" and target.kind == "u":
        x = np.abs(x)
    check(lambda _, a: a.astype(target), lambda a: a.astype(target), x)


def test_floats_out_of_range_become_the_nearest_integer() -> None:
    x = np.array([1e9, -1e9, np.nan, np.inf, 300, -3], np.float32)
    check(lambda _, a: a.astype("int8"), lambda _: np.array([127, -128, 0, 127, 127, -3]), x)
    check(lambda _, a: a.astype("uint8"), lambda _: np.array([255, 0, 0, 255, 255, 0]), x)


VIEWS: list[tuple[tuple[int, ...], Callable[[Any], Any]]] = [
    ((4, 6), lambda x: x.T),
    ((2, 3, 4), lambda x: x.transpose(1, 2, 0)),
    ((2, 3, 4), lambda x: x.transpose(2, 0, 1).reshape(8, 3)),
    ((2, 3, 4), lambda x: x.transpose((2, 0, 1)).reshape((8, -1))),
    ((2, 3), lambda x: x.reshape([6]).reshape((-1,))),
    ((4, 6), lambda x: x[1:3, 2:]),
    ((4, 6), lambda x: x[:, ::2]),
    ((4, 7), lambda x: x[::2, 1::3]),
    ((4, 7), lambda x: x[-1]),
    ((4, 7), lambda x: x[..., 3]),
    ((4, 7), lambda x: x[1, 2]),
    ((4, 6), lambda x: x[:, None, 1:5].reshape(2, 2, 4)),
    ((4, 6), lambda x: x.reshape(2, 2, 3, 2).transpose(0, 2, 1, 3)),
    ((4, 6), lambda x: x[:3].T[1:4]),
    ((12,), lambda x: x.reshape(3, 4)[:, 1:].T.reshape(9)),
    ((5, 1, 3), lambda x: x.reshape(15)[4:11]),
    ((1, 1), lambda x: x[0, 0]),
    ((8, 9), lambda x: x[::3, ::4].T[::2]),
]


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(bool), np.dtype(bfloat16)], ids=names)
@pytest.mark.parametrize("computed", [False, True], ids=["memory", "vector"])
@pytest.mark.parametrize("case", range(len(VIEWS)))
def test_views(case: int, computed: bool, dtype: np.dtype[Any]) -> None:
    shape, view = VIEWS[case]
    x = random(np.random.default_rng(13), shape, dtype)

    def source(a: Value) -> Value:
        return a.graph.binary("or" if dtype.kind == "b" else "add", a, a) if computed else a

    def doubled(a: Array) -> Array:
        return a + a if computed and dtype.kind != "b" else a

    check(lambda _, a: view(source(a)), lambda a: view(doubled(a)), x)
    if dtype == np.float32:  # and where something reads the view
        check(lambda g, a: g.exp(view(source(a))) * 2.0, lambda a: np.exp(view(doubled(a))) * 2, x, terms=200)
        check(lambda g, a: g.sum(view(source(a))), lambda a: view(doubled(a)).sum(), x, terms=100)


def test_a_pad_keeps_the_order_in_memory() -> None:
    g = Graph()
    x = g.parameter("x", (2, 5, 5, 3))
    g.output(g.pad(g.transpose(x, (0, 3, 1, 2)), (0, 0, 1, 1), (0, 0, 2, 2)))
    low, high = ("<4 x i32> " + f"<i32 0, i32 {n}, i32 {n}, i32 0>" for n in (1, 2))
    assert re.search(rf"@llvm.tensor.pad.*{low}, {high}", g.text())


def test_shapes() -> None:
    rng = np.random.default_rng(14)
    x, y = rng.standard_normal((3, 4)), rng.standard_normal((3, 2))
    check(
        lambda g, a: g.pad(a, (1, 0), (0, 2), number=2.5), lambda a: np.pad(a, ((1, 0), (0, 2)), constant_values=2.5), x
    )
    check(lambda g, a: g.pad(a, (0, -1), (-1, 0)), lambda a: a[:-1, 1:], x)
    check(lambda g, a: g.pad(a, (-3, 0), (2, 1), number=2.5), lambda _: np.full((2, 5), 2.5), x)
    check(
        lambda g, a: g.pad(a.T, (1, 0), (0, 2), number=2.5),
        lambda a: np.pad(a.T, ((1, 0), (0, 2)), constant_values=2.5),
        x,
    )
    spread = np.zeros((5, 4))
    spread[::2] = x
    check(lambda g, a: g.pad(a, (0, 0), (0, 0), (1, 0)), lambda _: spread, x)
    check(lambda g, a, b: g.concatenate([a, b, a], 1), lambda a, b: np.concatenate([a, b, a], 1), x, y)
    check(lambda g, a: g.stack([a.T, a.T + 1.0], -1), lambda a: np.stack([a.T, a.T + 1], -1), x)
    check(lambda g, a: g.reverse(a, 1), lambda a: a[:, ::-1], x)
    check(lambda g, a: g.broadcast(a, (3, 5, 4), (0, 2)), lambda a: np.broadcast_to(a[:, None], (3, 5, 4)), x)
    check(lambda g, a: g.broadcast(a, (2, 3, 4))[:, 1:, ::2], lambda a: np.broadcast_to(a, (2, 3, 4))[:, 1:, ::2], x)
    check(lambda g, a: g.iota((3, 4), 1) + g.convert(a, "int32"), lambda a: np.arange(4) + a.astype(np.int32), x)


def test_constants() -> None:
    table = np.arange(6, dtype=np.float32).reshape(2, 3) - 0.1
    mask = np.array([[True, False, True]])
    x = np.ones((2, 3), np.float32)
    check(lambda g, a: a + table + g.constant(np.full((2, 1), 3, np.float32)), lambda a: a + table + 3, x)
    check(lambda g, a: g.where(g.constant(mask), a, 0.0), lambda a: np.where(mask, a, 0), x)
    half = table.astype(np.float16)
    check(lambda g, a: g.convert(a, "float16") * half, lambda a: a * half.astype(float), x)


@pytest.mark.parametrize("dtype", [np.dtype(np.bool_), *INTEGERS], ids=names)
def test_constants_are_computed_like_variables(dtype: np.dtype[Any]) -> None:
    """What the graph computes itself is what the code computes."""
    limits = [0, 1] if dtype == np.bool_ else [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1, 7, 13, 100]
    numbers = np.array(limits, dtype)
    operations = ["and", "or", "xor", "maximum", "minimum"]
    if dtype != np.bool_:
        operations += ["add", "subtract", "multiply", "divide", "remainder", "shift_left", "shift_right"]

    def results(g: Graph, a: Value, b: Value) -> list[Value]:
        computed = [g.binary(name, a, b) for name in operations]
        computed += [g.compare(relation, a, b) for relation in RELATIONS]
        computed += [g.convert(a, to) for to in ("int8", "uint16", "int64", "float32", "float64", "bool")]
        return [*computed, g.where(a == b, a, b)]

    x, y = (a.copy() for a in np.broadcast_arrays(numbers[:, None], numbers[None, :]))
    graph = Graph("f")
    for value in results(graph, graph.parameter("x", x.shape, dtype), graph.parameter("y", y.shape, dtype)):
        graph.output(value)
    expected = graph.evaluate(x, y)
    for place in np.ndindex(x.shape):
        folded = Graph("g")
        constants = folded.full((), x[place].item(), dtype), folded.full((), y[place].item(), dtype)
        got = [splat_value(value) for value in results(folded, *constants)]
        assert got == [of_all[place].item() for of_all in expected]


def test_a_constant_with_another_sign() -> None:
    graph = Graph()
    graph.output(graph.convert(graph.bitcast(graph.full((2,), 200, "uint8"), "int8"), "int32"))
    graph.output(graph.convert(graph.bitcast(graph.full((2,), -1, "int8"), "uint8"), "float32"))
    signed, unsigned = graph.evaluate()
    np.testing.assert_array_equal(signed, [-56, -56])
    np.testing.assert_array_equal(unsigned, [255, 255])


def test_a_constant_condition_selects_a_view() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    check(lambda g, a: g.where(g.full((), True, "bool"), a[0], 1.0), lambda a: a[0], x)
    check(lambda g, a: g.where(g.full((2, 3), False, "bool"), a, a[:1] * 2), lambda a: np.tile(a[:1] * 2, (2, 1)), x)


def test_divisor_that_is_computed_of_constants() -> None:
    """LLVM multiplies instead of dividing if it sees the divisor."""
    g = Graph("f")
    divisor = g.full((), 1000, "uint32")
    g.output(g.parameter("x", (64,), "uint32") % g.where(divisor == 0, 1, divisor))
    assert "urem <64 x i32> %tovector, splat (i32 1000)" in g.text()


PRODUCTS = [
    ("mk,kn->mn", (5, 7), (7, 3)),
    ("mk,nk->mn", (5, 7), (3, 7)),
    ("km,kn->mn", (7, 5), (7, 3)),
    ("bmk,bkn->bmn", (2, 5, 7), (2, 7, 3)),
    ("bmk,kn->bmn", (2, 5, 7), (7, 3)),
    ("bshd,bthd->bhst", (2, 5, 3, 4), (2, 6, 3, 4)),
    ("bhst,bthd->bshd", (2, 3, 5, 6), (2, 6, 3, 4)),
    ("mkl,kln->mn", (5, 2, 3), (2, 3, 4)),
    ("mkl,lkn->mn", (5, 2, 3), (3, 2, 4)),
    ("k,k->", (9,), (9,)),
    ("k,kn->n", (9,), (9, 4)),
    ("mk,k->m", (4, 9), (9,)),
    ("m,n->mn", (4,), (5,)),
    ("bm,bn->bmn", (3, 4), (3, 5)),
    ("b,b->b", (6,), (6,)),
    ("amk,kbn->ambn", (2, 3, 4), (4, 2, 5)),
    ("kbm,bnk->bmn", (5, 3, 7), (3, 6, 5)),
    ("kbm,bnk->mbn", (5, 3, 7), (3, 6, 5)),
    ("kam,nk->amn", (5, 2, 7), (6, 5)),
    ("kla,nkl->na", (3, 5, 7), (6, 3, 5)),
]


def dot(graph: Graph, equation: str, x: Value, y: Value, dtype: Any = None) -> Value:
    """`numpy.einsum` of two tensors."""
    left, right, result = equation.replace("->", ",").split(",")
    shared = [c for c in left if c in right and c in result]
    summed = [c for c in left if c in right and c not in result]
    batch = [left.index(c) for c in shared], [right.index(c) for c in shared]
    contracting = [left.index(c) for c in summed], [right.index(c) for c in summed]
    order = [*shared, *(c for c in left if c not in right), *(c for c in right if c not in left)]
    return graph.transpose(graph.dot_general(x, y, contracting, batch, dtype), [order.index(c) for c in result])


@pytest.mark.parametrize("dtype", [*FLOATS, np.dtype(np.int32)], ids=names)
@pytest.mark.parametrize("computed", [False, True], ids=["memory", "vector"])
def test_products(computed: bool, dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(15)
    for equation, left, right in PRODUCTS:
        x, y = random(rng, left, dtype), random(rng, right, dtype)

        def build(g: Graph, a: Value, b: Value, equation: str = equation) -> Value:
            return dot(g, equation, *(v + v if computed else v for v in (a, b)))

        factor = 4 if computed else 1
        check(build, lambda a, b, e=equation, f=factor: np.einsum(e, a, b) * f, x, y, terms=200)


def test_product_of_transposed_operands_is_transposed() -> None:
    """Both lie in the order of their columns: the other order of operands reads both row by row."""
    graph = Graph()
    x, y = graph.parameter("x", (5, 3, 7)), graph.parameter("y", (3, 6, 5))
    graph.output(dot(graph, "kbm,bnk->bmn", x, y))
    loads = [line for line in graph.text().splitlines() if "= call token @llvm.tensor.load" in line]
    layouts = [re.findall(r"<3 x i32> <([^>]*)>", line)[1] for line in loads]
    assert layouts == ["i32 0, i32 1, i32 2", "i32 1, i32 0, i32 2"]


@pytest.mark.parametrize(
    ("narrow", "wide"), [(bfloat16, np.float32), (np.float16, np.float32), (np.int8, np.int32), (np.uint8, np.int32)]
)
def test_products_with_wider_sums(narrow: Any, wide: Any) -> None:
    rng = np.random.default_rng(16)
    x, y = random(rng, (5, 40), np.dtype(narrow)), random(rng, (40, 6), np.dtype(narrow))

    def exact(a: Array, b: Array) -> Array:
        return a.astype(np.float64) @ b.astype(np.float64)

    check(lambda g, a, b: g.matmul(a, b, wide), exact, x, y, terms=100)


@pytest.mark.parametrize(
    "shapes", [((3, 4), (4,)), ((4,), (4, 3)), ((4,), (4,)), ((2, 1, 3, 4), (5, 4, 2)), ((6, 3, 4), (4, 2))]
)
def test_matmul_is_that_of_numpy(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    rng = np.random.default_rng(17)
    x, y = (rng.standard_normal(shape) for shape in shapes)
    check(lambda _, a, b: a @ b, np.matmul, x, y, terms=100)


def test_products_of_views() -> None:
    rng = np.random.default_rng(18)
    x, y = rng.standard_normal((6, 8)), rng.standard_normal((8, 10))
    check(lambda _, a, b: a[1:5, ::2] @ b[4:, 3:], lambda a, b: a[1:5, ::2] @ b[4:, 3:], x, y, terms=100)
    check(lambda _, a, b: a[:, :1] @ b[:1], lambda a, b: a[:, :1] @ b[:1], x, y, terms=100)
    check(
        lambda g, a, b: g.broadcast(a[:1], (6, 8)) @ b, lambda a, b: np.broadcast_to(a[:1], (6, 8)) @ b, x, y, terms=100
    )
    check(
        lambda g, a, b: g.broadcast(a[:, :1], (6, 8)) @ b,
        lambda a, b: np.broadcast_to(a[:, :1], (6, 8)) @ b,
        x,
        y,
        terms=100,
    )


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=names)
def test_reductions(dtype: np.dtype[Any]) -> None:
    x = random(np.random.default_rng(19), (3, 4, 5), dtype)
    for axes in (None, 0, (0, 2), -1, (1, 2)):
        for name in ("sum", "max", "min"):
            check(
                lambda g, a, n=name, d=axes: g.reduce(n, a, d), lambda a, n=name, d=axes: getattr(a, n)(d), x, terms=60
            )
        check(lambda g, a, d=axes: g.sum(a, d, keep=True), lambda a, d=axes: a.sum(d, keepdims=True), x, terms=60)
    check(lambda g, a: g.argmax(a, 1), lambda a: a.argmax(1), x)
    check(lambda g, a: g.argmin(a.T, 0), lambda a: a.T.argmin(0), x)
    if dtype in FLOATS:
        check(lambda g, a: g.mean(a, (0, 1)), lambda a: a.mean((0, 1)), x, terms=4)
    check(lambda g, a: g.sum(g.broadcast(a, (2, 3, 4, 5)), (0, 3)), lambda a: a.sum(2) * 2, x, terms=60)


def test_logical_reductions() -> None:
    x = random(np.random.default_rng(20), (4, 3), np.dtype(bool))
    check(lambda g, a: g.reduce("all", a, 1), lambda a: a.all(1), x)
    check(lambda g, a: g.reduce("any", a, 0), lambda a: a.any(0), x)
    check(lambda g, a: g.reduce("any", a), lambda a: a.any(), x)


def test_argmax_of_nan_is_its_place() -> None:
    x = np.array([[1, np.nan, 3], [2, 2, 1]], np.float32)
    check(lambda g, a: g.argmax(a, 1), lambda a: a.argmax(1), x)


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(bfloat16), np.dtype(np.uint8)], ids=names)
def test_pooling(dtype: np.dtype[Any]) -> None:
    x = random(np.random.default_rng(21), (2, 3, 7, 8), dtype)

    def windows(a: Array, number: float) -> Array:
        padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (0, 1)), constant_values=np.array(number).astype(a.dtype))
        return np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (2, 3))[:, :, ::2, ::2]  # pyright: ignore[reportReturnType]

    least = np.iinfo(dtype).min if dtype.kind == "u" else -np.inf
    shape, steps, borders = (1, 1, 3, 2), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (0, 1))
    check(lambda g, a: g.reduce_window("max", a, shape, steps, borders), lambda a: windows(a, least).max((-1, -2)), x)
    check(
        lambda g, a: g.reduce_window("sum", a, shape, steps, borders),
        lambda a: windows(a, 0).sum((-1, -2)),
        x,
        terms=20,
    )


def convolved(x: Array, w: Array, steps: tuple[int, int], hole: int, groups: int) -> Array:
    """NCHW, OIHW, valid."""
    wide = np.zeros((*w.shape[:2], (w.shape[2] - 1) * hole + 1, (w.shape[3] - 1) * hole + 1))
    wide[:, :, ::hole, ::hole] = w
    windows = np.lib.stride_tricks.sliding_window_view(x, wide.shape[2:], (2, 3))[:, :, :: steps[0], :: steps[1]]
    parts = zip(np.split(windows, groups, 1), np.split(wide, groups, 0), strict=True)
    return np.concatenate([np.einsum("nchwkl,ockl->nohw", a, b) for a, b in parts], 1)


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.float64), np.dtype(bfloat16)], ids=names)
def test_convolutions(dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(22)
    x, w = random(rng, (2, 4, 8, 9), dtype), random(rng, (6, 4, 3, 2), dtype)
    check(lambda g, a, b: g.convolution(a, b), lambda a, b: convolved(a, b, (1, 1), 1, 1), x, w, terms=200)

    def padded(a: Array, b: Array) -> Array:
        return convolved(np.pad(a, ((0, 0), (0, 0), (1, 2), (0, 1))), b, (2, 3), 2, 1)

    given: dict[str, Any] = {"strides": (2, 3), "padding": [(1, 2), (0, 1)], "kernel_dilation": 2}
    check(lambda g, a, b: g.convolution(a, b, **given), padded, x, w, terms=200)
    layouts = ("NHWC", "HWIO", "NHWC")
    channels_last = x.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 1, 0).copy()

    def last(a: Array, b: Array) -> Array:
        return padded(a.transpose(0, 3, 1, 2), b.transpose(3, 2, 0, 1)).transpose(0, 2, 3, 1)

    check(lambda g, a, b: g.convolution(a, b, layouts=layouts, **given), last, *channels_last, terms=200)
    grouped = random(rng, (6, 2, 3, 2), dtype)
    check(
        lambda g, a, b: g.convolution(a, b, groups=2), lambda a, b: convolved(a, b, (1, 1), 1, 2), x, grouped, terms=200
    )


def test_transposed_convolution() -> None:
    rng = np.random.default_rng(23)
    x, w = rng.standard_normal((1, 3, 4, 5)), rng.standard_normal((2, 3, 3, 3))
    spread = np.zeros((1, 3, 7, 9))
    spread[:, :, ::2, ::2] = x
    wide = np.pad(spread, ((0, 0), (0, 0), (1, 1), (1, 1)))
    check(
        lambda g, a, b: g.convolution(a, b, input_dilation=2, padding=[(1, 1), (1, 1)]),
        lambda _, b: convolved(wide, b, (1, 1), 1, 1),
        x,
        w,
        terms=200,
    )


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("padding", [[(3, 2), (4, 4)], [(-1, 9), (5, -2)], [(0, 3), (0, 1)]], ids=str)
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
def test_few_positions_of_a_large_kernel_over_a_dilated_input(
    strides: tuple[int, int], padding: list[tuple[int, int]], groups: int
) -> None:
    rng = np.random.default_rng(26)
    x, w = rng.standard_normal((3, 4, 5, 6)), rng.standard_normal((4, 4 // groups, 9, 12))
    spread = np.zeros((3, 4, 9, 16))
    spread[:, :, ::2, ::3] = x
    wide = np.pad(spread, ((0, 0), (0, 0), *((max(0, a), max(0, b)) for a, b in padding)))
    cut = [slice(max(0, -a), extent - max(0, -b)) for (a, b), extent in zip(padding, wide.shape[2:], strict=True)]
    wide = wide[:, :, cut[0], cut[1]]
    given: dict[str, Any] = {"strides": strides, "padding": padding, "input_dilation": (2, 3), "groups": groups}
    check(
        lambda g, a, b: g.convolution(a, b, **given),
        lambda _, b: convolved(wide, b, strides, 1, groups),
        x,
        w,
        terms=600,
    )


def test_a_dilated_input_becomes_the_kernel_under_a_larger_one() -> None:
    """The holes are then steps, and no zeros in memory."""
    g = Graph("f")
    x, w = g.parameter("x", (8, 4, 16, 16), "float32"), g.parameter("w", (3, 4, 32, 32), "float32")
    g.output(g.convolution(x, w, input_dilation=2, padding=[(2, 1), (2, 1)]), "y")
    text = g.text()
    pad = next(line for line in text.splitlines() if "call" in line and "tensor.pad" in line)
    assert "<4 x i32> <i32 0, i32 0, i32 0, i32 0>, <4 x i32> <i32 0, i32 0, i32 1, i32 1>" in pad
    (convolution,) = (line for line in text.splitlines() if "call" in line and "tensor.convolution" in line)
    assert "<2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 1, i32 1>" in convolution


def test_same_padding_divides_the_extent_by_the_stride() -> None:
    x, w = np.ones((1, 1, 7, 8), np.float32), np.ones((1, 1, 3, 3), np.float32)
    wide = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 1)))
    check(lambda g, a, b: g.convolution(a, b, 2, "same"), lambda _, b: convolved(wide, b, (2, 2), 1, 1), x, w)


def test_one_dimensional_convolution() -> None:
    rng = np.random.default_rng(24)
    x, w = rng.standard_normal((2, 3, 9)), rng.standard_normal((4, 3, 2))
    windows = np.lib.stride_tricks.sliding_window_view(x, 2, 2)
    check(lambda g, a, b: g.convolution(a, b), lambda _, b: np.einsum("ncxk,ock->nox", windows, b), x, w, terms=100)


@pytest.mark.parametrize("dtype", FLOATS, ids=names)
def test_composites(dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(25)
    x, scale = random(rng, (4, 3, 10), dtype), random(rng, (10,), dtype)

    def softmax(a: Array, axis: int) -> Array:
        powers = np.exp(a - a.max(axis, keepdims=True))
        return powers / powers.sum(axis, keepdims=True)

    def norm(a: Array, b: Array) -> Array:
        return (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-5) * b + b

    check(lambda g, a: g.softmax(a), lambda a: softmax(a, -1), x, terms=4)
    check(lambda g, a: g.softmax(a, 0), lambda a: softmax(a, 0), x, terms=4)
    check(lambda g, a, b: g.layer_norm(a, b, b), norm, x, scale, terms=40)
    check(lambda g, a: g.silu(a), lambda a: a / (1 + np.exp(-a)), x, terms=4)
    check(
        lambda g, a: g.gelu(a), lambda a: a / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3))), x, terms=8
    )


@pytest.mark.parametrize("target", ["native", "generic"])
@pytest.mark.parametrize("name", ["gelu", "silu"])
@np.errstate(all="ignore")
def test_activations_of_bfloats(name: str, target: str) -> None:
    """They are within 0.53 ulp, although their factors have an error of 2^-14."""
    x = np.arange(1 << 16, dtype=np.uint16).view(bfloat16)
    x = x[np.abs(x.astype(np.float64)) < 80]
    graph = Graph()
    value = graph.parameter("x", x.shape, x.dtype)
    graph.output(graph.silu(value) if name == "silu" else graph.gelu(value))
    assert graph.text().count("!tlx.short") == 1
    wide = x.astype(np.float64)
    exponent = wide if name == "silu" else np.sqrt(8 / np.pi) * (wide + 0.044715 * wide**3)
    expected = wide / (1 + np.exp(-exponent))
    ulp = np.exp2(np.floor(np.log2(np.maximum(np.abs(expected), 2.0**-126))) - 7)
    error = np.abs(graph.compile(target)(x).astype(np.float64) - expected)
    assert np.max(error / ulp) < 0.53


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.float16), np.dtype(bfloat16)], ids=names)
def test_error_function(dtype: np.dtype[Any]) -> None:
    x = np.concatenate([np.linspace(-6, 6, 401), [1e-20, -0.0]]).astype(dtype)
    bound = 2**-21 if dtype == np.float32 else ROUNDING
    check(lambda g, a: g.erf(a), np.vectorize(math.erf), x, tolerance=bound / 4, terms=0)


@pytest.mark.parametrize("dtype", [np.dtype(t) for t in (np.float64, np.float32, np.float16, bfloat16)], ids=names)
def test_complementary_error_function(dtype: np.dtype[Any]) -> None:
    """The error is relative, also in the tail, where 1 - erf would cancel; below the normal numbers, it may be 0."""
    x = np.concatenate([np.linspace(-6, 9.194, 2001), [1e-20, -0.0, 9.3, 40, np.inf, -np.inf]]).astype(dtype)
    graph = Graph()
    graph.output(graph.erfc(graph.parameter("x", x.shape, dtype)))
    expected = np.vectorize(math.erfc)(x.astype(np.float64))
    least = {np.dtype(np.float16): 2.0**-14, np.dtype(np.float64): 0}.get(dtype, 2.0**-126)
    bound = {np.dtype(np.float32): 4 * 2.0**-23, np.dtype(np.float64): 6 * 2.0**-52}.get(dtype, ROUNDING)
    for function in (graph.evaluate, graph.compile(), graph.compile("generic")):
        np.testing.assert_allclose(function(x).astype(np.float64), expected, rtol=bound, atol=least)


def test_multiply_add() -> None:
    x, y = np.random.default_rng(27).uniform(-2, 2, (2, 3, 4)).astype(np.float32)
    check(lambda g, a, b: g.multiply_add(a, b, a), lambda a, b: a * b + a, x, y, terms=4)
    check(lambda g, a, b: g.multiply_add(a, b[0], 1.5), lambda a, b: a * b[0] + 1.5, x, y, terms=4)


def test_reshape_of_the_first_elements_of_a_result() -> None:
    x = np.arange(16, dtype=np.float32)
    check(lambda _, a: (a * 2.0)[:15].reshape(3, 5), lambda a: (a * 2)[:15].reshape(3, 5), x)
    check(lambda g, a: g.exp((a * 0.5)[:12].reshape(2, 6).T), lambda a: np.exp(a * 0.5)[:12].reshape(2, 6).T, x)


def test_equality_is_elementwise() -> None:
    x = np.array([[1, 2, 3], [1, 5, 3]], np.float32)
    check(lambda g, a: g.where(a == 1, a, -a), lambda a: a * np.array([[1, -1, -1], [1, -1, -1]], a.dtype), x)
    check(lambda _, a: a != a.T.T[:1], lambda a: a != a[:1], x)


def test_iteration_is_along_the_first_dimension() -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)

    def combined(_: Graph, a: Any) -> Any:
        first, second, third = a
        return first - second * third

    check(combined, lambda a: a[0] - a[1] * a[2], x)
    with pytest.raises(TypeError, match="a scalar of a graph has no first dimension to iterate over"):
        list(Graph().parameter("x", ()))


def test_functions_of_numpy_on_each_element() -> None:
    x, y = np.random.default_rng(20).uniform(0.5, 2, (2, 3, 4))
    check(lambda _, a: np.sqrt(np.exp(a)), lambda a: np.sqrt(np.exp(a)), x)
    check(lambda _, a: np.add(y, a) * np.absolute(a), lambda a: (y + a) * np.abs(a), x)
    check(lambda _, a: y - y / a, lambda a: y - y / a, x)
    check(lambda _, a: (y.T @ a) % 3.0, lambda a: (y.T @ a) % 3, x)
    check(lambda _, a: y < a, lambda a: y < a, x)


def test_reductions_by_any_function() -> None:
    x, y = np.random.default_rng(21).uniform(-1, 1, (2, 3, 5, 4))

    def composed(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
        return a * c, b * c + d  # of linear functions; the order matters

    for axes, keep in ((1, False), ((0, 2), True), (None, False)):
        along = tuple(range(3)) if axes is None else (axes,) if isinstance(axes, int) else axes
        expected = x.transpose([*along, *(d for d in range(3) if d not in along)]).reshape(-1, *np.sum(x, along).shape)
        other = y.transpose([*along, *(d for d in range(3) if d not in along)]).reshape(expected.shape)
        slope: Any = np.full(expected.shape[1:], 2.0)
        shift: Any = np.full(expected.shape[1:], 0.5)
        for a, b in zip(expected, other, strict=True):
            slope, shift = slope * a, shift * a + b
        shape = np.sum(x, along, keepdims=keep).shape
        results: list[Any] = [slope.reshape(shape), shift.reshape(shape)]
        for k in range(2):

            def build(g: Any, a: Any, b: Any, k: int = k, axes: Any = axes, keep: bool = keep) -> Any:
                return g.fold(composed, (a, b), (2.0, 0.5), axes, keep=keep)[k]

            def reference(_a: Any, _b: Any, k: int = k, results: Any = results) -> Any:
                return results[k]

            check(build, reference, x, y)
    check(lambda g, a: g.fold(g.maximum, a, -9.0, 1), lambda a: a.max(1), x)
