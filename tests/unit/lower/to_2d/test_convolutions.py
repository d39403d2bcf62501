"""Convolutions after stage 1, with decisions that the cost model seldom takes, against the evaluator on the input."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest

from tests.semantics.contraction.decisions import deciding, stage1
from tlx.evaluate import Machine
from tlx.intrinsics.convolution import dilated
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse
from tlx.lower.remarks import Remarks
from tlx.target.lookup import find_target

DTYPES: Final[dict[str, Any]] = {
    "float": np.float32, "half": np.float16, "bfloat": ml_dtypes.bfloat16, "i8": np.int8, "i32": np.int32,
}  # fmt: skip


def ints(*numbers: int) -> str:
    return f"<{len(numbers)} x i32> <{', '.join(f'i32 {number}' for number in numbers)}>"


def tensor(*extents: int) -> str:
    """The operands shape, layout and padding of a dense tensor."""
    return f"{ints(*extents)}, {ints(*range(len(extents)))}, {ints(*[0] * len(extents))}"


@dataclass(frozen=True)
class Convolution:
    """`y = follow(x * w)`.

    Attributes:
        x: Extents of the input: images, channels, rows, columns.
        w: Extents of the kernel: filters, channels of a group, rows, columns.
        strides: Of the rows and columns.
        holes: Zeros between neighbours of the input.
        pad: Zeros before, after and between the rows and columns of the input, written by a pad.
        element: Of the operands.
        sums: Element type of the result.
        epilogue: Whether relu follows.
        window: Extents of the window of a reduction that follows, or none.
    """

    x: tuple[int, int, int, int]
    w: tuple[int, int, int, int]
    strides: tuple[int, int] = (1, 1)
    holes: tuple[int, int] = (0, 0)
    element: str = "float"
    sums: str = "float"
    epilogue: bool = False
    window: tuple[int, ...] = field(default=())
    pad: tuple[tuple[int, int], ...] = ()

    @property
    def padded(self) -> tuple[int, ...]:
        """Extents of the input after the pad."""
        if not self.pad:
            return self.x
        spatial = zip(self.x[2:], *self.pad, strict=True)
        return (*self.x[:2], *(low + dilated(e, between + 1) + high for e, low, high, between in spatial))

    @property
    def result(self) -> tuple[int, ...]:
        """Extents of the convolution's result."""
        spatial = zip(self.padded[2:], self.holes, self.w[2:], self.strides, strict=True)
        return (self.x[0], self.w[0], *((dilated(x, h + 1) - w) // s + 1 for x, h, w, s in spatial))

    @property
    def count(self) -> int:
        """Elements that are stored."""
        return math.prod(self.result) // math.prod(self.window)

    @property
    def text(self) -> str:
        """The program: `f(x, w, y)`."""
        vector = f"<{math.prod(self.result)} x {self.sums}>"
        lines = [
            f"%{name} = call token @llvm.tensor.load(ptr elementtype({self.element}) %p.{name}, {tensor(*extents)}, "
            f"{ints(0, 0, 0, 0)})"
            for name, extents in (("x", self.x), ("w", self.w))
        ]
        source = "%x"
        if self.pad:
            whole = f"<{math.prod(self.padded)} x {self.element}>"
            low, high, between = (ints(0, 0, *numbers) for numbers in self.pad)
            zero = "0" if self.element.startswith("i") else "0.0"
            lines += [
                f"%w.x = call {whole} @llvm.tensor.pad(token %x, {low}, {high}, {self.element} {zero}, {between})",
                f"%v.x = call token @llvm.tensor.typeinfo({whole} %w.x, {tensor(*self.padded)})",
            ]
            source = "%v.x"
        vectors = ", ".join(ints(*vector) for vector in (self.strides, self.holes, (0, 0)))
        lines += [
            f"%y = call {vector} @llvm.tensor.convolution(token {source}, token %w, {vectors})",
            f"%t = call token @llvm.tensor.typeinfo({vector} %y, {tensor(*self.result)})",
        ]
        last = f"{vector} %y"
        if self.epilogue:
            lines.append(f"%r = call {vector} @llvm.tensor.relu(token %t)")
            last = f"{vector} %r"
        if self.window:
            last = f"<{self.count} x {self.sums}> %s"
            lines.append(
                f"%s = call <{self.count} x {self.sums}> @llvm.tensor.reduce.add(token %t, {ints(*self.window)}, "
                f"{ints(1, 1, 1, 1)})"
            )
        body = "\n".join(f"  {line}" for line in [*lines, f"store {last}, ptr %p.y", "ret void"])
        return f"define void @f(ptr noalias %p.x, ptr noalias %p.w, ptr noalias %p.y) {{\n{body}\n}}\n"

    def evaluated(self, module: Any, zero_weight: float = 0.0) -> Array:
        """What a module computes of small integers; the kernel's first weight is `zero_weight`."""
        rng = np.random.default_rng(1)
        x, w = (rng.integers(-4, 5, math.prod(extents)).astype(DTYPES[self.element]) for extents in (self.x, self.w))
        if zero_weight:
            w[0] = zero_weight
        y = np.zeros(self.count, DTYPES[self.sums])
        Machine(module).call("f", x, w, y)
        return y


STRIDED: Final = Convolution((1, 3, 9, 19), (5, 3, 3, 3), (2, 2))
PHASES: Final = Convolution((1, 4, 6, 9), (8, 4, 4, 4), holes=(1, 1))

# The program, the machine, marks of the decisions in the IR.
DECISIONS: Final[dict[str, tuple[Convolution, str, tuple[str, ...]]]] = {
    "even and odd columns in regions of a copy": (STRIDED, "generic", ("split.buf",)),
    "sums over regions in a loop": (
        Convolution((1, 2, 15, 31), (3, 2, 9, 9), (2, 2)), "generic", ("split.buf", "udiv"),
    ),
    "channels of a group": (Convolution((1, 6, 7, 7), (4, 3, 3, 3)), "generic", ("batch.loop|group",)),
    "sums of half in float": (
        Convolution((1, 3, 9, 19), (5, 3, 3, 3), element="half", sums="half", epilogue=True), "generic", ("fptrunc",),
    ),
    "phases of a dilated input": (PHASES, "generic", ()),
    "phases of a dilated input on a matrix unit": (
        Convolution((1, 32, 6, 18), (16, 32, 4, 4), holes=(1, 1), element="i8", sums="i32"), "amx", (),
    ),
    "phases along rows only": (Convolution((1, 4, 6, 9), (8, 4, 3, 4), holes=(0, 1)), "avx512", ()),
    "a dilated input with a stride": (Convolution((1, 4, 6, 9), (8, 4, 3, 4), (1, 3), (0, 1)), "generic", ()),
}  # fmt: skip

PADDED: Final = {
    "same": Convolution((2, 5, 6, 9), (8, 5, 3, 3), pad=((2, 2), (1, 1), (1, 1))),
    "uneven": Convolution((2, 5, 6, 9), (8, 5, 4, 3), pad=((1, 4), (2, 0), (1, 2)), epilogue=True),
    "cropped": Convolution((2, 5, 7, 9), (8, 5, 3, 4), pad=((-3, 1), (2, -4), (2, 1))),
    "strided": Convolution((2, 5, 7, 9), (8, 5, 4, 4), (1, 3), pad=((3, 2), (2, 3), (1, 1))),
    "rows only": Convolution((2, 5, 7, 9), (8, 5, 3, 3), pad=((2, 1), (1, 1), (1, 0))),
    "one row": Convolution((2, 5, 1, 9), (8, 5, 3, 3), pad=((2, 2), (3, 1), (2, 1))),
    "groups": Convolution((2, 6, 6, 9), (8, 3, 3, 3), pad=((2, 2), (1, 1), (1, 1))),
    "bytes": Convolution((1, 32, 6, 18), (16, 32, 3, 3), element="i8", sums="i32", pad=((2, 2), (1, 1), (1, 1))),
    "bfloat": Convolution((1, 8, 6, 9), (8, 8, 3, 3), element="bfloat", sums="bfloat", pad=((2, 2), (1, 1), (1, 1))),
}


PHASED: Final = r"phases\.buf|skipped\.buf"


@pytest.mark.parametrize("target", ["generic", "avx512", "amx"])
@pytest.mark.parametrize("name", PADDED)
def test_phases_of_an_input_that_a_pad_dilates(name: str, target: str) -> None:
    """No phase reads holes, and the border is in the copy of the undilated input."""
    program = PADDED[name]
    module = stage1(program.text, deciding(program.text, find_target(target), PHASED, without=("%pad.buf",)))
    np.testing.assert_array_equal(program.evaluated(module), program.evaluated(parse(program.text)))


def test_phases_of_a_large_padded_input() -> None:
    program = Convolution((8, 64, 16, 16), (32, 64, 3, 3), pad=((2, 2), (1, 1), (1, 1)))
    remarks = Remarks()
    stage1(program.text, find_target("avx512"), remarks)
    assert any("4 phases of the result" in remark.message for remark in remarks)


def test_holes_of_a_padded_input_meet_infinite_weights() -> None:
    program = PADDED["same"]
    expected = program.evaluated(parse(program.text), math.inf)
    assert np.isnan(expected).any()
    module = stage1(program.text, deciding(program.text, find_target("generic"), PHASED, without=("%pad.buf",)))
    np.testing.assert_array_equal(program.evaluated(module, math.inf), expected)


@pytest.mark.parametrize("name", DECISIONS)
def test_decisions_do_not_change_the_meaning(name: str) -> None:
    program, target, marks = DECISIONS[name]
    machine = deciding(program.text, find_target(target), *marks)
    expected = program.evaluated(parse(program.text))
    np.testing.assert_array_equal(program.evaluated(stage1(program.text, machine)), expected)


def test_holes_of_a_dilated_input_meet_infinite_weights() -> None:
    """Zero times infinity is NaN, though no phase multiplies zeros."""
    expected = PHASES.evaluated(parse(PHASES.text), math.inf)
    assert np.isnan(expected).any()
    np.testing.assert_array_equal(PHASES.evaluated(stage1(PHASES.text, find_target("generic")), math.inf), expected)


@pytest.mark.parametrize("window", [(1, 1, 1, 7), (1, 1, 6, 7), (1, 4, 1, 1)], ids=["rows", "planes", "channels"])
def test_sums_of_a_result(window: tuple[int, ...]) -> None:
    """Blocks reduce the result, or it is in a temporary, or blocks reduce one dimension and a temporary the other."""
    program = Convolution((1, 3, 8, 9), (4, 3, 3, 3), window=window)
    expected = program.evaluated(parse(program.text))
    reasons: set[str] = set()
    for seed in range(40):
        remarks = Remarks()
        module = stage1(program.text, find_target("generic").with_decision_seed(seed), remarks)
        np.testing.assert_array_equal(program.evaluated(module), expected)
        reasons |= set(re.findall(r"product and reduce.add, because (.*)", "\n".join(r.message for r in remarks))) or {
            ""
        }
    both = {"", "that takes less time"}
    assert reasons == (both | {"a block reduces only a part of it"} if window[2] > 1 else both)
