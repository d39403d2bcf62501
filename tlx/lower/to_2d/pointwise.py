"""Groups of pointwise operations: one loop nest around one 2-D tree.

Rewrite of `relu(x + bias)`, the bias a row for every row, where the sum has no other use::

    %s = fadd <600 x float> %x, %rows
    %t = call token @llvm.tensor.typeinfo(<600 x float> %s, <2, 3, 100>, ...)
    %r = call <600 x float> @llvm.tensor.relu(token %t)
    ->
    %xt = call token @llvm.tensor.load(ptr %x.buf, <6, 100>, ...)
    %xv = call <600 x float> @llvm.tensor.tovector(token %xt)
    %bt = call token @llvm.tensor.load(ptr %bias, <1, 100>, ...)
    %bv = call <600 x float> @llvm.tensor.broadcast(token %bt, <6, 100>, <0, 1>)
    %s = fadd <600 x float> %xv, %bv
    %st = call token @llvm.tensor.typeinfo(<600 x float> %s, <6, 100>, ...)
    %r = call <600 x float> @llvm.tensor.relu(token %st)
    ... stored to %r.buf

Dimensions that every operand walks through as one are merged; of what is left the one that is dense in the result is
the row, its neighbour makes the second dimension, the others become loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tlx.ir.module import Instruction
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import Tensor, TensorOp
from tlx.ir.types import I1, I8, VectorType
from tlx.ir.values import Value
from tlx.lower.ordinary import Operation
from tlx.lower.to_2d.contraction import Epilogue, Leaf, Reduced
from tlx.lower.to_2d.copies import copy
from tlx.lower.to_2d.elementwise import NAME, given
from tlx.lower.to_2d.groups import LeafKey
from tlx.lower.to_2d.leaves import leaf_vector, scalar_vector, store_vector
from tlx.lower.to_2d.loops import INDEX_LIMIT, Walk, merged, nest
from tlx.lower.to_2d.plan import STAGE, Plan, title
from tlx.lower.to_2d.reductions import is_reduction, reduced_in, row_dim, row_length
from tlx.lower.to_2d.strides import strides_in
from tlx.lower.to_2d.views import View
from tlx.types import TensorType


def lower_pointwise(plan: Plan, b: TensorBuilder, op: TensorOp, target: View) -> None:
    """Write a group, whose root is `op`, to `target`."""
    product = plan.groups.product_of(op)
    if product is None:
        _remark(plan, op, plan.groups.members(op))
        _Frame(plan, b, op, target).emit()
    else:
        _emit_epilogue(plan, b, op, product, target)


def _remark(plan: Plan, op: TensorOp, together: Sequence[TensorOp]) -> None:
    members = [title(member) for member in together]
    if len(members) > 1:
        message = f"fused {', '.join(members[:-1])} into {members[-1]}: computed together, nothing between in memory"
        plan.context.remarks.add("applied", STAGE, message, op.instruction.span)


def _emit_epilogue(plan: Plan, b: TensorBuilder, op: TensorOp, product: TensorOp, target: View) -> None:
    """The product with all that is done to it."""
    from tlx.lower.to_2d.rules import PRODUCT_RULES

    assert product.result is not None
    extents = product.result.shape
    reduced = reduced_in(op, extents) or ()
    steps = _steps(target, extents, reduced)
    if steps is None:
        type_ = TensorType.dense(target.element, target.sizes)
        dense = View.of(plan.dense_operand(op)(target.element, type_.count, "result"), type_)
        _emit_epilogue(plan, b, op, product, dense)
        copy(b, memory_order(dense), memory_order(target))
        return
    leaves = [_Leaf(tensor, plan.view(tensor)) for tensor in plan.groups.leaves(op)]
    for leaf in leaves:
        leaf.settle(plan, b, op, extents)
        if leaf.strides[-1] > 1:
            leaf.view = dense_copy(plan, b, op, leaf.view)
            leaf.settle(plan, b, op, extents)

    def tree(b: TensorBuilder, vector: Value, rows: int, cols: int, blocks: Sequence[Leaf]) -> Tree:
        tree = Tree(plan, b, rows, cols)
        tree.results[id(product)] = vector
        for leaf, block in zip(leaves, blocks, strict=True):
            pointer = b.gep(leaf.view.element, leaf.view.place.pointer, block.offset, "operand")
            tree.leaf(leaf.tensor, leaf.view, pointer, (block.row_stride, block.col_stride))
        return tree

    def whole(b: TensorBuilder, vector: Value, rows: int, cols: int, blocks: Sequence[Leaf]) -> Value:
        _remark(plan, op, plan.groups.members(op))
        return tree(b, vector, rows, cols, blocks).root(op)

    def unreduced(b: TensorBuilder, vector: Value, rows: int, cols: int, blocks: Sequence[Leaf]) -> Value:
        _remark(plan, op, plan.groups.members(op)[:-1])
        return tree(b, vector, rows, cols, blocks).operand(op)

    alone = not reduced and not any(leaf.view.place.pointer == target.place.pointer for leaf in leaves)
    strides, element = tuple(leaf.strides for leaf in leaves), product.result.element
    epilogue = (
        Epilogue(strides, element, unreduced, reduced=Reduced(op, whole))
        if reduced
        else Epilogue(strides, element, whole, may_use_target=alone)
    )
    order = tuple(range(len(extents)))
    place = View(target.place, target.element, extents, extents, steps, order)
    PRODUCT_RULES[product.intrinsic.name](plan, b, product, place, epilogue)


def _steps(target: View, extents: Sequence[int], reduced: Sequence[int]) -> tuple[int, ...] | None:
    """The target's strides along a product's dimensions, 0 along those that are reduced; None if it has none."""
    kept = [extent for d, extent in enumerate(extents) if d not in reduced]
    steps = strides_in(target.sizes, target.steps, kept)
    if steps is None:
        return None
    pending = iter(steps)
    return tuple(0 if d in reduced else next(pending) for d in range(len(extents)))


def dense_copy(plan: Plan, b: TensorBuilder, op: TensorOp, source: View) -> View:
    """A dense copy of an operand, its positions in the same order."""
    type_ = TensorType.dense(source.element, source.sizes)
    dense = View.of(plan.dense_operand(op)(source.element, type_.count, "tensor"), type_)
    copy(b, memory_order(source), replace(dense, data=source.data))
    return dense


def memory_order(view: View) -> View:
    """The view as a tensor whose logical dimensions are its memory dimensions, for copies position by position."""
    return replace(view, layout=tuple(range(len(view.sizes))))


@dataclass
class _Leaf:
    """An operand in memory, and its strides along the dimensions of the loop nest."""

    tensor: Tensor
    view: View
    strides: tuple[int, ...] = ()

    def settle(self, plan: Plan, b: TensorBuilder, op: TensorOp, sizes: Sequence[int]) -> None:
        """Find its strides along dimensions; an operand that has none is copied first."""
        strides = strides_in(self.view.sizes, self.view.steps, sizes)
        if strides is None:
            self.view = dense_copy(plan, b, op, self.view)
            strides = strides_in(self.view.sizes, self.view.steps, sizes)
            assert strides is not None
        self.strides = strides


class _Frame:
    """The dimensions of a group's loop nest, in the memory order of its target."""

    def __init__(self, plan: Plan, b: TensorBuilder, op: TensorOp, target: View) -> None:
        self.plan, self.b, self.op, self.target = plan, b, op, target
        self.leaves = [_Leaf(tensor, plan.view(tensor)) for tensor in plan.groups.leaves(op)]
        self.reduces = is_reduction(op)
        if self.reduces:
            self.sizes, self.steps = self._choose_rows()
        else:
            self.sizes, self.steps = self._choose()
        self.data = target.data if self.sizes == target.sizes else self.sizes

    def _choose(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Dimensions that target and leaves can all be seen with; the target's where there are none."""
        target = self.target
        choices = [target.sizes]
        if target.sizes == target.data:
            choices += [leaf.view.sizes for leaf in self.leaves]
        for sizes in choices:
            steps = strides_in(target.sizes, target.steps, sizes)
            if steps is not None and all(strides_in(lf.view.sizes, lf.view.steps, sizes) for lf in self.leaves):
                return sizes, steps
        return target.sizes, target.steps

    def _choose_rows(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The dimensions of a reduction's operand, those of its rows as the last one."""
        outer = self.op.tensors[0].type.extents[: row_dim(self.op)]
        steps = strides_in(self.target.sizes, self.target.steps, outer)
        assert steps is not None
        return (*outer, row_length(self.op)), (*steps, 0)

    def emit(self) -> None:
        """The loops and the tree."""
        for leaf in self.leaves:
            leaf.settle(self.plan, self.b, self.op, self.sizes)
        block = _Block.of(self._walks(), 1 + len(self.leaves), reduces=self.reduces)
        bad = block.unreadable()
        for index in bad:
            leaf = self.leaves[index]
            order = tuple(range(len(self.sizes)))
            seen = View(leaf.view.place, leaf.view.element, self.sizes, self.data, leaf.strides, order)
            leaf.view = dense_copy(self.plan, self.b, self.op, seen)
            leaf.settle(self.plan, self.b, self.op, self.sizes)
        if bad:
            block = _Block.of(self._walks(), 1 + len(self.leaves), reduces=self.reduces)
        with nest(self.b, block.outer, 1 + len(self.leaves)) as offsets:
            self._tree(block, offsets)

    def _walks(self) -> list[Walk]:
        strides = zip(self.steps, *(leaf.strides for leaf in self.leaves), strict=True)
        return merged(list(zip(self.data, strides, strict=True)))

    def _tree(self, block: _Block, offsets: Sequence[Value]) -> None:
        b, rows, cols = self.b, block.rows[0], block.cols[0]
        tree = Tree(self.plan, b, rows, cols)
        for index, leaf in enumerate(self.leaves):
            strides = block.rows[1][index + 1], block.cols[1][index + 1]
            pointer = b.gep(leaf.view.element, leaf.view.place.pointer, offsets[index + 1], "operand")
            tree.leaf(leaf.tensor, leaf.view, pointer, strides)
        destination = b.gep(self.target.element, self.target.place.pointer, offsets[0], "result")
        vector = tree.root(self.op)
        pitch = block.rows[1][0]
        written = 1 if self.reduces else cols
        store_vector(b, vector, destination, self.target.element, rows, written, pitch)


@dataclass(frozen=True)
class _Block:
    """The two inner dimensions of a loop nest, and the outer ones."""

    rows: Walk
    cols: Walk
    outer: list[Walk]

    @classmethod
    def of(cls, walks: list[Walk], operands: int, *, reduces: bool) -> _Block:
        """The target's dense dimension, or the reduced one, inside; around it one along which the leaves are dense."""
        one: Walk = (1, (0,) * operands)
        cols = walks[-1] if reduces else next((w for w in reversed(walks) if w[1][0] == 1), None)
        others = [w for w in walks if w is not cols]
        fitting = [w for w in others if max(w[1]) < INDEX_LIMIT]
        if cols is None:
            rows = max(fitting, key=lambda w: w[0], default=one)
            return cls(rows, one, [w for w in others if w is not rows])
        rows = next((w for w in reversed(fitting) if not cls(w, cols, []).unreadable()), None)
        if rows is None:
            rows = fitting[-1] if fitting else one
        return cls(rows, cols, [w for w in others if w is not rows])

    def unreadable(self) -> list[int]:
        """The leaves that no 2-D load reads."""
        if self.cols[0] == 1:
            return []
        down = self.rows[1][1:] if self.rows[0] > 1 else (1,) * len(self.cols[1][1:])
        right = self.cols[1][1:]
        return [i for i, (d, r) in enumerate(zip(down, right, strict=True)) if r > 1 and (d != 1 or r >= INDEX_LIMIT)]


@dataclass(eq=False)
class Tree:
    """The expression of a group on a block of `rows` x `cols`.

    Attributes:
        plan: The plan.
        b: Where.
        rows, cols: Extents of the block.
        values: The vector of each operand that is read from memory.
        results: The vector of each operation, by id.
    """

    plan: Plan
    b: TensorBuilder
    rows: int
    cols: int
    values: dict[LeafKey, Value] = field(default_factory=dict[LeafKey, Value])
    results: dict[int, Value] = field(default_factory=dict[int, Value])

    def leaf(self, tensor: Tensor, view: View, pointer: Value, strides: tuple[int, int]) -> None:
        """Read an operand."""
        vector: Value = leaf_vector(self.b, pointer, view.element, self.rows, self.cols, *strides)
        if tensor.type.element == I1:
            vector = self.b.cast("trunc", vector, VectorType(self.rows * self.cols, I1))
        self.values[self.plan.groups.key(tensor)] = vector

    def operand(self, op: TensorOp) -> Value:
        """The vector of what the root takes, a reduction of one operation of the group."""
        inner = self.plan.groups.inner(op.tensors[0])
        assert inner is not None
        self.result(inner)
        return self._operand(op.tensors[0])

    def root(self, op: TensorOp) -> Value:
        """The vector that is stored: the root's; truth values as bytes."""
        vector = self.result(op)
        assert op.result is not None
        if op.result.element == I1:
            return self.b.cast("zext", vector, VectorType(self.rows * self.cols, I8))
        return vector

    def result(self, op: TensorOp) -> Value:
        """The vector of an operation of the group, made behind those of its operands; chains may be long."""
        pending = [op]
        while pending:
            inner = map(self.plan.groups.inner, pending[-1].tensors)
            missing = next((one for one in inner if one is not None and id(one) not in self.results), None)
            if missing is not None:
                pending.append(missing)
                continue
            current = pending.pop()
            if id(current) not in self.results:
                self.results[id(current)] = self._compute(current)
        return self.results[id(op)]

    def _compute(self, op: TensorOp) -> Value:
        vectors = [self._operand(tensor) for tensor in op.tensors]
        if op.intrinsic.name == NAME:
            return self._ordinary(op.instruction, vectors)
        type_ = TensorType.dense(op.tensors[0].type.element, (self.rows, self.cols))
        if is_reduction(op):
            token = self.b.typeinfo(vectors[0], type_)
            return self.b.reduce(op.intrinsic.name.removeprefix("reduce."), token, (1, self.cols), (1, 1))
        return self.b.unary(op.intrinsic.name, self.b.typeinfo(vectors[0], type_), type_)

    def _ordinary(self, instruction: Instruction, vectors: list[Value]) -> Value:
        """An ordinary instruction, on vectors of the block's size."""
        operation = Operation.of(instruction)
        assert operation is not None
        assert isinstance(instruction.type, VectorType)
        name = str(instruction.result)
        type_ = VectorType(self.rows * self.cols, instruction.type.element)
        operands = _operands(instruction, vectors)
        return operation.emit(self.b, type_, operands, instruction.opcode if name.isdecimal() else name)

    def _operand(self, tensor: Tensor) -> Value:
        inner = self.plan.groups.inner(tensor)
        if inner is not None:
            type_ = VectorType(self.rows * self.cols, tensor.type.element)
            return self.b.cast("bitcast", self.results[id(inner)], type_)
        scalar = self.plan.groups.scalar(tensor)
        if scalar is not None:
            return scalar_vector(self.b, self.b.cast("bitcast", scalar, tensor.type.element), self.rows, self.cols)
        return self.values[self.plan.groups.key(tensor)]


def _operands(instruction: Instruction, vectors: list[Value]) -> list[Value]:
    """The operands of an ordinary instruction with its vectors replaced, without the callee of a call."""
    replacements = iter(vectors)
    return [next(replacements) if isinstance(v.type, VectorType) else v for v in given(instruction)]
