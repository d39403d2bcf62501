"""Views seen with other dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from tlx.lower.memory.views import reshaped_strides


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
