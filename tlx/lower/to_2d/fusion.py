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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from tlx.intrinsics.convolution import Windows
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import BFLOAT, HALF, I1, VectorType
from tlx.ir.values import Local, Value
from tlx.lower.operations import UNARY_INTRINSICS
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.analysis.tensor_operations import (
    ORDINARY,
    POINTWISE,
    PRODUCTS,
    SHUFFLE,
    only_element,
    splat_value,
)

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
