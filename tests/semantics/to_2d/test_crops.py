"""Parts of results and of loaded tensors that are read where they lie: evaluated before and after each stage."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import tlx
from tests.semantics.to_2d.loops.programs import DENSE, carried_loop
from tests.support.tools import quick_by_target
from tlx.api.validation import validate
from tlx.graph import Graph, Value
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text

_TARGETS: Final = ("generic", "avx2", "avx512", "amx")
_DTYPES: Final = ("float32", "float32", "bfloat16", "int8")
_SHAPE: Final = (2, 4, 9, 12)


def _source(g: Graph, rng: np.random.Generator, x: Value, w: Value, dtype: str) -> Value:
    """A value of shape `_SHAPE`: a map, a product, a concatenation, or a transpose."""
    match int(rng.integers(5 if dtype != "int8" else 3)):
        case 0:
            return x * x
        case 1:
            return g.concatenate([x[:, :, :4] + x[:, :, :4], x[:, :, 4:] * x[:, :, 4:]], 2)
        case 2:
            return g.transpose(x.reshape(2, 4, 12, 9) + x.reshape(2, 4, 12, 9), (0, 1, 3, 2))
        case 3:
            return x @ w
        case _:
            return g.relu(x @ w)


def _part(rng: np.random.Generator, x: Value) -> Value:
    """Some positions of each dimension; three of four keep a dimension as it is."""
    ranges: list[slice] = []
    for extent in x.shape:
        low, high = sorted(rng.choice(extent + 1, 2, replace=False).tolist())
        ranges.append(slice(low, high) if rng.integers(2) else slice(0, extent))
    return x[tuple(ranges)]


def _read(g: Graph, rng: np.random.Generator, part: Value, dtype: str) -> Value:
    """What reads a part."""
    rows, columns = part.shape[-2:]
    match int(rng.integers(9)):
        case 0:
            return part + part
        case 1:
            return g.sum(part, int(rng.integers(4)))
        case 2:
            return g.concatenate([part, part * part], int(rng.integers(4)))
        case 3:
            return g.pad(part, (0, 0, 1, 1), (0, 1, 0, 1), (0, 0, 0, 0), 1)
        case 4:
            return g.transpose(part, (0, 2, 1, 3)) + g.transpose(part, (0, 2, 1, 3))
        case 5:
            return g.matmul(part, g.transpose(part, (0, 1, 3, 2)), dtype="int32" if dtype == "int8" else "float32")
        case 6:
            return g.sum(part.reshape(part.shape[0], part.shape[1] * rows, columns), 1)
        case 7 if dtype != "int8":
            kernel = g.constant(rng.integers(-2, 3, (3, part.shape[1], 1, 1)).astype("f4").astype(np.float32))
            return g.convolution(g.convert(part, "float32"), kernel)
        case _:
            return _part(rng, part) * _part(rng, part) if part.shape == (1, 1, 1, 1) else -_part(rng, part)


def _program(seed: int) -> str:
    rng = np.random.default_rng(seed)
    dtype = _DTYPES[rng.integers(len(_DTYPES))]
    g = Graph("f")
    x, w = g.parameter("x", _SHAPE, dtype), g.parameter("w", (12, 12), dtype)
    whole = _source(g, rng, x, w, dtype) if rng.integers(4) else x
    for _ in range(int(rng.integers(1, 4))):
        part = _part(rng, whole)
        g.output(_read(g, rng, _part(rng, part) if rng.integers(3) == 0 else part, dtype))
        if rng.integers(3) == 0:
            g.output(part)
    if rng.integers(2):
        g.output(-whole)
    return g.text()


@pytest.mark.parametrize(("seed", "target"), quick_by_target(range(50), _TARGETS, 6))
def test_parts_hold_the_same_numbers(seed: int, target: str) -> None:
    assert validate(_program(seed), target, runs=1) == []


def test_programs_crop() -> None:
    """The random programs crop results, and most parts have no memory of their own."""
    texts = [_program(seed) for seed in range(40)]
    assert sum("llvm.tensor.pad" in text for text in texts) > 20


_LOOP: Final = carried_loop(f"""\
  %low = call <8 x float> @llvm.tensor.pad(token %vt, <2 x i32> <i32 -1, i32 0>, <2 x i32> zeroinitializer, float 0.0)
  %high = call <8 x float> @llvm.tensor.pad(token %vt, <2 x i32> zeroinitializer, <2 x i32> <i32 -1, i32 0>, float 0.0)
  %sum = fadd <8 x float> %low, %high
  %row = call <4 x float> @llvm.tensor.pad(token %vt, <2 x i32> <i32 -2, i32 0>, <2 x i32> zeroinitializer, float 0.0)
  %at = call token @llvm.tensor.typeinfo(<8 x float> %sum, <2 x i32> <i32 2, i32 4>, {DENSE})
  %rt = call token @llvm.tensor.typeinfo(<4 x float> %row, <2 x i32> <i32 1, i32 4>, {DENSE})
  %w = call <12 x float> @llvm.tensor.concat(token %at, token %rt, i32 0)
""")


@pytest.mark.parametrize("target", _TARGETS)
def test_parts_of_a_value_that_a_loop_changes(target: str) -> None:
    assert validate(_LOOP, target, runs=1) == []


_IN_PLACE: Final = f"""
define void @f(ptr %x, ptr %y) {{
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 8, i32 16>, {DENSE}, \
<2 x i32> zeroinitializer)
  %p = call <96 x float> @llvm.tensor.pad(token %t, <2 x i32> <i32 LOW, i32 0>, <2 x i32> <i32 HIGH, i32 0>, float 0.0)
  %s = fadd <96 x float> %p, %p
  store <96 x float> %s, ptr TARGET
  %z = fmul <96 x float> %s, %p
  store <96 x float> %z, ptr %y
  ret void
}}
"""


@pytest.mark.parametrize("pointer", ["%x", "%y", "getelementptr"])
@pytest.mark.parametrize(("low", "high"), [(-2, 0), (0, -2), (-1, -1)])
def test_memory_that_the_reader_overwrites(low: int, high: int, pointer: str) -> None:
    text = _IN_PLACE.replace("LOW", str(low)).replace("HIGH", str(high))
    if pointer == "getelementptr":
        text = text.replace(
            "  store <96 x float> %s", "  %to = getelementptr float, ptr %x, i64 32\n  store <96 x float> %s"
        )
        pointer = "%to"
    text = text.replace("TARGET", pointer)
    for target in _TARGETS:
        assert validate(text, target, runs=2) == []
    x, y = np.arange(160, dtype="f4").copy(), np.zeros(96, "f4")
    data = x[:128].reshape(8, 16)[-low : 8 + high].ravel().copy()
    tlx.compile(text)(x, y)
    np.testing.assert_array_equal(y, data * 2 * data)


def _heads(dtype: str) -> str:
    """Attention whose heads are parts of one projection."""
    g = Graph("f")
    rows, heads, width = 6, 2, 4
    x = g.parameter("x", (rows, 5), dtype)
    projected = x @ g.parameter("w", (5, 3 * heads * width), dtype)
    parts = [projected[:, n * heads * width : (n + 1) * heads * width] for n in range(3)]
    q, k, v = (g.transpose(part.reshape(rows, heads, width), (1, 0, 2)) for part in parts)
    scores = g.relu(q @ g.transpose(k, (0, 2, 1)))
    g.output(g.transpose(scores @ v, (1, 0, 2)).reshape(rows, heads * width))
    return g.text()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("seed", [None, 1, 3])
def test_heads_are_read_in_place(dtype: str, seed: int | None) -> None:
    """Also in a loop over heads, which odd decision seeds make."""
    text = _heads(dtype)
    assert text.count("llvm.tensor.pad") >= 3
    options = Options(decision_seed=seed)
    lowered = lower_text(text, "<string>", "avx512", options=Options(decision_seed=seed, stop_after="to-2d"))
    assert "%pad" not in lowered
    assert ("part.loop" in lowered) == (seed is not None)
    for target in _TARGETS:
        assert validate(text, target, options=options, runs=1) == []
