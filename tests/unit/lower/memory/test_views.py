"""Views seen with other dimensions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import FLOAT
from tlx.lower.memory.views import pitches_of, reshaped_strides


@pytest.mark.parametrize(
    ("sizes", "steps", "shape", "strides"),
    [
        ((6, 4), (4, 1), (2, 3, 4), (12, 4, 1)),
        ((6, 4), (4, 1), (3, 8), (8, 1)),
        ((2, 48), (48, 1), (3, 32), (32, 1)),
        ((4, 6, 5), (30, 5, 1), (5, 3, 8), (24, 8, 1)),
        ((6, 4), (8, 1), (2, 3, 4), (24, 8, 1)),
        ((6, 4), (8, 1), (3, 8), None),
        ((6, 4), (8, 1), (24,), None),
        ((3, 2, 6), (100, 6, 1), (3, 4, 3), (100, 3, 1)),
        ((1, 6, 1), (7, 2, 9), (2, 1, 3), (6, 0, 2)),
        ((4, 6), (0, 0), (3, 8), (0, 0)),
        ((4, 6), (0, 1), (3, 8), None),
        ((1, 1), (5, 3), (1,), (0,)),
    ],
)
def test_strides(
    sizes: tuple[int, ...], steps: tuple[int, ...], shape: tuple[int, ...], strides: tuple[int, ...] | None
) -> None:
    assert reshaped_strides(sizes, steps, shape) == strides
    if strides is not None:
        assert np.array_equal(_offsets(sizes, steps), _offsets(shape, strides))


def _offsets(sizes: tuple[int, ...], steps: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    indices = np.indices(sizes).reshape(len(sizes), -1)
    return np.tensordot(np.array(steps), indices, 1)


@pytest.mark.parametrize("shape", [*product((1, 2, 3), repeat=3)], ids=str)
def test_a_load_with_pitches_reads_what_strides_say(shape: tuple[int, int, int]) -> None:
    """The stride of a dimension of extent 1 means nothing: here, it is 99."""
    type_ = TensorType.dense(FLOAT, shape)
    for extra in product((0, 1, 2), repeat=2):
        pitches = (0, shape[1] + extra[0], shape[2] + extra[1])
        strides = [99 if extent == 1 else stride for extent, stride in zip(shape, type_.strides(pitches), strict=True)]
        found = pitches_of(shape, strides)
        assert found is not None
        actual = type_.strides([n or e for n, e in zip(found, shape, strict=True)])
        assert np.array_equal(_offsets(shape, actual), _offsets(shape, tuple(strides)))


@pytest.mark.parametrize(
    ("shape", "strides"), [((3, 2), (4, 2)), ((3, 4), (3, 1)), ((2, 3, 4), (14, 4, 1)), ((2, 3, 4), (8, 4, 1))]
)
def test_no_load_has_these_strides(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """The elements of a row are apart, rows or matrices overlap, or a matrix does not consist of whole rows."""
    assert pitches_of(shape, strides) is None
