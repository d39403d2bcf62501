"""Random programs of loops, branches and updates in place, which run as graphs and on numpy arrays."""

# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tlx.graph import Graph

ROWS, COLUMNS = 4, 3
State = list[Any]


class Numpy:
    """The methods of a graph that the programs call, on arrays."""

    def while_loop(self, condition: Callable[..., Any], body: Callable[..., Any], *state: Any) -> tuple[Any, ...]:
        while condition(*state):
            state = tuple(body(*state))
        return state

    def conditional(
        self, predicate: Any, if_true: Callable[..., Any], if_false: Callable[..., Any], *operands: Any
    ) -> tuple[Any, ...]:
        return tuple((if_true if predicate else if_false)(*operands))

    def dynamic_slice(self, x: Any, starts: tuple[Any, Any], shape: tuple[int, int]) -> Any:
        i, k = (min(max(int(s), 0), e - n) for s, e, n in zip(starts, x.shape, shape, strict=True))
        return x[i : i + shape[0], k : k + shape[1]].copy()

    def dynamic_update_slice(self, x: Any, new: Any, starts: tuple[Any, Any]) -> Any:
        result = x.copy()
        i, k = (min(max(int(s), 0), e - n) for s, e, n in zip(starts, x.shape, new.shape, strict=True))
        result[i : i + new.shape[0], k : k + new.shape[1]] = new
        return result

    def scatter(self, x: Any, starts: Any, axes: tuple[int], updates: Any, combine: str) -> Any:
        assert axes == (0,)
        result = x.copy()
        for row, update in zip(starts[:, 0], updates, strict=True):
            result[row : row + 1] = update + (result[row : row + 1] if combine == "add" else 0)
        return result

    def minimum(self, x: Any, y: Any) -> Any:
        return np.minimum(x, y)


class Program:
    """A random program; running it again makes the same choices."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def run(self, g: Any, *values: Any) -> State:
        self._rng = np.random.default_rng(self._seed)
        return self._block(g, list(values), depth=0)

    def _block(self, g: Any, values: State, depth: int) -> State:
        """Some statements; each one assigns one or several of the values."""
        values = list(values)
        for _ in range(int(self._rng.integers(1, 5 - depth))):
            kind = self._rng.choice(["update", "update", "move", "compute", "scatter", "loop", "branch"])
            if kind in ("loop", "branch") and depth == 3:
                kind = "update"
            getattr(self, f"_{kind}")(g, values, depth)
        return values

    def _pick(self, values: State) -> int:
        return int(self._rng.integers(len(values)))

    def _update(self, g: Any, values: State, _: int) -> None:
        target, x, y = (self._pick(values) for _ in range(3))
        shape = (int(self._rng.integers(1, ROWS + 1)), int(self._rng.integers(1, COLUMNS + 1)))
        start, other = (tuple(int(n) for n in self._rng.integers(0, 3, 2)) for _ in range(2))
        box = g.dynamic_slice(values[y], other, shape)
        new = box + 1 if self._rng.integers(2) else box
        values[target] = g.dynamic_update_slice(values[x], new, start)

    def _scatter(self, g: Any, values: State, _: int) -> None:
        target, x, y = (self._pick(values) for _ in range(3))
        rows = self._rng.integers(0, ROWS, (2, 1)).astype(np.int32)
        combine = str(self._rng.choice(["set", "add"]))
        values[target] = g.scatter(values[x], rows, (0,), values[y][:2].reshape(2, 1, COLUMNS), combine)

    def _move(self, _: Any, values: State, __: int) -> None:
        order = self._rng.permutation(len(values))
        values[:] = [values[k] for k in order]

    def _compute(self, g: Any, values: State, _: int) -> None:
        target, x, y = (self._pick(values) for _ in range(3))
        values[target] = g.minimum(values[x] + values[y] * 2, 1000)

    def _loop(self, g: Any, values: State, depth: int) -> None:
        trips, carried = int(self._rng.integers(0, 4)), int(self._rng.integers(1, len(values) + 1))
        seed = int(self._rng.integers(1 << 30))

        def body(i: Any, *state: Any) -> State:
            self._rng = np.random.default_rng(seed)
            return [i + 1, *self._block(g, [*state, *values[carried:]], depth + 1)[:carried]]

        saved = self._rng
        values[:carried] = g.while_loop(lambda i, *_: i < trips, body, np.int32(0), *values[:carried])[1:]
        self._rng = saved

    def _branch(self, g: Any, values: State, depth: int) -> None:
        seeds, passed = self._rng.integers(1 << 30, size=2), int(self._rng.integers(0, len(values) + 1))

        def branch(seed: int) -> Callable[..., State]:
            def run(*operands: Any) -> State:
                self._rng = np.random.default_rng(seed)
                return self._block(g, [*operands, *values[passed:]], depth + 1)

            return run

        saved = self._rng
        holds = values[self._pick(values)][1, 1] > int(self._rng.integers(0, 20))
        values[:] = g.conditional(holds, branch(int(seeds[0])), branch(int(seeds[1])), *values[:passed])
        self._rng = saved


def check(seed: int, compiled: bool) -> None:
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(0, 20, (ROWS, COLUMNS)).astype(np.int32) for _ in range(3)]
    program = Program(seed)
    with np.errstate(all="ignore"):
        expected = program.run(Numpy(), *arrays)
    graph = Graph("f")
    for value in program.run(graph, *(graph.parameter(f"x{k}", a.shape, a.dtype) for k, a in enumerate(arrays))):
        graph.output(value)
    for result, wanted in zip((graph.compile() if compiled else graph.evaluate)(*arrays), expected, strict=True):
        np.testing.assert_array_equal(result, wanted, f"seed {seed}")


@pytest.mark.parametrize("seeds", [range(k, k + 20) for k in range(0, 60, 20)], ids=lambda r: f"from{r[0]}")
def test_random_programs(seeds: range) -> None:
    for seed in seeds:
        check(seed, compiled=False)
        if seed % 3 == 0:
            check(seed, compiled=True)


@pytest.mark.long
@pytest.mark.parametrize("seeds", [range(k, k + 100) for k in range(1000, 1200, 100)], ids=lambda r: f"from{r[0]}")
def test_many_random_programs(seeds: range) -> None:
    for seed in seeds:
        check(seed, compiled=False)
        check(seed, compiled=True)
