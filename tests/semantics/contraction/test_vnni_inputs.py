"""Convolutions whose input is copied with interleaved channels for a matrix unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from ml_dtypes import bfloat16

import tlx
from tests.semantics.to_2d.contract import check_contract, poisoned
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.tensors.calls import canonicalise
from tlx.lower.context import LoweringContext
from tlx.lower.cost import ComputeUnit
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.lower.to_2d import to_2d
from tlx.lower.to_2d.contraction import depthwise, strategy
from tlx.lower.to_2d.contraction.blocking import Blocking
from tlx.lower.to_2d.contraction.depthwise import DepthwiseBlocking
from tlx.lower.to_2d.contraction.problem import Contraction
from tlx.lower.to_2d.convolution import dense
from tlx.lower.to_2d.convolution.problem import InputLayout
from tlx.target.lookup import find_target


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


def check(case: Case, copy: str) -> None:
    """Check a case after stage 1, after all stages, and as machine code without tiles."""
    module = parse(case.text)
    expected = evaluated(case, module)
    canonicalise(module)
    to_2d(module, LoweringContext(find_target("amx")))
    check_contract(module)
    assert (f"%{copy}.buf" in str(module)) == (copy == "rhs" or case.kernel != (1, 1))
    assert "%rhs.vnni" in str(module) or "%rhs.strips" in str(module)
    np.testing.assert_array_equal(expected, evaluated(case, module))
    np.testing.assert_array_equal(expected, evaluated(case, poisoned(module)))
    np.testing.assert_array_equal(expected, evaluated(case, lower(parse(case.text), "amx")))
    arguments = case.inputs()
    tlx.compile(case.text, "amx", opt_level=0, options=Options(emulate_matrix=True))(*arguments)
    np.testing.assert_array_equal(expected, arguments[2])


@pytest.mark.parametrize("case", CASES)
def test_interleaved_images_mean_the_same(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost model is patched so that the copy always pays off."""

    def cycles(_plan: object, contraction: Contraction, _element: object) -> float:
        return 0.0 if contraction.rhs.vnni_group > 1 else 1e9

    monkeypatch.setattr(dense, "least_contraction_cycles", cycles)
    check(case, "groups")


@pytest.mark.parametrize("case", CASES)
def test_interleaved_windows_mean_the_same(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Patch the cost model so that windows are copied in groups of rows, and the left operand only if necessary."""

    def estimate(choice: Blocking | DepthwiseBlocking, _unit: ComputeUnit) -> float:
        if isinstance(choice, DepthwiseBlocking) or choice.groups is None:
            return 1e9
        return len(choice.copied)

    def no_images(_problem: object, _unit: ComputeUnit) -> Iterator[InputLayout]:
        return iter(())

    monkeypatch.setattr(strategy, "blocking_cycles", estimate)
    monkeypatch.setattr(depthwise, "depthwise_cycles", estimate)
    monkeypatch.setattr(dense, "input_layouts", no_images)
    check(case, "rhs")
