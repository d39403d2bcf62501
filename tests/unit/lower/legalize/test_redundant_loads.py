"""Redundant load elimination: which loads of a block are removed, and that results stay."""

from __future__ import annotations

import numpy as np
import pytest

from tlx.evaluate import Machine
from tlx.ir.parser.module import parse_fully
from tlx.lower.legalize.scheduling.redundant_loads import remove_redundant_loads

_REGISTERS = 8


def _without_redundant_loads(body: str) -> str:
    text = f"define void @f(ptr %out, ptr %x, i64 %i) {{\nentry:\n{body}\n  ret void\n}}\n"
    module = parse_fully(text + "declare void @g()\ndeclare <4 x float> @llvm.fabs.v4f32(<4 x float>)\n")
    for function in module.functions:
        remove_redundant_loads(function, _REGISTERS)
    return str(module)


_TWO = """
  %a = load <4 x float>, ptr %p, align 4
  {between}
  %b = load <4 x float>, ptr %q, align 4
  %s = fadd <4 x float> %a, %b
  store <4 x float> %s, ptr %out, align 4"""
_SAME_ADDRESS = """
  %row = mul i64 %i, 3
  %again = mul i64 3, %i
  %next = add i64 %again, 5
  %x.1 = getelementptr inbounds float, ptr %x, i64 2
  %p.1 = getelementptr inbounds float, ptr %x.1, i64 %row
  %p = getelementptr inbounds float, ptr %p.1, i64 3
  %q = getelementptr float, ptr %x, i64 %next"""


@pytest.mark.parametrize("between", ["", "%c = call <4 x float> @llvm.fabs.v4f32(<4 x float> %a)"])
def test_equal_sums_are_one_address(between: str) -> None:
    text = _without_redundant_loads(_SAME_ADDRESS + _TWO.format(between=between))
    assert text.count("load ") == 1
    assert "fadd <4 x float> %a, %a" in text
    assert "%q" not in text  # nor is its address computed
    x, out = np.arange(16, dtype=np.float32), np.zeros(4, np.float32)
    Machine(parse_fully(text)).call("f", out, x, 2)
    np.testing.assert_array_equal(out, 2 * x[11:15])


@pytest.mark.parametrize(
    "write",
    ["store float 0.0, ptr %out, align 4", "call void @g()", "fence seq_cst", "%w = load volatile i32, ptr %out"],
)
def test_memory_that_may_change_is_read_again(write: str) -> None:
    assert _without_redundant_loads(_SAME_ADDRESS + _TWO.format(between=write)).count("load <4") == 2


@pytest.mark.parametrize(
    "q",
    [
        "%q = getelementptr float, ptr %x, i64 1",
        "%q = getelementptr float, ptr %out, i64 %i",
        "%j = mul i64 %i, 2\n  %q = getelementptr float, ptr %x, i64 %j",
        "%j = mul i64 %i, %i\n  %q = getelementptr float, ptr %x, i64 %j",
        "%j = shl i64 %i, 0\n  %q = getelementptr float, ptr %x, i64 %j",
        "%k = trunc i64 %i to i32\n  %j = mul i32 %k, 1\n  %q = getelementptr float, ptr %x, i32 %j",
        "%q = getelementptr i8, ptr %x, i64 %i",
        "%r = getelementptr i8, ptr %x, i64 %i\n  %q = getelementptr i24, ptr %r, i64 %i",
        "%q = getelementptr <2 x float>, ptr %x, i64 %i",
    ],
)
def test_other_addresses_are_loaded(q: str) -> None:
    first = "  %p = getelementptr float, ptr %x, i64 %i\n  "
    assert _without_redundant_loads(first + q + _TWO.format(between="")).count("load ") == 2


def test_other_types_and_volatile_loads_stay() -> None:
    body = """
  %a = load <4 x float>, ptr %x, align 4
  %b = load <4 x i32>, ptr %x, align 4
  %c = load volatile <4 x float>, ptr %x, align 4
  %d = load volatile <4 x float>, ptr %x, align 4
  %e = load float, ptr %x, align 4
  %f = load float, ptr %x, align 4"""
    assert _without_redundant_loads(body).count("load ") == 6


@pytest.mark.parametrize(("distance", "loads"), [(3, 4), (4, 6)])
def test_half_of_the_registers_are_remembered(distance: int, loads: int) -> None:
    """The first register is read again after others: with 4 of 8 remembered, 3 others may come between."""
    lines = [f"  %p{n} = getelementptr float, ptr %x, i64 {4 * n}" for n in range(1, distance + 1)]
    lines += ["  %a = load <4 x float>, ptr %x, align 4"]
    lines += [f"  %l{n} = load <4 x float>, ptr %p{n}, align 4" for n in range(1, distance + 1)]
    lines += ["  %b = load <4 x float>, ptr %x, align 4"]
    assert _without_redundant_loads("\n".join(lines)).count("load ") == loads
