"""Writing over operands that may be where the result goes, which only the run can tell.

Rewrite of a product `%c = %a @ %b` where `%c` may overlap `%a`::

    %from = ptrtoint ptr %a to i64                    %to = ptrtoint ptr %c to i64
    %overlap = and i1 (%from < %to + size of C), (%to < %from + size of A)
    %place = select i1 %overlap, ptr %apart.buf, ptr %c
    ... the product, written to %place
    br i1 %overlap, label %overlaps, label %apart
  overlaps:
    ... %apart.buf copied to %c

Where `%c` is read as well (`%c = %a @ %b + %c`), there are two products: one that writes to the buffer, one in place::

    br i1 %overlap, label %overlaps, label %in.place
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from tlx.ir.rewriter import split_block
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64, bytes_of
from tlx.ir.values import Value
from tlx.lower.to_2d.buffers import size_text
from tlx.lower.to_2d.copies import copy, copy_bytes
from tlx.lower.to_2d.safety import Range
from tlx.lower.to_2d.sinks import Sink
from tlx.lower.to_2d.views import Place, View

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan


def write_apart(plan: Plan, b: TensorBuilder, sink: Sink, emit: Callable[[View], None]) -> None:
    """Write a sunk operation to its target, or, while that overlaps an operand, to a buffer that is copied there.

    Args:
        plan: The plan of the function.
        b: Where.
        sink: The operation and its target.
        emit: Writes the operation to a view. It is called twice where the result may be written over an operand that
            is read where it goes: only the one that writes there may rely on it.
    """
    doubts = [view for view in sink.doubts if not view.place.is_private]
    if not doubts:
        emit(sink.target)
        return
    target, size = sink.target, sink.range.size
    assert size is not None
    _remark(plan, sink, doubts, size)
    overlap = _overlap(b, [Range.of(view) for view in doubts], sink.range)
    buffer = plan.new_place(target.element, -(-size // bytes_of(target.element)), "apart")
    own = b.retype(buffer.pointer, target.element)
    theirs = b.retype(target.place.pointer, target.element)

    def copied() -> None:
        if sink.fills:
            copy_bytes(b, own, theirs, size)
        else:
            copy(b, replace(target, place=Place(own)), target)

    if not sink.stays:
        emit(replace(target, place=Place(b.select(overlap, own, theirs, "place"))))
        with _only_if(b, overlap):
            copied()
        return
    with _only_if(b, overlap) as otherwise:
        emit(replace(target, place=Place(own)))
        copied()
        otherwise()
        emit(target)


def _remark(plan: Plan, sink: Sink, doubts: list[View], size: int) -> None:
    from tlx.lower.to_2d.plan import STAGE

    operands = " and ".join(str(view.place.pointer) for view in doubts)
    message = (
        f"{sink.target.place.pointer} may alias {operands}: checked when the program runs; "
        f"a temporary of {size_text(size)} is used if they overlap"
    )
    plan.context.remarks.add("applied", STAGE, message, sink.store.span)


def _overlap(b: TensorBuilder, operands: list[Range], target: Range) -> Value:
    """Whether any operand shares a byte with the target."""
    to, to_end = _bounds(b, target)
    found: list[Value] = []
    for operand in operands:
        start, end = _bounds(b, operand)
        found.append(b.binary("and", b.icmp("ult", start, to_end), b.icmp("ult", to, end), "overlap"))
    return reduce(lambda x, y: b.binary("or", x, y, "overlap"), found)


def _bounds(b: TensorBuilder, bytes_: Range) -> tuple[Value, Value]:
    assert bytes_.size is not None
    start = b.cast("ptrtoint", bytes_.pointer, I64, "address")
    return start, b.add(start, bytes_.size, "end")


@contextmanager
def _only_if(b: TensorBuilder, condition: Value) -> Generator[Callable[[], None]]:
    """What is built within runs if a condition holds; behind a call of what it gives, if the condition does not."""
    head = b.block
    tail = split_block(b.function, head, b.index, "apart")
    body = b.new_block("overlaps", head)

    def otherwise() -> None:
        nonlocal other
        b.branch(tail)
        other = b.new_block("in.place")
        b.at_end(other)

    other = tail
    b.at_end(body)
    yield otherwise
    b.branch(tail)
    b.at_end(head)
    b.branch_if(condition, body, other)
    b.block, b.index = tail, 0
