"""Reductions of products: the same result by every strategy."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from tests.semantics.contraction.decisions import drawn_decisions, stage1
from tests.semantics.contraction.programs import Program, contraction, convolution
from tests.semantics.to_2d.contract import check_contract
from tests.semantics.to_2d.random.writer import DTYPES, ints
from tests.support.tools import quick
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.tensors.inference import analyse
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, I32, I64, FloatType, Type
from tlx.lower.options import STAGE_NAMES, Options
from tlx.lower.pipeline import lower
from tlx.lower.remarks import Remarks

PROGRAMS = 120
PARTIAL, FASTER = "because a block reduces only a part of it", "because that takes less time"
KINDS = ("add", "max", "min", "add", "mul", "xor")


# Random products ------------------------------------------------------------------------------------------------------


def reduced(program: Program, choose: random.Random) -> tuple[str, TensorType] | None:
    """The program with a reduction of whole dimensions of its result, and the expected result."""
    head, store, _ = program.text.partition("  store ")
    if not store:
        return None
    module = parse(program.text)
    result = next(op.result for op in analyse(module, module.functions[0]).ops if op.result is not None)
    if result.element not in (FLOAT, DOUBLE, I32, I64):
        return None
    extents, vector, element = result.extents, result.vector, result.element
    chosen = [choose.random() < 0.5 for _ in extents]
    if choose.random() < 0.5:
        first = choose.randrange(len(extents))
        chosen = [d >= first for d in range(len(extents))]
    if not any(extent > 1 for extent, one in zip(extents, chosen, strict=True) if one):
        return None
    window = [extent if one else 1 for extent, one in zip(extents, chosen, strict=True)]
    left = TensorType.dense(element, [e // w for e, w in zip(extents, window, strict=True)])
    is_float = isinstance(element, FloatType)
    kind = choose.choice(KINDS[:4] if is_float else KINDS)
    opcode = "fadd" if is_float else "xor"
    lines = [f"%e = {opcode} {vector} %r, %r"] if choose.random() < 0.6 else []
    name = "%e" if lines else "%r"
    if lines and choose.random() < 0.4:
        lines = [f"%d.v = load {vector}, ptr %d", f"%e = {opcode} {vector} %r, %d.v"]
    lines.append(f"%t = call token @llvm.tensor.typeinfo({vector} {name}, {_dims(extents)})")
    operands = f"token %t, {ints(window)}, {ints([1] * len(extents))}"
    lines.append(f"%s = call {left.vector} @llvm.tensor.reduce.{kind}({operands})")
    lines.append(f"store {left.vector} %s, ptr %c, align 1")
    text = head + "".join(f"  {line}\n" for line in lines) + "  ret void\n}\n"
    return text.replace("ptr noalias %c)", "ptr noalias %c, ptr noalias %d)"), left


def _dims(extents: Sequence[int]) -> str:
    return ", ".join(map(ints, (list(extents), list(range(len(extents))), [0] * len(extents))))


def called(module: Module, arguments: list[Array]) -> Array:
    copies: list[Any] = deepcopy(arguments)
    Machine(module).call("f", *copies)
    return copies[2]


def compare(element: Type, expected: Array, got: Array, terms: int) -> None:
    if not isinstance(element, FloatType):
        np.testing.assert_array_equal(expected, got)
        return
    np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=1e-6 * terms)


@pytest.mark.parametrize("generate", [contraction, convolution])
def test_reduced_products(generate: Callable[[int], Program]) -> None:
    """Blocks may reduce the whole result, a part of it, or nothing of it."""
    temporaries: set[str] = set()
    for seed in range(7000, 7000 + PROGRAMS):
        program = generate(seed)
        reduction = reduced(program, random.Random(seed))
        if reduction is None:
            continue
        text, left = reduction
        remarks = Remarks()
        module = stage1(text, drawn_decisions("generic", seed), remarks)
        check_contract(module)
        temporaries |= {reason for reason in (PARTIAL, FASTER) if any(reason in str(remark) for remark in remarks)} or {
            ""
        }
        arguments = program.inputs()
        count = arguments[2].size
        arguments.append((np.arange(count) % 7 - 3).astype(DTYPES[left.element]))
        terms = program.terms * count // left.count
        compare(left.element, called(parse(text), arguments), called(module, arguments), terms)
    assert temporaries == {"", FASTER, PARTIAL}


# Convolutions on targets ----------------------------------------------------------------------------------------------

IMAGES, CHANNELS, FILTERS, SIZE, KERNEL = 1, 4, 20, 26, 3
OUT = SIZE - KERNEL + 1
SHAPE = (IMAGES, FILTERS, OUT, OUT)
WINDOWS = {
    "row": (1, 1, 1, OUT),
    "plane": (1, 1, OUT, OUT),
    "channel": (1, FILTERS, 1, 1),
    "image": (1, FILTERS, OUT, OUT),
}


def layer(element: str, sums: str, kind: str, window: Sequence[int], *, bias: bool) -> str:
    """A convolution, with or without a bias, and a reduction of whole dimensions."""
    count = math.prod(SHAPE)
    left = count // math.prod(window)
    add = "fadd" if sums == "float" else "add"
    lines = [
        _load("a", element, "x", (IMAGES, CHANNELS, SIZE, SIZE)),
        _load("b", element, "w", (FILTERS, CHANNELS, KERNEL, KERNEL)),
        f"%r = call <{count} x {sums}> @llvm.tensor.convolution(token %a, token %b)",
    ]
    if bias:
        lines += [
            _load("c", sums, "bias", (FILTERS,)),
            f"%b.v = call <{count} x {sums}> @llvm.tensor.broadcast(token %c, {ints(SHAPE)}, <1 x i32> <i32 1>)",
            f"%e = {add} <{count} x {sums}> %r, %b.v",
        ]
    lines += [
        f"%t = call token @llvm.tensor.typeinfo(<{count} x {sums}> {'%e' if bias else '%r'}, {_dims(SHAPE)})",
        f"%s = call <{left} x {sums}> @llvm.tensor.reduce.{kind}(token %t, {ints(window)}, {ints((1, 1, 1, 1))})",
        f"store <{left} x {sums}> %s, ptr %y",
    ]
    body = "".join(f"  {line}\n" for line in lines)
    arguments = "ptr noalias %x, ptr noalias %w, ptr noalias %bias, ptr noalias %y"
    return f"define void @f({arguments}) {{\n{body}  ret void\n}}\n"


def _load(name: str, element: str, pointer: str, extents: Sequence[int]) -> str:
    zeros = ints([0] * len(extents))
    return f"%{name} = call token @llvm.tensor.load(ptr elementtype({element}) %{pointer}, {_dims(extents)}, {zeros})"


TYPES = [("float", "float", FLOAT, FLOAT), ("bfloat", "float", BFLOAT, FLOAT), ("i8", "i32", None, I32)]


@pytest.mark.parametrize("target", quick(["avx512", "amx", "generic", "avx2"], 2))
@pytest.mark.parametrize("types", TYPES, ids=["float", "bfloat", "i8"])
@pytest.mark.parametrize("window", WINDOWS)
def test_reduced_convolutions(window: str, types: tuple[str, str, Type | None, Type], target: str) -> None:
    element, sums, narrow, wide = types
    kind = "max" if window == "row" else "add"
    text = layer(element, sums, kind, WINDOWS[window], bias=window != "channel")
    random_ = np.random.default_rng(5)
    narrow_type = np.dtype(np.int8) if narrow is None else DTYPES[narrow]
    sizes = (IMAGES * CHANNELS * SIZE * SIZE, FILTERS * CHANNELS * KERNEL * KERNEL)
    x, w = (random_.integers(-2, 3, size).astype(narrow_type) for size in sizes)
    bias = random_.integers(-9, 10, FILTERS).astype(DTYPES[wide])
    expected = np.zeros(math.prod(SHAPE) // math.prod(WINDOWS[window]), DTYPES[wide])
    Machine(parse(text)).call("f", x, w, bias, expected)
    remarks = Remarks()
    module = lower(parse(text), target, options=Options(remarks=remarks))
    y = np.zeros_like(expected)
    Machine(module).call("f", x, w, bias, y)
    np.testing.assert_array_equal(y, expected)
    into = [r.message for r in remarks if f"into reduce.{kind}" in r.message]
    stored = [r.message for r in remarks if f"between the product and reduce.{kind}" in r.message]
    apart = [message for message in stored if FASTER in message]
    assert window == "channel" or len(into) + len(apart) == 1
    assert all(" because " in message for message in stored)
    assert all(message.startswith("fused convolution") for message in into)


def test_columns_of_a_product_are_reduced_in_the_kernel() -> None:
    text = f"""
define void @f(ptr noalias %x, ptr noalias %w, ptr noalias %y) {{
  {_load("a", "float", "x", (60, 30))}
  {_load("b", "float", "w", (30, 50))}
  %m = call <3000 x float> @llvm.tensor.matmul(token %a, token %b)
  %e = fmul <3000 x float> %m, splat (float 2.0)
  %t = call token @llvm.tensor.typeinfo(<3000 x float> %e, {_dims((60, 50))})
  %s = call <50 x float> @llvm.tensor.reduce.max(token %t, {ints((60, 1))}, {ints((1, 1))})
  store <50 x float> %s, ptr %y
  ret void
}}
"""
    remarks = Remarks()
    lowered_text = str(lower(parse(text), "avx512", options=Options(stop_after="to-2d", remarks=remarks)))
    assert "alloca" not in lowered_text
    assert next(r.message for r in remarks).startswith("fused matmul, fmul into reduce.max")
    _same(text, 1800, 1500, 50)


# What once went wrong -------------------------------------------------------------------------------------------------


def _same(text: str, *counts: int) -> None:
    arguments: list[Any] = [(np.arange(count) * 7919 % 31 - 15).astype(np.float32) for count in counts]
    expected = deepcopy(arguments)
    Machine(parse(text)).call("f", *expected)
    for stage in STAGE_NAMES:
        got = deepcopy(arguments)
        Machine(lower(parse(text), "avx512", options=Options(stop_after=stage))).call("f", *got)
        for one, other in zip(expected, got, strict=True):
            np.testing.assert_array_equal(one, other)


def test_every_other_row_is_reduced() -> None:
    _same(
        f"""
define void @f(ptr noalias %x, ptr noalias %y) {{
  {_load("a", "float", "x", (8, 64))}
  %v = call <512 x float> @llvm.tensor.tovector(token %a)
  %s = fmul <512 x float> %v, %v
  %t = call token @llvm.tensor.typeinfo(<512 x float> %s, {_dims((8, 64))})
  %sum = call <4 x float> @llvm.tensor.reduce.add(token %t, {ints((1, 64))}, {ints((2, 1))})
  store <4 x float> %sum, ptr %y
  ret void
}}
""",
        512,
        4,
    )


@pytest.mark.parametrize("layout", [(0, 1), (1, 0)])
@pytest.mark.parametrize("where", ["%y", "%c"])
def test_rows_of_a_sum_with_an_accumulator_of_either_layout(layout: tuple[int, int], where: str) -> None:
    shape = [(8, 16)[d] for d in layout]
    _same(
        f"""
define void @f(ptr noalias %x, ptr noalias %w, ptr noalias %c, ptr noalias %y) {{
  {_load("a", "float", "x", (8, 64))}
  {_load("b", "float", "w", (64, 16))}
  %acc = call token @llvm.tensor.load(ptr elementtype(float) %c, {ints(shape)}, {ints(layout)}, {ints((0, 0))},
                                      {ints((0, 0))})
  %p = call <128 x float> @llvm.tensor.smma(token %acc, token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<128 x float> %p, {_dims((8, 16))})
  %sum = call <8 x float> @llvm.tensor.reduce.add(token %t, {ints((1, 16))}, {ints((1, 1))})
  store <8 x float> %sum, ptr {where}
  ret void
}}
""",
        512,
        1024,
        128,
        8,
    )
