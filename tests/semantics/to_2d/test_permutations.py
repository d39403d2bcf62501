"""Permutations whose operand is read where it lies, and results written in permuted order: evaluated at each stage."""

from __future__ import annotations

import math
import re
from typing import Final

import numpy as np
import pytest

from tests.semantics.to_2d.loops.programs import DENSE, carried_loop
from tests.support.tools import quick_by_target
from tlx.api.validation import validate
from tlx.graph import Graph, Value
from tlx.ir.parser.module import parse
from tlx.lower.options import Options
from tlx.lower.pipeline import lower

_TARGETS: Final = ("generic", "avx2", "avx512", "amx")
_DTYPES: Final = ("float32", "float32", "bfloat16", "int8")
_SHAPE: Final = (2, 4, 9, 12)


def _source(g: Graph, rng: np.random.Generator, x: Value, w: Value, dtype: str) -> Value:
    """A value of shape `_SHAPE`: a map, a product, a product with an epilogue, a concatenation, a convolution."""
    match int(rng.integers(6 if dtype != "int8" else 2)):
        case 0:
            return x * x
        case 1:
            return g.concatenate([x[:, :, :4] + x[:, :, :4], x[:, :, 4:] * x[:, :, 4:]], 2)
        case 2:
            return x @ w
        case 3:
            return g.relu(x @ w) + x
        case 4:
            kernel = g.constant(rng.integers(-2, 3, (4, 4, 3, 3)).astype("f4"))
            return g.convert(g.convolution(g.convert(x, "float32"), kernel, padding=[(1, 1), (1, 1)]), dtype)
        case _:
            return x


def _permuted(g: Graph, rng: np.random.Generator, x: Value) -> Value:
    """The value with its dimensions in another order, and some neighbours merged, or one split in two."""
    moved = g.transpose(x, rng.permutation(x.rank).tolist())
    shape = list(moved.shape)
    for _ in range(int(rng.integers(3))):
        if rng.integers(2) and len(shape) > 2:
            at = int(rng.integers(len(shape) - 1))
            shape[at : at + 2] = [shape[at] * shape[at + 1]]
        elif len(shape) < 5:
            at = int(rng.integers(len(shape)))
            factor = int(rng.choice([f for f in (1, 2, 3, 4) if shape[at] % f == 0]))
            shape[at : at + 1] = [shape[at] // factor, factor]
    return moved.reshape(*shape)


def _read(g: Graph, rng: np.random.Generator, x: Value, dtype: str) -> Value:
    """What reads a permuted value; a store, if nothing else."""
    match int(rng.integers(7)):
        case 0:
            return x + x
        case 1:
            return g.sum(x, int(rng.integers(x.rank)))
        case 2:
            return g.concatenate([x, x * x], int(rng.integers(x.rank)))
        case 3:
            return g.pad(x, [1] * x.rank, [0] * x.rank, [0] * x.rank, 1)
        case 4:
            flat = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
            return g.matmul(flat, g.transpose(flat, (1, 0)), dtype="int32" if dtype == "int8" else "float32")
        case 5:
            return g.relu(_permuted(g, rng, x))
        case _:
            return x


def _program(seed: int) -> str:
    rng = np.random.default_rng(seed)
    dtype = _DTYPES[rng.integers(len(_DTYPES))]
    g = Graph("f")
    x, w = g.parameter("x", _SHAPE, dtype), g.parameter("w", (12, 12), dtype)
    for _ in range(int(rng.integers(1, 3))):
        source = _source(g, rng, x, w, dtype)
        for _ in range(int(rng.integers(1, 3))):
            g.output(_read(g, rng, _permuted(g, rng, source), dtype))
    return g.text()


@pytest.mark.parametrize(("seed", "target"), quick_by_target(range(90), _TARGETS, 6))
def test_permuted_values_hold_the_same_numbers(seed: int, target: str) -> None:
    assert validate(_program(seed), target, runs=1) == []


_CARRIED: Final = carried_loop(f"""\
  %c = call <12 x float> @llvm.tensor.reshape.permute(token %vt, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 4, i32 3>)
  %ct = call token @llvm.tensor.typeinfo(<12 x float> %c, <2 x i32> <i32 4, i32 3>, {DENSE})
  %d = call <12 x float> @llvm.tensor.relu(token %ct)
  %w = fadd <12 x float> %d, %d
""")


@pytest.mark.parametrize("target", _TARGETS)
def test_a_carried_value_is_not_overwritten_while_it_is_read_in_another_order(target: str) -> None:
    assert validate(_CARRIED, target, runs=1) == []


def _buffers(g: Graph) -> set[str]:
    text = str(lower(parse(g.text()), "avx512", options=Options(stop_after="to-2d")))
    return {name.split(".")[0] for name in re.findall(r"%([\w.]+)\.buf = ", text)}


def test_heads_are_split_and_joined_without_copies() -> None:
    """Only the projection and the joined heads are in memory, in which products write heads as columns."""
    g = Graph("f")
    x, w, scores = g.parameter("x", (64, 128)), g.parameter("w", (128, 128)), g.parameter("s", (4, 64, 64))
    values = g.transpose((x @ w).reshape(64, 4, 32), (1, 0, 2))
    joined = g.transpose(scores @ values, (1, 0, 2)).reshape(64, 128)
    g.output(joined @ w)
    assert _buffers(g) == {"dot", "reshape"} or len(_buffers(g)) == 2


@pytest.mark.parametrize("target", _TARGETS)
@pytest.mark.parametrize("stop", [(8, 5), (5, 8), (3, 3)])
def test_the_beginning_of_a_result_is_stored(target: str, stop: tuple[int, int]) -> None:
    """Dimensions that a type crops by padding are none of those that the result is computed in."""
    g = Graph("f")
    x = g.parameter("x", (8, 8))
    g.output(g.slice(x @ x, (0, 0), stop, (1, 1)))
    g.output(g.slice(g.relu(x), (0, 0), stop, (1, 1)))
    assert validate(g.text(), target, runs=1) == []
