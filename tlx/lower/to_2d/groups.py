"""Which operations are computed together, in one loop nest, so that nothing between them goes through memory.

    %m = matmul(%a, %b)         fused into %r
    %s = fadd %m, %bias         fused into %r
    %r = fmul %s, %s            root: written to its place
    store %r                    (or sunk here)

A root is an operation whose result needs memory; what only it needs, position by position, is fused into it: ordinary
instructions, `llvm.tensor.exp` and its kind, and one product. All of it runs where the root runs. A reduction of whole
rows can be a root, too; of a product, a reduction of any whole dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tlx.intrinsics.convolution import Windows
from tlx.ir.module import Instruction
from tlx.ir.tensors import Tensor, TensorOp
from tlx.ir.types import VectorType
from tlx.ir.values import Local, Value
from tlx.lower.ordinary import UNARY
from tlx.lower.to_2d.contraction import MMA
from tlx.lower.to_2d.elementwise import NAME, SHUFFLE, single, uniform
from tlx.lower.to_2d.reductions import is_reduction, is_row_reduction, reduced_dims, reduced_in
from tlx.types import TensorType

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan

POINTWISE: Final = UNARY | {NAME}
PRODUCTS: Final = MMA | {"matmul", "contract", "convolution"}


LeafKey = tuple[str, TensorType]


@dataclass(eq=False)
class Groups:
    """What is fused into what.

    Attributes:
        plan: The plan of the function: tokens, flattened vectors, positions.
        roots: The root of each fused operation, by the id of its instruction.
        reductions: Reductions that something is fused into, by the id of their instruction.
        products: The product that is fused into a root, by the id of the root's instruction.
        fused: What is fused into a root, the last operation first, by the id of the root's instruction.
    """

    plan: Plan
    roots: dict[int, TensorOp] = field(default_factory=dict[int, TensorOp])
    reductions: set[int] = field(default_factory=set[int])
    products: dict[int, TensorOp] = field(default_factory=dict[int, TensorOp])
    fused: dict[int, list[TensorOp]] = field(default_factory=dict[int, list[TensorOp]])
    _apart: set[int] = field(default_factory=set[int])

    def find(self) -> None:
        """Fuse all that can be; reductions that only go with a product stay by themselves if there is none."""
        self._fuse()
        while alone := self._without_product():
            self._apart |= alone
            for found in (self.roots, self.reductions, self.products, self.fused):
                found.clear()
            self._fuse()

    def _fuse(self) -> None:
        """Fuse, last operations first, so that a consumer's root is known before its operands are looked at."""
        for op in reversed(self.plan.tensors.ops):
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
            for op in self.plan.tensors.ops
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
        """The product that is fused into a root."""
        return self.products.get(id(root.instruction))

    def inner(self, tensor: Tensor) -> TensorOp | None:
        """The fused operation whose result an operand is; None where the operand is read from memory."""
        if tensor.kind != "value":
            return None
        root = self.plan.flats.root(tensor.source)
        if not isinstance(root, Local) or self.plan.flats.kind(root) != "op":
            return None
        op = self.plan.op_of(root)
        return op if self.is_fused(op) else None

    def scalar(self, tensor: Tensor) -> Value | None:
        """The scalar that every element of an operand is, where a group needs no memory for it."""
        if tensor.kind != "value":
            return None
        root = self.plan.flats.root(tensor.source)
        if not isinstance(root.type, VectorType) or root.type.count != tensor.type.count:
            return None
        if isinstance(root, Local) and self.plan.flats.kind(root) == "op":
            return self._repeated(self.plan.op_of(root))
        return uniform(root, self.plan.flats.definitions)

    def is_written(self, op: TensorOp, tensor: Tensor) -> bool:
        """Whether an operation writes an operand as a scalar, so that it needs no memory for it."""
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
        root = self.plan.flats.root(source.source)
        is_single = isinstance(root.type, VectorType) and root.type.count == 1
        return single(root, self.plan.flats.definitions) if is_single else None

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
        return str(self.plan.flats.root(tensor.source)), tensor.type

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
            for use in self.plan.flats.uses.get(name, []):
                if self.plan.flats.is_renaming(use.instruction) and use.instruction.opcode != "phi":
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
        own = self.plan.tensors.op_of(user)
        if own is not None:
            return [own] if own.intrinsic.name == NAME else []
        if user.result not in self.plan.tensors.tokens:
            return []
        users = [self.plan.tensors.op_of(u.instruction) for u in self.plan.flats.uses.get(str(user.result), [])]
        found = [u for u in users if u is not None and (u.intrinsic.name in UNARY or self._takes(u))]
        return found if len(found) == len(users) else []

    def _takes(self, op: TensorOp) -> bool:
        """Whether something may be fused into a reduction."""
        return reduced_dims(op) is not None and id(op.instruction) not in self._apart

    def _may_join(self, op: TensorOp, root: TensorOp) -> bool:
        """Same block, same positions with data, one product."""
        plan = self.plan
        reduces = is_reduction(root)
        frame = root.tensors[0].type if reduces else root.result
        assert op.result is not None
        assert frame is not None
        if plan.positions[id(op.instruction)][0] != plan.positions[id(root.instruction)][0]:
            return False
        if op.intrinsic.name in PRODUCTS:
            if op.result.is_padded or frame.is_padded or id(root.instruction) in self.products:
                return False
            return not reduces or (reduced_in(root, op.result.shape) is not None and not has_holes(op))
        if not op.result.is_padded:
            return True
        return (op.result.shape, op.result.padding) == (frame.shape, frame.padding)


def has_holes(op: TensorOp) -> bool:
    """Whether an operation is a convolution of an input with holes, whose result is several convolutions' by turns."""
    return op.intrinsic.name == "convolution" and max(Windows.of(op.tensors[0].type.rank, op.dims).input_steps) > 1


def _has_count(renaming: Instruction, op: TensorOp) -> bool:
    assert op.result is not None
    return isinstance(renaming.type, VectorType) and renaming.type.count == op.result.count
