"""Texts for cases of stage 1, and the check of a case."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from tests.semantics.to_2d.contract import check_contract, poisoned
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.tensors.calls import canonicalise
from tlx.llvm.verification import check_module
from tlx.lower.context import LoweringContext
from tlx.lower.to_2d import to_2d
from tlx.target.lookup import find_target


def lower(text: str) -> tuple[Module, LoweringContext]:
    module = parse(text, "case.ll")
    canonicalise(module)
    context = LoweringContext(find_target("generic"))
    to_2d(module, context)
    check_module(module, "to-2d")
    check_contract(module)
    return module, context


def same(text: str, *arguments: Any) -> tuple[str, LoweringContext]:
    """Assert that a call has the same effect before and after; gives the lowered text."""
    module, context = lower(text)
    lowered = str(module)
    results: list[tuple[list[Any], Any]] = []
    for version in (parse(text), parse(lowered), poisoned(parse(lowered))):
        copies: list[Any] = [copy(a) for a in arguments]
        results.append((copies, Machine(version).call("f", *copies)))
    for copies, result in results[1:]:
        for one, other in zip((*results[0][0], results[0][1]), (*copies, result), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    return lowered, context


def numbers(*shape: int, dtype: Any = np.float32) -> Array:
    return (np.arange(np.prod(shape)) % 7 - 3).astype(dtype).reshape(shape)


DIMS = "<2 x i32> <i32 4, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"


DENSE = "<2 x i32> zeroinitializer"


def load(name: str, pointer: str) -> str:
    return f"  %{name} = call token @llvm.tensor.load(ptr elementtype(float) {pointer}, {DIMS}, {DENSE})\n"


def store(pointer: str, value: str) -> str:
    return (
        f"  {value}.t = call token @llvm.tensor.typeinfo(<16 x float> {value}, {DIMS})\n"
        f"  call void @llvm.tensor.store(ptr {pointer}, token {value}.t, {DENSE})\n"
    )


def product(name: str, lhs: str, rhs: str) -> str:
    return f"  %{name} = call <16 x float> @llvm.tensor.matmul(token %{lhs}, token %{rhs})\n"
