"""Convolutions whose input is copied with interleaved channels for a matrix unit."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest
from ml_dtypes import bfloat16

import tlx
from tests.semantics.contraction.decisions import deciding, stage1
from tests.semantics.to_2d.contract import check_contract, poisoned
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.target.lookup import find_target
from tlx.target.target import Target


@dataclass(frozen=True)
class Case:
    """A convolution of `images` x `channels` x `size`, with the kernel's extents, strides and dilations."""

    types: tuple[str, str]
    channels: int
    filters: int
    size: tuple[int, int]
    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    holes: tuple[int, int] = (0, 0)
    images: int = 1
    has_epilogue: bool = False

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Shapes of input, kernels and result."""
        reach = [(k - 1) * (h + 1) + 1 for k, h in zip(self.kernel, self.holes, strict=True)]
        out = [(s - r) // step + 1 for s, r, step in zip(self.size, reach, self.strides, strict=True)]
        x, w = (self.images, self.channels, *self.size), (self.filters, self.channels, *self.kernel)
        return x, w, (self.images, self.filters, *out)

    @property
    def text(self) -> str:
        """The program."""
        narrow, wide = self.types
        x, w, y = self.shapes
        count = int(np.prod(y))
        steps = [f"<2 x i32> <i32 {a}, i32 {b}>" for a, b in (self.strides, (0, 0), self.holes)]
        after = f"%r = call <{count} x {wide}> @llvm.tensor.relu(token %t)" if self.has_epilogue else ""
        return f"""\
define void @f(ptr noalias %x, ptr noalias %w, ptr noalias %y) {{
  %a = call token @llvm.tensor.load(ptr elementtype({narrow}) %x, {_tensor(x)}, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype({narrow}) %w, {_tensor(w)}, <4 x i32> zeroinitializer)
  %c = call <{count} x {wide}> @llvm.tensor.convolution(token %a, token %b, {", ".join(steps)})
  %t = call token @llvm.tensor.typeinfo(<{count} x {wide}> %c, {_tensor(y)})
  {after}
  store <{count} x {wide}> {"%r" if self.has_epilogue else "%c"}, ptr %y
  ret void
}}
"""

    def inputs(self) -> list[Array]:
        """Small numbers, whose sums are exact; the result is not zero before."""
        random, narrow = np.random.default_rng(self.channels), self.types[0]
        x, w = (random.integers(-3, 4, shape) for shape in self.shapes[:2])
        if narrow == "i8":
            return [x.astype(np.int8), w.astype(np.int8), np.full(self.shapes[2], 7, np.int32)]
        dtype = bfloat16 if narrow == "bfloat" else np.float32
        return [x.astype(dtype), w.astype(dtype), np.full(self.shapes[2], 7, np.float32)]


def _tensor(shape: tuple[int, ...]) -> str:
    extents = ", ".join(f"i32 {extent}" for extent in shape)
    return f"<4 x i32> <{extents}>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer"


GROUPS = r"%rhs\.(vnni|strips)"  # loads of interleaved rows
BF16, BYTES = ("bfloat", "float"), ("i8", "i32")
CASES = [
    Case(BF16, 32, 20, (4, 19), (3, 3)),
    Case(BF16, 64, 40, (5, 47), (2, 3), images=2, has_epilogue=True),
    Case(BF16, 32, 16, (3, 30), (1, 3), has_epilogue=True),
    Case(BF16, 32, 17, (7, 36), (3, 3), strides=(2, 2)),
    Case(BF16, 32, 5, (5, 21), (2, 2), strides=(1, 2), images=2),
    Case(BF16, 32, 9, (3, 23), (1, 2), strides=(2, 3)),
    Case(BF16, 32, 9, (3, 26), (2, 3), strides=(1, 2), holes=(0, 1)),
    Case(BYTES, 64, 33, (4, 35), (3, 2)),
    Case(BYTES, 64, 7, (5, 9), (3, 3), has_epilogue=True),
    Case(BYTES, 128, 18, (5, 31), (3, 3), strides=(2, 2)),
    Case(BYTES, 64, 16, (2, 40), (2, 3), holes=(0, 2)),
    Case(BYTES, 64, 16, (3, 17), (1, 1), strides=(2, 2), images=2),
    Case(BYTES, 64, 16, (32, 30), (1, 3)),
]


def evaluated(case: Case, module: Module) -> Array:
    arguments = case.inputs()
    Machine(module).call("f", *arguments)
    return arguments[2]


WIDE = [
    Case(BF16, 32, 20, (7, 31), (3, 3)),
    Case(BF16, 64, 40, (6, 63), (2, 3), images=2, has_epilogue=True),
    Case(BF16, 32, 16, (2, 31), (1, 3), has_epilogue=True),
    Case(BF16, 32, 17, (11, 59), (3, 3), strides=(2, 2)),
    Case(BF16, 32, 5, (6, 122), (2, 2), strides=(1, 2), images=2),
    Case(BF16, 32, 9, (9, 87), (3, 3), strides=(2, 3)),
    Case(BF16, 32, 9, (6, 61), (2, 3), strides=(1, 2), holes=(0, 1)),
    Case(BYTES, 64, 33, (6, 31), (3, 3)),
    Case(BYTES, 64, 7, (4, 31), (3, 3), has_epilogue=True),
    Case(BYTES, 128, 18, (5, 123), (3, 3), strides=(2, 2)),
    Case(BYTES, 64, 16, (6, 35), (3, 3), holes=(0, 2)),
    Case(BYTES, 64, 16, (32, 30), (1, 3)),
]
"""Convolutions with rows long enough for tiles, which read windows of the input in place."""


def check(case: Case, target: Target) -> None:
    """Check a case after stage 1, after all stages, and as machine code without tiles."""
    expected = evaluated(case, parse(case.text))
    module = stage1(case.text, target)
    check_contract(module)
    np.testing.assert_array_equal(expected, evaluated(case, module))
    np.testing.assert_array_equal(expected, evaluated(case, poisoned(module)))
    np.testing.assert_array_equal(expected, evaluated(case, lower(parse(case.text), target)))
    arguments = case.inputs()
    tlx.compile(case.text, target, opt_level=0, options=Options(emulate_matrix=True))(*arguments)
    np.testing.assert_array_equal(expected, arguments[2])


@pytest.mark.parametrize("case", WIDE)
def test_interleaved_images_mean_the_same(case: Case) -> None:
    target = find_target("amx")
    assert re.search(GROUPS, str(stage1(case.text, target)))
    assert "%groups.buf" in str(stage1(case.text, target))
    check(case, target)


@pytest.mark.parametrize("case", CASES)
def test_interleaved_windows_mean_the_same(case: Case) -> None:
    """Windows are copied in groups of rows, the left operand only if the seed decides so."""
    check(case, deciding(case.text, find_target("amx"), "%x.buf", GROUPS, without=("%groups.buf",)))
