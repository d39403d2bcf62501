"""Regression tests of fused and moved operations: evaluated before and after stage 1 and after all stages."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pytest

import tlx
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse
from tlx.lower.options import STAGE_NAMES, Options
from tlx.lower.pipeline import lower

_Z = "<2 x i32> zeroinitializer"


def dims(rows: int, cols: int, layout: str = "i32 0, i32 1") -> str:
    return f"<2 x i32> <i32 {rows}, i32 {cols}>, <2 x i32> <{layout}>, {_Z}"


def same(text: str, *arguments: Any) -> str:
    """Assert that a call to @f has the same effect at every stage; gives the text after stage 1."""
    expected = _called(text, arguments)
    texts = [str(lower(parse(text), "avx512", options=Options(stop_after=stage))) for stage in STAGE_NAMES]
    for lowered in texts:
        for one, other in zip(expected, _called(lowered, arguments), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    return texts[STAGE_NAMES.index("to-2d")]


def _called(text: str, arguments: tuple[Any, ...]) -> list[Any]:
    copies: list[Any] = [copy(a) for a in arguments]
    return [Machine(parse(text)).call("f", *copies), *copies]


def numbers(count: int, dtype: Any = np.float32) -> Array:
    return (np.arange(count) * 7919 % 31 - 15).astype(dtype)


# Accumulators ---------------------------------------------------------------------------------------------------------

_ACCUMULATED = f"""
define void @f(ptr %c, ptr noalias %a) {{
  %acc = call token @llvm.tensor.load(ptr elementtype(i32) %c, {dims(64, 64)}, {_Z})
  %x = call token @llvm.tensor.load(ptr elementtype(i8) %a, {dims(64, 64)}, {_Z})
  %m = call <4096 x i32> @llvm.tensor.smma(token %acc, token %x, token %x)
  %r = CAST <4096 x i32> %m to <4096 x TYPE>
  %t = call token @llvm.tensor.typeinfo(<4096 x TYPE> %r, {dims(64, 64)})
  call void @llvm.tensor.store(ptr %c, token %t, {_Z})
  ret void
}}
"""


@pytest.mark.parametrize(
    ("cast", "type_", "in_place"), [("trunc", "i8", False), ("sext", "i64", False), ("bitcast", "float", True)]
)
def test_results_of_another_width_are_not_written_over_the_accumulator(cast: str, type_: str, in_place: bool) -> None:
    text = _ACCUMULATED.replace("CAST", cast).replace("TYPE", type_)
    c = np.concatenate([numbers(4096, np.int32), np.zeros(4096, np.int32)])
    lowered = same(text, c, numbers(4096, np.int8))
    assert ("%r.buf" in lowered) != in_place


_SUMMED = f"""
define void @f(ptr %c, ptr %d, ptr noalias %a) {{
  %acc = call token @llvm.tensor.load(ptr elementtype(float) %c, ACCUMULATOR, {_Z})
  %old = call <1600 x float> @llvm.tensor.tovector(token %acc)
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, {dims(40, 40)}, {_Z})
  %m = call <1600 x float> @llvm.tensor.PRODUCT
  %s = fadd FLAGS <1600 x float> %old, %m
  %t = call token @llvm.tensor.typeinfo(<1600 x float> %s, RESULT)
  call void @llvm.tensor.store(ptr %OUT, token %t, {_Z})
  ret void
}}
"""
_PRODUCTS = "matmul(token %x, token %x)", "contract(token %x, token %x, <1 x i32> <i32 0>, <1 x i32> <i32 0>)"


@pytest.mark.parametrize("of_result", ["i32 0, i32 1", "i32 1, i32 0"])
@pytest.mark.parametrize("of_accumulator", ["i32 0, i32 1", "i32 1, i32 0"])
@pytest.mark.parametrize("out", ["c", "d"])
@pytest.mark.parametrize("product", _PRODUCTS)
def test_sums_start_from_what_is_added_if_flags_allow_it(
    product: str, out: str, of_accumulator: str, of_result: str
) -> None:
    text = _SUMMED.replace("PRODUCT", product).replace("OUT", out).replace("FLAGS", "reassoc")
    text = text.replace("ACCUMULATOR", dims(40, 40, of_accumulator)).replace("RESULT", dims(40, 40, of_result))
    lowered = same(text, numbers(1600), numbers(1600), numbers(1600))
    assert "@llvm.tensor.smma" in lowered
    assert "fadd" not in lowered


@pytest.mark.parametrize("flags", ["", "nnan contract"])
def test_what_is_added_without_reassociation_is_added_to_the_sums(flags: str) -> None:
    text = _SUMMED.replace("PRODUCT", _PRODUCTS[0]).replace("OUT", "c").replace("FLAGS", flags)
    text = text.replace("ACCUMULATOR", dims(40, 40)).replace("RESULT", dims(40, 40))
    assert "fadd" in same(text, numbers(1600), numbers(1600), numbers(1600))


def test_a_row_that_is_added_to_all_rows_is_added_to_the_sums() -> None:
    text = _SUMMED.replace("PRODUCT", _PRODUCTS[0]).replace("OUT", "c").replace("FLAGS", "reassoc")
    text = text.replace("ACCUMULATOR", dims(1, 40)).replace("RESULT", dims(40, 40))
    spread = (
        "call <1600 x float> @llvm.tensor.broadcast(token %acc, <2 x i32> <i32 40, i32 40>, <2 x i32> <i32 0, i32 1>)"
    )
    text = text.replace("call <1600 x float> @llvm.tensor.tovector(token %acc)", spread)
    assert "fadd" in same(text, numbers(1600), numbers(1600), numbers(1600))


@pytest.mark.parametrize("of_result", ["i32 0, i32 1", "i32 1, i32 0"])
@pytest.mark.parametrize("of_accumulator", ["i32 0, i32 1", "i32 1, i32 0"])
def test_a_result_in_another_order_is_not_written_over_the_accumulator(of_accumulator: str, of_result: str) -> None:
    text = f"""
define void @f(ptr %c, ptr noalias %a) {{
  %acc = call token @llvm.tensor.load(ptr elementtype(float) %c, {dims(40, 40, of_accumulator)}, {_Z})
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, {dims(40, 40)}, {_Z})
  %m = call <1600 x float> @llvm.tensor.smma(token %acc, token %x, token %x)
  %t = call token @llvm.tensor.typeinfo(<1600 x float> %m, {dims(40, 40, of_result)})
  %r = call <1600 x float> @llvm.tensor.relu(token %t)
  %u = call token @llvm.tensor.typeinfo(<1600 x float> %r, {dims(40, 40, of_result)})
  call void @llvm.tensor.store(ptr %c, token %u, {_Z})
  ret void
}}
"""
    lowered = same(text, numbers(1600), numbers(1600))
    assert ("%r.buf" in lowered) == (of_accumulator != "i32 0, i32 1")


# Elements -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "at"), [("i8", 200), ("i16", 40000), ("i64", 1 << 40), ("i64", 5), ("i128", 5), ("i32", -1)]
)
def test_elements_that_a_vector_does_not_have(index: str, at: int) -> None:
    """The index is unsigned, and an element out of bounds is poison, but reads no other memory."""
    text = f"""
define i32 @f(ptr %a, {index} %i) {{
  %v = load <45000 x i32>, ptr %a
  %w = add <45000 x i32> %v, %v
  %t = call token @llvm.tensor.typeinfo(<45000 x i32> %w, <1 x i32> <i32 45000>, <1 x i32> zeroinitializer,
                                        <1 x i32> zeroinitializer)
  %r = call <45000 x i32> @llvm.tensor.relu(token %t)
  %e = extractelement <45000 x i32> %r, {index} %i
  %in = icmp ult {index} %i, {45000 if index not in ("i8", "i16") else -1}
  %s = select i1 %in, i32 %e, i32 -7
  ret i32 %s
}}
"""
    same(text, np.arange(45000, dtype=np.int32), at)


def test_elements_of_types_that_tensors_do_not_have() -> None:
    text = f"""
define void @f(ptr noalias %a, ptr noalias %c) {{
  %x = call token @llvm.tensor.load(ptr elementtype(i32) %a, {dims(4, 4)}, {_Z})
  %v = call <16 x i32> @llvm.tensor.relu(token %x)
  %k = trunc <16 x i32> %v to <16 x i24>
  %b = zext <16 x i24> %k to <16 x i64>
  store <16 x i64> %b, ptr %c
  ret void
}}
"""
    same(text, numbers(16, np.int32) * 99999999, np.zeros(16, np.int64))


def test_a_constant_of_two_elements_broadcast_as_one() -> None:
    text = f"""
define void @f(ptr noalias %a, ptr noalias %c) {{
  %b = bitcast <2 x i16> <i16 1, i16 1> to <1 x i32>
  %t = call token @llvm.tensor.typeinfo(<1 x i32> %b, {dims(1, 1)})
  %r = call <16 x i32> @llvm.tensor.broadcast(token %t, <2 x i32> <i32 4, i32 4>, <2 x i32> <i32 0, i32 1>)
  %v = load <16 x i32>, ptr %a
  %w = add <16 x i32> %v, %r
  store <16 x i32> %w, ptr %c
  ret void
}}
"""
    same(text, numbers(16, np.int32), np.zeros(16, np.int32))


# Long and far ---------------------------------------------------------------------------------------------------------


def test_long_chains_do_not_recurse() -> None:
    chain = "".join(f"  %v{i + 1} = fadd <64 x float> %v{i}, %v0\n" for i in range(1200))
    text = f"""
define void @f(ptr noalias %a, ptr noalias %c) {{
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, {dims(8, 8)}, {_Z})
  %v0 = call <64 x float> @llvm.tensor.relu(token %x)
{chain}  store <64 x float> %v1200, ptr %c
  ret void
}}
"""
    same(text, numbers(64), numbers(64))


def test_results_used_twice_are_visited_once() -> None:
    squares = "".join(f"  %v{i + 1} = fmul <64 x float> %v{i}, %v{i}\n" for i in range(60))
    text = f"""
define void @f(ptr noalias %a, ptr noalias %c) {{
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, {dims(8, 8)}, {_Z})
  %v0 = call <64 x float> @llvm.tensor.relu(token %x)
{squares}  store <64 x float> %v60, ptr %c
  ret void
}}
"""
    same(text, np.ones(64, np.float32), numbers(64))


def test_pointers_of_different_address_spaces_are_not_compared() -> None:
    text = f"""
define void @f(ptr %a, ptr %c) {{
  %to = addrspacecast ptr %c to ptr addrspace(1)
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, {dims(4, 4)}, {_Z})
  %m = call <16 x float> @llvm.tensor.matmul(token %x, token %x)
  %t = call token @llvm.tensor.typeinfo(<16 x float> %m, {dims(4, 4)})
  call void @llvm.tensor.store(ptr addrspace(1) %to, token %t, {_Z})
  ret void
}}
"""
    assert "%m.buf" in same(text, numbers(16), numbers(16))


# Constants ------------------------------------------------------------------------------------------------------------


def test_large_constants_are_not_aligned_as_vectors() -> None:
    """Linkers reject an alignment of more than a page, which LLVM gives large vectors."""
    text = f"""
define void @f(ptr noalias %a, ptr noalias %c) {{
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, {dims(80, 80)}, {_Z})
  %u = call token @llvm.tensor.typeinfo(<6400 x float> splat (float 0.5), {dims(80, 80)})
  %m = call <6400 x float> @llvm.tensor.matmul(token %x, token %u)
  store <6400 x float> %m, ptr %c
  ret void
}}
"""
    x, out = numbers(6400).reshape(80, 80), np.zeros((80, 80), np.float32)
    tlx.compile(text, "generic")["f"](x, out)
    np.testing.assert_array_equal(out, x @ np.full((80, 80), np.float32(0.5)))


@pytest.mark.parametrize("truth", ["splat (i1 true)", f"<{', '.join(f'i1 {i % 3 // 2}' for i in range(64))}>"])
def test_constants_of_truth_values(truth: str) -> None:
    text = f"""
define void @f(ptr noalias %a, ptr noalias %c) {{
  %v = load <64 x float>, ptr %a
  %k = fcmp ogt <64 x float> %v, zeroinitializer
  %t = call token @llvm.tensor.typeinfo(<64 x i1> %k, {dims(8, 8)})
  %u = call token @llvm.tensor.typeinfo(<64 x i1> {truth}, {dims(8, 8)})
  %m = call <128 x i1> @llvm.tensor.concat(token %t, token %u, i32 0)
  %z = zext <128 x i1> %m to <128 x i32>
  store <128 x i32> %z, ptr %c
  ret void
}}
"""
    same(text, numbers(64), np.zeros(128, np.int32))
