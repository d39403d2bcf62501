"""One rule for each operation on tensors of run-time extents.

Reductions of windows call a helper function, whose loops `WindowLoops` writes:

    define internal void @tlx.dynamic.reduce.add.r2.f32(ptr %to, ptr %from, i64 %e0, i64 %e1, ...)

for each row of the result:
  windows of several columns:        for each element of the row: vectors along the window, combined at the end
  windows of one column:             vectors of neighbouring elements of the row, the window's rows one after another
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tlx.intrinsics.elementwise import REDUCTIONS
from tlx.intrinsics.products import axes_of
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import DynamicOp
from tlx.ir.types import FLOAT, FloatType, Type, VectorType, bits_of, bytes_of, mangle
from tlx.ir.values import ConstInt, Local, Value
from tlx.lower.dynamic.decisions import MMA_INTRINSICS
from tlx.lower.dynamic.elementwise import FunctionRows
from tlx.lower.dynamic.helpers import NoAliasPointer, i64_parameters
from tlx.lower.dynamic.products import emit_matrix_product
from tlx.lower.dynamic.views import (
    DenseHandle,
    DynamicView,
    SteppedPointer,
    copy_strided,
    each_index,
    i64,
    product,
    row_major_strides,
)
from tlx.lower.memory.views import Storage, StridedDim
from tlx.lower.operations import UNARY_INTRINSICS, combine_identity, emit_portable_combine, emit_scalar_truncation

if TYPE_CHECKING:
    from tlx.lower.dynamic.expansion import ExpansionContext


def lower_function(e: ExpansionContext, op: DynamicOp) -> None:
    """Apply a function to each data element, in the operand's shape and layout; padding is zero."""
    view = e.view(op.tensors[0])
    handle = e.result(op, product(e.b, view.shape), zero=view.is_padded)
    steps = row_major_strides(e.b, list(view.shape))
    dims = view.memory_dims
    if view.is_dense:
        dims, steps = [StridedDim(product(e.b, view.data_shape), i64(1))], [i64(1)]
    rank = len(dims)
    outer = range(rank - 1)
    names = [*(f"e{k}" for k in range(rank)), *(f"t{k}" for k in outer), *(f"f{k}" for k in outer)]
    parameters = [
        ("to", NoAliasPointer(handle.element)),
        ("from", NoAliasPointer(handle.element)),
        *i64_parameters(*names),
    ]
    args = [handle.pointer, view.pointer, *(d.extent for d in dims), *steps[:-1], *(d.stride for d in dims[:-1])]

    def build(inner: TensorBuilder, p: dict[str, Local]) -> None:
        FunctionRows(inner, p, op.intrinsic.name, handle.element, rank).run()

    e.helpers.call(e.b, f"{op.intrinsic.name}.r{rank}.{mangle(handle.element)}", parameters, args, build)


def lower_reduction(e: ExpansionContext, op: DynamicOp) -> None:
    """Reduce each window of a tensor to one element of a row-major result."""
    b = e.b
    view = e.view(op.tensors[0])
    windows, strides = e.entries.of(op.dims[0]), e.entries.of(op.dims[1])
    for extent, window, stride in zip(view.extents, windows, strides, strict=True):
        e.checks.compare("sge", window, i64(1))
        e.checks.compare("sge", stride, i64(1))
        e.checks.compare("sge", extent, window)
    e.checks.emit()
    extents = [
        b.add(b.binary("udiv", b.sub(extent, window, "last"), stride, "steps"), 1, "extent")
        for extent, window, stride in zip(view.extents, windows, strides, strict=True)
    ]
    handle = e.result(op, product(b, extents))
    rank = len(view.layout)
    order = list(view.layout)  # loops in memory order: elements along the last dimension are adjacent
    steps = row_major_strides(b, extents)
    names = [f"{letter}{k}" for letter in "ewtsf" for k in range(rank)]
    parameters = [
        ("to", NoAliasPointer(handle.element)),
        ("from", NoAliasPointer(handle.element)),
        *i64_parameters(*names),
    ]
    columns = (extents, windows, steps, strides)
    args = [handle.pointer, view.pointer, *(column[d] for column in columns for d in order)]
    args += view.strides

    def build(inner: TensorBuilder, p: dict[str, Local]) -> None:
        WindowLoops(inner, p, op.intrinsic.name.removeprefix("reduce."), handle.element, rank).run()

    e.helpers.call(b, f"{op.intrinsic.name}.r{rank}.{mangle(handle.element)}", parameters, args, build)


Rule = Callable[["ExpansionContext", DynamicOp], None]


# Products ------------------------------------------------------------------------------------------------------------


def product_into(e: ExpansionContext, op: DynamicOp, store: DynamicOp) -> None:
    """A product of matrices that is sunk to its only store."""
    assert store.pointer is not None
    acc, lhs, rhs = _operands(e, op)
    _check_product(e, acc, lhs, rhs)
    extents = [lhs.extents[0], rhs.extents[1]]
    steps = e.store_strides(store, extents, extents)
    dims = [StridedDim(extent, step) for extent, step in zip(extents, steps, strict=True)]
    _emit_product(e, op, DynamicView.strided(Storage(store.pointer), _element(op), dims), lhs, rhs, acc)


def _lower_product(e: ExpansionContext, op: DynamicOp) -> None:
    """Matmul and the mma family: a loop over the batch around products of matrices."""
    acc, lhs, rhs = _operands(e, op)
    _check_product(e, acc, lhs, rhs)
    extents = [*lhs.extents[:-1], rhs.extents[-1]]
    _emit_batch(e, op, extents, lhs, rhs, acc)


def _operands(e: ExpansionContext, op: DynamicOp) -> tuple[DynamicView | None, DynamicView, DynamicView]:
    *acc, lhs, rhs = [e.view(tensor) for tensor in op.tensors]
    return acc[0] if acc else None, lhs, rhs


def _check_product(e: ExpansionContext, acc: DynamicView | None, lhs: DynamicView, rhs: DynamicView) -> None:
    _check_equal(e, lhs.extents[-1], rhs.extents[-2])
    for left, right in zip(lhs.extents[:-2], rhs.extents[:-2], strict=True):
        _check_equal(e, left, right)
    if acc is not None:
        _check_equal(e, acc.extents[0], lhs.extents[0])
        _check_equal(e, acc.extents[1], rhs.extents[1])
    e.checks.emit()


def _check_equal(e: ExpansionContext, a: Value, b: Value) -> None:
    if not e.entries.is_same(a, b):
        e.checks.compare("eq", a, b)


def _emit_batch(
    e: ExpansionContext,
    op: DynamicOp,
    extents: Sequence[Value],
    lhs: DynamicView,
    rhs: DynamicView,
    acc: DynamicView | None = None,
) -> None:
    """Products of the last two dimensions for each index of the others."""
    e.checks.require_countable(extents)
    e.checks.emit()
    handle = e.result(op, product(e.b, extents))
    views = [DynamicView.dense(e.b, handle.pointer, _element(op), extents), lhs, rhs]
    stepped = [SteppedPointer(v.pointer, v.element, [dim.stride for dim in v.dims], "matrix") for v in views]
    with each_index(e.b, extents[:-2], stepped, "batch") as pointers:
        c, a, b = (replace(view, storage=Storage(at)) for view, at in zip(views, pointers, strict=True))
        _emit_product(e, op, c, a, b, acc)


def _emit_product(
    e: ExpansionContext, op: DynamicOp, c: DynamicView, a: DynamicView, b: DynamicView, acc: DynamicView | None
) -> None:
    kind = op.intrinsic.name if op.intrinsic.name in MMA_INTRINSICS else "smma"
    emit_matrix_product(e.helpers, e.b, kind, c, a, b, acc)


def _element(op: DynamicOp) -> Type:
    assert op.like is not None
    return op.like.element


def _lower_contract(e: ExpansionContext, op: DynamicOp) -> None:
    """Both operands as batch x free x summed and batch x summed x free matrices, then products of these."""
    lists = [list(numbers) for numbers in axes_of([e.folder.ints(value) or () for value in op.dims])]
    axes, batch = lists[:2], lists[2:]
    views = [e.view(tensor) for tensor in op.tensors]
    for lhs_dims, rhs_dims in (axes, batch):
        for left, right in zip(lhs_dims, rhs_dims, strict=True):
            _check_equal(e, views[0].extents[left], views[1].extents[right])
    e.checks.emit()
    frees = [
        [d for d in sorted(v.layout) if d not in a and d not in g] for v, a, g in zip(views, axes, batch, strict=True)
    ]
    lhs = _as_matrices(e, op, views[0], (batch[0], frees[0], axes[0]))
    rhs = _as_matrices(e, op, views[1], (batch[1], axes[1], frees[1]))
    _emit_batch(e, op, [*lhs.extents[:-1], rhs.extents[-1]], lhs, rhs)


def _as_matrices(e: ExpansionContext, op: DynamicOp, view: DynamicView, groups: tuple[list[int], ...]) -> DynamicView:
    """A view whose last two dimensions are groups of dimensions: the same memory, or a copy in that order."""
    batch, *pair = groups
    dims = view.dims
    if all(len(group) <= 1 for group in pair):
        single: StridedDim[Value] = StridedDim(i64(1), i64(1))
        matrix = [dims[group[0]] if group else single for group in pair]
        return DynamicView.strided(view.storage, view.element, [*(dims[d] for d in batch), *matrix])
    order = [dims[d] for group in groups for d in group]
    extents = [dim.extent for dim in order]
    e.checks.require_countable(extents)
    e.checks.emit()
    stem = f"{op.instruction.result}.operand"
    pointer = e.heap.allocate(product(e.b, extents), view.element, stem)
    copy_strided(e.helpers, e.b, view.element, (pointer, row_major_strides(e.b, extents)), (view.pointer, order))
    sizes = [dims[d].extent for d in batch] + [product(e.b, [dims[d].extent for d in group]) for group in pair]
    return DynamicView.dense(e.b, pointer, view.element, sizes)


# Moving elements -----------------------------------------------------------------------------------------------------


def _lower_reorder(e: ExpansionContext, op: DynamicOp) -> None:
    """Tovector and transpose: the same tensor in the order of the result's layout, padding zero."""
    assert op.like is not None
    view = e.view(op.tensors[0])
    if view.is_dense and str(op.instruction.result) in e.decisions.aliases:
        e.handles[str(op.instruction.result)] = DenseHandle(view.pointer, product(e.b, view.shape), view.element)
        return
    order = [view.layout.index(d) for d in op.like.layout]
    handle = e.result(op, product(e.b, view.shape), zero=view.is_padded)
    steps = row_major_strides(e.b, [view.shape[k] for k in order])
    dims = [view.memory_dims[k] for k in order]
    copy_strided(e.helpers, e.b, view.element, (handle.pointer, steps), (view.pointer, dims))


def _lower_broadcast(e: ExpansionContext, op: DynamicOp) -> None:
    """A scalar, or a tensor whose dimensions of extent 1 get a stride of 0."""
    if op.scalars:
        _fill(e, op)
        return
    view = e.view(op.tensors[0])
    extents = e.entries.of(op.dims[0])
    places = e.folder.ints(op.dims[1]) or ()
    steps: list[Value] = [i64(0)] * len(extents)
    for dim, place in zip(view.dims, places, strict=True):
        steps[place] = _broadcast_step(e, dim, extents[place])
    for extent in extents:
        e.checks.compare("sge", extent, i64(1))
    e.checks.require_countable(extents)
    e.checks.emit()
    handle = e.result(op, product(e.b, extents))
    source = [StridedDim(extent, step) for extent, step in zip(extents, steps, strict=True)]
    copy_strided(
        e.helpers, e.b, view.element, (handle.pointer, row_major_strides(e.b, extents)), (view.pointer, source)
    )


def _broadcast_step(e: ExpansionContext, dim: StridedDim[Value], extent: Value) -> Value:
    """The stride of a dimension whose extent is the result's, or 1."""
    if isinstance(dim.extent, ConstInt) and dim.extent.value == 1:
        return i64(0)
    if e.entries.is_same(dim.extent, extent):
        return dim.stride
    is_one = e.b.icmp("eq", dim.extent, 1, "is.broadcast")
    is_same = e.b.icmp("eq", dim.extent, extent, "is.same")
    e.checks.require(e.b.binary("or", is_one, is_same, "valid"))
    return e.b.select(is_one, i64(0), dim.stride, "step")


def _fill(e: ExpansionContext, op: DynamicOp) -> None:
    """A tensor of the operand's type whose data elements are all one scalar."""
    view = e.view(op.tensors[0])
    element = _element(op)
    cell = e.b.retype(e.b.alloca(element, "scalar", 16), element)
    e.b.store(op.scalars[0], cell, bytes_of(element))
    handle = e.result(op, product(e.b, view.shape), zero=view.is_padded)
    source = [StridedDim(dim.extent, i64(0)) for dim in view.memory_dims]
    copy_strided(e.helpers, e.b, element, (handle.pointer, row_major_strides(e.b, list(view.shape))), (cell, source))


def _lower_permute(e: ExpansionContext, op: DynamicOp) -> None:
    """reshape.permute: the dimensions in another order; the new shape has as many elements."""
    view = e.view(op.tensors[0])
    order = [view.dims[d] for d in e.folder.ints(op.dims[0]) or ()]
    extents = [dim.extent for dim in order]
    new = e.entries.of(op.dims[1])
    for extent in new:
        e.checks.compare("sge", extent, i64(1))
    count = product(e.b, extents)
    e.checks.require_countable(new)
    e.checks.compare("eq", product(e.b, new), count)
    e.checks.emit()
    handle = e.result(op, count)
    copy_strided(e.helpers, e.b, view.element, (handle.pointer, row_major_strides(e.b, extents)), (view.pointer, order))


def _lower_concat(e: ExpansionContext, op: DynamicOp) -> None:
    """Copy each operand to its place along the axis."""
    axis = e.folder.integer(op.dims[0]) or 0
    views = [e.view(tensor) for tensor in op.tensors]
    extents = list(views[0].extents)
    for view in views[1:]:
        for d, extent in enumerate(view.extents):
            if d == axis:
                extents[d] = e.b.add(extents[d], extent, "extent")
            else:
                _check_equal(e, extents[d], extent)
    e.checks.require_countable(extents)
    e.checks.emit()
    handle = e.result(op, product(e.b, extents))
    steps = row_major_strides(e.b, extents)
    start: Value = i64(0)
    for view in views:
        to = e.b.gep(view.element, handle.pointer, e.b.mul(start, steps[axis], "offset"), "part")
        copy_strided(e.helpers, e.b, view.element, (to, steps), (view.pointer, view.dims))
        start = e.b.add(start, view.extents[axis], "extent")


_VECTOR_BITS: Final = 512


@dataclass(eq=False)
class WindowLoops:
    """Emits the body of a reduction's helper; dimensions are memory dimensions of the source."""

    b: TensorBuilder
    p: dict[str, Local]
    kind: str
    element: Type
    rank: int

    def run(self) -> None:
        """Write the loops."""
        b, p = self.b, self.p
        last = self.rank - 1
        steps = [b.mul(p[f"s{k}"], p[f"f{k}"], "step") for k in range(last)]
        pointers = [
            SteppedPointer(p["to"], self.element, [p[f"t{k}"] for k in range(last)], "to"),
            SteppedPointer(p["from"], self.element, steps, "from"),
        ]
        with each_index(b, [p[f"e{k}"] for k in range(last)], pointers) as (to, source):
            is_thin = b.icmp("eq", p[f"w{last}"], 1, "is.single")
            is_next = b.icmp("eq", p[f"s{last}"], 1, "is.adjacent")
            is_dense = b.icmp("eq", p[f"t{last}"], 1, "is.dense")
            across = b.binary("and", is_thin, b.binary("and", is_next, is_dense))
            full = b.select(across, b.binary("and", p[f"e{last}"], i64(-self._lanes)), i64(0), "full")
            with b.loop(0, full, self._lanes, name="j") as loop:
                start = b.gep(self.element, source, loop.index, "from")
                result = self._window(0, self._neutral(self._lanes), lambda at, acc: self._columns(start, at, acc))
                self._store(result, b.gep(self.element, to, loop.index, "to"))
            with b.loop(full, p[f"e{last}"], name="j") as loop:
                start = b.gep(self.element, source, b.mul(loop.index, p[f"s{last}"], "offset"), "from")
                result = self._reduced_window(start)
                self._store(result, b.gep(self.element, to, b.mul(loop.index, p[f"t{last}"], "offset"), "to"))

    @property
    def _lanes(self) -> int:
        return _VECTOR_BITS // max(8, bits_of(self._working))

    @property
    def _working(self) -> Type:
        """The type of the accumulator."""
        is_narrow = isinstance(self.element, FloatType) and bits_of(self.element) < 32
        return FLOAT if is_narrow else self.element

    # Windows ---------------------------------------------------------------------------------------------------

    def _window(self, k: int, acc: Value, visit: Callable[[Value, Value], Value], offset: Value | None = None) -> Value:
        """Loops over all dimensions of the window but the last; `visit` takes a row's offset and the accumulator."""
        offset = offset if offset is not None else i64(0)
        if k == self.rank - 1:
            return visit(offset, acc)
        b = self.b
        with b.loop(0, self.p[f"w{k}"], carry=[acc], name="w") as loop:
            inner = b.add(offset, b.mul(loop.index, self.p[f"f{k}"], "offset"), "offset")
            loop.next(self._window(k + 1, loop.carried[0], visit, inner))
        return loop.results[0]

    def _columns(self, start: Value, offset: Value, acc: Value) -> Value:
        """Neighbouring columns of one row."""
        return self._combined(acc, self._load(self.b.gep(self.element, start, offset, "row"), self._lanes))

    def _reduced_window(self, start: Value) -> Value:
        """One window: vectors along its rows, then the remaining elements of the rows."""
        b = self.b
        width = self.p[f"w{self.rank - 1}"]
        full = b.binary("and", width, i64(-self._lanes), "full")

        def vectors(offset: Value, acc: Value) -> Value:
            row = b.gep(self.element, start, offset, "row")
            with b.loop(0, full, self._lanes, carry=[acc], name="v") as loop:
                loaded = self._load(b.gep(self.element, row, loop.index), self._lanes)
                loop.next(self._combined(loop.carried[0], loaded))
            return loop.results[0]

        def elements(offset: Value, acc: Value) -> Value:
            row = b.gep(self.element, start, offset, "row")
            with b.loop(full, width, carry=[acc], name="v") as loop:
                loop.next(self._combined(loop.carried[0], self._load(b.gep(self.element, row, loop.index), None)))
            return loop.results[0]

        wide = self._window(0, self._neutral(self._lanes), vectors)
        return self._window(0, self._reduced(wide), elements)

    def _reduced(self, value: Value) -> Value:
        """The lanes of a vector combined."""
        lanes = self._lanes
        while lanes > 1:
            lanes //= 2
            low = self.b.shuffle(value, None, range(lanes))
            high = self.b.shuffle(value, None, range(lanes, 2 * lanes))
            value = self._combined(low, high)
        return self.b.extract_element(value, 0, "reduced")

    # Elements --------------------------------------------------------------------------------------------------

    def _load(self, pointer: Value, lanes: int | None) -> Value:
        stored = VectorType(lanes, self.element) if lanes else self.element
        working = VectorType(lanes, self._working) if lanes else self._working
        return self.b.cast("fpext", self.b.load(stored, pointer, bytes_of(self.element), "x"), working)

    def _store(self, value: Value, pointer: Value) -> None:
        if isinstance(value.type, VectorType):
            rounded: Value = self.b.cast("fptrunc", value, VectorType(value.type.count, self.element))
        else:
            rounded = emit_scalar_truncation(self.b, value, self.element)
        self.b.store(rounded, pointer, bytes_of(self.element))

    def _combined(self, a: Value, b: Value) -> Value:
        return emit_portable_combine(self.b, self.kind, a, b)

    def _neutral(self, lanes: int) -> Value:
        return self.b.splat(combine_identity(self.kind, self._working), lanes, "none")


RULES: Final[dict[str, Rule]] = {
    "matmul": _lower_product,
    **dict.fromkeys(MMA_INTRINSICS, _lower_product),
    "contract": _lower_contract,
    "transpose": _lower_reorder,
    "tovector": _lower_reorder,
    "broadcast": _lower_broadcast,
    "reshape.permute": _lower_permute,
    "concat": _lower_concat,
    **dict.fromkeys(UNARY_INTRINSICS, lower_function),
    **dict.fromkeys((row.name for row in REDUCTIONS), lower_reduction),
}
