"""Teams of the evaluator: threads take turns where they wait for each other."""

from __future__ import annotations

import numpy as np
import pytest

from tlx.diagnostics import EvaluationError
from tlx.evaluate import Machine
from tlx.evaluate.teams import ThreadTeam
from tlx.ir.builder import Builder, Thread, emit_parallel_call, new_function
from tlx.ir.parser.module import parse
from tlx.ir.types import I32, I64, PTR
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.emit.kernel import call_function
from tlx.lower.to_tiles.parallel.barrier import add_barrier, barrier_state
from tlx.lower.to_tiles.parallel.stealing import share_counters

WAITS_FOREVER = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @sched_yield()
define void @f(ptr %x) {
  call void @GOMP_parallel(ptr @g, ptr %x, i32 3, i32 0)
  ret void
}
define void @g(ptr %x) {
  %n = call i32 @omp_get_thread_num()
  %first = icmp eq i32 %n, 0
  br i1 %first, label %wait, label %end
wait:
  %y = call i32 @sched_yield()
  br label %wait
end:
  FAIL
}
"""


def sums(threads: int) -> str:
    """Each thread stores its number; after a barrier, each sums up the numbers of all; and once more."""
    module = parse("")
    b = Builder(module, new_function(module, "f", [(PTR, "", "x"), (PTR, "", "y")], "", linkage=""))
    team = const_int(I32, threads)
    counters, state = share_counters(b, team, sets=2), barrier_state(b)
    barrier = add_barrier(module, "barrier")

    def body(inner: Builder, values: list[Value], thread: Thread) -> None:
        x, y, counters, state = values
        inner.store(thread.number, inner.gep(I64, x, thread.number), 8)
        call_function(inner, barrier, [thread.number, thread.team, counters, state])
        with inner.loop(0, thread.team, carry=[const_int(I64, 0)], nonempty=True) as loop:
            loop.next(inner.add(loop.carried[0], inner.load(I64, inner.gep(I64, x, loop.index), 8)))
        inner.store(loop.results[0], inner.gep(I64, y, thread.number), 8)

    values: list[Value] = [*(argument.value for argument in b.function.arguments), counters, state]
    emit_parallel_call(b, ("body", "member"), values, body, "", team)
    b.ret()
    return str(module)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_wait_at_a_barrier(threads: int, *, reverse: bool) -> None:
    x, y = np.full(threads, -1), np.zeros(threads, int)
    Machine(parse(sums(threads)), team=ThreadTeam(threads, reverse_order=reverse)).call("f", x, y)
    assert x.tolist() == list(range(threads))
    assert y.tolist() == [sum(range(threads))] * threads


def test_waiting_for_threads_that_have_ended_is_an_error() -> None:
    machine = Machine(parse(WAITS_FOREVER.replace("FAIL", "ret void")))
    with pytest.raises(EvaluationError, match="waits for threads of its team that have ended"):
        machine.call("f", np.zeros(1))


def test_the_error_of_any_thread_is_raised() -> None:
    text = WAITS_FOREVER.replace("FAIL", "%bad = udiv i32 %n, 0\n  ret void")
    with pytest.raises(EvaluationError, match=r"zero"):
        Machine(parse(text)).call("f", np.zeros(1))
