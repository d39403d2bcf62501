"""Convolutions whose register tiles have filters as columns and are transposed when stored, with epilogues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import tlx
from tests.semantics.to_2d.contract import check_contract
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.tensors.calls import canonicalise
from tlx.lower.context import LoweringContext
from tlx.lower.pipeline import lower
from tlx.lower.to_2d import to_2d
from tlx.target.lookup import find_target

ORDER = "<4 x i32> <i32 0, i32 1, i32 2, i32 3>"
BIAS = "%bias = call <{count} x float> @llvm.tensor.broadcast(token %b, <4 x i32> <{y}>, " + ORDER + ")"
IMAGE = "%image = call <{count} x float> @llvm.tensor.tovector(token %r)"


@dataclass(frozen=True)
class Case:
    """A convolution by 3 x 3 of `channels` x `side` + 2 x `side` + 2, and its epilogue.

    Attributes:
        rest: The instructions that follow, from `%c` to `%z`.
    """

    channels: int
    filters: int
    side: int
    rest: tuple[str, ...]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of input, kernels, bias, another image and the result."""
        wide, out = self.side + 2, (1, self.filters, self.side, self.side)
        return (1, self.channels, wide, wide), (self.filters, self.channels, 3, 3), (1, self.filters, 1, 1), out, out

    @property
    def text(self) -> str:
        """The program."""
        x, w, bias, image, y = map(_tensor, self.shapes)
        count = self.filters * self.side**2
        extents = ", ".join(f"i32 {extent}" for extent in self.shapes[-1])
        rest = "\n  ".join(self.rest).format(count=count, y=extents, tensor=y)
        return f"""\
define void @f(ptr noalias %x.p, ptr noalias %w.p, ptr noalias %b.p, ptr noalias %r.p, ptr noalias %y.p) {{
  %x = call token @llvm.tensor.load(ptr elementtype(float) %x.p, {x}, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %w.p, {w}, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %b.p, {bias}, <4 x i32> zeroinitializer)
  %r = call token @llvm.tensor.load(ptr elementtype(float) %r.p, {image}, <4 x i32> zeroinitializer)
  %c = call <{count} x float> @llvm.tensor.convolution(token %x, token %w)
  {rest}
  %t = call token @llvm.tensor.typeinfo(<{count} x float> %z, {y})
  call void @llvm.tensor.store(ptr %y.p, token %t, <4 x i32> zeroinitializer)
  ret void
}}
"""

    def inputs(self) -> list[Array]:
        """Small multiples of an eighth, whose sums are exact; the result is not zero before."""
        random = np.random.default_rng(self.channels)
        *operands, out = self.shapes
        return [*(random.integers(-3, 4, s).astype(np.float32) / 8 for s in operands), np.full(out, 7, np.float32)]


def _tensor(shape: tuple[int, ...]) -> str:
    extents = ", ".join(f"i32 {extent}" for extent in shape)
    return f"<4 x i32> <{extents}>, {ORDER}, <4 x i32> zeroinitializer"


def _of(name: str, argument: str) -> tuple[str, str]:
    """The intrinsic of one operand, of a vector."""
    token = "%v = call token @llvm.tensor.typeinfo(<{count} x float> " + argument + ", {tensor})"
    return token, "%z = call <{count} x float> @llvm.tensor." + name + "(token %v)"


RELU = (BIAS, "%s = fadd <{count} x float> %c, %bias", *_of("relu", "%s"))
SUM = (BIAS, IMAGE, "%s = fadd <{count} x float> %c, %bias", "%z = fadd <{count} x float> %s, %image")
TANH = _of("tanh", "%c")
CASES = [
    Case(16, 48, 7, RELU),
    Case(16, 40, 7, SUM),  # a register of filters is half full
    Case(17, 48, 7, TANH),  # too long to be computed in registers: through memory
]


def evaluated(case: Case, module: Module) -> Array:
    arguments = case.inputs()
    Machine(module).call("f", *arguments)
    return arguments[-1]


@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize("case", CASES)
def test_the_epilogue_is_applied_to_transposed_tiles(case: Case, target: str) -> None:
    module = parse(case.text)
    expected = evaluated(case, module)
    canonicalise(module)
    to_2d(module, LoweringContext(find_target(target)))
    check_contract(module)
    assert "<2 x i32> <i32 1, i32 0>)\n  %product.1 = call token @llvm.tensor.typeinfo" in str(module)
    tolerance = 2.0**-21 if case.rest is TANH else 0
    np.testing.assert_allclose(evaluated(case, module), expected, rtol=tolerance)
    np.testing.assert_allclose(evaluated(case, lower(parse(case.text), target)), expected, rtol=tolerance)


@pytest.mark.parametrize("case", CASES)
def test_transposed_tiles_run(case: Case) -> None:
    expected = evaluated(case, parse(case.text))
    arguments = case.inputs()
    tlx.compile(case.text, "native")(*arguments)
    np.testing.assert_allclose(arguments[-1], expected, rtol=2.0**-21 if case.rest is TANH else 0)
