"""Largest and smallest of 16-bit floats as integers in their order: all patterns, against NumPy's floats."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tlx.evaluate import Machine
from tlx.ir.builder import Builder, new_function
from tlx.ir.parser.module import parse, parse_fully
from tlx.ir.types import BFLOAT, HALF, I8, I16, FloatType, VectorType
from tlx.lower.to_tiles.emit.reduction_operation import ReductionOperation

_TYPES = {BFLOAT: np.dtype(ml_dtypes.bfloat16), HALF: np.dtype(np.float16)}
_LANES = 1024


@pytest.mark.parametrize("operation", ["max", "min"])
@pytest.mark.parametrize("element", [BFLOAT, HALF])
@np.errstate(all="ignore")
def test_any_two_numbers_in_either_order(operation: str, element: FloatType) -> None:
    dtype = _TYPES[element]
    patterns = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    rng = np.random.default_rng(0)
    near = (patterns.view(np.uint16) ^ rng.integers(0, 1 << 8, patterns.size).astype(np.uint16)).view(dtype)
    some = np.array([0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1, -1], dtype)
    for other in [near, rng.permutation(patterns), np.resize(some, patterns.size), np.repeat(some, patterns.size // 8)]:
        for x, y in [(patterns, other), (other, patterns)]:
            result = _combined(ReductionOperation(operation, element), x, y)
            expected = getattr(np, f"{operation}imum")(x.astype(float), y.astype(float))
            assert np.array_equal(result.astype(float), expected, equal_nan=True)


@pytest.mark.parametrize("operation", ["max", "min"])
@pytest.mark.parametrize("element", [BFLOAT, HALF])
def test_identity_changes_no_number(operation: str, element: FloatType) -> None:
    combine = ReductionOperation(operation, element)
    infinity = np.full(_LANES, -np.inf if operation == "max" else np.inf, _TYPES[element])
    assert np.array_equal(_combined(combine, infinity, infinity, with_identity=True), infinity)


def _combined(combine: ReductionOperation, x: np.ndarray, y: np.ndarray, *, with_identity: bool = False) -> np.ndarray:
    """Both combined; or the first with what changes nothing."""
    module = parse("")
    pointer = module.pointer_to(I8)
    made = new_function(module, "f", [(pointer, "", "out"), (pointer, "", "x"), (pointer, "", "y")], "")
    b = Builder(module, made)
    out, *sources = (argument.value for argument in made.arguments)
    numbers = [b.load(VectorType(_LANES, I16), source, 1) for source in sources]
    wide = [combine.widened(b, b.cast("bitcast", n, VectorType(_LANES, combine.element))) for n in numbers]
    other = combine.identity(_LANES) if with_identity else wide[1]
    narrow = combine.narrowed(b, combine.apply(b, wide[0], other))
    b.store(b.cast("bitcast", narrow, VectorType(_LANES, I16)), out, 1)
    b.ret()
    machine = Machine(parse_fully(str(module)))
    result = np.zeros(x.shape, x.dtype)
    for at in range(0, result.size, _LANES):
        part = np.zeros(_LANES, x.dtype)
        arguments = [v[at : at + _LANES].copy().view(np.uint8) for v in (x, y)]
        machine.call("f", part.view(np.uint8), *arguments)
        result[at : at + _LANES] = part
    return result
