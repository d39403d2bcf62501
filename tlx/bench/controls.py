"""What the machine gives to several threads at once: the loop of its peak, and copies, on as many as code is timed on.

    multiply-adds    each thread runs the peak's loop: no memory, so that only cores and their clocks are shared
    copies           each thread copies 8 MB of its own: what the memory that all share lets through

Virtual processors may be halves of a core, or busy with something else: code can scale no better than these. Some may
be slower than others: code without threads runs on each thread of a team alone, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tlx.bench.native_calls import Repeat, Step, repeating
from tlx.bench.peaks import STEPS, Peak
from tlx.jit import compile as compile_module
from tlx.target import Target

Array = NDArray[np.generic]
_OUT: Final = 16384  # bytes of the peak loop's sums
_COPIED: Final = 8 << 20
_TEAM: Final = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()

define void @team(i64 %n, ptr %to, ptr %from) {
  %shared = alloca { i64, ptr, ptr }, align 16
  %p0 = getelementptr { i64, ptr, ptr }, ptr %shared, i32 0, i32 0
  %p1 = getelementptr { i64, ptr, ptr }, ptr %shared, i32 0, i32 1
  %p2 = getelementptr { i64, ptr, ptr }, ptr %shared, i32 0, i32 2
  store i64 %n, ptr %p0
  store ptr %to, ptr %p1
  store ptr %from, ptr %p2
  call void @GOMP_parallel(ptr @member, ptr %shared, i32 0, i32 0)
  ret void
}

define internal void @member(ptr %shared) {
  %p1 = getelementptr { i64, ptr, ptr }, ptr %shared, i32 0, i32 1
  %p2 = getelementptr { i64, ptr, ptr }, ptr %shared, i32 0, i32 2
  %n = load i64, ptr %shared
  %to = load ptr, ptr %p1
  %from = load ptr, ptr %p2
  %thread = call i32 @omp_get_thread_num()
  %number = zext i32 %thread to i64
  %to.at = mul i64 %number, TO
  %from.at = mul i64 %number, FROM
  %to.own = getelementptr i8, ptr %to, i64 %to.at
  %from.own = getelementptr i8, ptr %from, i64 %from.at
  call void @CALLED(i64 %n, ptr %to.own, ptr %from.own)
  ret void
}
"""
_ONE: Final = """
define internal void @one(i64 %n, ptr %chosen, ptr %unused) {
  %flag = load i64, ptr %chosen
  %mine = icmp ne i64 %flag, 0
  br i1 %mine, label %work, label %done

work:
  call void @repeat(i64 %n)
  br label %done

done:
  ret void
}
"""
_COPY: Final = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @copy(i64 %n, ptr %to, ptr %from) {{
  br label %loop

loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 {_COPIED}, i1 false)
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %loop, label %done

done:
  ret void
}}
"""


def multiply_adds(ceiling: Peak, target: Target, most: int) -> Repeat:
    """The peak's loop on a team of up to `most` threads."""
    source = np.random.default_rng(1).random(512, np.float32)
    return _team(ceiling.text, "peak", STEPS, (np.zeros(most * _OUT, np.uint8), source), (_OUT, 0), target)


def memory(most: int) -> tuple[Array, Array]:
    """What up to `most` threads copy to, and from."""
    return np.zeros(most * _COPIED, np.uint8), np.random.default_rng(1).integers(0, 255, most * _COPIED, np.uint8)


def copies(arrays: tuple[Array, Array], target: Target) -> Repeat:
    """Copies of 8 MB by each thread of a team, from the second array to the first."""
    return _team(_COPY, "copy", 1, arrays, (_COPIED, _COPIED), target)


def one_of_team(step: Step, most: int, target: Target, keep: object = None) -> Callable[[int, int], object]:
    """A function that has the thread of a number, alone of a team of up to `most`, make a call so many times."""
    chosen = np.zeros(most, np.int64)
    text = repeating(step.text()) + _ONE
    repeat = _team(text, "one", 1, (chosen, chosen), (chosen.itemsize, 0), target)

    def member(number: int, count: int, _keep: object = keep) -> object:
        chosen[:] = np.arange(most) == number
        return repeat(count)

    return member


def _team(
    text: str,
    called: str,
    steps: int,
    arrays: tuple[Array, Array],
    pitches: tuple[int, int],
    target: Target,
) -> Repeat:
    """A function that has every thread of a team call one on its own parts of two arrays."""
    team = _TEAM.replace("CALLED", called).replace("TO", str(pitches[0])).replace("FROM", str(pitches[1]))
    compiled = compile_module(text + team, target, entry="team")
    call, (to, source) = compiled.entry.unchecked, arrays

    def repeat(count: int, _keep: object = (compiled, arrays)) -> object:
        return call(count * steps, to.ctypes.data, source.ctypes.data)

    return repeat
