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
from dataclasses import dataclass, field

from tlx.ir.module import Instruction
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import Tensor, TensorOp
from tlx.ir.types import I1, I8, VectorType
from tlx.ir.values import Value
from tlx.lower.to_2d.copies import copy
from tlx.lower.to_2d.elementwise import NAME, reissue
from tlx.lower.to_2d.groups import LeafKey
from tlx.lower.to_2d.leaves import leaf_vector, scalar_vector, store_vector
from tlx.lower.to_2d.loops import INDEX_LIMIT, Walk, merged, nest
from tlx.lower.to_2d.plan import Plan
from tlx.lower.to_2d.strides import strides_in
from tlx.lower.to_2d.views import View, stored
from tlx.types import TensorType


def lower_pointwise(plan: Plan, b: TensorBuilder, op: TensorOp, target: View) -> None:
    """Write a group to `target`: its root is `op`, and no product is among its operations."""
    tensors = plan.groups.leaves(op)
    leaves = [_Leaf(tensor, plan.view(tensor)) for tensor in tensors]
    frame = _Frame(plan, b, op, target, leaves)
    frame.emit()


@dataclass
class _Leaf:
    """An operand in memory, and its strides along the dimensions of the loop nest."""

    tensor: Tensor
    view: View
    strides: tuple[int, ...] = ()


class _Frame:
    """The dimensions of a group's loop nest, in the memory order of its target."""

    def __init__(self, plan: Plan, b: TensorBuilder, op: TensorOp, target: View, leaves: list[_Leaf]) -> None:
        self.plan, self.b, self.op, self.target, self.leaves = plan, b, op, target, leaves
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

    def emit(self) -> None:
        """The loops and the tree."""
        for leaf in self.leaves:
            self._settle(leaf)
        block = _Block.of(self._walks(), 1 + len(self.leaves))
        bad = block.unreadable()
        for index in bad:
            leaf = self.leaves[index]
            order = tuple(range(len(self.sizes)))
            seen = View(leaf.view.place, leaf.view.element, self.sizes, self.data, leaf.strides, order)
            leaf.view = self._dense(seen)
            self._settle(leaf)
        if bad:
            block = _Block.of(self._walks(), 1 + len(self.leaves))
        with nest(self.b, block.outer, 1 + len(self.leaves)) as offsets:
            self._tree(block, offsets)

    def _settle(self, leaf: _Leaf) -> None:
        """The leaf's strides; a leaf that has none is copied first."""
        strides = strides_in(leaf.view.sizes, leaf.view.steps, self.sizes)
        if strides is None:
            leaf.view = self._dense(leaf.view)
            strides = strides_in(leaf.view.sizes, leaf.view.steps, self.sizes)
            assert strides is not None
        leaf.strides = strides

    def _dense(self, source: View) -> View:
        """A dense copy of a leaf, its positions in the same order."""
        element, order = stored(source.element), tuple(range(len(source.sizes)))
        type_ = TensorType.dense(element, source.sizes)
        place = self.plan.dense_operand(self.op)(element, type_.count, "tensor")
        steps = type_.strides()
        copy(
            self.b,
            View(source.place, element, source.sizes, source.data, source.steps, order),
            View(place, element, source.sizes, source.data, steps, order),
        )
        return View(place, source.element, source.sizes, source.sizes, steps, order)

    def _walks(self) -> list[Walk]:
        strides = zip(self.steps, *(leaf.strides for leaf in self.leaves), strict=True)
        return merged(list(zip(self.data, strides, strict=True)))

    def _tree(self, block: _Block, offsets: Sequence[Value]) -> None:
        b, rows, cols = self.b, block.rows[0], block.cols[0]
        tree = Tree(self.plan, b, rows, cols)
        for index, leaf in enumerate(self.leaves):
            strides = block.rows[1][index + 1], block.cols[1][index + 1]
            pointer = b.gep(stored(leaf.view.element), leaf.view.place.pointer, offsets[index + 1], "operand")
            tree.leaf(leaf.tensor, leaf.view, pointer, strides)
        destination = b.gep(stored(self.target.element), self.target.place.pointer, offsets[0], "result")
        vector = tree.root(self.op)
        pitch = block.rows[1][0]
        store_vector(b, vector, destination, stored(self.target.element), rows, cols, pitch)


@dataclass(frozen=True)
class _Block:
    """The two inner dimensions of a loop nest, and the outer ones."""

    rows: Walk
    cols: Walk
    outer: list[Walk]

    @classmethod
    def of(cls, walks: list[Walk], operands: int) -> _Block:
        """The target's dense dimension inside; around it one along which the other leaves are dense."""
        one: Walk = (1, (0,) * operands)
        cols = next((w for w in reversed(walks) if w[1][0] == 1), None)
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
        element = stored(view.element)
        vector: Value = leaf_vector(self.b, pointer, element, self.rows, self.cols, *strides)
        if view.element == I1:
            vector = self.b.cast("trunc", vector, VectorType(self.rows * self.cols, I1))
        self.values[self.plan.groups.key(tensor)] = vector

    def root(self, op: TensorOp) -> Value:
        """The vector that is stored: the root's; truth values as bytes."""
        vector = self.result(op)
        assert op.result is not None
        if op.result.element == I1:
            return self.b.cast("zext", vector, VectorType(self.rows * self.cols, I8))
        return vector

    def result(self, op: TensorOp) -> Value:
        """The vector of an operation of the group."""
        if id(op) not in self.results:
            self.results[id(op)] = self._compute(op)
        return self.results[id(op)]

    def _compute(self, op: TensorOp) -> Value:
        vectors = [self._operand(tensor) for tensor in op.tensors]
        if op.intrinsic.name == NAME:
            return reissue(self.b, op.instruction, _operands(op.instruction, vectors), self.rows * self.cols)
        assert op.result is not None
        type_ = TensorType.dense(op.result.element, (self.rows, self.cols))
        return self.b.unary(op.intrinsic.name, self.b.typeinfo(vectors[0], type_), type_)

    def _operand(self, tensor: Tensor) -> Value:
        inner = self.plan.groups.inner(tensor)
        if inner is not None:
            type_ = VectorType(self.rows * self.cols, tensor.type.element)
            return self.b.cast("bitcast", self.result(inner), type_)
        scalar = self.plan.groups.scalar(tensor)
        if scalar is not None:
            return scalar_vector(self.b, self.b.cast("bitcast", scalar, tensor.type.element), self.rows, self.cols)
        return self.values[self.plan.groups.key(tensor)]


def _operands(instruction: Instruction, vectors: list[Value]) -> list[Value]:
    """The operands of an ordinary instruction with its vectors replaced, without the callee of a call."""
    given = instruction.args if instruction.is_call else instruction.operands
    replacements = iter(vectors)
    return [next(replacements) if isinstance(v.type, VectorType) else v for v in given]
