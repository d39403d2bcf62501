"""One rule for each operation on tensors of run-time extents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tlx.intrinsics.contraction import axes_of
from tlx.ir.dynamic import DynamicOp
from tlx.ir.types import Type, bytes_of
from tlx.ir.values import ConstInt, Value
from tlx.lower.dynamic.copies import copy
from tlx.lower.dynamic.decisions import MMA
from tlx.lower.dynamic.numbers import number, product
from tlx.lower.dynamic.products import Matrix, multiply
from tlx.lower.dynamic.views import Dim, Flat, RunView, count_of, steps_of

if TYPE_CHECKING:
    from tlx.lower.dynamic.rewrite import Expansion

Rule = Callable[["Expansion", DynamicOp], None]


# Products ------------------------------------------------------------------------------------------------------------


def product_into(e: Expansion, op: DynamicOp, store: DynamicOp) -> None:
    """A product of matrices, written to where its only store puts it."""
    assert store.pointer is not None
    acc, lhs, rhs = _operands(e, op)
    _check_product(e, acc, lhs, rhs)
    extents = [lhs.extents[0], rhs.extents[1]]
    steps = e.target(store, extents, extents)
    dims = [Dim(extent, step) for extent, step in zip(extents, steps, strict=True)]
    target = Matrix(store.pointer, _element(op), *dims)
    _emit_product(e, op, target, _matrix(lhs), _matrix(rhs), None if acc is None else _matrix(acc))


def _lower_product(e: Expansion, op: DynamicOp) -> None:
    """Matmul and the mma family: a loop over the batch around products of matrices."""
    acc, lhs, rhs = _operands(e, op)
    _check_product(e, acc, lhs, rhs)
    batch = lhs.logical[:-2]
    extents = [*(d.extent for d in batch), lhs.extents[-2], rhs.extents[-1]]
    _emit_batch(e, op, extents, lhs, rhs, acc)


def _operands(e: Expansion, op: DynamicOp) -> tuple[RunView | None, RunView, RunView]:
    *acc, lhs, rhs = [e.view(tensor) for tensor in op.tensors]
    return acc[0] if acc else None, lhs, rhs


def _check_product(e: Expansion, acc: RunView | None, lhs: RunView, rhs: RunView) -> None:
    _check_equal(e, lhs.extents[-1], rhs.extents[-2])
    for mine, other in zip(lhs.extents[:-2], rhs.extents[:-2], strict=True):
        _check_equal(e, mine, other)
    if acc is not None:
        _check_equal(e, acc.extents[0], lhs.extents[0])
        _check_equal(e, acc.extents[1], rhs.extents[1])
    e.checks.emit()


def _check_equal(e: Expansion, a: Value, b: Value) -> None:
    if not e.entries.is_same(a, b):
        e.checks.compare("eq", a, b)


def _emit_batch(
    e: Expansion, op: DynamicOp, extents: Sequence[Value], lhs: RunView, rhs: RunView, acc: RunView | None = None
) -> None:
    """Products of the last two dimensions for each index of the others."""
    e.checks.countable(extents)
    e.checks.emit()
    flat = e.result(op, product(e.b, extents))
    steps = steps_of(e.b, extents)
    with ExitStack() as stack:
        pointers = [flat.pointer, lhs.pointer, rhs.pointer]
        for k, (left, right) in enumerate(zip(lhs.logical[:-2], rhs.logical[:-2], strict=True)):
            index = stack.enter_context(e.b.loop(0, extents[k], name="batch")).index
            walks = zip(
                pointers, (_element(op), lhs.element, rhs.element), (steps[k], left.step, right.step), strict=True
            )
            pointers = [e.b.gep(t, p, e.b.mul(index, step, "offset"), "matrix") for p, t, step in walks]
        c_dims = [Dim(x, s) for x, s in zip(extents[-2:], steps[-2:], strict=True)]
        target = Matrix(pointers[0], _element(op), *c_dims)
        a, b = _matrix(replace(lhs, pointer=pointers[1])), _matrix(replace(rhs, pointer=pointers[2]))
        _emit_product(e, op, target, a, b, None if acc is None else _matrix(acc))


def _emit_product(e: Expansion, op: DynamicOp, c: Matrix, a: Matrix, b: Matrix, acc: Matrix | None) -> None:
    kind = op.intrinsic.name if op.intrinsic.name in MMA else "smma"
    multiply(e.helpers, e.b, kind, c, a, b, acc)


def _matrix(view: RunView) -> Matrix:
    rows, columns = view.logical[-2:]
    return Matrix(view.pointer, view.element, rows, columns)


def _element(op: DynamicOp) -> Type:
    assert op.like is not None
    return op.like.element


def _lower_contract(e: Expansion, op: DynamicOp) -> None:
    """Both operands as batch x free x summed and batch x summed x free matrices, then products of these."""
    lists = [list(numbers) for numbers in axes_of([e.folder.ints(value) or () for value in op.dims])]
    axes, batch = lists[:2], lists[2:]
    views = [e.view(tensor) for tensor in op.tensors]
    for left, right in (axes, batch):
        for mine, other in zip(left, right, strict=True):
            _check_equal(e, views[0].extents[mine], views[1].extents[other])
    e.checks.emit()
    frees = [
        [d for d in range(v.rank) if d not in a and d not in g] for v, a, g in zip(views, axes, batch, strict=True)
    ]
    lhs = _as_matrices(e, op, views[0], (batch[0], frees[0], axes[0]))
    rhs = _as_matrices(e, op, views[1], (batch[1], axes[1], frees[1]))
    extents = [*(d.extent for d in lhs.logical[:-2]), lhs.extents[-2], rhs.extents[-1]]
    _emit_batch(e, op, extents, lhs, rhs)


def _as_matrices(e: Expansion, op: DynamicOp, view: RunView, groups: tuple[list[int], ...]) -> RunView:
    """A view whose last two dimensions are groups of dimensions: the same memory, or a copy in that order."""
    batch, *pair = groups
    dims = view.logical
    if all(len(group) <= 1 for group in pair):
        chosen = [dims[d] for d in batch] + [dims[group[0]] if group else Dim(number(1), number(1)) for group in pair]
        return _row_major(view, chosen)
    order = [dims[d] for group in groups for d in group]
    extents = [dim.extent for dim in order]
    e.checks.countable(extents)
    e.checks.emit()
    stem = f"{op.instruction.result}.operand"
    pointer = e.heap.allocate(product(e.b, extents), view.element, stem)
    copy(e.helpers, e.b, view.element, (pointer, steps_of(e.b, extents)), (view.pointer, order))
    sizes = [dims[d].extent for d in batch] + [product(e.b, [dims[d].extent for d in group]) for group in pair]
    merged = [Dim(x, s) for x, s in zip(sizes, steps_of(e.b, sizes), strict=True)]
    return _row_major(replace(view, pointer=pointer), merged)


def _row_major(view: RunView, dims: Sequence[Dim]) -> RunView:
    shape = tuple(dim.extent for dim in dims)
    return RunView(view.pointer, view.element, tuple(dims), shape, tuple(range(len(dims))))


# Moving elements -----------------------------------------------------------------------------------------------------


def _lower_reorder(e: Expansion, op: DynamicOp) -> None:
    """Tovector and transpose: the same tensor in the order of the result's layout, padding zero."""
    assert op.like is not None
    view = e.view(op.tensors[0])
    if view.is_dense and str(op.instruction.result) in e.decisions.aliases:
        e.flats[str(op.instruction.result)] = Flat(view.pointer, count_of(e.b, view), view.element)
        return
    order = [view.layout.index(d) for d in op.like.layout]
    flat = e.result(op, count_of(e.b, view), zero=view.is_padded)
    steps = steps_of(e.b, [view.shape[k] for k in order])
    copy(e.helpers, e.b, view.element, (flat.pointer, steps), (view.pointer, [view.dims[k] for k in order]))


def _lower_broadcast(e: Expansion, op: DynamicOp) -> None:
    """One element, or a tensor of which dimensions of extent 1 are walked through with a step of 0."""
    if op.scalars:
        _fill(e, op)
        return
    view = e.view(op.tensors[0])
    extents = e.entries.of(op.dims[0])
    places = e.folder.ints(op.dims[1]) or ()
    steps: list[Value] = [number(0)] * len(extents)
    for dim, place in zip(view.logical, places, strict=True):
        steps[place] = _stretched(e, dim, extents[place])
    for extent in extents:
        e.checks.compare("sge", extent, number(1))
    e.checks.countable(extents)
    e.checks.emit()
    flat = e.result(op, product(e.b, extents))
    source = [Dim(extent, step) for extent, step in zip(extents, steps, strict=True)]
    copy(e.helpers, e.b, view.element, (flat.pointer, steps_of(e.b, extents)), (view.pointer, source))


def _stretched(e: Expansion, dim: Dim, extent: Value) -> Value:
    """The step through a dimension that is as long as the result's, or 1."""
    if isinstance(dim.extent, ConstInt) and dim.extent.value == 1:
        return number(0)
    if e.entries.is_same(dim.extent, extent):
        return dim.step
    is_one = e.b.icmp("eq", dim.extent, 1, "stretches")
    is_same = e.b.icmp("eq", dim.extent, extent, "is.same")
    e.checks.require(e.b.binary("or", is_one, is_same, "valid"))
    return e.b.select(is_one, number(0), dim.step, "step")


def _fill(e: Expansion, op: DynamicOp) -> None:
    """A tensor of the operand's type whose data elements are all one number."""
    view = e.view(op.tensors[0])
    element = _element(op)
    cell = e.b.retype(e.b.alloca(element, "scalar", 16), element)
    e.b.store(op.scalars[0], cell, bytes_of(element))
    flat = e.result(op, count_of(e.b, view), zero=view.is_padded)
    source = [Dim(dim.extent, number(0)) for dim in view.dims]
    copy(e.helpers, e.b, element, (flat.pointer, steps_of(e.b, list(view.shape))), (cell, source))


def _lower_permute(e: Expansion, op: DynamicOp) -> None:
    """reshape.permute: the dimensions in another order; the new shape has as many elements."""
    view = e.view(op.tensors[0])
    order = [view.logical[d] for d in e.folder.ints(op.dims[0]) or ()]
    extents = [dim.extent for dim in order]
    new = e.entries.of(op.dims[1])
    for extent in new:
        e.checks.compare("sge", extent, number(1))
    count = product(e.b, extents)
    e.checks.countable(new)
    e.checks.compare("eq", product(e.b, new), count)
    e.checks.emit()
    flat = e.result(op, count)
    copy(e.helpers, e.b, view.element, (flat.pointer, steps_of(e.b, extents)), (view.pointer, order))


def _lower_concat(e: Expansion, op: DynamicOp) -> None:
    """Each operand is copied to its place along the axis."""
    axis = e.folder.integer(op.dims[0]) or 0
    views = [e.view(tensor) for tensor in op.tensors]
    extents = list(views[0].extents)
    for view in views[1:]:
        for d, extent in enumerate(view.extents):
            if d == axis:
                extents[d] = e.b.add(extents[d], extent, "extent")
            else:
                _check_equal(e, extents[d], extent)
    e.checks.countable(extents)
    e.checks.emit()
    flat = e.result(op, product(e.b, extents))
    steps = steps_of(e.b, extents)
    start: Value = number(0)
    for view in views:
        to = e.b.gep(view.element, flat.pointer, e.b.mul(start, steps[axis], "offset"), "part")
        copy(e.helpers, e.b, view.element, (to, steps), (view.pointer, view.logical))
        start = e.b.add(start, view.extents[axis], "extent")


def _rules() -> dict[str, Rule]:
    from tlx.lower.dynamic.functions import FUNCTIONS, lower_function
    from tlx.lower.dynamic.reductions import REDUCTIONS, lower_reduction

    return {
        "matmul": _lower_product,
        **dict.fromkeys(MMA, _lower_product),
        "contract": _lower_contract,
        "transpose": _lower_reorder,
        "tovector": _lower_reorder,
        "broadcast": _lower_broadcast,
        "reshape.permute": _lower_permute,
        "concat": _lower_concat,
        **dict.fromkeys(FUNCTIONS, lower_function),
        **dict.fromkeys(REDUCTIONS, lower_reduction),
    }


RULES: Final = _rules()
