"""Barriers: the threads of a team wait for each other in memory that they share.

    | arrived | phase |        the last thread to arrive resets `arrived` and increments `phase`; the others wait for it

A thread that waits reads `phase` a bounded number of times, and then yields its processor before each further time:
another thread of the team may wait for that processor. GCC's `GOMP_barrier` spins for milliseconds before it sleeps.
Two threads on two virtual processors of a Xeon, with other programs running, took 0.33 microseconds for such a barrier
alone and 306 to 406 for one after a loop of 20,000 iterations; a prototype in C that yields after 2000 reads took 0.21
and 79 to 106 (2026-11-28).
"""

from __future__ import annotations

from typing import Final

from tlx.ir.builder import SCHED_YIELD, Builder, new_function
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.rewrite import add_incoming
from tlx.ir.types import I32, I64, VOID, ArrayType
from tlx.ir.values import Value, const_int
from tlx.lower.memory.allocation import CACHE_LINE
from tlx.lower.to_tiles.parallel.stealing import atomic_add, counter_of, new_blocks

_SPINS: Final = 256
"""How often a thread reads the phase before it yields its processor."""
_PHASE: Final = CACHE_LINE // 8
"""Elements from the number of threads that have arrived to the phase, which is in another cache line."""


def barrier_state(b: Builder) -> Value:
    """The state of a barrier that no thread has reached."""
    state = b.retype(b.alloca(ArrayType(2 * _PHASE, I64), "barrier", CACHE_LINE), I64)
    for element in (0, _PHASE):
        b.store(const_int(I64, 0), b.gep(I64, state, element), 8)
    return state


def add_barrier(module: Module, name: str) -> Function:
    """Add the function in which the threads of a team wait for each other.

    Its parameters are the number of the thread, the size of the team, work-stealing counters, of which it clears that
    of the thread, and the state of the barrier.
    """
    counters = module.pointer_to(I64)
    parameters = [(I64, "", "thread"), (I64, "", "team"), (counters, "", "counters"), (counters, "", "state")]
    function = new_function(module, name, parameters, "nounwind noinline")
    b = Builder(module, function)
    thread, team, cleared, state = (argument.value for argument in function.arguments)
    b.store(const_int(I64, 0), counter_of(b, cleared, thread), 8)
    arrive, release, wait, again, give_way, done = new_blocks(
        b, ("arrive", "release", "wait", "again", "yield", "done")
    )
    b.branch_if(b.icmp("ugt", team, 1), arrive, done)
    b.at_end(arrive)
    place = b.gep(I64, state, _PHASE)
    phase = _load(b, place, "phase")
    is_last = b.icmp("eq", b.add(atomic_add(b, state, "acq_rel", "arrived"), 1), team)
    b.branch_if(is_last, release, wait)
    b.at_end(release)
    b.store(const_int(I64, 0), state, 8)
    following = b.add(phase, 1)
    b.emit("store", VOID, [following, place], f"store atomic {following.typed}, {place.typed} release, align 8")
    b.branch(done)
    b.at_end(wait)
    spins = b.phi(I64, [(const_int(I64, 0), arrive)], "spins")
    b.branch_if(b.icmp("eq", _load(b, place, "now"), phase), again, done)
    b.at_end(again)
    more = b.add(spins, 1)
    b.branch_if(b.icmp("ult", spins, _SPINS), wait, give_way)
    b.at_end(give_way)
    b.call_named(SCHED_YIELD, I32, [])
    b.branch(wait)
    for block, value in ((again, more), (give_way, spins)):
        add_incoming(wait.instructions[0], value, block.name)
    b.at_end(done)
    b.ret()
    return function


def _load(b: Builder, pointer: Value, name: str) -> Value:
    return b.value("load", I64, [pointer], f"load atomic {I64}, {pointer.typed} acquire, align 8", name)
