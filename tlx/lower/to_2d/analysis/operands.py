"""Operands of operations as views of memory, over buffers or over names that stand for them until they exist."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Protocol

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.values import Local, Value
from tlx.lower.memory.views import Storage, TensorView
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.analysis.tensor_operations import INSERT, MMA
from tlx.lower.to_2d.fusion.groups import FusionGroups


class StorageMap(Protocol):
    """Where vectors and loaded tensors lie."""

    def of_vector(self, root: Value) -> Storage:
        """The memory of a flattened vector that no load defines."""
        ...

    def of_load(self, load: Instruction, pointer: Value) -> Storage:
        """The memory that a load reads, or a copy of it."""
        ...


@dataclass(frozen=True, eq=False)
class SymbolicStorage:
    """Memory before buffers exist: a vector's storage is named by the vector, a load's is the user's memory.

    Attributes:
        vectors: The storage of each vector, in the order in which they were asked for.
        loads: The storage of each load, by the load's id.
    """

    vectors: dict[Value, Storage] = field(default_factory=dict[Value, Storage])
    loads: dict[int, Storage] = field(default_factory=dict[int, Storage])

    def of_vector(self, root: Value) -> Storage:
        """A name for the memory of a vector."""
        return self.vectors.setdefault(root, Storage(root))

    def of_load(self, load: Instruction, pointer: Value) -> Storage:
        """The user's memory, with the content that it has when the load runs."""
        return self.loads.setdefault(id(load), Storage(pointer, load))


@dataclass(frozen=True, eq=False)
class OperandViews:
    """The views that operations read.

    Attributes:
        facts: What is known about the function.
        groups: What is fused.
        views: Names of the results that exist only as another view of their operand.
        storage: Where vectors and loaded tensors lie.
    """

    facts: Facts
    groups: FusionGroups
    views: AbstractSet[str]
    storage: StorageMap

    def view(self, tensor: Tensor) -> TensorView:
        """The memory of a token's tensor."""
        if tensor.kind == "load":
            storage = self.storage.of_load(tensor.definition, tensor.source)
            return TensorView.of(storage, tensor.type, None if storage.is_private else tensor.pitches)
        if tensor.kind == "pointer":
            return TensorView.of(self.storage.of_load(tensor.definition, tensor.source), tensor.type)
        root = self.facts.vectors.root(tensor.source)
        if isinstance(root, Local) and root.name in self.views:
            return self._operand_as(self.facts.op_of(root), tensor.type)
        return TensorView.of(self.storage_of(root), tensor.type)

    def _operand_as(self, op: TensorOp, seen: TensorType) -> TensorView:
        """The operand's memory as the result of a transpose, a broadcast or a permutation."""
        source, result = op.tensors[0], op.result
        assert result is not None
        if op.intrinsic.name == "broadcast":
            return self.view(source).broadcast(result, op.dims[1])
        if op.intrinsic.name == "reshape.permute":
            return replace(TensorView.of(self.view(source).storage, result), vnni_group=source.type.shape[-1])
        type_ = seen if seen.shape == result.shape else result
        return self.view(source).reordered([source.type.position(d) for d in result.layout], type_)

    def storage_of(self, root: Value) -> Storage:
        """The memory of a flattened vector: a buffer, a constant, or what a load reads."""
        if isinstance(root, Local) and self.facts.vectors.kind(root) == "load":
            load = self.facts.vectors.definitions[root.name]
            return self.storage.of_load(load, load.operands[0])
        return self.storage.of_vector(root)

    def operands(self, op: TensorOp) -> list[TensorView | None]:
        """The memory of each operand; None for one that is written as zeros or as a scalar, which needs no memory."""
        fills = op.pointer is not None or op.intrinsic.name in MMA | {INSERT}
        return [
            None
            if (fills and index == 0 and self.facts.is_zero(tensor)) or self.groups.is_scalar(op, tensor)
            else self.view(tensor)
            for index, tensor in enumerate(op.tensors)
        ]
