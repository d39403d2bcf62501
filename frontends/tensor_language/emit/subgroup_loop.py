"""Code that the subgroups of a work-group run, one after the other."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager

from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.ir.types import I32, I64
from tlx.ir.values import Value, const_int


def subgroup_count(e: Emitter) -> int:
    """Subgroups of a work-group."""
    return math.prod(e.launch.num_subgroups)


@contextmanager
def each_subgroup(e: Emitter) -> Generator[Value]:
    """What is written inside is run for each subgroup; gives its linear id, i64."""
    count = subgroup_count(e)
    with e.b.loop(0, count, name="subgroup") as loop:
        number = const_int(I32, 0) if count == 1 else e.b.cast("trunc", loop.index, I32)
        with as_subgroup(e, number):
            yield loop.index if count > 1 else const_int(I64, 0)


@contextmanager
def as_subgroup(e: Emitter, number: Value) -> Generator[None]:
    """What is written inside is run by a subgroup (linear id, i32), with all of its work-items active."""
    before, e.subgroup = e.subgroup, number
    with e.masked(None):
        yield
    e.subgroup = before
