"""What a tree asks for, as the problem that a kernel solves, with what the kernel is given."""

from __future__ import annotations

from dataclasses import dataclass

from tlx.ir.module import Instruction
from tlx.ir.tensors import Tensor, TensorOp
from tlx.ir.types import FloatType, bits_of, scalar_of
from tlx.ir.values import Keyword, Value
from tlx.lower.signs import PRODUCT_SIGNS
from tlx.lower.to_tiles.problem import Copy, Gemm, Map, Reduction, Rows, Shuffle
from tlx.lower.to_tiles.reading import Listing, Tree, left_over, read_tree
from tlx.lower.to_tiles.shuffle import Lines, shuffled_by
from tlx.lower.to_tiles.terms import chain_of, offsets_of, operands_of
from tlx.lower.to_tiles.view import View

Problem = Gemm | Copy | Map | Reduction | Rows | Shuffle


@dataclass(eq=False)
class Found:
    """A tree's problem, the pointers its kernel takes with what they point to, and the scalars behind them.

    Attributes:
        problem: What is computed.
        pointers: Of a product: C, A, B, Acc if there is one, then the epilogue's leaves.
        scalars: Numbers known at run time.
        instructions: Those that only compute the value: they go with the tree.
    """

    problem: Problem
    pointers: list[tuple[Value, View]]
    scalars: list[Value]
    instructions: list[Instruction]


def problem_of(listing: Listing, op: TensorOp) -> Found:
    """What a store's tree computes.

    Raises:
        LoweringError: It is no tree of stage 1's output.
    """
    stored = op.tensors[0]
    if op.pointer is None:
        raise left_over(op)
    out = View.of(stored.type, op.pitches)
    if stored.kind == "load":
        return _copy(op, stored, op.pointer, out)
    maker = listing.tensors.maker(stored)
    if maker is not None and maker.intrinsic.name == "transpose":
        return _turned(listing, op, maker.tensors[0], op.pointer, out)
    if not stored.type.is_row_major:
        raise left_over(op)
    if maker is not None and maker.intrinsic.name.startswith("reduce."):
        return _reduction(listing, op, maker, out)
    shuffled = shuffled_by(listing, stored)
    if shuffled is not None:
        lines = Lines(listing, op, shuffled)
        return Found(lines.read(), [(op.pointer, out), *lines.places], [], lines.instructions)
    tree = read_tree(listing, op, stored)
    if tree.product is not None:
        return _gemm(listing, tree, op.pointer, out)
    return Found(Map(out, tree.value), [(op.pointer, out), *tree.pointers], tree.scalars, tree.instructions)


def _turned(listing: Listing, op: TensorOp, source: Tensor, pointer: Value, out: View) -> Found:
    """What is stored is the transpose of a block in memory, or of what is made of a product: its C is column-major."""
    if source.kind == "load":
        return _copy(op, source, pointer, out)
    tree = read_tree(listing, op, source)
    if tree.product is None or bits_of(out.element) > bits_of(scalar_of(tree.product.instruction.type)):
        raise left_over(op)
    return _gemm(listing, tree, pointer, out)


def _gemm(listing: Listing, tree: Tree, pointer: Value, out: View, reduction: tuple[str, int] | None = None) -> Found:
    assert tree.product is not None
    chain = chain_of(listing, tree.product)
    op = chain[0]
    added = list(op.tensors[:-2])
    if added and added[0].kind == "value" and isinstance(added[0].source, Keyword):
        del added[0]  # zeros
    if any(t.kind != "load" for t in added):
        raise left_over(op)
    acc = [(t.source, View.of(t.type, t.pitches)) for t in added]
    a, b = operands_of(listing, op)
    floats = isinstance(scalar_of(op.instruction.type), FloatType)
    lhs, rhs = ("f", "f") if floats else PRODUCT_SIGNS[op.intrinsic.name]
    epilogue = tree.value if len(tree.value.nodes) > 1 or reduction else None
    gemm = Gemm(a[1], b[1], out, acc[0][1] if acc else None, lhs, rhs, epilogue, reduction, offsets_of(listing, chain))
    return Found(gemm, [(pointer, out), a, b, *acc, *tree.pointers], tree.scalars, tree.instructions)


def _reduction(listing: Listing, store: TensorOp, op: TensorOp, out: View) -> Found:
    """A reduction along one axis; along an axis of extent 1 nothing is to do."""
    source = op.tensors[0]
    window = op.dims[0]
    axes = [axis for axis, size in enumerate(window) if size > 1]
    whole = all(window[axis] == source.type.extents[axis] for axis in axes)
    if len(axes) > 1 or not whole or not source.type.is_row_major or store.pointer is None:
        raise left_over(op)
    tree = read_tree(listing, store, source)
    pointers = [(store.pointer, out), *tree.pointers]
    operation = op.intrinsic.name.removeprefix("reduce.")
    if tree.product is not None:
        return _gemm(listing, tree, store.pointer, out, (operation, axes[0]) if axes else None)
    if not axes:
        return Found(Map(out, tree.value), pointers, tree.scalars, tree.instructions)
    return Found(Reduction(out, tree.value, operation, axes[0]), pointers, tree.scalars, tree.instructions)


def _copy(op: TensorOp, source: Tensor, pointer: Value, out: View) -> Found:
    if source.kind != "load":
        raise left_over(op)
    view = View.of(source.type, source.pitches)
    return Found(Copy(view, out), [(pointer, out), (source.source, view)], [], [])
