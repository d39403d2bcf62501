"""Work stealing: a thread that has finished its own share takes jobs that are left of other threads' shares.

A share is cut into up to ten jobs, large ones first: two of a quarter, two of an eighth, ... A thread takes the jobs of
its own share one by one, and then those left of the shares of the threads after it. An atomic counter for each share
assigns its jobs:

    for turn = 0 .. team:                           its own share first, then those of its group
      owner = (thread + turn) mod team
      while (job = taken[owner]++) is one:          atomically
        run the job

So a processor that is slower than the others, because it or its core is shared, does less, and no thread waits for it
longer than a small job takes.

A static grid, in which each thread only does its own share, takes this many times as long with 4, 8 and 16 threads
(Xeon with AMX, 16 processors, 2026-11-23, otherwise idle):

    bfloat, 1024 cubed       1.49  1.37  1.36        float, 1024 cubed           1.20  1.36  1.24
    bytes, 1024 cubed        1.47  1.36  1.28        10,000 products of 32x32x32 1.23  1.39  1.38
    bfloat, 2048 cubed       1.04  1.95  1.47        tanh of 4 M floats          1.09  1.20  1.24
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder.instructions import Builder
from tlx.ir.builder.parallel import Thread
from tlx.ir.instructions import Block
from tlx.ir.types import I64, ArrayType, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.memory.allocation import CACHE_LINE

MAX_THREADS: Final = 512
"""Most threads of a team: each has a counter on the stack."""
_APART: Final = CACHE_LINE // bytes_of(I64)
"""Elements from one counter to the next."""
_JOBS: Final = 10
"""Most jobs of a share; the last one is a thirtieth of it."""
_A_WORTH: Final = 2
"""Jobs that the least work worth a thread is divided into."""

RunUnits = Callable[[Builder, Value, Value], None]
"""Emits a job: a half-open range of the units of a share."""


def share_counters(b: Builder, team: Value) -> Value:
    """Work-stealing counters for a team of this many threads (i32), all zero, each in its own cache line.

    Threads mostly increment their own counter: with several in a line, each increment would wait for the line to move
    from another core (false sharing).
    """
    memory = b.retype(b.alloca(ArrayType(MAX_THREADS * _APART, I64), "taken"), I64)
    with b.loop(0, b.cast("zext", team, I64), name="counter") as loop:
        b.store(const_int(I64, 0), _counter(b, memory, loop.index), 8)
    return memory


def _counter(b: Builder, taken: Value, owner: Value) -> Value:
    """Address of the counter of a thread's share."""
    return b.gep(I64, taken, b.mul(owner, _APART))


@dataclass(frozen=True, slots=True)
class ThreadShare:
    """The share of one thread: its number of units, and what emits a job of it."""

    units: Value
    run: RunUnits


@dataclass(frozen=True, slots=True)
class ThreadShares:
    """The shares of threads.

    Attributes:
        of: Emits the code that finds the share of a thread, given its number.
        group: How many neighbouring threads read the same panels, and steal from each other first; None for no groups.
    """

    of: Callable[[Builder, Value], ThreadShare]
    group: Value | None = None

    def owner(self, b: Builder, thread: Thread, turn: Value) -> Value:
        """Whose share a thread works on in round `turn`; over as many rounds as there are threads, each one's once."""
        place = b.add(thread.number, turn)
        if self.group is not None:
            first = b.sub(thread.number, b.binary("urem", thread.number, self.group))
            ahead = b.sub(place, first)
            within = b.add(first, b.select(b.icmp("ult", ahead, self.group), ahead, b.sub(ahead, self.group)))
            place = b.select(b.icmp("ult", turn, self.group), within, b.add(first, turn))
        return b.select(b.icmp("ult", place, thread.team), place, b.sub(place, thread.team), "owner")


def emit_stealing(b: Builder, taken: Value, thread: Thread, most: int, work: ThreadShares) -> None:
    """Emit the work of a thread: its own share, and jobs stolen from others.

    Args:
        b: Where to emit.
        taken: The counters.
        thread: The thread.
        most: The most threads that there is work for.
        work: The shares.
    """
    worth = b.binary("udiv", const_int(I64, _A_WORTH * most), thread.team)
    jobs = b.umin(b.select(b.icmp("eq", worth, 0), const_int(I64, 1), worth), _JOBS, "jobs")
    with b.loop(0, thread.team, name="turn", runs=True) as turn:
        owner = work.owner(b, thread, turn.index)
        portion = work.of(b, owner)
        total = portion.units
        counter = _counter(b, taken, owner)
        take, some, any_, done = _blocks(b, ("take", "some", "job", "done"))
        b.branch(take)
        b.at_end(take)
        number = _increment(b, counter)
        before, behind = (_left(b, total, job, jobs) for job in (number, b.add(number, 1)))
        b.branch_if(b.icmp("eq", before, 0), done, some)
        b.at_end(some)
        b.branch_if(b.icmp("eq", before, behind), take, any_)
        b.at_end(any_)
        portion.run(b, b.sub(total, before), b.sub(total, behind))
        b.branch(take)
        b.at_end(done)


def _left(b: Builder, total: Value, job: Value, jobs: Value) -> Value:
    """What is left of a share before a job: all, 3/4, 1/2, 3/8, 1/4, ...; nothing after the last one."""
    one = const_int(I64, 1)
    halved = b.umin(b.binary("lshr", job, one), _JOBS)
    whole = b.binary("lshr", total, halved)
    half = b.binary("lshr", whole, one)
    quarter = b.binary("lshr", b.add(b.sub(whole, half), 1), one)
    left = b.sub(whole, b.mul(b.binary("and", job, one), quarter))
    return b.select(b.icmp("ult", job, jobs), left, const_int(I64, 0))


def _increment(b: Builder, counter: Value) -> Value:
    """Increment a counter atomically; returns its previous value."""
    one = const_int(I64, 1)
    made = b.emit("atomicrmw", I64, [counter, one], f"atomicrmw add {counter.typed}, {one.typed} monotonic", "number")
    made.predicate = "add"
    return made.value


def _blocks(b: Builder, names: tuple[str, ...]) -> list[Block]:
    """New blocks, in this order."""
    made: list[Block] = []
    for name in names:
        made.append(b.new_block(name, made[-1] if made else b.block))
    return made
