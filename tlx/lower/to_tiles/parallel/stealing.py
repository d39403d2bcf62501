"""Work stealing: the share of each thread of a team is cut into jobs, which other threads may take.

A thread that has finished its own share takes the remaining jobs of other threads' shares. A share is
cut into up to ten jobs, large ones first: two of a quarter, two of an eighth, ... A thread takes the jobs of its own
share one by one, and then the remaining jobs of the threads after it. An atomic counter for each share assigns its
jobs:

    for turn = 0 .. team:                           its own share first, then those of its group
      owner = (thread + turn) mod team
      while (job = taken[owner]++) < jobs:          atomically
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

from tlx.ir.builder import Builder, Thread
from tlx.ir.instructions import Block
from tlx.ir.types import I64, ArrayType, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.memory.allocation import CACHE_LINE
from tlx.lower.to_tiles.parallel.partition import ThreadShare

MAX_THREADS: Final = 512
"""Most threads of a team: each has a counter on the stack."""
_COUNTER_STRIDE: Final = CACHE_LINE // bytes_of(I64)
"""Elements from one counter to the next."""
COUNTERS: Final = MAX_THREADS * _COUNTER_STRIDE
"""Elements of a set of counters."""
_MAX_JOBS: Final = 10
"""Most jobs of a share; the last one is a thirtieth of the share."""
_JOBS_PER_THREAD: Final = 2
"""Jobs that the least work of a thread is divided into."""


def share_counters(b: Builder, team: Value, sets: int = 1) -> Value:
    """Work-stealing counters for a team of this many threads (i32), all zero, each in its own cache line.

    Threads mostly increment their own counter: with several in a line, each increment would wait for the line to move
    from another core (false sharing).

    Args:
        b: Where to emit.
        team: The number of threads.
        sets: Number of sets of counters, each of `COUNTERS` elements; only those of the first are zero.
    """
    memory = b.retype(b.alloca(ArrayType(sets * COUNTERS, I64), "counters"), I64)
    with b.loop(0, b.cast("zext", team, I64), name="counter") as loop:
        b.store(const_int(I64, 0), counter_of(b, memory, loop.index), 8)
    return memory


def counter_of(b: Builder, counters: Value, owner: Value) -> Value:
    """Address of the counter of a thread's share."""
    return b.gep(I64, counters, b.mul(owner, _COUNTER_STRIDE))


@dataclass(frozen=True, slots=True)
class ThreadShares:
    """The shares of threads.

    Attributes:
        of: Emits the code that computes the share of a thread, given its number.
        group: How many neighbouring threads read the same panels, and steal from each other first; None for no groups.
    """

    of: Callable[[Builder, Value], ThreadShare]
    group: Value | None = None

    def owner(self, b: Builder, thread: Thread, turn: Value) -> Value:
        """The thread whose share is worked on in turn `turn`; in as many turns as threads, each share comes once."""
        place = b.add(thread.number, turn)
        if self.group is not None:
            first = b.sub(thread.number, b.binary("urem", thread.number, self.group))
            ahead = b.sub(place, first)
            within = b.add(first, b.select(b.icmp("ult", ahead, self.group), ahead, b.sub(ahead, self.group)))
            place = b.select(b.icmp("ult", turn, self.group), within, b.add(first, turn))
        return b.select(b.icmp("ult", place, thread.team), place, b.sub(place, thread.team), "owner")


def emit_stealing(b: Builder, counters: Value, thread: Thread, max_threads: int, work: ThreadShares) -> None:
    """Emit the work of a thread: its own share, and jobs stolen from others.

    Args:
        b: Where to emit.
        counters: The counters.
        thread: The thread.
        max_threads: The most threads of a team.
        work: The shares.
    """
    worth = b.binary("udiv", const_int(I64, _JOBS_PER_THREAD * max_threads), thread.team)
    jobs = b.umin(b.select(b.icmp("eq", worth, 0), const_int(I64, 1), worth), _MAX_JOBS, "jobs")
    with b.loop(0, thread.team, name="victim", nonempty=True) as turn:
        owner = work.owner(b, thread, turn.index)
        portion = work.of(b, owner)
        total = portion.units
        counter = counter_of(b, counters, owner)
        take, exists, run, done = new_blocks(b, ("claim", "claimed", "run", "done"))
        b.branch(take)
        b.at_end(take)
        number = atomic_add(b, counter, "monotonic", "job")
        before, after = (_units_left(b, total, job, jobs) for job in (number, b.add(number, 1)))
        b.branch_if(b.icmp("eq", before, 0), done, exists)
        b.at_end(exists)
        b.branch_if(b.icmp("eq", before, after), take, run)
        b.at_end(run)
        portion.run(b, b.sub(total, before), b.sub(total, after))
        b.branch(take)
        b.at_end(done)


def _units_left(b: Builder, total: Value, job: Value, jobs: Value) -> Value:
    """The units of a share that are left before a job: all, 3/4, 1/2, 3/8, 1/4, ...; none after the last job."""
    one = const_int(I64, 1)
    halved = b.umin(b.binary("lshr", job, one), _MAX_JOBS)
    whole = b.binary("lshr", total, halved)
    half = b.binary("lshr", whole, one)
    quarter = b.binary("lshr", b.add(b.sub(whole, half), 1), one)
    left = b.sub(whole, b.mul(b.binary("and", job, one), quarter))
    return b.select(b.icmp("ult", job, jobs), left, const_int(I64, 0))


def atomic_add(b: Builder, counter: Value, ordering: str, name: str) -> Value:
    """Increment a counter atomically; returns its previous value."""
    one = const_int(I64, 1)
    text = f"atomicrmw add {counter.typed}, {one.typed} {ordering}"
    instruction = b.emit("atomicrmw", I64, [counter, one], text, name)
    instruction.predicate = "add"
    return instruction.value


def new_blocks(b: Builder, names: tuple[str, ...]) -> list[Block]:
    """New blocks, in this order."""
    blocks: list[Block] = []
    for name in names:
        blocks.append(b.new_block(name, blocks[-1] if blocks else b.block))
    return blocks
