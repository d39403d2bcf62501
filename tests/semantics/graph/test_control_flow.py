"""Loops, conditionals and switches of `tlx.graph` against Python, by the evaluator and as machine code."""

# ruff: noqa: ARG005 (all bodies take the same)
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.semantics.graph.checks import Array, random, same
from tlx.diagnostics import UsageError
from tlx.graph import Graph, Value

SHAPES = [(), (1,), (3, 5), (70, 80)]  # registers, the stack, the heap


def number(n: int) -> Array:
    return np.array(n, np.int64)


# Loops


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("trips", [0, 1, 7])
def test_loop_of_a_counter_and_a_tensor(trips: int, shape: tuple[int, ...]) -> None:
    x = random(np.random.default_rng(1), shape, np.dtype(np.float32))

    def build(g: Any, a: Value, n: Value) -> Any:
        return g.while_loop(lambda i, _: i < n, lambda i, v: (i + 1, g.tanh(v) * 2.0 + v), 0, a)

    wide = x.astype(np.float64)
    for _ in range(trips):
        wide = np.tanh(wide) * 2 + wide
    same(build, (trips, wide), x, number(trips))


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.int64, np.float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_element_types(shape: tuple[int, ...], dtype: Any) -> None:
    x = random(np.random.default_rng(2), shape, np.dtype(dtype))

    def body(i: Value, v: Value) -> Any:
        return i - 1, ~v if v.dtype.kind == "b" else v + v

    expected = ~x if x.dtype.kind == "b" else x * x.dtype.type(8)

    def build(g: Any, a: Value) -> Any:
        return g.while_loop(lambda i, _: i > 0, body, 3, a)

    same(build, (0, expected), x)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("trips", [0, 1, 4, 5])
def test_states_that_change_places(trips: int, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    x, y, z = (random(rng, shape, np.dtype(np.float32)) for _ in range(3))

    def build(g: Any, n: Value, *state: Value) -> Any:
        return g.while_loop(lambda i, *_: i < n, lambda i, a, b, c: (i + 1, b, c, a), 0, *state)

    turned = [x, y, z][trips % 3 :] + [x, y, z][: trips % 3]
    same(build, (trips, *turned), number(trips), x, y, z)


BODIES: dict[str, Callable[[Any, Any, Any, Any], tuple[Any, Any]]] = {
    "swap": lambda _, i, x, y: (y, x),
    "shift": lambda _, i, x, y: (y, (x + y) * 0.5),
    "step": lambda g, i, x, y: (x * 1.5 - y * 0.5 + g.reverse(x, 0) * 0.1, x),
    "product": lambda _, i, x, y: (x @ y * 0.1, x),
    "update": lambda g, i, x, y: (g.dynamic_update_slice(y, x[:1] * 2.0, (i, 0)), x),
    "same": lambda _, i, x, y: (y, y),
}


class OnArrays:
    """The methods of a graph that the bodies call, on arrays."""

    def reverse(self, x: Array, axis: int) -> Array:
        return np.flip(x, axis)

    def dynamic_update_slice(self, x: Array, new: Array, starts: tuple[int, int]) -> Array:
        result = x.copy()
        result[starts[0] : starts[0] + 1] = new
        return result


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_large_states_that_change_places(trips: int, name: str) -> None:
    """Two tensors, elements that depend on the iteration, and a third tensor, which stays where it is."""
    rng, body = np.random.default_rng(7), BODIES[name]
    x, y, z = (random(rng, (40, 40), np.dtype(np.float32)) * 0.5 for _ in "xyz")

    def build(g: Any, a: Value, b: Value, c: Value, n: Value) -> Any:
        def step(i: Value, p: Value, q: Value, r: Value) -> Any:
            return (i + 1, *body(g, i, p, q), r + p)

        return g.while_loop(lambda i, *_: i < n, step, 0, a, b, c)

    p, q, r = (v.astype(np.float64) for v in (x, y, z))
    for i in range(trips):
        (p, q), r = body(OnArrays(), i, p, q), r + p
    same(build, (trips, p, q, r), x, y, z, number(trips))


@pytest.mark.parametrize(("name", "stores"), [("swap", 0), ("shift", 2)])
def test_large_states_that_change_places_are_not_copied(name: str, stores: int) -> None:
    """Between the two tests of the loop, only what is new is stored: once in each iteration."""
    graph = Graph("f")
    a, b, n = graph.parameter("a", (40, 40)), graph.parameter("b", (40, 40)), graph.parameter("n", (), "int64")
    body = BODIES[name]

    def holds(i: Value, *_: Value) -> Value:
        return i < n

    def step(i: Value, x: Value, y: Value) -> Any:
        return (i + 1, *body(graph, i, x, y))

    states = graph.while_loop(holds, step, 0, a, b)
    for k, state in enumerate(states):
        graph.output(state, f"out{k}")
    loop = graph.text().partition("\nwhile:")[2].partition("\nback:")[0]
    assert loop.count("call void @llvm.tensor.store") == stores


MOVES: dict[str, Callable[..., tuple[Any, ...]]] = {
    "rotate": lambda a, b, c: (b, c, a),
    "rotate back": lambda a, b, c: (c, a, b),
    "queue": lambda a, b, c: ((a + b + c) * 0.3, a, b),
    "products": lambda a, b, c: (b, c, a @ b * 0.1),
    "twice": lambda a, b, c: (b, b, a),
    "three and two": lambda a, b, c, d, e: (b, c, a, e + 1.0, d),
    "four and three": lambda a, b, c, d, e, f, g: (b, c, d, a, f, g, e),
    "seven": lambda a, b, c, d, e, f, g: (b, c, d, e, f, g, a),
    "some": lambda a, b, c, d, e: (d, b, a + c, c, e + d),
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("trips", [0, 1, 2, 3, 8])
def test_large_states_that_move_in_cycles(trips: int, name: str) -> None:
    """Elements that depend on the iteration go with them."""
    rng, move = np.random.default_rng(8), MOVES[name]
    arrays = [random(rng, (40, 40), np.dtype(np.float32)) * 0.5 for _ in range(move.__code__.co_argcount)]

    def build(g: Any, n: Value, *state: Value) -> Any:
        return g.while_loop(lambda i, *_: i < n, lambda i, *s: (i + 1, *move(*s)), 0, *state)

    expected = tuple(x.astype(np.float64) for x in arrays)
    for _ in range(trips):
        expected = move(*expected)
    same(build, (trips, *expected), number(trips), *arrays)


def test_random_moves_of_large_states() -> None:
    rng = np.random.default_rng(9)
    for _ in range(6):
        count, trips = int(rng.integers(2, 6)), int(rng.integers(0, 8))
        sources, renewed = rng.integers(0, count, count), rng.random(count) < 0.3
        arrays = [random(rng, (33, 40), np.dtype(np.float32)) for _ in range(count)]

        def move(*s: Any, sources: Any = sources, renewed: Any = renewed) -> tuple[Any, ...]:
            return tuple(s[k] * 0.5 + 1.0 if new else s[k] for k, new in zip(sources, renewed, strict=True))

        def build(g: Any, n: Value, *state: Value, move: Any = move) -> Any:
            return g.while_loop(lambda i, *_: i < n, lambda i, *s: (i + 1, *move(*s)), 0, *state)

        expected = tuple(x.astype(np.float64) for x in arrays)
        for _ in range(trips):
            expected = move(*expected)
        same(build, (trips, *expected), number(trips), *arrays)


@pytest.mark.parametrize(("name", "bodies", "stores"), [("rotate", 3, 0), ("queue", 3, 3), ("three and two", 6, 6)])
def test_large_states_that_move_in_cycles_are_not_copied(name: str, bodies: int, stores: int) -> None:
    """In the loop, only what is new is stored, once in each iteration; behind each exit but one, all that moved."""
    graph, move = Graph("f"), MOVES[name]
    state = [graph.parameter(f"x{k}", (40, 40)) for k in range(move.__code__.co_argcount)]
    n = graph.parameter("n", (), "int64")

    def holds(i: Value, *_: Value) -> Value:
        return i < n

    def step(i: Value, *old: Value) -> Any:
        return (i + 1, *move(*old))

    states = graph.while_loop(holds, step, 0, *state)
    for k, x in enumerate(states):
        graph.output(x, f"out{k}")
    parts = re.split(r"\n(?=\w[\w.]*:)", graph.text().partition("\nwhile:")[2])
    count = {"back": 0, "do": 0}
    for part in parts:
        kind = next((kind for kind in count if re.match(rf"{kind}(\.\d+)?:", part)), None)
        if kind == "back":
            count["back"] += 1
        elif kind == "do":
            count["do"] += part.count("call void @llvm.tensor.store")
    assert count == {"back": bodies - 1, "do": stores}


def test_state_that_stays_is_not_copied() -> None:
    rng = np.random.default_rng(4)
    x, w = (random(rng, (40, 40), np.dtype(np.float32)) for _ in range(2))

    def build(g: Any, a: Value, b: Value) -> Any:
        def body(i: Value, v: Value, weight: Value) -> Any:
            def inner(k: Value, u: Value, same_weight: Value) -> Any:
                return k + 1, g.tanh(u @ same_weight * 0.1), same_weight

            return (i + 1, *g.while_loop(lambda k, *_: k < 2, inner, 0, v, weight)[1:])

        return g.while_loop(lambda i, *_: i < 3, body, 0, a, b)[1]

    expected = x.astype(np.float64)
    for _ in range(6):
        expected = np.tanh(expected @ w * 0.1)
    graph = same(build, (expected,), x, w)
    assert "alloca" not in graph.text()  # the weight is read where it is, the state is in the output


def test_condition_reads_and_updates_tensors() -> None:
    x = np.array([1, 2, 3], np.float32)

    def build(g: Any, a: Value) -> Any:
        def condition(v: Value) -> Value:
            return g.sum(g.dynamic_update_slice(v, v[:1] * 0.0, (0,))) < 40.0

        return g.while_loop(condition, lambda v: v * 2.0, a)

    same(build, (x * 8,), x)


def test_values_of_the_function_are_used_inside() -> None:
    rng = np.random.default_rng(5)
    x, y = (random(rng, (6, 6), np.dtype(np.float32)) for _ in range(2))

    def build(g: Any, a: Value, b: Value) -> Any:
        early, late = g.exp(b), b.T * 2.0
        result = g.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * 0.5 + early), 0, a)[1]
        return result + late, early

    wide, other = x.astype(np.float64), np.exp(y.astype(np.float64))
    for _ in range(3):
        wide = wide * 0.5 + other
    same(build, (wide + y.T * 2, other), x, y)


@pytest.mark.parametrize("shape", [(8, 4), (80, 64)])
def test_updates_in_place(shape: tuple[int, ...]) -> None:
    x = random(np.random.default_rng(6), shape, np.dtype(np.float32))

    def build(g: Any, a: Value) -> Any:
        def body(i: Value, v: Value) -> Any:
            row = g.dynamic_slice(v, (i, 0), (1, shape[1]))
            return i + 1, g.dynamic_update_slice(v, g.tanh(row + 1.0), (i + 1, 0))

        return g.while_loop(lambda i, _: i < shape[0] - 1, body, 0, a * 0.0)[1]

    expected = np.zeros(shape)
    for i in range(shape[0] - 1):
        expected[i + 1] = np.tanh(expected[i] + 1)
    graph = same(build, (expected,), x)
    assert graph.text().count("call void @llvm.tensor.store") == 2  # the initial value, a row


def test_old_versions_are_still_there() -> None:
    """What is read after an update in place has the elements from before it."""
    x = random(np.random.default_rng(7), (5, 3), np.dtype(np.float32))

    def build(g: Any, a: Value) -> Any:
        def body(i: Value, v: Value, total: Value) -> Any:
            row = g.dynamic_slice(v, (i, 0), (1, 3))
            new = g.dynamic_update_slice(v, row + 1.0, (i, 0))
            newer = g.dynamic_update_slice(new, row * 2.0, (0, 0))
            return i + 1, newer, total + v + new * 0.5 + row

        first = g.dynamic_update_slice(a, a[1:2], (0, 0))
        final = g.while_loop(lambda i, *_: i < 4, body, 0, first, a * 0.0)
        return final[1], final[2], first

    v = x.astype(np.float64)
    v[0] = v[1]
    first, total = v.copy(), np.zeros((5, 3))
    for i in range(4):
        row = v[i].copy()
        new = v.copy()
        new[i] = row + 1
        total += v + new * 0.5 + row
        new[0] = row * 2
        v = new
    same(build, (v, total, first), x)


def test_state_passed_twice() -> None:
    x = random(np.random.default_rng(8), (4, 4), np.dtype(np.float32))

    def build(g: Any, a: Value) -> Any:
        start = g.dynamic_update_slice(a, a[:1] * 3.0, (1, 0))

        def body(i: Value, v: Value, w: Value) -> Any:
            return i + 1, g.dynamic_update_slice(v, w[:1] + 1.0, (i, 0)), w * 2.0 + start

        return (*g.while_loop(lambda i, *_: i < 3, body, 0, start, start), start)

    start = x.astype(np.float64)
    start[1] = start[0] * 3
    v, w = start.copy(), start.copy()
    for i in range(3):
        v[i] = w[0] + 1
        w = w * 2 + start
    same(build, (3, v, w, start), x)


def test_states_with_extents_of_one() -> None:
    x = random(np.random.default_rng(15), (6,), np.dtype(np.float32))

    def build(g: Any, a: Value) -> Any:
        def body(i: Value, v: Value, w: Value) -> Any:
            row = g.dynamic_slice(w, (0, i), (1, 1))
            return i + 1, g.dynamic_update_slice(v.reshape(1, 6, 1), row[None] * 3.0, (0, i, 0)).reshape(6, 1), w

        first = g.dynamic_update_slice(a, a[:1] + 1.0, (2,))
        return g.while_loop(lambda i, *_: i < 4, body, 0, first.reshape(6, 1), (a * 2.0).reshape(1, 6))[1:]

    expected = x.copy()
    expected[2] = x[0] + 1
    expected[:4] = x[:4] * 6
    graph = same(build, (expected[:, None], x[None] * 2), x)
    assert graph.text().count("call void @llvm.tensor.store") == 4  # two updates, two initial values


def test_loops_in_loops() -> None:
    x = random(np.random.default_rng(9), (5, 6), np.dtype(np.float32))

    def build(g: Any, a: Value) -> Any:
        def outer(i: Value, v: Value) -> Any:
            def inner(k: Value, u: Value) -> Any:
                left = g.dynamic_slice(u, (i, k), (1, 1))
                return k + 1, g.dynamic_update_slice(u, left + g.convert(k, "float32"), (i, k + 1))

            return i + 1, g.while_loop(lambda k, _: k < i, inner, 0, v)[1]

        return g.while_loop(lambda i, _: i < 5, outer, 0, a)[1]

    expected = x.astype(np.float64)
    for i in range(5):
        for k in range(i):
            expected[i, k + 1] = expected[i, k] + k
    graph = same(build, (expected,), x)
    assert graph.text().count("call void @llvm.tensor.store") == 2  # the initial value, one element


# Branches


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("chosen", [False, True])
def test_conditional(chosen: bool, shape: tuple[int, ...]) -> None:
    x = random(np.random.default_rng(10), shape, np.dtype(np.float32))

    def build(g: Any, p: Value, a: Value) -> Any:
        outside = a * 3.0
        return g.conditional(p, lambda v: (v + outside, v, 1), lambda v: (g.exp(v), outside, 2), a)

    wide = x.astype(np.float64)
    expected = (wide * 4, wide, 1) if chosen else (np.exp(wide), wide * 3, 2)
    same(build, expected, np.array(chosen), x)


@pytest.mark.parametrize("chosen", [False, True])
def test_updates_in_branches(chosen: bool) -> None:
    x = random(np.random.default_rng(11), (4, 5), np.dtype(np.float32))

    def build(g: Any, p: Value, a: Value) -> Any:
        first = g.dynamic_update_slice(a, a[:1] * 2.0, (1, 0))

        def changed(v: Value) -> Value:
            new = g.dynamic_update_slice(v, v[1:2] + 1.0, (2, 0))
            return g.dynamic_update_slice(new, v[2:3] + new[2:3], (3, 0))

        (second,) = g.conditional(p, changed, lambda v: v, first)
        third = g.dynamic_update_slice(second, second[3:] * 5.0, (0, 0))
        return first, second, third

    first = x.astype(np.float64)
    first[1] = first[0] * 2
    second = first.copy()
    if chosen:
        second[2] = first[1] + 1
        second[3] = first[2] + second[2]
    third = second.copy()
    third[0] = second[3] * 5
    same(build, (first, second, third), np.array(chosen), x)


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 3])
def test_switch(index: int) -> None:
    x = random(np.random.default_rng(12), (3, 3), np.dtype(np.float32))

    def build(g: Any, k: Value, a: Value) -> Any:
        return g.switch(k, [lambda v: v * 2.0, g.transpose, lambda v: v @ v], a)

    wide = x.astype(np.float64)
    expected = {0: wide * 2, 1: wide.T}.get(index, wide @ wide)
    same(build, (expected,), number(index), x)


def test_conditional_in_a_loop_in_a_branch() -> None:
    x = random(np.random.default_rng(13), (6, 4), np.dtype(np.float32))

    def build(g: Any, a: Value) -> Any:
        def body(i: Value, v: Value) -> Any:
            row = g.dynamic_slice(v, (i, 0), (1, 4))
            even = g.equal(i % 2, 0)
            (new,) = g.conditional(even, lambda u: g.dynamic_update_slice(u, row * 2.0, (i, 0)), lambda u: u, v)
            return i + 1, new

        def looped(v: Value) -> Value:
            return g.while_loop(lambda i, _: i < 6, body, 0, v)[1]

        return g.conditional(g.sum(a) < 1e9, looped, lambda v: v * 0.0, a)

    expected = x.astype(np.float64)
    expected[::2] *= 2
    same(build, (expected,), x)


# A model


def test_greedy_decoding_with_a_cache() -> None:
    """Each step writes a row of keys and values, attends to all rows so far, and chooses the next token."""
    rng = np.random.default_rng(14)
    words, steps, width = 11, 6, 8
    table, q, k, v = (rng.standard_normal(s).astype(np.float32) for s in ((words, width), *[(width, width)] * 3))

    def build(g: Any, first: Value) -> Any:
        embedding, wq, wk, wv = (g.weight(n, w) for n, w in zip("tqkv", (table, q, k, v), strict=True))

        def step(i: Value, token: Value, keys: Value, values: Value, tokens: Value) -> Any:
            x = g.take(embedding, token.reshape(1))
            keys = g.dynamic_update_slice(keys, x @ wk, (i, 0))
            values = g.dynamic_update_slice(values, x @ wv, (i, 0))
            scores = g.where(g.iota((1, steps), 1, "int64") <= i, (x @ wq) @ keys.T, -1e9)
            token = g.argmax((g.softmax(scores) @ values) @ embedding.T, 1)
            return i + 1, token.reshape(), keys, values, g.dynamic_update_slice(tokens, token, (i,))

        cache = g.full((steps, width), 0.0)
        return g.while_loop(lambda i, *_: i < steps, step, 0, first, cache, cache, g.full((steps,), 0, "int32"))[4]

    tokens, keys, values, token = list[int](), list[Any](), list[Any](), 3
    for _ in range(steps):
        x = table[token].astype(np.float64)
        keys.append(x @ k)
        values.append(x @ v)
        scores = np.stack(keys) @ (x @ q)
        powers = np.exp(scores - scores.max())
        token = int((powers / powers.sum() @ np.stack(values) @ table.T).argmax())
        tokens.append(token)
    same(build, (np.array(tokens),), np.array(3, np.int32))


# Errors


ERRORS: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda g, x: g.while_loop(lambda v: v, lambda v: v, x), "while_loop: the condition is Value(float32[2, 3])"),
    (lambda g, x: g.while_loop(lambda _: True, lambda v: (v, v), x), "while_loop: the body returns 2 values inst"),
    (lambda g, x: g.while_loop(lambda _: True, g.transpose, x), "while_loop: the body returns Value(float32[3,"),
    (lambda g, x: g.conditional(x, lambda: 1, lambda: 2), "conditional: the predicate is Value(float32[2, 3])"),
    (
        lambda g, x: g.conditional(True, lambda: x, lambda: x > 1.0),
        "conditional: if_false returns Value(bool[2, 3])",
    ),
    (lambda g, x: g.switch(1, [lambda: x, lambda: x.T]), "switch: branch 1 returns Value(float32[3, 2]) instead"),
    (lambda g, x: g.switch(x, [lambda: x]), "switch: the index is Value(float32[2, 3])"),
    (lambda g, _: g.switch(1, []), "switch: expected at least one branch"),
]


@pytest.mark.parametrize(("wrong", "message"), ERRORS)
def test_errors(wrong: Callable[[Any, Any], Any], message: str) -> None:
    graph = Graph()
    x = graph.parameter("x", (2, 3))
    with pytest.raises(UsageError) as caught:
        wrong(graph, x)
    assert caught.value.message.startswith(f"tlx.graph: {message}")


def test_values_do_not_leave_a_body() -> None:
    graph: Any = Graph()
    x = graph.parameter("x", (2, 3))
    leaked: list[Value] = []

    def body(v: Value) -> Value:
        leaked.append(v * 2.0)
        return leaked[0]

    graph.while_loop(lambda v: graph.sum(v) < 1.0, body, x)
    with pytest.raises(UsageError, match="belongs to a loop or a branch that has ended"):
        graph.output(leaked[0] + 1.0)


def test_results_take_the_memory_of_the_caller() -> None:
    x = random(np.random.default_rng(16), (70, 80), np.dtype(np.float32))
    graph = Graph("f")
    value = graph.parameter("x", x.shape)
    first = graph.dynamic_update_slice(value, value[:1] * 2.0, (1, 0))
    graph.output(first)
    graph.output(graph.dynamic_update_slice(first, first[1:2] * 2.0, (2, 0)))
    graph.output(first.T)
    assert "malloc" not in graph.text()
    one = x.copy()
    one[1] = x[0] * 2
    two = one.copy()
    two[2] = one[1] * 2
    for results in (graph.evaluate(x), graph.compile()(x)):
        for result, wanted in zip(results, (one, two, one.T), strict=True):
            np.testing.assert_array_equal(result, wanted)


def test_vectors_that_a_loop_reads_parts_of_are_stored_once() -> None:
    graph = Graph("f")
    x = graph.parameter("x", (8, 4))
    captured = graph.tanh(x)

    def add_row(k: Any, s: Any) -> Any:
        return k + 1, s + graph.dynamic_slice(captured, (k, 0), (1, 4)) * graph.dynamic_slice(
            captured, (7 - k, 0), (1, 4)
        )

    def is_below(k: Any, _: Any) -> Any:
        return k < 3

    total = graph.while_loop(is_below, add_row, graph.full((), 0, "int32"), graph.full((1, 4), 0.0))[1]
    graph.output(total)
    before, _, body = graph.text().partition("do:")
    assert before.count("tensor.store") == 2  # the vector and the initial state
    assert body.partition("done:")[0].count("tensor.store") == 1  # the state
    array = np.random.default_rng(3).uniform(-1, 1, (8, 4)).astype("f4")
    rows = np.tanh(array)
    expected = (rows[:3] * rows[7:4:-1]).sum(0, keepdims=True)
    for function in (graph.evaluate, graph.compile()):
        np.testing.assert_allclose(function(array), expected, rtol=1e-5, atol=1e-6)
