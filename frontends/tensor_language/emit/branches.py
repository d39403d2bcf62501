"""Code that runs where a condition holds."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import reduce

from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.ir.types import VOID
from tlx.ir.values import Keyword, Value


@contextmanager
def run_if(e: Emitter, condition: Value | None, name: str, end_name: str) -> Generator[None]:
    """What is written within runs where a condition holds.

    Args:
        e: The emitter.
        condition: An i1, or None for what always runs.
        name: What the block is called that runs then.
        end_name: What the block is called behind it.
    """
    if condition is None:
        yield
        return
    body = e.b.new_block(name)
    end = e.b.new_block(end_name, body)
    e.b.branch_if(condition, body, end)
    e.b.at_end(body)
    yield
    e.b.branch(end)
    e.b.at_end(end)


def all_of(e: Emitter, conditions: Sequence[Value]) -> Value:
    """Whether all of at least one condition hold."""
    return reduce(lambda a, b: e.b.binary("and", a, b), conditions)


def if_else(e: Emitter, condition: Value, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    """`if (condition) then else otherwise`."""
    one = e.b.new_block("then")
    other = e.b.new_block("else", one)
    end = e.b.new_block("endif", other)
    e.b.branch_if(condition, one, other)
    for block, write in ((one, then), (other, otherwise)):
        e.b.at_end(block)
        write()
        e.b.branch(end)
    e.b.at_end(end)


def trap_if_null(e: Emitter, pointer: Value) -> None:
    """Stop the process where an allocation gave no memory: a kernel has no way to tell its caller."""
    short = e.b.new_block("no.memory")
    rest = e.b.new_block("allocated", short)
    e.b.branch_if(e.b.icmp("eq", pointer, Keyword(pointer.type, "null")), short, rest)
    e.b.at_end(short)
    e.b.call_named("llvm.trap", VOID, [])
    e.b.emit("unreachable", VOID, [], "unreachable")
    e.b.at_end(rest)
