"""Epilogues of contractions: they are applied to each block before it is stored, wherever its sums are kept."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.semantics.contraction.decisions import drawn_decisions, names_of, stage1
from tests.semantics.contraction.programs import Program, contraction, convolution
from tests.semantics.to_2d.contract import check_contract
from tests.semantics.to_2d.random.writer import DTYPES
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I64, FloatType, Type, VectorType
from tlx.ir.values import Value
from tlx.lower.memory.views import TensorView
from tlx.lower.to_2d import rules
from tlx.lower.to_2d.contraction.problem import ContractionEpilogue, EpilogueOperand
from tlx.lower.to_2d.emission import RuleContext
from tlx.lower.to_2d.memory.copies import load_block
from tlx.lower.to_2d.rules.products import lower_contract, lower_convolution

EACH = 60
RULES = {"contract": lower_contract, "convolution": lower_convolution}
WIDER: dict[Type, Type] = {FLOAT: DOUBLE, DOUBLE: DOUBLE, HALF: HALF, BFLOAT: BFLOAT}


class Scaled:
    """A rule that multiplies the product by another operand, `%d`, which may be broadcast along any dimension."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.random = random.Random(seed)
        self.factor_extents: tuple[int, ...] = ()
        self.extents: tuple[int, ...] = ()
        self.strides: tuple[int, ...] = ()

    def __call__(self, context: RuleContext, b: TensorBuilder, op: TensorOp, target: TensorView) -> None:
        self.extents = tuple(dim.extent for dim in target.dims)
        self.factor_extents = tuple(extent if self.random.random() < 0.6 else 1 for extent in self.extents)
        strides: list[int] = []
        stride = 1
        for extent, factor_extent in reversed(list(zip(self.extents, self.factor_extents, strict=True))):
            strides.insert(0, stride if factor_extent == extent else 0)
            stride *= factor_extent * (1 if len(strides) > 1 else self.random.choice([1, 2]))
        self.strides = tuple(strides)
        element = target.element
        wide = WIDER.get(element, I64) if isinstance(element, FloatType) else I64
        scale = b.function.arguments[3].value

        def emit(b: TensorBuilder, vector: Value, rows: int, cols: int, leaves: Sequence[EpilogueOperand]) -> Value:
            assert vector.type == VectorType(rows * cols, wide)
            (leaf,) = leaves
            pointer = b.gep(element, b.gep(element, scale, leaf.start), leaf.offset)
            factors = load_block(b, pointer, element, rows, cols, leaf.row_stride, leaf.col_stride)
            type_ = VectorType(rows * cols, element)
            narrowed = b.cast("fptrunc" if isinstance(element, FloatType) else "trunc", vector, type_)
            return b.binary("fmul" if isinstance(element, FloatType) else "mul", narrowed, factors)

        epilogue = ContractionEpilogue((self.strides,), wide, emit, may_use_destination=self.random.random() < 0.5)
        RULES[self.name](context, b, op, target, epilogue)


def lowered(program: Program, seed: int) -> Module:
    text = program.text.replace("ptr noalias %c)", "ptr noalias %c, ptr noalias %d)")
    module = stage1(text, drawn_decisions("generic", seed))
    check_contract(module)
    return module


def product(program: Program) -> Array:
    arguments = program.inputs()
    Machine(parse(program.text)).call("f", *arguments)
    return arguments[2]


def factors(rule: Scaled, element: Type) -> Array:
    """The memory of the further operand."""
    reach = 1 + sum((extent - 1) * stride for extent, stride in zip(rule.extents, rule.strides, strict=True))
    return (np.arange(reach) % 5 - 2).astype(DTYPES[element])


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("generate", [contraction, convolution])
def test_the_epilogue_is_applied_to_blocks(
    generate: Callable[[int], Program], part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: set[str] = set()
    for seed in range(4000 + part * EACH, 4000 + (part + 1) * EACH):
        program = generate(seed)
        if "tensor.store" in program.text:
            continue
        name = "contract" if generate is contraction else "convolution"
        rule = Scaled(name, seed)
        monkeypatch.setitem(rules.RULES, name, rule)
        module = lowered(program, seed)
        names |= names_of(module)
        expected = product(program)
        arguments: list[Any] = program.inputs()
        scale = factors(rule, program.elements[2])
        Machine(module).call("f", *arguments, scale)
        steps = tuple(stride * scale.itemsize for stride in rule.strides)
        with np.errstate(all="ignore"):
            scaled = expected.reshape(rule.extents) * np.lib.stride_tricks.as_strided(scale, rule.extents, steps)
        scaled = scaled.reshape(-1)
        compare(program, scaled, arguments[2])
    assert names >= {"block.loop", "smma"}, "neither depthwise blocks nor chains of products"
    assert "transpose" in names or generate is contraction


def compare(program: Program, expected: Array, got: Array) -> None:
    if not isinstance(program.elements[2], FloatType):
        np.testing.assert_array_equal(expected, got)
        return
    exact = {HALF: 2.0**-10, BFLOAT: 2.0**-7}.get(program.elements[2], 2.0**-23)
    one, other = expected.astype(np.float64), got.astype(np.float64)
    np.testing.assert_allclose(other, one, rtol=4 * exact, atol=1e-5 * program.terms)
