"""Convolutions of padded inputs: a copy of the input has its border written in place, and means the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pytest

import tlx
from tests.semantics.contraction.decisions import FREE_COPIES, drawn_decisions, stage1, with_costs
from tests.semantics.to_2d.contract import check_contract
from tests.support.tools import quick_by_target, require_processor
from tlx.api.validation import validate
from tlx.target.target import Target

_TARGETS: Final = ("generic", "avx2", "avx512", "amx")
_ELEMENTS: Final = (("float", "float"), ("bfloat", "float"), ("bfloat", "bfloat"), ("half", "half"), ("i8", "i32"))


def _ints(numbers: Sequence[int]) -> str:
    return f"<{len(numbers)} x i32> <{', '.join(f'i32 {number}' for number in numbers)}>"


@dataclass(frozen=True)
class _Padded:
    """A convolution of a padded input, with a map before it or the input as it is loaded, in either order."""

    elements: tuple[str, str]
    x: tuple[int, ...]
    w: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    strides: tuple[int, ...]
    holes: tuple[int, ...]
    value: str = "0.0"
    reads: int = 1
    is_loaded: bool = False
    channels_last: bool = False

    @property
    def padded(self) -> list[int]:
        """Extents of the padded input."""
        sides = zip((0, 0, *self.low), self.x, (0, 0, *self.high), strict=True)
        return [sum(extents) for extents in sides]

    @property
    def y(self) -> list[int]:
        """Extents of the result."""
        dims = zip(self.padded[2:], self.w[2:], self.strides, self.holes, strict=True)
        return [self.x[0], self.w[0], *((n - (k - 1) * (hole + 1) - 1) // step + 1 for n, k, step, hole in dims)]

    @property
    def text(self) -> str:
        """The program."""
        (e, s), (x, p, y) = self.elements, map(math.prod, (self.x, self.padded, self.y))
        rank = len(self.x)
        order, zeros = _ints(range(rank)), f"<{rank} x i32> zeroinitializer"
        layout = [0, *range(2, rank), 1] if self.channels_last else range(rank)
        data, padded, low, high = (
            _ints([numbers[d] for d in layout])
            for numbers in (self.x, self.padded, (0, 0, *self.low), (0, 0, *self.high))
        )
        value = f"{e} {self.value}" if e != "i8" else f"i8 {int(float(self.value))}"
        double = "add" if e == "i8" else "fadd"
        windows = f"{_ints(self.strides)}, {_ints([0] * len(self.holes))}, {_ints(self.holes)}"
        convolutions = "".join(
            f"""  %c{n} = call <{y} x {s}> @llvm.tensor.convolution(token %pt, token %wt, {windows})
  store <{y} x {s}> %c{n}, ptr %y{n}
"""
            for n in range(self.reads)
        )
        source = f"""  %v = load <{x} x {e}>, ptr %x
  %d = {double} <{x} x {e}> %v, %v
  %t = call token @llvm.tensor.typeinfo(<{x} x {e}> %d, {data}, {order}, {zeros})
"""
        if self.is_loaded:
            source = f"""  %t = call token @llvm.tensor.load(ptr elementtype({e}) %x, {data}, {order}, {zeros}, {zeros})
"""
        results = ", ".join(f"ptr noalias %y{n}" for n in range(self.reads))
        return f"""define void @f(ptr noalias %x, ptr noalias %w, {results}) {{
{source}  %p = call <{p} x {e}> @llvm.tensor.pad(token %t, {low}, {high}, {value})
  %pt = call token @llvm.tensor.typeinfo(<{p} x {e}> %p, {padded}, {_ints(layout)}, {zeros})
  %wt = call token @llvm.tensor.load(ptr elementtype({e}) %w, {_ints(self.w)}, {order}, {zeros}, {zeros})
{convolutions}  ret void
}}
"""


def _random(rng: np.random.Generator) -> _Padded:
    spatial = int(rng.choice([1, 2, 2, 2, 3]))
    kernel = rng.integers(1, 4, spatial)
    holes = rng.integers(0, 2, spatial)
    low, high = rng.integers(0, 3, (2, spatial))
    extents = np.maximum(rng.integers(3, 10 if spatial < 3 else 5, spatial), (kernel - 1) * (holes + 1) + 1)
    channels = int(rng.choice([1, 3, 5, 8, 16, 32] if spatial < 3 else [1, 3, 4]))
    groups = int(rng.choice([1, 1, 1, channels]))
    filters = groups if groups > 1 else int(rng.choice([1, 4, 7, 16]))
    case = _Padded(
        elements=_ELEMENTS[rng.integers(len(_ELEMENTS))],
        x=(int(rng.integers(1, 3)), channels, *extents.tolist()),
        w=(filters, channels // groups, *kernel.tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        strides=tuple(rng.integers(1, 4, spatial).tolist()),
        holes=tuple(holes.tolist()),
        value=str(rng.choice(["0.0", "-0.0", "2.0"])),
        reads=int(rng.integers(1, 3)),
        is_loaded=bool(rng.integers(2)),
        channels_last=bool(rng.integers(2)),
    )
    return replace(case, reads=1) if case.channels_last else case  # the evaluator takes long for single elements


_COPIED: Final = {
    **FREE_COPIES,
    "term_register_cycles": 1e9,
    "product_cycles": 1e9,
    "transposed_product_cycles": 0,
    "line_crossing_load_cycles": 0,
    "factor_cycles": 0,
}
"""Costs by which an input is copied, too, where its channels can be innermost."""


def _decided(target: str, seed: int) -> Target:
    """By costs that are drawn, or that make copies free and caches small, so that rows are copied in blocks."""
    if seed % 2:
        return drawn_decisions(target, seed)
    near = (1 << 20, 20000, 6000, 3000)[seed // 2 % 4]
    return with_costs(
        target, **_COPIED, cached_operand_bytes=near, max_whole_copy_bytes=near, max_partial_copy_bytes=near
    )


@pytest.mark.parametrize(("seed", "target"), quick_by_target(range(50), _TARGETS, 6))
def test_padded_inputs_mean_the_same(seed: int, target: str) -> None:
    case = _random(np.random.default_rng(seed))
    decided = _decided(target, seed)
    check_contract(stage1(case.text, decided))
    assert validate(case.text, decided, runs=1) == []


_CASE: Final = _Padded(("float", "float"), (1, 16, 13, 7), (8, 16, 3, 3), (2, 1), (1, 3), (1, 1), (0, 0), "1.0")
_BFLOAT: Final = replace(_CASE, elements=("bfloat", "float"), x=(1, 64, 13, 19), w=(16, 64, 3, 3))
_STRIDED: Final = replace(_CASE, strides=(1, 3))
_DEPTHWISE: Final = replace(_CASE, w=(16, 1, 3, 3), is_loaded=True, channels_last=True)
_LAYOUTS: Final = [
    (_CASE, "avx512", _COPIED, 1 << 20, "last.buf"),
    (_CASE, "avx512", _COPIED, 3072, "row.end"),
    (replace(_CASE, strides=(2, 1)), "avx2", _COPIED, 3072, "row.end"),
    (replace(_STRIDED, x=(2, 3, 13, 40), w=(8, 3, 3, 3)), "avx512", FREE_COPIES, 1 << 20, "split.buf"),
    (replace(_STRIDED, x=(1, 16, 13, 19), w=(16, 1, 2, 4)), "avx2", FREE_COPIES, 1500, "split.buf"),
    (replace(_STRIDED, x=(1, 8, 13, 40), w=(8, 1, 3, 5)), "generic", FREE_COPIES, 1500, "split.buf"),
    (_BFLOAT, "amx", _COPIED, 1 << 20, "groups.buf"),
    (replace(_BFLOAT, x=(2, 64, 13, 19), elements=("i8", "i32"), strides=(1, 2)), "amx", _COPIED, 8192, "groups.buf"),
    (replace(_BFLOAT, strides=(1, 2)), "amx", _COPIED, 6144, "split.buf"),
    (replace(_CASE, x=(3, 16, 13, 7)), "avx512", _COPIED, 16 << 10, "part.loop"),
    (replace(_CASE, x=(3, 16, 13, 7), strides=(2, 1)), "avx2", _COPIED, 5120, "part.loop"),
    (replace(_DEPTHWISE, x=(4, 16, 13, 7)), "avx512", FREE_COPIES, 16 << 10, "part.loop"),
    (replace(_DEPTHWISE, x=(4, 16, 13, 7)), "avx2", FREE_COPIES, 5120, "row.end"),
    (replace(_DEPTHWISE, x=(4, 16, 13, 7), channels_last=False), "avx512", FREE_COPIES, 5120, "row.end"),
    (replace(_DEPTHWISE, elements=("bfloat", "bfloat"), strides=(2, 2)), "avx512", FREE_COPIES, 1500, "row.end"),
    # The last blocks of rows are below the image: they are not those of the next one.
    (replace(_DEPTHWISE, x=(3, 16, 6, 7), high=(8, 1)), "avx2", FREE_COPIES, 5120, "part.loop"),
    (replace(_DEPTHWISE, x=(3, 16, 6, 7), w=(8, 16, 3, 3)), "avx2", _COPIED, 5120, "part.loop"),
]


@pytest.mark.parametrize(("case", "target", "costs", "near", "mark"), _LAYOUTS)
def test_each_layout_has_a_border(
    case: _Padded, target: str, costs: Mapping[str, object], near: int, mark: str
) -> None:
    """Copies that are larger than `near` are made in blocks of rows, some of which have rows of the border."""
    decided = with_costs(
        target, **costs, cached_operand_bytes=near, max_whole_copy_bytes=near, max_partial_copy_bytes=near
    )
    written = str(stage1(case.text, decided))
    assert mark in written
    assert "%p.buf" not in written
    assert validate(case.text, decided, runs=1) == []


@pytest.mark.parametrize("strides", [(1, 1), (2, 1)], ids=str)
def test_blocks_of_rows_run(strides: tuple[int, int]) -> None:
    """As machine code; the rows of a block are copied only where they are in the input."""
    require_processor("avx2")
    case = replace(_CASE, strides=strides)
    decided = with_costs(
        "avx2", **_COPIED, cached_operand_bytes=3072, max_whole_copy_bytes=3072, max_partial_copy_bytes=3072
    )
    assert "row.end" in str(stage1(case.text, decided))
    at_once = with_costs("avx2", **_COPIED)
    assert "row.end" not in str(stage1(case.text, at_once))
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-4, 5, shape).astype("f4") for shape in (case.x, case.w))
    whole, blocks = np.zeros((2, *case.y), "f4")
    tlx.compile(case.text, at_once)(x, w, whole)
    tlx.compile(case.text, decided)(x, w, blocks)
    np.testing.assert_array_equal(whole, blocks)


def test_a_pad_that_something_else_reads_has_a_buffer() -> None:
    text = _CASE.text.replace("w, ptr", "w, ptr noalias %z, ptr").replace(
        "  ret void", f"  store <{math.prod(_CASE.padded)} x float> %p, ptr %z\n  ret void"
    )
    decided = with_costs("avx512", **_COPIED)
    assert "%p.buf" not in str(stage1(_CASE.text, decided))
    assert "%p.buf" in str(stage1(text, decided))
    assert validate(text, decided, runs=1) == []


def test_a_pad_is_read_in_another_number_of_dimensions() -> None:
    text = """
define void @f(ptr %x, ptr noalias %y) {
  %v = load <16 x float>, ptr %x
  %t = call token @llvm.tensor.typeinfo(<16 x float> %v, MATRIX <i32 4, i32 4>, MATRIX <i32 0, i32 1>, MATRIX ZEROS)
  %p = call <36 x float> @llvm.tensor.pad(token %t, MATRIX <i32 1, i32 1>, MATRIX <i32 1, i32 1>, float 3.0)
  %c = call token @llvm.tensor.typeinfo(<36 x float> %p, CUBE <i32 2, i32 3, i32 6>, CUBE ORDER, CUBE ZEROS)
  %s = call <6 x float> @llvm.tensor.reduce.add(token %c, CUBE <i32 1, i32 1, i32 6>, CUBE <i32 1, i32 1, i32 6>)
  store <6 x float> %s, ptr %y
  ret void
}
"""
    text = text.replace("MATRIX", "<2 x i32>").replace("CUBE", "<3 x i32>").replace("ZEROS", "zeroinitializer")
    text = text.replace("ORDER", "<i32 0, i32 1, i32 2>")
    assert validate(text, "avx512", runs=1) == []
