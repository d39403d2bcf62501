"""Fusion groups: which operations are computed in one loop nest, so that nothing between them goes through memory.

    %m = matmul(%a, %b)         fused into %r
    %s = fadd %m, %bias         fused into %r
    %r = fmul %s, %s            root: written to its place
    store %r                    (or sunk here)

A root is an operation whose result needs memory. Operations that only the root uses, position by position, are fused
into it: ordinary instructions, unary intrinsics such as `llvm.tensor.exp`, and one product. All of them run where the
root runs. A reduction of whole rows can be a root, too, and so can a reduction of any whole dimensions of a product:

reduce.add of 8 x 64 x 28 x 28, window 1 x 1 x 28 x 28        dimensions 2 and 3: whole rows
reduce.max of 8 x 64 x 28 x 28, window 1 x 64 x 1 x 1         dimension 1
reduce.add of 512 x 784, window 1 x 784, of the product above dimensions 2 and 3 of the product
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property

from tlx.intrinsics.convolution import Windows
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import BFLOAT, HALF, I1, VectorType
from tlx.ir.values import Local, Value
from tlx.lower.memory.aliases import MemoryLocation
from tlx.lower.memory.views import TensorView, tensor_bytes
from tlx.lower.operations import UNARY_INTRINSICS
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.analysis.tensor_operations import ORDINARY, POINTWISE, PRODUCTS, SHUFFLE, only_element, splat_value

LeafKey = tuple[str, TensorType]


@dataclass(eq=False)
class FusionGroups:
    """What is fused into what.

    Attributes:
        facts: What is known about the function.
        roots: The root of each fused operation, by the id of its instruction.
        reductions: Reductions that something is fused into, by the id of their instruction.
        products: The product that is fused into a root, by the id of the root's instruction.
        fused: What is fused into a root, the last operation first, by the id of the root's instruction.
    """

    facts: Facts
    roots: dict[int, TensorOp] = field(default_factory=dict[int, TensorOp])
    reductions: set[int] = field(default_factory=set[int])
    products: dict[int, TensorOp] = field(default_factory=dict[int, TensorOp])
    fused: dict[int, list[TensorOp]] = field(default_factory=dict[int, list[TensorOp]])
    _standalone: frozenset[int] = frozenset()

    @classmethod
    def of(cls, facts: Facts) -> FusionGroups:
        """Fuse all that can be; reductions that only go with a product stay by themselves if there is none."""
        groups = cls(facts)
        groups._fuse()
        while standalone := groups._without_product():
            groups = cls(facts, _standalone=groups._standalone | standalone)
            groups._fuse()
        return groups

    def _fuse(self) -> None:
        """Fuse, last operations first, so that a consumer's root is known before its operands are looked at."""
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
        """Reductions of something fused that are not of rows, and of no product."""
        alone = self.reductions - self.products.keys()
        return {
            id(op.instruction)
            for op in self.facts.tensors.ops
            if id(op.instruction) in alone and not is_row_reduction(op)
        }

    def is_fused(self, op: TensorOp) -> bool:
        """Whether an operation is computed within another's loop nest."""
        return id(op.instruction) in self.roots

    def root_of(self, op: TensorOp) -> TensorOp:
        """The operation whose loop nest computes an operation; itself where it is a root."""
        return self.roots.get(id(op.instruction), op)

    def is_group(self, op: TensorOp) -> bool:
        """Whether an operation is computed pointwise, as a reduction is whose operand is."""
        return op.intrinsic.name in POINTWISE or id(op.instruction) in self.reductions

    def product_of(self, root: TensorOp) -> TensorOp | None:
        """The product fused into a root."""
        return self.products.get(id(root.instruction))

    def inner(self, tensor: Tensor) -> TensorOp | None:
        """The fused operation whose result an operand is; None where the operand is read from memory."""
        if tensor.kind != "value":
            return None
        root = self.facts.vectors.root(tensor.source)
        if not isinstance(root, Local) or self.facts.vectors.kind(root) != "op":
            return None
        op = self.facts.op_of(root)
        return op if self.is_fused(op) else None

    def scalar(self, tensor: Tensor) -> Value | None:
        """The scalar that every element of an operand is, where a group needs no memory for it."""
        if tensor.kind != "value":
            return None
        root = self.facts.vectors.root(tensor.source)
        if not isinstance(root.type, VectorType) or root.type.count != tensor.type.count:
            return None
        if isinstance(root, Local) and self.facts.vectors.kind(root) == "op":
            return self._repeated(self.facts.op_of(root))
        return splat_value(root, self.facts.vectors.definitions)

    def is_scalar(self, op: TensorOp, tensor: Tensor) -> bool:
        """Whether an operation reads an operand as a scalar, so that the operand needs no memory."""
        return op.intrinsic.name in POINTWISE | {SHUFFLE} and self.scalar(tensor) is not None

    def _repeated(self, op: TensorOp) -> Value | None:
        """The scalar that an operation repeats everywhere."""
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
        """What a group reads from memory position by position; the operands of its product are not among them."""
        found: dict[LeafKey, Tensor] = {}
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
                    found.setdefault(self.key(tensor), tensor)
        return list(found.values())

    def key(self, tensor: Tensor) -> LeafKey:
        """What two operands that are the same memory, read as the same type, have in common."""
        if tensor.kind != "value":
            return str(tensor.definition.result), tensor.type
        return str(self.facts.vectors.root(tensor.source)), tensor.type

    def members(self, root: TensorOp) -> list[TensorOp]:
        """The operations of a group in the order they are computed, the root last."""
        return [*reversed(self.fused.get(id(root.instruction), [])), root]

    # Whether an operation can be fused -------------------------------------------------------------------------

    def _root_for(self, op: TensorOp) -> TensorOp | None:
        name = op.intrinsic.name
        if op.result is None or name not in POINTWISE | PRODUCTS or op.instruction.result is None:
            return None
        consumers = self._consumers(op)
        if not consumers:
            return None
        roots = {id(root.instruction): root for root in map(self.root_of, consumers)}
        if len(roots) != 1:
            return None
        root = next(iter(roots.values()))
        return root if self._may_join(op, root) else None

    def _consumers(self, op: TensorOp) -> list[TensorOp]:
        """The pointwise operations that use a result; none if anything else does."""
        found: list[TensorOp] = []
        names = [str(op.instruction.result)]
        for name in names:
            for use in self.facts.vectors.uses.get(name, []):
                if self.facts.vectors.is_renaming(use.instruction) and use.instruction.opcode != "phi":
                    if not _has_count(use.instruction, op):
                        return []
                    names.extend({str(use.instruction.result)} - set(names))
                    continue
                consumers = self._operations(use.instruction)
                if not consumers:
                    return []
                found.extend(consumers)
        return found

    def _operations(self, user: Instruction) -> list[TensorOp]:
        """The pointwise operations behind one use of a flattened vector: itself, or those of its token."""
        own = self.facts.tensors.op_of(user)
        if own is not None:
            return [own] if own.intrinsic.name == ORDINARY else []
        if user.result not in self.facts.tensors.tokens:
            return []
        users = [self.facts.tensors.op_of(u.instruction) for u in self.facts.vectors.uses.get(str(user.result), [])]
        found = [u for u in users if u is not None and (u.intrinsic.name in UNARY_INTRINSICS or self._takes(u))]
        return found if len(found) == len(users) else []

    def _takes(self, op: TensorOp) -> bool:
        """Whether something may be fused into a reduction."""
        return reduced_dims(op) is not None and id(op.instruction) not in self._standalone

    def _may_join(self, op: TensorOp, root: TensorOp) -> bool:
        """Same block, same positions with data, one product."""
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


def is_reduction(op: TensorOp) -> bool:
    """Whether an operation reduces windows."""
    return op.intrinsic.name.startswith("reduce.")


def reduced_dims(op: TensorOp) -> tuple[int, ...] | None:
    """The dimensions that a reduction reduces to one element; None if it reduces smaller or overlapping windows.

    The operand is row-major, without padding, and of a type in which partial results may be kept.
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
    """Whether an operation reduces whole rows: all elements of the last dimensions, which are next to each other."""
    dims = reduced_dims(op)
    return dims is not None and all(
        d in dims for d in range(dims[0], len(op.dims[0])) if op.tensors[0].type.extents[d] > 1
    )


def reduced_in(op: TensorOp, extents: Sequence[int]) -> tuple[int, ...] | None:
    """The dimensions of a row-major product of some extents that a reduction of its elements reduces."""
    type_, dims = op.tensors[0].type, reduced_dims(op)
    if dims is None or type_.shape == tuple(extents):
        return dims
    if not is_row_reduction(op):
        return None
    count = row_length(op)
    first = next((d for d in range(len(extents)) if math.prod(extents[d:]) == count), None)
    return None if first is None else tuple(d for d in range(first, len(extents)) if extents[d] > 1)


def row_dim(op: TensorOp) -> int:
    """The first dimension of a row; the dimensions before it count rows."""
    return next(d for d, window in enumerate(op.dims[0]) if window > 1)


def row_length(op: TensorOp) -> int:
    """Elements of a row, which are reduced to one."""
    return math.prod(op.dims[0])


@dataclass(frozen=True)
class StoreSink:
    """An operation that runs where its result is stored, and writes there.

    Attributes:
        op: The operation.
        store: The store of its result.
        target: Where it writes.
        writes_padding: Whether padding is written as well, as zeros: the store is of the whole flattened vector.
        possible_overlaps: Operands that may overlap the target, as far as can be told before the program runs.
        in_place: Whether an operand may be what is written over.
    """

    op: TensorOp
    store: Instruction
    target: TensorView
    writes_padding: bool
    possible_overlaps: tuple[TensorView, ...] = ()
    in_place: bool = False

    @property
    def range(self) -> MemoryLocation:
        """The bytes that are written."""
        assert self.op.result is not None
        written = tensor_bytes(self.op.result) if self.writes_padding else self.target.reach
        return MemoryLocation(self.target.storage.pointer, written)


@dataclass(frozen=True, eq=False)
class StoreSinks:
    """The operations of a function that are sunk to stores.

    Attributes:
        sinks: The operations.
        explained: Ids of the instructions of those for which a remark says why they are not sunk.
    """

    sinks: Sequence[StoreSink]
    explained: AbstractSet[int]

    @cached_property
    def _by_store(self) -> dict[int, StoreSink]:
        return {id(sink.store): sink for sink in self.sinks}

    @cached_property
    def _by_op(self) -> dict[int, StoreSink]:
        return {id(sink.op.instruction): sink for sink in self.sinks}

    def at_store(self, store: Instruction) -> StoreSink | None:
        """The operation that runs in place of a store."""
        return self._by_store.get(id(store))

    def of_op(self, op: TensorOp) -> StoreSink | None:
        """Where an operation runs, if it is sunk."""
        return self._by_op.get(id(op.instruction))
