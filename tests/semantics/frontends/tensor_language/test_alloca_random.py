"""Random collective instructions on local memory that is full of NaN: what nothing has written reads as zero.

    %t = alloca ...                    in the body of the kernel, of a `for` or of an `if`
    gemm ..., %beta, %view of %t       where beta is 0, 1 or an argument
    axpby %one, %A, %one, %t           all elements, those that are unwritten with them
    axpby %one, %t, %one, %R           are added to the result
    foreach ... store %nan, %t[%i,%j]  for the next to find

More of them: python -m tests.semantics.frontends.tensor_language.test_alloca_random --seed 1000 --count 500
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

import tlx.frontends.tensor_language as tl
from tests.support.tools import quick

Matrix = NDArray[np.float32]
State = dict[str, Matrix]
Run = Callable[[State], None]

SIZE: Final = 8
TARGETS: Final = ("generic", "avx2", "native")
_BETAS: Final = {"%zero": 0, "%zero2": 0, "%one": 1, "%b0": 0, "%b2": 2}


@pytest.mark.parametrize("seed", quick(range(30), 8))
def test_random_kernels(seed: int) -> None:
    check(seed, TARGETS[seed % 3])


def check(seed: int, target: str) -> None:
    """Compare a kernel's code with its meaning."""
    writer = _Writer(random.Random(seed))
    run = writer.block(3, "  ")
    text = _HEAD + "\n".join(writer.lines) + "\n}\n"
    a = np.asfortranarray(np.random.default_rng(seed).integers(-2, 3, (SIZE, SIZE)).astype(np.float32))
    expected = np.zeros((SIZE, SIZE), np.float32)
    run({"A": a, "R": expected})
    kernel = tl.compile(text, target).k
    for _ in range(2):  # the second one finds what the first has left on the stack
        result = np.zeros((SIZE, SIZE), np.float32, order="F")
        kernel(a, result, np.nan, 0, 2, True, False)
        assert np.array_equal(result, expected, equal_nan=True), f"seed {seed}, {target}\n{text}"


_HEAD: Final = """
func @k(%A: memref<f32x8x8>, %R: memref<f32x8x8>, %nan: f32, %b0: f32, %b2: f32, %yes: bool, %no: bool) {
  %zero = constant 0.0 : f32
  %zero2 = constant 0.0 : f32
  %one = constant 1.0 : f32
  %0 = constant 0 : index
  %2 = constant 2 : index
  %8 = constant 8 : index
  %a = subview %A[0:8,0] : memref<f32x8>
"""


class _Writer:
    """Writes a kernel, and what does the same with arrays."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._count = 0
        self._local: list[str] = []
        self.lines: list[str] = []

    def block(self, depth: int, indent: str) -> Run:
        """Some instructions."""
        chance = self._chance
        runs: list[Run] = []
        outer = list(self._local)
        if depth == 3 or chance.random() < 0.5:
            runs.append(self._alloca(indent))
        own = [name for name in self._local if name not in outer]
        for _ in range(chance.randint(1, 4)):
            kind = chance.choice(["write"] * 3 + ["for", "if"] * (depth > 0) + ["foreach", "store"])
            match kind:
                case "write":
                    runs.append(self._collective(indent))
                case "for":
                    runs.append(self._for(depth, indent))
                case "if":
                    runs.append(self._if(depth, indent))
                case "store":
                    runs.append(self._store(indent))
                case _:
                    runs.append(self._fill(chance.choice(self._local), "%one", indent))
        for name in own:
            self.lines.append(f"{indent}axpby %one, %A, %one, %{name}")
            self.lines.append(f"{indent}axpby %one, %{name}, %one, %R")
            runs += [_observed(name), self._fill(name, "%nan", indent)]
        self._local = outer
        return _all(runs)

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def _alloca(self, indent: str) -> Run:
        name = self._name()
        self._local.append(name)
        self.lines.append(f"{indent}%{name} = alloca : memref<f32x8x8,local>")

        def run(state: State) -> None:
            state[name] = np.zeros((SIZE, SIZE), np.float32)

        return run

    def _for(self, depth: int, indent: str) -> Run:
        start, stop, trips = self._chance.choice([("%0", "%2", 2), ("%0", "%2", 2), ("%2", "%0", 0)])
        self.lines.append(f"{indent}for %{self._name()}={start},{stop} {{")
        body = self.block(depth - 1, indent + "  ")
        self.lines.append(f"{indent}}}")
        return _all([body] * trips)

    def _if(self, depth: int, indent: str) -> Run:
        condition = self._chance.choice(["%yes", "%no"])
        self.lines.append(f"{indent}if {condition} {{")
        then = self.block(depth - 1, indent + "  ")
        otherwise = _all([])
        if self._chance.random() < 0.5:
            self.lines.append(f"{indent}}} else {{")
            otherwise = self.block(depth - 1, indent + "  ")
        self.lines.append(f"{indent}}}")
        return then if condition == "%yes" else otherwise

    def _view(self, indent: str) -> tuple[str, str, tuple[slice, slice | int]]:
        """A name for memory, its place in it, and of which `alloca`: all of it, some columns, or one."""
        root = self._chance.choice(self._local)
        whole = (slice(0, SIZE), slice(0, SIZE))
        if self._chance.random() < 0.3:
            return root, root, whole
        name = self._name()
        columns, type_, part = self._chance.choice([
            ("0:8", "f32x8x8", whole),
            ("2:4", "f32x8x4", (slice(0, SIZE), slice(2, 6))),
            ("3", "f32x8", (slice(0, SIZE), 3)),
            ("%2", "f32x8", (slice(0, SIZE), 2)),
        ])  # fmt: skip
        self.lines.append(f"{indent}%{name} = subview %{root}[0:8,{columns}] : memref<{type_},local>")
        return root, name, part

    def _collective(self, indent: str) -> Run:
        root, name, part = self._view(indent)
        beta = self._chance.choice(list(_BETAS))
        shape = np.zeros((SIZE, SIZE))[part].shape
        instruction, value = self._chance.choice(_INSTRUCTIONS[shape])
        if "%h" in instruction:
            self.lines.append(f"{indent}%h{name} = subview %A[0:8,0:4] : memref<f32x8x4>")
        self.lines.append(indent + instruction.replace("%h", f"%h{name}") + f" {beta}, %{name}")

        def run(state: State) -> None:
            with np.errstate(invalid="ignore"):
                state[root][part] = value(state["A"]) + np.float32(_BETAS[beta]) * state[root][part]

        return run

    def _store(self, indent: str) -> Run:
        root = self._chance.choice(self._local)
        self.lines.append(f"{indent}store %b2, %{root}[%2,%0]")

        def run(state: State) -> None:
            state[root][2, 0] = 2

        return run

    def _fill(self, name: str, value: str, indent: str) -> Run:
        i, j = self._name(), self._name()
        order = self._chance.choice([f"%{i},%{j}", f"%{j},%{i}"])
        self.lines.append(f"{indent}foreach (%{i},%{j})=(%0,%0),(%8,%8) {{ store {value}, %{name}[{order}] }}")

        def run(state: State) -> None:
            state[name][:] = {"%nan": np.nan, "%one": 1}[value]

        return run


_INSTRUCTIONS: Final[dict[tuple[int, ...], list[tuple[str, Callable[[Matrix], Any]]]]] = {
    (8, 8): [
        ("gemm %one, %A, %A,", lambda a: a @ a),
        ("axpby.t %one, %A,", lambda a: a.T),
        ("hadamard %one, %A, %A,", lambda a: a * a),
        ("ger %one, %a, %a,", lambda a: np.outer(a[:, 0], a[:, 0])),
        ("cumsum %one, %A, 0,", lambda a: a.cumsum(0)),
    ],
    (8, 4): [
        ("gemm %one, %A, %h,", lambda a: a @ a[:, :4]),
        ("cumsum %one, %h, 1,", lambda a: a[:, :4].cumsum(1)),
        ("hadamard %one, %h, %h,", lambda a: a[:, :4] ** 2),
    ],
    (8,): [
        ("gemv %one, %A, %a,", lambda a: a @ a[:, 0]),
        ("sum %one, %A,", lambda a: a.sum(1)),
        ("axpby %one, %a,", lambda a: a[:, 0]),
        ("cumsum %one, %a, 0,", lambda a: a[:, 0].cumsum()),
    ],
}


def _observed(name: str) -> Run:
    def run(state: State) -> None:
        state[name] += state["A"]
        state["R"] += state[name]

    return run


def _all(runs: list[Run]) -> Run:
    def run(state: State) -> None:
        for one in runs:
            one(state)

    return run


def main() -> None:
    """Run many seeds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    for seed in range(options.seed, options.seed + options.count):
        try:
            check(seed, TARGETS[seed % 3])
        except Exception as error:  # noqa: BLE001
            sys.stdout.write(f"seed {seed}: {type(error).__name__}: {error}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
