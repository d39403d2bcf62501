"""Operand views: the operands of operations as views of memory.

Storage is symbolic as long as there are no buffers yet: analyses and estimates need strides, not addresses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Protocol

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.conversions import SmallConversion
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.values import Local, Value
from tlx.lower.memory.views import NO_ADDRESS, SmallFloatBytes, Storage, StridedDim, TensorView
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.analysis.tensor_operations import INSERT, MMA, ORDINARY
from tlx.lower.to_2d.fusion import FusionGroups
from tlx.lower.to_2d.memory.derived_views import Part, permuted_view, place_in
from tlx.lower.to_2d.memory.padding import is_crop, padded_dims


class StorageMap(Protocol):
    """The memory of vectors and loaded tensors."""

    def of_vector(self, root: Value) -> Storage:
        """The memory of a flattened vector that is not loaded."""
        ...

    def of_load(self, load: Instruction, pointer: Value) -> Storage:
        """The memory that a load reads, or a copy of it."""
        ...

    def addressed(self, view: TensorView) -> TensorView:
        """The view with an address of its own, if there are addresses yet."""
        ...


@dataclass(frozen=True, eq=False)
class SymbolicStorage:
    """Storage before buffers exist: each vector has symbolic memory, each load reads the user's memory.

    Attributes:
        vectors: The storage of each vector, in order of first use.
        loads: The storage of each load, by the load's id.
    """

    vectors: dict[Value, Storage] = field(default_factory=dict[Value, Storage])
    loads: dict[int, Storage] = field(default_factory=dict[int, Storage])

    def of_vector(self, root: Value) -> Storage:
        """Symbolic memory of a vector."""
        return self.vectors.setdefault(root, Storage(root))

    def of_load(self, load: Instruction, pointer: Value) -> Storage:
        """The user's memory, with its content at the load."""
        return self.loads.setdefault(id(load), Storage(pointer, load))

    def addressed(self, view: TensorView) -> TensorView:
        """The view as it is."""
        return view


@dataclass(frozen=True, eq=False)
class OperandViews:
    """The views that operations read.

    Attributes:
        facts: The function's analyses.
        groups: The fusion groups.
        views: Names of the results that are only other views of their operands.
        storage: The memory of vectors and loaded tensors.
        parts: The operations that write their result to a part of another result, by the id of their instruction.
        layouts: Names of the results whose memory has another order than their vector, each with its dimensions, the
            outermost first (`memory.layouts`).
    """

    facts: Facts
    groups: FusionGroups
    views: AbstractSet[str]
    storage: StorageMap
    parts: Mapping[int, Part] = field(default_factory=dict[int, Part])
    layouts: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])

    def view(self, tensor: Tensor) -> TensorView:
        """The memory of a token's tensor, which may have other dimensions: see `_with_dims_of`."""
        return self.storage.addressed(self._view(tensor))

    def _view(self, tensor: Tensor) -> TensorView:
        if tensor.kind == "load":
            storage = self.storage.of_load(tensor.definition, tensor.source)
            return TensorView.of(storage, tensor.type, None if storage.is_private else tensor.pitches)
        if tensor.kind == "pointer":
            return TensorView.of(self.storage.of_load(tensor.definition, tensor.source), tensor.type)
        op = self.view_of(tensor)
        if op is not None:
            return self._operand_as(op, tensor.type)
        root = self.facts.vectors.root(tensor.source)
        part = self.part_of(root)
        if part is None:
            return _with_dims_of(self._vector_memory(root, tensor.type), tensor.type)
        place = self._place(part)
        assert place is not None
        return _with_dims_of(place, tensor.type)

    def result_view(self, op: TensorOp) -> TensorView:
        """The memory of a result that has memory of its own."""
        assert op.result is not None
        return self._vector_memory(op.instruction.value, op.result)

    def product_view(self, product: TensorOp) -> TensorView:
        """Memory for the result of a product, for estimates: with the order of the result that its group writes."""
        assert product.result is not None
        order = self.layouts.get(str(self.groups.root_of(product).instruction.result))
        return _ordered_view(Storage(NO_ADDRESS), product.result, order)

    def _vector_memory(self, root: Value, type_: TensorType) -> TensorView:
        """The memory of a flattened vector; as a tensor of a type if its order is that of the vector."""
        if not isinstance(root, Local) or root.name not in self.layouts:
            return TensorView.of(self.storage_of(root), type_)
        result = self.facts.op_of(root).result
        assert result is not None
        return _ordered_view(self.storage_of(root), result, self.layouts[root.name])

    def part_of(self, root: Value) -> Part | None:
        """The place of a flattened vector in another result; None if it has memory of its own."""
        definition = self.facts.vectors.definitions.get(root.name) if isinstance(root, Local) else None
        return None if definition is None else self.parts.get(id(definition))

    def place(self, part: Part) -> TensorView | None:
        """The memory of a part, in the outermost result around it; None if it has no strides there."""
        place = self._place(part)
        return None if place is None else self.storage.addressed(place)

    def _place(self, part: Part) -> TensorView | None:
        whole = part.whole
        if part.sunk is not None:
            return part.sunk
        assert whole.result is not None
        outer = self.parts.get(id(whole.instruction))
        if outer is None:
            return place_in(self.result_view(whole), part)
        destination = self._place(outer)
        return None if destination is None else place_in(destination, part)

    def view_of(self, tensor: Tensor) -> TensorOp | None:
        """The operation that an operand is the result of, if that is only another view of the operation's operand."""
        root = self.facts.vectors.root(tensor.source) if tensor.kind == "value" else None
        return self.facts.op_of(root) if isinstance(root, Local) and root.name in self.views else None

    def readers(self, user: Instruction) -> list[tuple[TensorView, TensorOp]] | None:
        """The operations that read a result through one of its users, each with the view that it reads.

        Returns:
            None for a user that cannot read the result's memory in its own shape; an empty list for an elementwise
            operation, which reads any view.
        """
        own = self.facts.tensors.op_of(user)
        if own is not None:
            return [] if own.intrinsic.name == ORDINARY else None
        token = self.facts.tensors.tokens.get(user.result or "")
        if token is None or token.kind != "value":
            return None
        view, uses = self.view(token), self.facts.vectors.uses.get(str(user.result), ())
        readers = [op for use in uses if (op := self.facts.tensors.op_of(use.instruction)) is not None]
        return [(view, op) for op in readers] if view.shape == token.type.shape and len(readers) == len(uses) else None

    def _operand_as(self, op: TensorOp, token: TensorType) -> TensorView:
        """The operand's memory as a view of the result of a transpose, a broadcast, a permutation or a pad."""
        source, result = op.tensors[0], op.result
        assert result is not None
        view = self._view(source)
        if op.intrinsic.name == ORDINARY:  # a conversion from bytes, which a product reads
            bytes_ = _with_dims_of(view, replace(token, element=view.element))
            conversion = SmallConversion.of(str(op.instruction.callee), op.instruction.args)
            return replace(bytes_, small_floats=SmallFloatBytes(conversion.format, result.element))
        if op.intrinsic.name == "broadcast":
            return view.broadcast(result, op.dims[1])
        if op.intrinsic.name == "pad":
            return _cropped(view, op, token) if is_crop(op) else view.row_major  # its readers write the border
        if op.intrinsic.name == "reshape.permute":
            permuted = permuted_view(view, op)
            if permuted is None:  # interleaved rows
                return replace(TensorView.of(view.storage, result), vnni_group=source.type.shape[-1])
            return _with_dims_of(permuted, token)
        type_ = token if token.shape == result.shape else result
        return view.reordered([source.type.position(d) for d in result.layout], type_)

    def storage_of(self, root: Value) -> Storage:
        """The memory of a flattened vector: a buffer, a constant, or the memory that a load reads."""
        if isinstance(root, Local) and self.facts.vectors.kind(root) == "load":
            load = self.facts.vectors.definitions[root.name]
            return self.storage.of_load(load, load.operands[0])
        return self.storage.of_vector(root)

    def operands(self, op: TensorOp) -> list[TensorView | None]:
        """The memory of each operand; None for zeros and scalars, which need none."""
        fills = op.pointer is not None or op.intrinsic.name in MMA | {INSERT}
        return [
            None
            if (fills and index == 0 and self.facts.is_zero(tensor)) or self.groups.is_scalar(op, tensor)
            else self.view(tensor)
            for index, tensor in enumerate(op.tensors)
        ]


def _ordered_view(storage: Storage, type_: TensorType, order: Sequence[int] | None) -> TensorView:
    """Dense memory for a row-major tensor, with its dimensions in an order, the outermost first; None: in its own."""
    extents = type_.extents
    order = range(len(extents)) if order is None else order
    strides = dict(zip(order, TensorType.dense(type_.element, [extents[d] for d in order]).strides(), strict=True))
    dims = [StridedDim(extent, strides[d]) for d, extent in enumerate(extents)]
    return TensorView.strided(storage, type_.element, dims)


def _cropped(view: TensorView, pad: TensorOp, token: TensorType) -> TensorView:
    """The memory of a pad's operand as the result of the pad, which only crops, or as another tensor."""
    assert pad.result is not None
    part = view.part([(dim.first, dim.count) for dim in padded_dims(pad)], pad.result)
    return _with_dims_of(part, token)


def _with_dims_of(view: TensorView, type_: TensorType) -> TensorView:
    """The memory in the dimensions of a tensor; in its own ones if no strides give those of the tensor.

    A tensor whose view has another shape is only read by operations that visit elements in memory order, which both
    share: fused elementwise operations and reductions, which choose extents that suit all their operands.
    """
    reshaped = view.reshaped(type_)
    if reshaped is not None:
        return reshaped
    assert view.shape != type_.shape, "memory of another layout has its elements in another order"
    return view
