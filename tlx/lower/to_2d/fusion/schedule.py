"""The schedule: which operations run, where they run, and what they read there."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tlx.ir.tensors.model import TensorOp
from tlx.lower.memory.aliases import Position
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.analysis.operands import OperandViews
from tlx.lower.to_2d.fusion.groups import StoreSinks


@dataclass(frozen=True, eq=False)
class Schedule:
    """What is fused, seen as a view, sunk to a store, or left out.

    Attributes:
        operands: What operations read, over storage that has names and no addresses yet.
        live: Names of the results (operations and loop-carried tensors) that something needs in memory.
        sinks: Operations that run where their result is stored.
    """

    operands: OperandViews
    live: AbstractSet[str]
    sinks: StoreSinks

    @property
    def facts(self) -> Facts:
        """What is known about the function."""
        return self.operands.facts

    def has_buffer(self, op: TensorOp) -> bool:
        """Whether an operation writes its result to a buffer: it is live, no view, and not sunk to a store."""
        name = str(op.instruction.result)
        return name in self.live and name not in self.operands.views and not self.sinks.of_op(op)

    def position_of(self, op: TensorOp) -> Position:
        """Where an operation runs."""
        op = self.operands.groups.root_of(op)
        sink = self.sinks.of_op(op)
        return self.facts.positions[id(op.instruction if sink is None else sink.store)]
