"""Facts: what is known about a function before anything is decided or changed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tlx.ir.analysis.control_flow import ControlFlow
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.tensors.inference import analyse
from tlx.ir.tensors.model import FunctionTensors, Tensor, TensorOp
from tlx.ir.values import Keyword, Local
from tlx.lower.memory.aliases import AliasAnalysis, Position
from tlx.lower.memory.views import Storage, TensorView
from tlx.lower.to_2d.analysis.tensor_operations import with_elementwise
from tlx.lower.to_2d.analysis.values import FlatVectors
from tlx.target.target import Target


@dataclass(frozen=True, eq=False)
class Facts:
    """The analyses of one function, each computed when it is first read.

    Attributes:
        module: The module.
        function: The function.
        target: The machine that the function is lowered for.
    """

    module: Module
    function: Function
    target: Target

    @cached_property
    def tensors(self) -> FunctionTensors:
        """Tokens and operations, ordinary instructions on tensors among them."""
        return with_elementwise(self.function, analyse(self.module, self.function))

    @cached_property
    def vectors(self) -> FlatVectors:
        """Flattened vectors."""
        return FlatVectors(self.function, self.tensors, self.module.source)

    @cached_property
    def flow(self) -> ControlFlow:
        """Control flow."""
        return ControlFlow(self.function)

    @cached_property
    def aliases(self) -> AliasAnalysis:
        """Which pointers may point to the same memory."""
        sizes = {id(op.instruction): store_view(op).reach for op in self.tensors.ops if op.pointer is not None}
        return AliasAnalysis(self.module, self.function, self.flow, sizes)

    @cached_property
    def positions(self) -> dict[int, Position]:
        """Block and index of each instruction, by its id."""
        return {
            id(instruction): (block.name, index)
            for block in self.function.blocks
            for index, instruction in enumerate(block.instructions)
        }

    def op_of(self, root: Local) -> TensorOp:
        """The operation whose result a vector is."""
        op = self.tensors.op_of(self.vectors.definitions[root.name])
        assert op is not None
        return op

    def is_zero(self, tensor: Tensor) -> bool:
        """Whether a tensor is a constant of zeros, or undefined and may be taken for one."""
        return tensor.kind == "value" and isinstance(self.vectors.root(tensor.source), Keyword)


def store_view(op: TensorOp) -> TensorView:
    """The memory that a tensor store writes."""
    assert op.pointer is not None
    return TensorView.of(Storage(op.pointer), op.tensors[0].type, op.pitches)
