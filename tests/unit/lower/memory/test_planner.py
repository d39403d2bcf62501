"""The memory planner: temporaries that are not live at the same time share memory, without holes where possible."""

from __future__ import annotations

import re

from tlx.ir.parser.module import parse
from tlx.lower.context import LoweringContext
from tlx.lower.memory.planner import plan_memory
from tlx.target.lookup import find_target

KIB = 1024
TENSOR = """\
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <1 x i32> <i32 8>, <1 x i32> zeroinitializer, \
<1 x i32> zeroinitializer, <1 x i32> zeroinitializer)"""
"""Functions without tensors stay text."""


def function(events: str, sizes: dict[str, int]) -> str:
    """A function that writes (`+a`) and reads (`-a`) temporaries in an order."""
    allocations = [
        f"  %{name} = call noalias ptr @malloc(i64 {size}), !tlx.buffer !{{}}" for name, size in sizes.items()
    ]
    accesses = [
        f"  store i64 {at}, ptr %{name}" if sign == "+" else f"  %x.{at} = load i64, ptr %{name}"
        for at, (sign, name) in enumerate(events.split())
    ]
    releases = [f"  call void @free(ptr %{name})" for name in sizes]
    body = "\n".join([TENSOR, *allocations, *accesses, *releases, "  ret void"])
    return f"declare noalias ptr @malloc(i64)\ndeclare void @free(ptr)\ndefine void @f(ptr %p) {{\n{body}\n}}\n"


def planned_bytes(text: str) -> int:
    module = parse(text)
    plan_memory(module, LoweringContext(find_target("avx512")), threads=False)
    sizes = re.findall(r"call noalias ptr @malloc\(i64 (\d+)\)", str(module))
    assert len(sizes) == 1
    return int(sizes[0])


def test_a_hole_below_the_last_temporary_is_filled() -> None:
    """By size alone: d at 0, b at 0, c behind d at 6, and a, live with b and c, behind c at 9."""
    sizes = {"a": 2 * KIB, "b": 5 * KIB, "c": 3 * KIB, "d": 6 * KIB}
    assert planned_bytes(function("+a +b +c -a -b +d -c -d", sizes)) == 10 * KIB


def test_temporaries_of_one_size_take_what_is_live_at_once() -> None:
    sizes = dict.fromkeys("abcd", KIB)
    assert planned_bytes(function("+a +b -a +c -b +d -c -d", sizes)) == 2 * KIB
