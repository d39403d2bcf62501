"""Fusion groups: operations computed in one loop nest, so that no intermediate result goes through memory.

    %m = matmul(%a, %b)         fused into %r
    %s = fadd %m, %bias         fused into %r
    %r = fmul %s, %s            root: written to its buffer
    store %r                    (or sunk to this store)

A root is an operation whose result needs memory. Operations that only the root uses, position by position, are fused
into it: ordinary instructions, unary intrinsics such as `llvm.tensor.exp`, and one product. All of them run where the
root runs. A reduction of whole rows can be a root, too, and so can a reduction of whole dimensions of a product:

reduce.add of 8 x 64 x 28 x 28, window 1 x 1 x 28 x 28        dimensions 2 and 3: whole rows
reduce.max of 8 x 64 x 28 x 28, window 1 x 64 x 1 x 1         dimension 1
reduce.add of 512 x 784, window 1 x 784, of the product above dimensions 2 and 3 of the product

`OperandViews` gives the operands of operations as views of memory: of buffers, or of symbolic storage as long as there
are no buffers yet. `Schedule` says which operations run, and where.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Protocol

from tlx.intrinsics.convolution import Windows
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.conversions import SmallConversion
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import BFLOAT, HALF, I1, VectorType
from tlx.ir.values import Local, Value
from tlx.lower.memory.aliases import MemoryLocation, Position
from tlx.lower.memory.views import NO_ADDRESS, SmallFloatBytes, Storage, StridedDim, TensorView, tensor_bytes
from tlx.lower.operations import UNARY_INTRINSICS
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.analysis.tensor_operations import (
    INSERT,
    MMA,
    ORDINARY,
    POINTWISE,
    PRODUCTS,
    SHUFFLE,
    only_element,
    splat_value,
)
from tlx.lower.to_2d.memory.derived_views import Part, permuted_view, place_in
from tlx.lower.to_2d.memory.padding import is_crop, padded_dims

LeafKey = tuple[str, TensorType]


@dataclass(eq=False)
class FusionGroups:
    """The fusion groups of a function.

    Attributes:
        facts: The function's analyses.
        roots: The root of each fused operation, by the id of its instruction.
        reductions: Reductions that are roots of a group, by the id of their instruction.
        products: The product fused into a root, by the id of the root's instruction.
        fused: The operations fused into a root, the last one first, by the id of the root's instruction.
    """

    facts: Facts
    roots: dict[int, TensorOp] = field(default_factory=dict[int, TensorOp])
    reductions: set[int] = field(default_factory=set[int])
    products: dict[int, TensorOp] = field(default_factory=dict[int, TensorOp])
    fused: dict[int, list[TensorOp]] = field(default_factory=dict[int, list[TensorOp]])
    _standalone: frozenset[int] = frozenset()
    _views: AbstractSet[str] = frozenset()

    @classmethod
    def of(cls, facts: Facts, views: AbstractSet[str] = frozenset()) -> FusionGroups:
        """Fuse all groups; a reduction that pays only in a group with a product is not fused in a group without one.

        Args:
            facts: The function's analyses.
            views: Names of elementwise results that are read as views of their operands, which are thus in memory.
        """
        groups = cls(facts, _views=views)
        groups._fuse()
        while standalone := groups._without_product():
            groups = cls(facts, _standalone=groups._standalone | standalone, _views=views)
            groups._fuse()
        return groups

    def _fuse(self) -> None:
        """Fuse from the last operation to the first, so that a consumer's root is known before its operands'."""
        for op in reversed(self.facts.tensors.ops):
            root = self._root_for(op)
            if root is None:
                continue
            self.roots[id(op.instruction)] = root
            self.fused.setdefault(id(root.instruction), []).append(op)
            if is_reduction(root):
                self.reductions.add(id(root.instruction))
            if op.intrinsic.name in PRODUCTS:
                self.products[id(root.instruction)] = op

    def _without_product(self) -> set[int]:
        """Roots that do not reduce rows and have no product in their group."""
        alone = self.reductions - self.products.keys()
        return {
            id(op.instruction)
            for op in self.facts.tensors.ops
            if id(op.instruction) in alone and not is_row_reduction(op)
        }

    def is_fused(self, op: TensorOp) -> bool:
        """Whether an operation is computed in the loop nest of another one."""
        return id(op.instruction) in self.roots

    def root_of(self, op: TensorOp) -> TensorOp:
        """The root of an operation's group; the operation itself if it is not fused."""
        return self.roots.get(id(op.instruction), op)

    def is_group(self, op: TensorOp) -> bool:
        """Whether an operation is computed by an expression tree: pointwise ones, and reductions of a fused operand."""
        return op.intrinsic.name in POINTWISE or id(op.instruction) in self.reductions

    def product_of(self, root: TensorOp) -> TensorOp | None:
        """The product fused into a root."""
        return self.products.get(id(root.instruction))

    def inner(self, tensor: Tensor) -> TensorOp | None:
        """The fused operation whose result an operand is; None if the operand is read from memory."""
        if tensor.kind != "value":
            return None
        root = self.facts.vectors.root(tensor.source)
        if not isinstance(root, Local) or self.facts.vectors.kind(root) != "op":
            return None
        op = self.facts.op_of(root)
        return op if self.is_fused(op) else None

    def scalar(self, tensor: Tensor) -> Value | None:
        """The scalar that is splat to an operand, so that a group reads no memory for it; None if there is none."""
        if tensor.kind != "value":
            return None
        root = self.facts.vectors.root(tensor.source)
        if not isinstance(root.type, VectorType) or root.type.count != tensor.type.count:
            return None
        if isinstance(root, Local) and self.facts.vectors.kind(root) == "op":
            return self._broadcast_scalar(self.facts.op_of(root))
        return splat_value(root, self.facts.vectors.definitions)

    def is_scalar(self, op: TensorOp, tensor: Tensor) -> bool:
        """Whether an operation reads an operand as a scalar, without memory."""
        return op.intrinsic.name in POINTWISE | {SHUFFLE} and self.scalar(tensor) is not None

    def _broadcast_scalar(self, op: TensorOp) -> Value | None:
        """The scalar that an operation broadcasts to its whole result; None if there is none."""
        assert op.result is not None
        if op.intrinsic.name != "broadcast" or op.result.is_padded:
            return None
        if op.scalars:
            return op.scalars[0]
        source = op.tensors[0]
        if source.type.count != 1 or source.kind != "value":
            return None
        root = self.facts.vectors.root(source.source)
        is_single = isinstance(root.type, VectorType) and root.type.count == 1
        return only_element(root, self.facts.vectors.definitions) if is_single else None

    def leaves(self, op: TensorOp) -> list[Tensor]:
        """The operands that a group reads from memory position by position, without those of its product."""
        leaves: dict[LeafKey, Tensor] = {}
        seen: set[int] = set()
        pending = [op]
        while pending:
            current = pending.pop()
            if not self.is_group(current) or id(current.instruction) in seen:
                continue
            seen.add(id(current.instruction))
            for tensor in current.tensors:
                inner = self.inner(tensor)
                if inner is not None:
                    pending.append(inner)
                elif self.scalar(tensor) is None:
                    leaves.setdefault(self.key(tensor), tensor)
        return list(leaves.values())

    def key(self, tensor: Tensor) -> LeafKey:
        """A key that is equal for operands that read the same memory as the same type."""
        if tensor.kind != "value":
            return str(tensor.definition.result), tensor.type
        return str(self.facts.vectors.root(tensor.source)), tensor.type

    def members(self, root: TensorOp) -> list[TensorOp]:
        """The operations of a group in the order in which they are computed, the root last."""
        return [*reversed(self.fused.get(id(root.instruction), [])), root]

    # Whether an operation can be fused -------------------------------------------------------------------------

    def _root_for(self, op: TensorOp) -> TensorOp | None:
        name = op.intrinsic.name
        if op.result is None or name not in POINTWISE | PRODUCTS or op.instruction.result is None:
            return None
        consumers = self._consumers(op)
        if not consumers or any(consumer.instruction.result in self._views for consumer in consumers):
            return None
        roots = {id(root.instruction): root for root in map(self.root_of, consumers)}
        if len(roots) != 1:
            return None
        root = next(iter(roots.values()))
        return root if self._may_join(op, root) else None

    def _consumers(self, op: TensorOp) -> list[TensorOp]:
        """The pointwise operations that use a result; none if it has any other use."""
        consumers: list[TensorOp] = []
        names = [str(op.instruction.result)]
        for name in names:
            for use in self.facts.vectors.uses.get(name, []):
                if self.facts.vectors.is_renaming(use.instruction) and use.instruction.opcode != "phi":
                    if not _has_count(use.instruction, op):
                        return []
                    names.extend({str(use.instruction.result)} - set(names))
                    continue
                operations = self._operations(use.instruction)
                if not operations:
                    return []
                consumers.extend(operations)
        return consumers

    def _operations(self, user: Instruction) -> list[TensorOp]:
        """The pointwise operations of one use of a flattened vector: the user itself, or the users of its token."""
        own = self.facts.tensors.op_of(user)
        if own is not None:
            return [own] if own.intrinsic.name == ORDINARY else []
        if user.result not in self.facts.tensors.tokens:
            return []
        users = [self.facts.tensors.op_of(u.instruction) for u in self.facts.vectors.uses.get(str(user.result), [])]
        readers = [
            u for u in users if u is not None and (u.intrinsic.name in UNARY_INTRINSICS or self._takes_operands(u))
        ]
        return readers if len(readers) == len(users) else []

    def _takes_operands(self, op: TensorOp) -> bool:
        """Whether operands may be fused into a reduction."""
        return reduced_dims(op) is not None and id(op.instruction) not in self._standalone

    def _may_join(self, op: TensorOp, root: TensorOp) -> bool:
        """Whether a group stays in one block, with the same data positions, and has at most one product."""
        reduces = is_reduction(root)
        frame = root.tensors[0].type if reduces else root.result
        assert op.result is not None
        assert frame is not None
        if self.facts.positions[id(op.instruction)][0] != self.facts.positions[id(root.instruction)][0]:
            return False
        if op.intrinsic.name in PRODUCTS:
            if op.result.is_padded or frame.is_padded or id(root.instruction) in self.products:
                return False
            return not reduces or (reduced_in(root, op.result.shape) is not None and not has_dilated_input(op))
        if not op.result.is_padded:
            return True
        return (op.result.shape, op.result.padding) == (frame.shape, frame.padding)


def has_dilated_input(op: TensorOp) -> bool:
    """Whether an operation is a convolution of a dilated input, which becomes several interleaved convolutions."""
    return op.intrinsic.name == "convolution" and max(Windows.of(op.tensors[0].type.rank, op.dims).input_steps) > 1


def _has_count(renaming: Instruction, op: TensorOp) -> bool:
    assert op.result is not None
    return isinstance(renaming.type, VectorType) and renaming.type.count == op.result.count


def is_product(groups: FusionGroups, op: TensorOp) -> bool:
    """Whether an operation is a product, or the root of a group with one."""
    return op.intrinsic.name in PRODUCTS or groups.product_of(op) is not None


def is_reduction(op: TensorOp) -> bool:
    """Whether an operation reduces windows."""
    return op.intrinsic.name.startswith("reduce.")


def reduced_dims(op: TensorOp) -> tuple[int, ...] | None:
    """The dimensions that a reduction reduces to extent 1; None if any window is smaller than its dimension.

    None, too, unless the operand is row-major, without padding, and of a type that can hold partial results.
    """
    if not is_reduction(op):
        return None
    type_ = op.tensors[0].type
    if not type_.is_row_major or type_.is_padded or type_.element in (HALF, BFLOAT, I1):
        return None
    sizes = [size for size in zip(type_.extents, *op.dims, strict=True) if size[0] > 1]
    if not all(window == extent or window == step == 1 for extent, window, step in sizes):
        return None
    return tuple(d for d, window in enumerate(op.dims[0]) if window > 1) or None


def is_row_reduction(op: TensorOp) -> bool:
    """Whether an operation reduces whole rows: all elements of the last dimensions, which are contiguous."""
    dims = reduced_dims(op)
    return dims is not None and all(
        d in dims for d in range(dims[0], len(op.dims[0])) if op.tensors[0].type.extents[d] > 1
    )


def reduced_in(op: TensorOp, extents: Sequence[int]) -> tuple[int, ...] | None:
    """The dimensions of a row-major product that are reduced, where the reduction may see it in another shape."""
    type_, dims = op.tensors[0].type, reduced_dims(op)
    if dims is None or type_.shape == tuple(extents):
        return dims
    if not is_row_reduction(op):
        return None
    count = row_length(op)
    first = next((d for d in range(len(extents)) if math.prod(extents[d:]) == count), None)
    return None if first is None else tuple(d for d in range(first, len(extents)) if extents[d] > 1)


def row_dim(op: TensorOp) -> int:
    """The first dimension of a row; the dimensions before it are those of rows."""
    return next(d for d, window in enumerate(op.dims[0]) if window > 1)


def row_length(op: TensorOp) -> int:
    """The number of elements of a row, which are reduced to one."""
    return math.prod(op.dims[0])


@dataclass(frozen=True)
class SunkStore:
    """An operation that runs where its result is stored, and writes there.

    Attributes:
        op: The operation.
        store: The store of its result.
        destination: The memory that it writes.
        writes_padding: Whether it writes zeros to the padding, because the whole flattened vector is stored.
        possible_overlaps: Operands that may overlap the destination, which is checked at run time.
        in_place: Whether an operand may be overwritten by the result.
        permutations: The permutations between the operation and the store, expressed by the destination's strides.
        parts: The operands of a concatenation that are computed at the store, too, and written where they belong.
    """

    op: TensorOp
    store: Instruction
    destination: TensorView
    writes_padding: bool
    possible_overlaps: tuple[TensorView, ...] = ()
    in_place: bool = False
    permutations: tuple[TensorOp, ...] = ()
    parts: tuple[SunkStore, ...] = ()

    @property
    def range(self) -> MemoryLocation:
        """The bytes that the operation writes."""
        assert self.op.result is not None
        written = tensor_bytes(self.op.result) if self.writes_padding else self.destination.spanned_bytes
        return MemoryLocation(self.destination.storage.pointer, written)


@dataclass(frozen=True, eq=False)
class SunkStores:
    """The operations of a function that are sunk to stores.

    Attributes:
        by_store: The operation that runs in place of a store, by the id of the store.
        by_op: The same, by the id of the operation's instruction.
        explained: Ids of the instructions that are not sunk, for which a remark has said why.
        permuted: Names of the permutations whose results are only written by the operations that are sunk.
        parts: The operands of concatenations that are sunk with these, by the id of their instruction.
    """

    by_store: Mapping[int, SunkStore]
    by_op: Mapping[int, SunkStore]
    explained: AbstractSet[int]
    permuted: AbstractSet[str]
    parts: Mapping[int, Part]


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


@dataclass(frozen=True, eq=False)
class Schedule:
    """Which operations run, and where.

    Attributes:
        operands: The operands of all operations, in symbolic storage.
        live: Names of the results, of operations and loop-carried tensors, that are needed in memory.
        sunk_stores: The operations that run where their result is stored.
    """

    operands: OperandViews
    live: AbstractSet[str]
    sunk_stores: SunkStores

    @property
    def facts(self) -> Facts:
        """The function's analyses."""
        return self.operands.facts

    @property
    def parts(self) -> Mapping[int, Part]:
        """The operations that write their result to a part of another result, by the id of their instruction."""
        return self.operands.parts

    def has_buffer(self, op: TensorOp) -> bool:
        """Whether an operation writes its result to a buffer: it is live, not a view, and not sunk to a store."""
        name = str(op.instruction.result)
        is_sunk = id(op.instruction) in self.sunk_stores.by_op
        return name in self.live and name not in self.operands.views and not is_sunk

    def position_of(self, op: TensorOp) -> Position:
        """The position at which an operation runs."""
        op = self.operands.groups.root_of(op)
        sunk = self.sunk_stores.by_op.get(id(op.instruction))
        return self.facts.positions[id(op.instruction if sunk is None else sunk.store)]
