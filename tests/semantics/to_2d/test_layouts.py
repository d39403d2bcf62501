"""Images with channels last between the layers of small networks: evaluated before and after each stage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest

from tests.support.tools import quick_by_target
from tlx import lower_text
from tlx.api.validation import validate
from tlx.graph import Graph, Value
from tlx.lower.options import Options
from tlx.lower.remarks import Remarks

_TARGETS: Final = ("avx2", "avx512", "amx")
_TYPES: Final[dict[str, Any]] = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i8": np.int8}


class _Network:
    """A random network of a few layers, whose images have few channels of few pixels."""

    def __init__(self, seed: int, element: str) -> None:
        self.rng, self.dtype, self.g = np.random.default_rng(seed), _TYPES[element], Graph("f")
        x = self.g.parameter("x", (int(self.rng.integers(1, 3)), 4, 4, 3), self.dtype)
        self.images = [self._convolution(x)]
        for _ in range(int(self.rng.integers(3, 7))):
            self.images.append(self._layer(self.images[int(self.rng.integers(len(self.images)))]))
        self.g.output(self.images[-1], "y")

    def _convolution(self, x: Value) -> Value:
        filters, window = int(self.rng.choice([4, 16])), int(self.rng.choice([1, 3]))
        groups = x.shape[1] if self.rng.integers(5) == 0 else 1
        filters = x.shape[1] if groups > 1 else filters
        numbers = self.rng.integers(-1, 2, (filters, x.shape[1] // groups, window, window)).astype(self.dtype)
        y = self.g.convolution(x, self.g.constant(numbers), padding=[(window // 2, window // 2)] * 2, groups=groups)
        return self.g.relu(self.g.convert(y, self.dtype)) if self.rng.integers(2) else self.g.convert(y, self.dtype)

    def _layer(self, x: Value) -> Value:
        match int(self.rng.integers(8)):
            case 0:
                same = [image for image in self.images if image.shape == x.shape]
                return self._convolution(x) if len(same) < 2 else x + same[int(self.rng.integers(len(same)))]
            case 1:
                return self.g.concatenate([x, *(i for i in self.images if i.shape[2:] == x.shape[2:])][:3], 1)
            case 2:
                pairs, ones = [(0, 0), (0, 0), (1, 1), (1, 1)], (1, 1, 1, 1)
                return self.g.reduce_window("max", x, (1, 1, 3, 3), ones, pairs)
            case 3:
                n, c, h, w = x.shape
                wide = self.g.broadcast(x.reshape(n, c, h, 1, w, 1), (n, c, h, 2, w, 2))
                return wide.reshape(n, c, 2 * h, 2 * w) if h < 8 else x
            case 4:
                return self.g.pad(x, (0, 0, 1, 0), (0, 1, 0, 1), (0, 0, 0, 0), 0)
            case 5:
                y = self._convolution(x)
                return y + x if y.shape == x.shape else y
            case _:
                return self._convolution(x)


def _images_with_channels_last(text: str, target: str, options: Options) -> int:
    """How many images of a program have channels last."""
    remarks = Remarks()
    lower_text(text, target=target, options=replace(options, stop_after="to-2d", remarks=remarks))
    return sum("has channels last in memory" in remark.message for remark in remarks)


@pytest.mark.parametrize(("seed", "target"), quick_by_target(range(120), _TARGETS, 8))
def test_images_in_any_order_hold_the_same_numbers(seed: int, target: str) -> None:
    """A seed in place of costs chooses the order."""
    text = _Network(seed, list(_TYPES)[seed % len(_TYPES)]).g.text()
    assert validate(text, target, runs=1, options=Options(decision_seed=seed)) == []


def test_seeds_choose_several_orders() -> None:
    texts = [_Network(seed, list(_TYPES)[seed % len(_TYPES)]).g.text() for seed in range(24)]
    counts = [
        _images_with_channels_last(text, "avx512", Options(decision_seed=seed)) for seed, text in enumerate(texts)
    ]
    assert len(set(counts)) >= 3
    assert sum(map(bool, counts)) >= len(counts) // 4


def _chain(g: Graph, element: Any, *, ends: bool) -> Graph:
    """Convolutions by 3 x 3 filters, or a single one between argument and result: `ends`."""
    x = g.parameter("x", (1, 64, 56, 56), element)
    for _ in range(1 if ends else 5):
        x = g.relu(g.convolution(x, g.constant(np.zeros((64, 64, 3, 3), element)), padding=[(1, 1)] * 2))
    g.output(x, "y")
    return g


def test_images_between_convolutions_have_channels_last_on_a_matrix_unit() -> None:
    assert _images_with_channels_last(_chain(Graph("f"), ml_dtypes.bfloat16, ends=False).text(), "amx", Options()) >= 4


def test_arguments_and_results_keep_their_order() -> None:
    assert _images_with_channels_last(_chain(Graph("f"), ml_dtypes.bfloat16, ends=True).text(), "amx", Options()) == 0


@pytest.mark.parametrize("target", _TARGETS)
def test_parts_of_images_are_matrices_of_products(target: str) -> None:
    """Columns of all channels are read in place: as the rows of a matrix, they have no strides with channels last."""
    g = Graph("f")
    y = g.convolution(g.parameter("x", (5, 11, 11)), g.parameter("w", (2, 11, 3)), 2)
    g.output(y[:, :, 3:] @ g.constant(np.arange(6, dtype=np.float32).reshape(2, 3)))
    for seed in (None, *range(4)):
        assert validate(g.text(), target, runs=1, options=Options(decision_seed=seed)) == []
