"""Stores: what a stored value computes, as a problem: a product, a reduction, a copy, a shuffle or an expression.

Products chained through their accumulators are one product with several terms, if their operands are at constant
distances:

    %p = matmul(load %a, load %b)
    %q = smma(%p, load (%a + 64), load (%b + 512))         one product, two terms: (0, 0) and (64, 512)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.intrinsics.small_floats import is_conversion
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.conversions import SmallConversion
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import FloatType, Type, bits_of, scalar_of
from tlx.ir.values import ConstInt, Keyword, Value
from tlx.lower.operations import PRODUCT_SIGNS
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.match.shuffles import ShuffleReader
from tlx.lower.to_tiles.match.trees import FunctionSnapshot, StoreTree, TreeReader, unlowered_operation
from tlx.lower.to_tiles.problem import Copy, Elementwise, Gemm, Problem, Reduction
from tlx.target.instructions.dots import Sign

_STRIPS: Final = 4
"""Rank of a tensor of interleaved rows in strips."""


@dataclass(eq=False)
class Match:
    """The problem of a tree, with the pointers (and their views) and scalars that its kernel is passed.

    Attributes:
        store: The store that the kernel's call replaces.
        problem: What is computed.
        pointers: Of a product: C, A, B, Acc if there is one, then the epilogue's leaves.
        scalars: Values known at run time.
        consumed: Instructions that only compute the value; they are removed with the tree.
    """

    store: Instruction
    problem: Problem
    pointers: list[tuple[Value, MatrixView]]
    scalars: list[Value]
    consumed: list[Instruction]


def match_store(snapshot: FunctionSnapshot, op: TensorOp) -> Match:
    """Match the tree whose root is a store.

    Raises:
        LoweringError: It is not a tree that stage 1 emits.
    """
    stored = op.tensors[0]
    if op.pointer is None:
        raise unlowered_operation(op)
    out = MatrixView.of(stored.type, op.pitches)
    if stored.kind == "load":
        return _copy(op, stored, (op.pointer, out))
    definition = snapshot.tensors.definition(stored)
    if definition is not None and definition.intrinsic.name == "transpose":
        return _transposed_store(snapshot, op, definition.tensors[0], (op.pointer, out))
    if not stored.type.is_row_major:
        raise unlowered_operation(op)
    if definition is not None and definition.intrinsic.name.startswith("reduce."):
        return _reduction(snapshot, op, definition, (op.pointer, out))
    _, shuffled = snapshot.definitions.get(str(stored.source)[1:], (0, None))
    if shuffled is not None and shuffled.opcode == "shufflevector":
        lines = ShuffleReader(snapshot, op, shuffled)
        return Match(op.instruction, lines.read(), [(op.pointer, out), *lines.places], [], lines.instructions)
    tree = TreeReader(snapshot, op, stored).read()
    if tree.product is not None:
        return _gemm(snapshot, op, tree, (op.pointer, out))
    pointers = [(op.pointer, out), *tree.pointers]
    return Match(op.instruction, Elementwise(out, tree.value), pointers, tree.scalars, tree.instructions)


def _transposed_store(
    snapshot: FunctionSnapshot, op: TensorOp, source: Tensor, destination: tuple[Value, MatrixView]
) -> Match:
    """Match a stored transpose: of a block in memory, or of a product with its epilogue (C is column-major then)."""
    if source.kind == "load":
        return _copy(op, source, destination)
    tree = TreeReader(snapshot, op, source).read()
    if tree.product is None or bits_of(destination[1].element) > bits_of(scalar_of(tree.product.instruction.type)):
        raise unlowered_operation(op)
    return _gemm(snapshot, op, tree, destination)


def _gemm(
    snapshot: FunctionSnapshot,
    store: TensorOp,
    tree: StoreTree,
    destination: tuple[Value, MatrixView],
    reduction: tuple[str, int] | None = None,
) -> Match:
    assert tree.product is not None
    chain = accumulator_chain(snapshot, tree.product)
    op = chain[0]
    initial = list(op.tensors[:-2])
    if initial and initial[0].kind == "value" and isinstance(initial[0].source, Keyword):
        del initial[0]  # zeros
    if any(t.kind != "load" for t in initial):
        raise unlowered_operation(op)
    acc = [(t.source, MatrixView.of(t.type, t.pitches)) for t in initial]
    a, b = product_operands(snapshot, op)
    floats = isinstance(scalar_of(op.instruction.type), FloatType)
    lhs, rhs = _formats(snapshot, op) if floats else PRODUCT_SIGNS[op.intrinsic.name]
    epilogue = tree.value if len(tree.value.nodes) > 1 or reduction else None
    gemm = Gemm(
        a[1],
        b[1],
        destination[1],
        acc[0][1] if acc else None,
        lhs,
        rhs,
        epilogue,
        reduction,
        term_offsets(snapshot, chain),
    )
    pointers = [destination, a, b, *acc, *tree.pointers]
    return Match(store.instruction, gemm, pointers, tree.scalars, tree.instructions)


def _reduction(
    snapshot: FunctionSnapshot, store: TensorOp, op: TensorOp, destination: tuple[Value, MatrixView]
) -> Match:
    """Match a reduction along one axis; along an axis of extent 1 it is a copy."""
    source = op.tensors[0]
    window = op.dims[0]
    axes = [axis for axis, size in enumerate(window) if size > 1]
    whole = all(window[axis] == source.type.extents[axis] for axis in axes)
    if len(axes) > 1 or not whole or not source.type.is_row_major:
        raise unlowered_operation(op)
    tree = TreeReader(snapshot, store, source).read()
    pointers = [destination, *tree.pointers]
    operation = op.intrinsic.name.removeprefix("reduce.")
    if tree.product is not None:
        return _gemm(snapshot, store, tree, destination, (operation, axes[0]) if axes else None)
    if not axes:
        return Match(
            store.instruction, Elementwise(destination[1], tree.value), pointers, tree.scalars, tree.instructions
        )
    reduction = Reduction(destination[1], tree.value, operation, axes[0])
    return Match(store.instruction, reduction, pointers, tree.scalars, tree.instructions)


def _copy(store: TensorOp, source: Tensor, destination: tuple[Value, MatrixView]) -> Match:
    view = MatrixView.of(source.type, source.pitches)
    return Match(store.instruction, Copy(view, destination[1]), [destination, (source.source, view)], [], [])


def accumulator_chain(snapshot: FunctionSnapshot, last: TensorOp) -> list[TensorOp]:
    """The products that are accumulated, in order, from the last one.

    Raises:
        LoweringError: They differ in more than their operands' addresses.
    """
    chain = [last]
    while len(chain[0].tensors) > 2 and (acc := chain[0].tensors[0]).kind == "value":
        before = snapshot.tensors.definition(acc)
        if before is None:
            break
        chain.insert(0, before)
    kinds = {(PRODUCT_SIGNS[op.intrinsic.name], _formats(snapshot, op)) for op in chain}
    shapes = {tuple(view for _, view in product_operands(snapshot, op)) for op in chain}
    if len(kinds) > 1 or len(shapes) > 1:
        raise unlowered_operation(last)
    return chain


def product_operands(
    snapshot: FunctionSnapshot, op: TensorOp
) -> tuple[tuple[Value, MatrixView], tuple[Value, MatrixView]]:
    """The addresses and views of a product's operands; the right one may be permuted back from interleaved rows.

    Those of operands that are converted from bytes are the bytes'.

    Raises:
        LoweringError: An operand is not loaded from memory.
    """
    a, b = (_loaded_bytes(snapshot, tensor) or tensor for tensor in op.tensors[-2:])
    if a.kind != "load":
        raise unlowered_operation(op)
    lhs = a.source, MatrixView.of(a.type, a.pitches)
    if b.kind == "load":
        return lhs, (b.source, MatrixView.of(b.type, b.pitches))
    definition = snapshot.tensors.definition(b)
    if definition is None or definition.intrinsic.name != "reshape.permute" or definition.tensors[0].kind != "load":
        raise unlowered_operation(op)
    packed = definition.tensors[0]
    if packed.type.rank == _STRIPS:
        return lhs, (packed.source, MatrixView.strips(packed.type, b.type.extents[1]))
    return lhs, (packed.source, MatrixView.interleaved(packed.type, packed.pitches))


def _loaded_bytes(snapshot: FunctionSnapshot, tensor: Tensor) -> Tensor | None:
    """The loaded bytes that an operand is converted from; None if it is not."""
    conversion = _conversion(snapshot, tensor)
    loaded = None if conversion is None else snapshot.tensors.definition_of(conversion.args[0])
    return None if loaded is None else loaded.tensors[0]


def _conversion(snapshot: FunctionSnapshot, tensor: Tensor) -> Instruction | None:
    """The conversion from bytes that an operand is the result of."""
    _, definition = snapshot.definitions.get(str(tensor.source)[1:], (0, None))
    is_converted = tensor.kind == "value" and definition is not None and is_conversion(definition.callee or "")
    return definition if is_converted else None


def _formats(snapshot: FunctionSnapshot, op: TensorOp) -> tuple[Sign, Sign]:
    """The formats of a product's operands: "f" for types of LLVM."""
    lhs, rhs = (_conversion(snapshot, tensor) for tensor in op.tensors[-2:])
    return _format(lhs), _format(rhs)


def _format(conversion: Instruction | None) -> Sign:
    if conversion is None:
        return "f"
    return SmallConversion.of(conversion.callee or "", conversion.args).format.short


def term_offsets(snapshot: FunctionSnapshot, chain: list[TensorOp]) -> tuple[tuple[int, int], ...]:
    """Element offsets from the first product's operands to those of each product."""
    if len(chain) == 1:
        return ((0, 0),)
    (a, _), (b, _) = places = product_operands(snapshot, chain[0])
    elements = [view.element for _, view in places]
    offsets: list[tuple[int, int]] = []
    for op in chain:
        (x, _), (y, _) = product_operands(snapshot, op)
        offsets.append((_distance(snapshot, op, elements[0], a, x), _distance(snapshot, op, elements[1], b, y)))
    return tuple(offsets)


def _distance(snapshot: FunctionSnapshot, op: TensorOp, element: Type, first: Value, other: Value) -> int:
    (base, start), (other_base, end) = (_base_and_offset(snapshot, pointer, element) for pointer in (first, other))
    if base != other_base:
        raise unlowered_operation(op)
    return end - start


def _base_and_offset(snapshot: FunctionSnapshot, pointer: Value, element: Type) -> tuple[str, int]:
    """A pointer as a base and an offset in elements."""
    _, definition = snapshot.definitions.get(str(pointer)[1:], (0, None))
    if definition is None:
        return str(pointer), 0
    if definition.opcode == "bitcast":
        return _base_and_offset(snapshot, definition.operands[0], element)
    if definition.opcode == "getelementptr" and definition.source_type == element and len(definition.operands) == 2:
        index = definition.operands[1]
        if isinstance(index, ConstInt):
            base, start = _base_and_offset(snapshot, definition.operands[0], element)
            return base, start + index.value
    return str(pointer), 0
