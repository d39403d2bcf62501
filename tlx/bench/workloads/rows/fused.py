"""A kernel of the tensor language on 10,000 small matrices, 16x8 8x8 and 16x8 8x16: t = a b^T;  d += alpha t c."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from tlx.intrinsics.numpy_types import Array
from tlx.lower.pipeline import front_ends
from tlx.tuning.measure.verify import ElementwiseCheck
from tlx.tuning.measure.workload import F32, FusedProblem, Workload, WorkloadBuffer

_BATCH: Final = 10_000
_ALPHA: Final = 1e-3
_SUFFIX: Final = ".tl"
_TEXT: Final = """
func @fused(%alpha: f32, %a: memref<f32x16x8x?>, %b: memref<f32x8x8>, %c: memref<f32x8x16>, %d: memref<f32x16x16x?>) {
  %zero = constant 0.0 : f32
  %one = constant 1.0 : f32
  %g = group_id.x : index
  %x = subview %a[0:16,0:8,%g] : memref<f32x16x8>
  %y = subview %d[0:16,0:16,%g] : memref<f32x16x16>
  %t = alloca : memref<f32x16x8,local>
  gemm.n.t %one, %x, %b, %zero, %t
  gemm.n.n %alpha, %t, %c, %one, %y
}
"""


def workloads() -> Iterator[Workload]:
    """The one of the table."""
    yield fused(_BATCH)


def fused(count: int) -> Workload:
    """The kernel on `count` groups; matrices lie column by column."""
    buffers = (
        WorkloadBuffer("d", F32, (count, 16, 16), output=True),
        WorkloadBuffer("a", F32, (count, 8, 16)),
        WorkloadBuffer("b", F32, (8, 8)),
        WorkloadBuffer("c", F32, (16, 8)),
    )
    groups: list[tuple[str, float]] = [("i64", count), ("i64", 1), ("i64", 1)]
    return Workload(
        row="fused",
        types="f32",
        size=f"{count}x16",
        buffers=buffers,
        text=_text,
        expected=_expected,
        operations=count * (2 * 16 * 8 * 8 + 2 * 16 * 8 * 16 + 2 * 16 * 16),
        traffic=sum(buffer.bytes for buffer in buffers) + buffers[0].bytes,  # d is read, too
        peak=(F32, F32, F32),
        problem=FusedProblem(count),
        function="fused",
        order=(("float", _ALPHA), "a", ("i64", count), "b", "c", "d", ("i64", count), *groups),
    )


def _text() -> str:
    translate = next(f.TRANSLATE for f in front_ends() if _SUFFIX in getattr(f, "SUFFIXES", ()))
    return str(translate(_TEXT, f"fused{_SUFFIX}", "none"))


def _expected(arrays: dict[str, Array]) -> ElementwiseCheck:
    """What is added to a `d` that was nearly nothing."""
    a, b, c = (arrays[name].astype(np.float64).swapaxes(-1, -2) for name in "abc")
    values = _ALPHA * (a @ b.T @ c)
    magnitude = _ALPHA * (np.abs(a) @ np.abs(b.T) @ np.abs(c))
    return ElementwiseCheck(values.swapaxes(1, 2), magnitude.swapaxes(1, 2) + 1e-9, 18)
