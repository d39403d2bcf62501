"""What a rule is given besides the operation: what `EmitContext` has, and the operands in memory."""

from __future__ import annotations

from dataclasses import dataclass

from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.lower.memory.views import TensorView
from tlx.lower.to_2d.analysis.operands import OperandViews
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.fusion.groups import FusionGroups


@dataclass(frozen=True, eq=False)
class RuleContext(EmitContext):
    """The circumstances of a rule.

    Attributes:
        memory: The operands of all operations, in memory.
    """

    memory: OperandViews

    @property
    def groups(self) -> FusionGroups:
        """What is fused into what."""
        return self.memory.groups

    def view(self, tensor: Tensor) -> TensorView:
        """The memory of a tensor."""
        return self.memory.view(tensor)

    def operands(self, op: TensorOp) -> list[TensorView | None]:
        """The memory of each operand; None for one that needs none, because it is zero or a scalar."""
        return self.memory.operands(op)
