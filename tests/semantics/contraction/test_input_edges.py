"""Convolutions that copy only the edges of an input whose border is in no memory, and mean the same."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

import pytest

from tests.semantics.contraction.decisions import stage1, with_costs
from tlx.api.validation import validate
from tlx.graph import Graph
from tlx.lower.remarks import Remarks
from tlx.target.lookup import find_target
from tlx.target.target import Target

_TARGETS: Final = ("generic", "avx2", "avx512", "amx")


@dataclass(frozen=True)
class _Convolution:
    """A convolution of a parameter in a border: channels last, or first."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    strides: tuple[int, ...]
    dilation: int | tuple[int, ...] = 1
    groups: int = 1
    dtype: str = "float32"
    value: float = 0.0
    spatial: str = "HW"
    channels_last: bool = True
    has_epilogue: bool = False

    @property
    def text(self) -> str:
        """The program."""
        graph, order = Graph("f"), self.spatial
        layouts = (
            (f"N{order}C", f"{order}IO", f"N{order}C")
            if self.channels_last
            else (f"NC{order}", f"OI{order}", f"NC{order}")
        )
        x, w = graph.parameter("x", self.x, self.dtype), graph.parameter("w", self.w, self.dtype)
        sides = [*self.padding, (0, 0)] if self.channels_last else [(0, 0), *self.padding]
        low, high = zip((0, 0), *sides, strict=True)
        y = graph.convolution(
            graph.pad(x, low, high, number=self.value),
            w,
            strides=self.strides,
            kernel_dilation=self.dilation,
            groups=self.groups,
            layouts=layouts,
        )
        if self.has_epilogue:
            channels = y.shape[-1 if self.channels_last else 1]
            bias = graph.parameter("bias", (channels,), self.dtype)
            residual = graph.parameter("residual", y.shape, self.dtype)
            y = y + graph.broadcast(bias, y.shape, (len(y.shape) - 1 if self.channels_last else 1,)) + residual
        graph.output(y)
        return str(graph.module())

    def remarks(self, target: Target) -> str:
        """The remarks of the first stage, a line each."""
        remarks = Remarks()
        stage1(self.text, target, remarks)
        return "\n".join(remark.message for remark in remarks)


_DEPTHWISE: Final = _Convolution((1, 13, 14, 16), (3, 3, 1, 16), ((1, 1), (1, 1)), (1, 1), groups=16)
_DENSE: Final = _Convolution((1, 17, 16, 4), (3, 3, 4, 8), ((1, 1), (1, 1)), (1, 1))
_FIRST: Final = replace(_DEPTHWISE, x=(2, 16, 11, 12), w=(16, 1, 3, 3), channels_last=False)
_CASES: Final = [
    _DEPTHWISE,
    replace(_DEPTHWISE, x=(2, 13, 14, 16), strides=(2, 2), has_epilogue=True),
    replace(_DEPTHWISE, strides=(2, 3), padding=((0, 2), (1, 0)), value=2.0),
    replace(
        _DEPTHWISE,
        x=(1, 23, 12, 8),
        w=(3, 3, 1, 8),
        groups=8,
        dilation=(2, 1),
        padding=((2, 2), (1, 1)),
        has_epilogue=True,
    ),
    replace(_DEPTHWISE, x=(2, 11, 12, 5), w=(3, 3, 1, 5), groups=5, dtype="bfloat16"),
    replace(_DEPTHWISE, x=(1, 21, 16), w=(5, 1, 16), padding=((2, 2),), strides=(2,), spatial="W", value=-0.0),
    replace(
        _DEPTHWISE,
        x=(1, 7, 8, 9, 6),
        w=(2, 3, 2, 1, 6),
        padding=((1, 0), (1, 1), (0, 1)),
        strides=(1, 2, 1),
        groups=6,
        spatial="DHW",
    ),
    replace(_FIRST, padding=((1, 2), (2, 1)), value=1.5),
    replace(_FIRST, dtype="bfloat16", has_epilogue=True),
    _DENSE,
    replace(_DENSE, x=(1, 17, 16, 16), w=(3, 3, 16, 4), padding=((1, 0), (0, 1)), has_epilogue=True),
    replace(_DENSE, strides=(2, 2), has_epilogue=True),
    replace(_DENSE, x=(1, 4, 17, 16), w=(8, 4, 3, 3), channels_last=False, value=1.0),
    replace(_DENSE, x=(1, 17, 16, 5), w=(3, 3, 5, 4), has_epilogue=True),
]

_SLOW: Final = {
    "row_cycles": 0,
    "row_register_cycles": 1000,
    "element_cycles": 100,
    "stride2_row_cycles": 0,
    "stride2_register_cycles": 0,
    "stride2_read_byte_cycles": 100,
    "stride2_written_byte_cycles": 100,
    "tile_cycles": 1e4,
    "narrow_tile_cycles": 1e4,
    "deinterleaved_register_cycles": 1e4,
    "term_register_cycles": 1e-3,
    "product_cycles": 1e-3,
    "transposed_product_cycles": 0,
    "line_crossing_load_cycles": 0,
    "factor_cycles": 0,
    "call_cycles": 0,
}
"""Costs by which an input is copied only at its edges: copies take long."""


@pytest.mark.parametrize("target", _TARGETS)
@pytest.mark.parametrize("case", _CASES, ids=lambda case: str(_CASES.index(case)))
def test_only_edges_are_copied(case: _Convolution, target: str) -> None:
    decided = with_costs(target, **_SLOW)
    assert "regions of the result" in case.remarks(decided)
    assert validate(case.text, decided, runs=1) == []


@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2)], ids=str)
def test_less_than_a_third_of_the_input_is_copied(strides: tuple[int, int], target: str) -> None:
    """A layer of a network, by the target's own costs."""
    case = replace(_DEPTHWISE, x=(1, 28, 28, 64), w=(3, 3, 1, 64), groups=64, strides=strides)
    copied = re.findall(r"copy of ([\d.]+) KiB", case.remarks(find_target(target)))
    assert copied
    assert sum(map(float, copied)) < 28 * 28 * 64 * 4 / 1024 / 3


def test_an_input_without_an_inside_is_copied_whole() -> None:
    case = replace(_DEPTHWISE, x=(1, 3, 3, 16), padding=((2, 2), (2, 2)), strides=(4, 4))
    decided = with_costs("avx2", **_SLOW)
    assert "regions of the result" not in case.remarks(decided)
    assert validate(case.text, decided, runs=1) == []


def test_a_grid_has_no_regions() -> None:
    """Each would be several launches."""
    assert "regions of the result" not in _DEPTHWISE.remarks(with_costs("nvidia", **_SLOW))
