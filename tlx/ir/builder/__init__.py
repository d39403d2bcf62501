"""The builder, with a method for each instruction: values, memory and control flow, parallel regions."""

from tlx.ir.builder.blocks import Builder, LoopState, new_function
from tlx.ir.builder.threads import (
    GOMP_PARALLEL,
    SCHED_YIELD,
    Thread,
    emit_parallel_call,
    emit_parallel_region,
    partition,
    team_size,
)
from tlx.ir.builder.values import IntOrValue, ValueBuilder, as_value

__all__ = [
    "GOMP_PARALLEL",
    "SCHED_YIELD",
    "Builder",
    "IntOrValue",
    "LoopState",
    "Thread",
    "ValueBuilder",
    "as_value",
    "emit_parallel_call",
    "emit_parallel_region",
    "new_function",
    "partition",
    "team_size",
]
