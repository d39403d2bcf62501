"""Matches the tree behind a store: the problem that its kernel solves, and what the kernel is given.

What a tree asks for, as the problem that a kernel solves, with what the kernel is given.

Reading sums of products: a chain through accumulators, whose operands lie at constant distances.

%p = matmul(load %a, load %b)
%q = smma(%p, load (%a + 64), load (%b + 512))         one product, of two terms: (0, 0) and (64, 512)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import FloatType, Type, bits_of, scalar_of
from tlx.ir.values import ConstInt, Keyword, Value
from tlx.lower.operations import PRODUCT_SIGNS
from tlx.lower.to_tiles.match.shuffles import ShuffleReader, stored_shuffle
from tlx.lower.to_tiles.match.trees import FunctionSnapshot, StoreTree, read_tree, unlowered_operation
from tlx.lower.to_tiles.problem.problems import Copy, Elementwise, Gemm, Problem, Reduction
from tlx.lower.to_tiles.problem.view import MatrixView


@dataclass(eq=False)
class Match:
    """A tree's problem, the pointers its kernel takes with what they point to, and the scalars behind them.

    Attributes:
        problem: What is computed.
        pointers: Of a product: C, A, B, Acc if there is one, then the epilogue's leaves.
        scalars: Numbers known at run time.
        consumed: Those that only compute the value: they go with the tree.
    """

    problem: Problem
    pointers: list[tuple[Value, MatrixView]]
    scalars: list[Value]
    consumed: list[Instruction]


def match_store(listing: FunctionSnapshot, op: TensorOp) -> Match:
    """What a store's tree computes.

    Raises:
        LoweringError: It is no tree of stage 1's output.
    """
    stored = op.tensors[0]
    if op.pointer is None:
        raise unlowered_operation(op)
    out = MatrixView.of(stored.type, op.pitches)
    if stored.kind == "load":
        return _copy(op, stored, op.pointer, out)
    maker = listing.tensors.maker(stored)
    if maker is not None and maker.intrinsic.name == "transpose":
        return _transposed_store(listing, op, maker.tensors[0], op.pointer, out)
    if not stored.type.is_row_major:
        raise unlowered_operation(op)
    if maker is not None and maker.intrinsic.name.startswith("reduce."):
        return _reduction(listing, op, maker, out)
    shuffled = stored_shuffle(listing, stored)
    if shuffled is not None:
        lines = ShuffleReader(listing, op, shuffled)
        return Match(lines.read(), [(op.pointer, out), *lines.places], [], lines.instructions)
    tree = read_tree(listing, op, stored)
    if tree.product is not None:
        return _gemm(listing, tree, op.pointer, out)
    return Match(Elementwise(out, tree.value), [(op.pointer, out), *tree.pointers], tree.scalars, tree.instructions)


def _transposed_store(
    listing: FunctionSnapshot, op: TensorOp, source: Tensor, pointer: Value, out: MatrixView
) -> Match:
    """What is stored is the transpose of a block in memory, or of what is made of a product: its C is column-major."""
    if source.kind == "load":
        return _copy(op, source, pointer, out)
    tree = read_tree(listing, op, source)
    if tree.product is None or bits_of(out.element) > bits_of(scalar_of(tree.product.instruction.type)):
        raise unlowered_operation(op)
    return _gemm(listing, tree, pointer, out)


def _gemm(
    listing: FunctionSnapshot,
    tree: StoreTree,
    pointer: Value,
    out: MatrixView,
    reduction: tuple[str, int] | None = None,
) -> Match:
    assert tree.product is not None
    chain = accumulator_chain(listing, tree.product)
    op = chain[0]
    added = list(op.tensors[:-2])
    if added and added[0].kind == "value" and isinstance(added[0].source, Keyword):
        del added[0]  # zeros
    if any(t.kind != "load" for t in added):
        raise unlowered_operation(op)
    acc = [(t.source, MatrixView.of(t.type, t.pitches)) for t in added]
    a, b = product_operands(listing, op)
    floats = isinstance(scalar_of(op.instruction.type), FloatType)
    lhs, rhs = ("f", "f") if floats else PRODUCT_SIGNS[op.intrinsic.name]
    epilogue = tree.value if len(tree.value.nodes) > 1 or reduction else None
    gemm = Gemm(
        a[1], b[1], out, acc[0][1] if acc else None, lhs, rhs, epilogue, reduction, term_offsets(listing, chain)
    )
    return Match(gemm, [(pointer, out), a, b, *acc, *tree.pointers], tree.scalars, tree.instructions)


def _reduction(listing: FunctionSnapshot, store: TensorOp, op: TensorOp, out: MatrixView) -> Match:
    """A reduction along one axis; along an axis of extent 1 nothing is to do."""
    source = op.tensors[0]
    window = op.dims[0]
    axes = [axis for axis, size in enumerate(window) if size > 1]
    whole = all(window[axis] == source.type.extents[axis] for axis in axes)
    if len(axes) > 1 or not whole or not source.type.is_row_major or store.pointer is None:
        raise unlowered_operation(op)
    tree = read_tree(listing, store, source)
    pointers = [(store.pointer, out), *tree.pointers]
    operation = op.intrinsic.name.removeprefix("reduce.")
    if tree.product is not None:
        return _gemm(listing, tree, store.pointer, out, (operation, axes[0]) if axes else None)
    if not axes:
        return Match(Elementwise(out, tree.value), pointers, tree.scalars, tree.instructions)
    return Match(Reduction(out, tree.value, operation, axes[0]), pointers, tree.scalars, tree.instructions)


def _copy(op: TensorOp, source: Tensor, pointer: Value, out: MatrixView) -> Match:
    if source.kind != "load":
        raise unlowered_operation(op)
    view = MatrixView.of(source.type, source.pitches)
    return Match(Copy(view, out), [(pointer, out), (source.source, view)], [], [])


_STRIPS: Final = 4
"""Dimensions of interleaved rows in strips."""


def accumulator_chain(listing: FunctionSnapshot, last: TensorOp) -> list[TensorOp]:
    """The products that are added up, the first one first, given the last one.

    Raises:
        LoweringError: They do not differ in nothing but where their operands lie.
    """
    found = [last]
    while (before := _accumulated_product(listing, found[0])) is not None:
        found.insert(0, before)
    if len({PRODUCT_SIGNS[op.intrinsic.name] for op in found}) > 1 or len({_shapes(listing, op) for op in found}) > 1:
        raise unlowered_operation(last)
    return found


def _accumulated_product(listing: FunctionSnapshot, op: TensorOp) -> TensorOp | None:
    """The product that is an operation's accumulator."""
    acc = op.tensors[0]
    return listing.tensors.maker(acc) if len(op.tensors) > 2 and acc.kind == "value" else None


def _shapes(listing: FunctionSnapshot, op: TensorOp) -> tuple[MatrixView, MatrixView]:
    (_, a), (_, b) = product_operands(listing, op)
    return a, b


def product_operands(
    listing: FunctionSnapshot, op: TensorOp
) -> tuple[tuple[Value, MatrixView], tuple[Value, MatrixView]]:
    """Where the operands of a product lie; the right one may have interleaved rows that are permuted back.

    Raises:
        LoweringError: They are something else.
    """
    a, b = op.tensors[-2:]
    if a.kind != "load":
        raise unlowered_operation(op)
    lhs = a.source, MatrixView.of(a.type, a.pitches)
    if b.kind == "load":
        return lhs, (b.source, MatrixView.of(b.type, b.pitches))
    maker = listing.tensors.maker(b)
    if maker is None or maker.intrinsic.name != "reshape.permute" or maker.tensors[0].kind != "load":
        raise unlowered_operation(op)
    packed = maker.tensors[0]
    if packed.type.rank == _STRIPS:
        return lhs, (packed.source, MatrixView.strips(packed.type, b.type.extents[1]))
    return lhs, (packed.source, MatrixView.interleaved(packed.type, packed.pitches))


def term_offsets(listing: FunctionSnapshot, chain: list[TensorOp]) -> tuple[tuple[int, int], ...]:
    """Elements from the first product's operands to those of each product."""
    if len(chain) == 1:
        return ((0, 0),)
    (a, _), (b, _) = places = product_operands(listing, chain[0])
    elements = [view.element for _, view in places]
    found: list[tuple[int, int]] = []
    for op in chain:
        (x, _), (y, _) = product_operands(listing, op)
        found.append((_distance(listing, op, elements[0], a, x), _distance(listing, op, elements[1], b, y)))
    return tuple(found)


def _distance(listing: FunctionSnapshot, op: TensorOp, element: Type, first: Value, other: Value) -> int:
    (base, start), (same, end) = (_base_and_offset(listing, pointer, element) for pointer in (first, other))
    if base != same:
        raise unlowered_operation(op)
    return end - start


def _base_and_offset(listing: FunctionSnapshot, pointer: Value, element: Type) -> tuple[str, int]:
    """A pointer as another one and elements behind that."""
    _, made = listing.made.get(str(pointer)[1:], (0, None))
    if made is None:
        return str(pointer), 0
    if made.opcode == "bitcast":
        return _base_and_offset(listing, made.operands[0], element)
    if made.opcode == "getelementptr" and made.source_type == element and len(made.operands) == 2:
        index = made.operands[1]
        if isinstance(index, ConstInt):
            base, start = _base_and_offset(listing, made.operands[0], element)
            return base, start + index.value
    return str(pointer), 0
