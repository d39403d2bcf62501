"""Code that runs where a condition holds."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tlx.ir.builder import Builder
from tlx.ir.module import Block
from tlx.ir.values import Value


@contextmanager
def where(b: Builder, condition: Value, name: str) -> Generator[None]:
    """What runs where a condition holds."""
    inside, behind = branches(b, condition, (name, f"{name}.end"))
    b.at_end(inside)
    yield
    b.branch(behind)
    b.at_end(behind)


def branches(b: Builder, condition: Value, names: tuple[str, str]) -> tuple[Block, Block]:
    """Blocks for a condition that holds, and for one that does not."""
    before = b.block
    then = b.new_block(names[0])
    otherwise = b.new_block(names[1], then)
    b.at_end(before)
    b.branch_if(condition, then, otherwise)
    return then, otherwise
