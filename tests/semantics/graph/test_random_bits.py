"""Random bits of `tlx.graph` against XLA, and against Philox and Threefry in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.semantics.graph.checks import Array, same
from tlx.diagnostics import UsageError
from tlx.graph import Graph, Value

KEY, FIRST = 0x0123456789ABCDEF, 2**64 - 2  # the counter wraps
WORD = 2**32 - 1


def philox(counter: int, key: int) -> list[int]:
    """Four numbers of 32 bits."""
    a, b, c, d = (counter >> s & WORD for s in (0, 32, 64, 96))
    first, second = key & WORD, key >> 32
    for _ in range(10):
        low, high = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = high >> 32 ^ b ^ first, high & WORD, low >> 32 ^ d ^ second, low & WORD
        first, second = first + 0x9E3779B9 & WORD, second + 0xBB67AE85 & WORD
    return [a, b, c, d]


def generated(state: Array, shape: tuple[int, ...], dtype: str, algorithm: str, expected: Any) -> None:
    def build(g: Any, a: Value) -> Any:
        return g.random_bits(a, shape, dtype, algorithm)

    same(build, expected, state)


@pytest.mark.parametrize("algorithm", ["threefry", "philox"])
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((), "uint32"), ((5,), "uint32"), ((4, 3, 2), "uint32"), ((3, 5), "uint64"), ((7, 3), "uint8"), ((6,), "uint16")],
)
def test_same_as_xla(shape: tuple[int, ...], dtype: str, algorithm: str) -> None:
    jax: Any = pytest.importorskip("jax", reason="jax is not installed")
    state = np.array([KEY, FIRST], np.uint64)
    with jax.enable_x64(True):
        kind = jax.lax.RandomAlgorithm
        chosen = kind.RNG_THREE_FRY if algorithm == "threefry" else kind.RNG_PHILOX
        after, bits = jax.lax.rng_bit_generator(state.view(np.uint32), shape, dtype, algorithm=chosen)
        expected = np.asarray(after).view(np.uint64), np.asarray(bits)
    generated(state, shape, dtype, algorithm, expected)


def test_counter_of_128_bits() -> None:
    start = FIRST | 7 << 64
    words = [w for k in range(4) for w in philox(start + k, KEY)]
    state = np.array([KEY, FIRST, 7], np.uint64)
    after = np.array([KEY, 2, 8], np.uint64)
    generated(state, (3, 5), "uint32", "philox", (after, np.array(words[:15], np.uint32).reshape(3, 5)))


def test_known_answers() -> None:
    """The published answers for keys and counters of zeros and of ones."""
    zeros, ones = np.zeros(2, np.uint64), np.full(2, 2**64 - 1, np.uint64)
    generated(zeros, (2,), "uint32", "threefry", ([0, 1], [0x6B200159, 0x99BA4EFE]))
    generated(ones, (2,), "uint32", "threefry", ([2**64 - 1, 0], [0x1CB996FC, 0xBB002BE7]))
    assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def test_every_iteration_has_other_bits() -> None:
    state = np.array([KEY, 5], np.uint64)

    def build(g: Any, a: Value) -> Any:
        def body(i: Value, s: Value, rows: Value) -> Any:
            s, bits = g.random_bits(s, (1, 6), "uint32")
            return i + 1, s, g.dynamic_update_slice(rows, bits, (i, 0))

        def condition(i: Value, *_: Value) -> Value:
            return i < 3

        rows = g.while_loop(condition, body, 0, a, g.full((3, 6), 0, "uint32"))[2]
        return rows - g.random_bits(a, (1, 6))[1]

    graph = Graph("f")
    graph.output(build(graph, graph.parameter("s", (2,), "uint64")))
    for result in (graph.evaluate(state), graph.compile()(state)):
        assert not result[0].any()
        assert len(np.unique(result[1:])) == 12


def test_errors() -> None:
    graph = Graph()
    state, x = graph.parameter("s", (2,), "uint64"), graph.parameter("x", (3,), "uint64")
    for wrong, message in (
        (lambda: graph.random_bits(x, (2,)), "the state is Value(uint64[3]): threefry takes 2 elements of uint64"),
        (lambda: graph.random_bits(state, (2,), "float32"), "bits are integers, not float32: convert or bitcast them"),
        (lambda: graph.random_bits(state, (2,), "int8", "mt19937"), "'mt19937' is not one of threefry, philox"),
    ):
        with pytest.raises(UsageError) as caught:
            wrong()
        assert caught.value.message == f"tlx.graph: random_bits: {message}"
