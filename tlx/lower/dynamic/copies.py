"""Copies between arrays of any steps.

    define internal void @tlx.dynamic.copy.r2.i32(ptr %to, ptr %from, i64 %e0, i64 %e1, i64 %t0, i64 %t1, ...)

`%e` are extents, `%t` and `%f` the steps of the two arrays. Rows are copied by memcpy where both lie in one piece, and
element by element elsewhere. A step of 0 in the source repeats an element.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from tlx.ir.builder import Builder
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import IntType, Type, bytes_of
from tlx.ir.values import Local, Value
from tlx.lower.dynamic.helpers import Helpers, To, numbers
from tlx.lower.dynamic.views import Dim


def copy(
    helpers: Helpers, b: Builder, element: Type, to: tuple[Value, Sequence[Value]], source: tuple[Value, Sequence[Dim]]
) -> None:
    """Copy an array.

    Args:
        helpers: The module's helpers.
        b: Where.
        element: Type of the elements.
        to: Pointer and step of each dimension.
        source: Pointer, and extent and step of each dimension.
    """
    bits = IntType(8 * bytes_of(element))
    rank = len(source[1])
    names = [f"{letter}{k}" for letter in "etf" for k in range(rank)]
    parameters = [("to", To(bits)), ("from", To(bits)), *numbers(*names)]
    args = [to[0], source[0], *(d.extent for d in source[1]), *to[1], *(d.step for d in source[1])]

    def build(inner: TensorBuilder, p: dict[str, Local]) -> None:
        _build(inner, p, rank, bits)

    helpers.call(b, f"copy.r{rank}.{bits}", parameters, args, build)


def _build(b: TensorBuilder, p: dict[str, Local], rank: int, element: IntType) -> None:
    to: Value = p["to"]
    source: Value = p["from"]
    last = rank - 1
    with ExitStack() as stack:
        for k in range(last):
            index = stack.enter_context(b.loop(0, p[f"e{k}"], name="i")).index
            to = b.gep(element, to, b.mul(index, p[f"t{k}"], "offset"), "to")
            source = b.gep(element, source, b.mul(index, p[f"f{k}"], "offset"), "from")
        copy_row(b, element, (to, p[f"t{last}"]), (source, p[f"f{last}"]), p[f"e{last}"])


def copy_row(
    b: TensorBuilder, element: IntType, to: tuple[Value, Value], source: tuple[Value, Value], count: Value
) -> None:
    """Copy elements: one piece where both steps are 1."""
    size = bytes_of(element)
    both = b.binary("and", b.icmp("eq", to[1], 1), b.icmp("eq", source[1], 1), "is.dense")
    piece = b.new_block("piece")
    single = b.new_block("single", piece)
    end = b.new_block("row.end", single)
    b.branch_if(both, piece, single)
    b.at_end(piece)
    b.memcpy(to[0], source[0], b.mul(count, size, "bytes"))
    b.branch(end)
    b.at_end(single)
    with b.loop(0, count, name="j") as loop:
        value = b.load(element, b.gep(element, source[0], b.mul(loop.index, source[1], "offset")), size, "element")
        b.store(value, b.gep(element, to[0], b.mul(loop.index, to[1], "offset")), size)
    b.branch(end)
    b.at_end(end)
