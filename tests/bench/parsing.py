"""Reading the tensor language: time to parse and to check files of 1,000 to 100,000 lines.

The bar is two seconds for parsing and checking 10,000 lines, and growth in proportion to the length.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from tlx.frontends import tensor_language as tl
from tlx.ir.parser.module import without_collection
from tlx.tuning import machine

_BAR: Final = 2.0  # seconds for 10,000 lines
_GROWTH: Final = 1.5  # of the time a line, from one size to the next
_KERNEL: Final = """\
func @kernel{0}(%alpha: f32, %A: group<memref<f32x16x8>x?>, %B: memref<f32x8x8>, %D: memref<f32x16x16x?>) {{
    %zero = constant 0.0 : f32
    %one = constant 1.0 : f32
    %c0 = constant 0 : index
    %c16 = constant 16 : index
    %g = group_id.x : index
    %a = load %A[%g] : memref<f32x16x8>
    %d = subview %D[0:16,0:8,%g] : memref<f32x16x8,strided<1,16>>
    %tmp = alloca : memref<f32x16x8,local>
    gemm.n.t %one, %a, %B, %zero, %tmp
    axpby %alpha, %tmp, %one, %d
    foreach (%i)=(%c0),(%c16) {{
        %x = load %d[%i,%c0] : f32
        %negative = less_than %x, %zero : bool
        %y = if %negative -> (f32) {{
            yield (%zero)
        }} else {{
            %z = exp %x : f32
            yield (%z)
        }}
        store %y, %d[%i,%c0]
    }}
}}
"""


def run(lengths: Sequence[int]) -> int:
    """Measure and print; gives the exit status: 1 where the bar is missed."""
    print(f"machine: {machine.processor()}\ndate:    {machine.today()}\n")
    print("   lines     parse     check   a line   growth")
    missed, before = False, None
    for length in lengths:
        text = "".join(_KERNEL.format(k) for k in range(-(-length // _KERNEL.count("\n"))))
        lines = text.count("\n")
        parsing, checking = _seconds(text)
        each = (parsing + checking) / lines
        growth = None if before is None else each / before
        print(f"{lines:8} {parsing:8.3f}s {checking:8.3f}s {each * 1e6:6.1f}us", end="")
        print("" if growth is None else f" {growth:8.2f}", flush=True)
        missed |= each * 10_000 > _BAR or (growth is not None and growth > _GROWTH)
        before = each
    return 1 if missed else 0


def _seconds(text: str, rounds: int = 3) -> tuple[float, float]:
    """Least processor time of parsing and of checking a text."""
    parsing = checking = float("inf")
    for _ in range(rounds):
        with without_collection():
            start = time.process_time()
            program = tl.parse(text)
            parsed = time.process_time()
            tl.check_program(program)
        checking = min(checking, time.process_time() - parsed)
        parsing = min(parsing, parsed - start)
    return parsing, checking
