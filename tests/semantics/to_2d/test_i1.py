"""Tensors of i1: a byte for each element in memory, 0 or 1."""

from __future__ import annotations

import numpy as np
import pytest

from tlx.diagnostics import LoweringError
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse
from tlx.lower.options import STAGE_NAMES, Options
from tlx.lower.pipeline import lower

_ZERO = "<2 x i32> zeroinitializer"
_ONE = "<2 x i32> <i32 1, i32 1>"
_ROW = f"<2 x i32> <i32 1, i32 7>, {_ONE}"
_DIMS = f"<2 x i32> <i32 5, i32 7>, <2 x i32> <i32 0, i32 1>, {_ZERO}"
_TAIL = "  call void @llvm.tensor.store(ptr %q, token %s, <N x i32> zeroinitializer)\n"


def _stored(count: int, *extents: int) -> str:
    """The store of `%r`, a vector of `count` elements."""
    rank = len(extents)
    shape, layout = (", ".join(f"i32 {n}" for n in numbers) for numbers in (extents, range(rank)))
    dims = f"<{rank} x i32> <{shape}>, <{rank} x i32> <{layout}>, <{rank} x i32> zeroinitializer"
    return f"  %s = call token @llvm.tensor.typeinfo(<{count} x i1> %r, {dims})\n" + _TAIL.replace("N", str(rank))


_BODIES = {
    "copy": "  %r = call <35 x i1> @llvm.tensor.tovector(token %t)\n" + _stored(35, 5, 7),
    "transpose": "  %r = call <35 x i1> @llvm.tensor.transpose(token %t, <2 x i32> <i32 1, i32 0>)\n"
    + _stored(35, 7, 5),
    "logic": "  %v = call <35 x i1> @llvm.tensor.tovector(token %t)\n"
    "  %x = load <35 x i32>, ptr %w\n  %c = icmp sgt <35 x i32> %x, zeroinitializer\n"
    "  %r = xor <35 x i1> %v, %c\n" + _stored(35, 5, 7),
    "pad": "  %r = call <63 x i1> @llvm.tensor.pad(token %t, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 1, i32 2>,\n"
    "                                       i1 true)\n" + _stored(63, 7, 9),
    "concat": "  %r = call <70 x i1> @llvm.tensor.concat(token %t, token %t, i32 1)\n" + _stored(70, 5, 14),
    "fill": "  %r = call <35 x i1> @llvm.tensor.broadcast(token %t, i1 %b)\n" + _stored(35, 5, 7),
    "select": "  %v = call <35 x i1> @llvm.tensor.tovector(token %t)\n  %x = load <35 x i32>, ptr %w\n"
    "  %y = select <35 x i1> %v, <35 x i32> %x, <35 x i32> zeroinitializer\n  store <35 x i32> %y, ptr %w\n",
    "insert": "  %v = call <35 x i1> @llvm.tensor.tovector(token %t)\n"
    "  %r = insertelement <35 x i1> %v, i1 %b, i32 3\n" + _stored(35, 5, 7),
    "counted": "  %v = call <35 x i1> @llvm.tensor.tovector(token %t)\n  %x = zext <35 x i1> %v to <35 x i32>\n"
    f"  %xt = call token @llvm.tensor.typeinfo(<35 x i32> %x, {_DIMS})\n"
    f"  %y = call <5 x i32> @llvm.tensor.reduce.add(token %xt, {_ROW})\n"
    "  store <5 x i32> %y, ptr %w\n",
    **{
        kind: f"  %r = call <5 x i1> @llvm.tensor.reduce.{kind}(token %t, {_ROW})\n" + _stored(5, 5, 1)
        for kind in ("and", "or", "xor", "add", "mul", "max", "min")
    },
    "window": f"  %r = call <24 x i1> @llvm.tensor.reduce.or(token %t, <2 x i32> <i32 2, i32 2>, {_ONE})\n"
    + _stored(24, 4, 6),
}


def _text(body: str) -> str:
    return f"""
define void @f(ptr noalias %p, ptr noalias %w, ptr noalias %q, i1 %b) {{
  %t = call token @llvm.tensor.load(ptr elementtype(i1) %p, {_DIMS}, <2 x i32> <i32 0, i32 8>)
{body}  ret void
}}
"""


@pytest.mark.parametrize("body", _BODIES)
def test_stages_mean_the_same(body: str) -> None:
    generator = np.random.default_rng(7)
    truths = np.where(np.arange(40) % 8 == 7, 9, generator.integers(0, 2, 40)).astype(np.int8)
    truths[:7] = 1
    truths[8:15] = 0
    results: list[tuple[Array, Array]] = []
    for stage in (None, *STAGE_NAMES):
        module = parse(_text(_BODIES[body]))
        if stage is not None:
            module = lower(module, "avx512", options=Options(stop_after=stage))
        numbers, out = (np.arange(35) % 5 - 2).astype(np.int32), np.full(80, 7, np.int8)
        Machine(module).call("f", truths.copy(), numbers, out, 1)
        results.append((numbers, out))
        for got, expected in zip(results[-1], results[0], strict=True):
            np.testing.assert_array_equal(got, expected, err_msg=str(stage))
    changed = np.any(results[0][1] != 7) or np.any(results[0][0] != np.arange(35) % 5 - 2)
    assert changed


@pytest.mark.parametrize("operation", ["relu(token %t)", "matmul(token %t, token %u)"])
def test_arithmetic_is_refused(operation: str) -> None:
    count = 35 if "relu" in operation else 25
    transposed = "<2 x i32> <i32 5, i32 7>, <2 x i32> <i32 1, i32 0>, " + _ZERO
    body = f"  %u = call token @llvm.tensor.load(ptr elementtype(i1) %p, {transposed}, {_ZERO})\n"
    body += f"  %r = call <{count} x i1> @llvm.tensor.{operation}\n" + _stored(count, count)
    with pytest.raises(LoweringError, match="of i1 is not lowered: convert the operands"):
        lower(parse(_text(body)), "generic")
