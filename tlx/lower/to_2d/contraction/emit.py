"""Emission of a blocked contraction: copies of operands, loops, sums of 2-D products, the epilogue.

An operand is copied in the order in which blocks read it:

x of 2 x 3 windows in 5 rows, copied          loops     step in the input     step in the copy
                                              i         5                     3 * 12
    i, j   y, x                               j         1                     12
    0, 0   12 elements next to each other     y, x      5, 1                  1
    0, 1   12 elements

An operand that does not fit into the caches is copied slice by slice (`slices`).

The products of the blocks:

    for y                                        blocks of the result
      out[:, y, :] = w[0, 0] @ input[:, y, :]    the first product of a block, or the only one
      for i, j other than 0, 0                   sums are kept in memory, which stays in the caches
        out[:, y, :] += w[i, j] @ input[:, y + i, j:]
      out[:, y, :] = relu(out[:, y, :])          the epilogue; part of the product's tree if there is only one product

Each line is one 2-D tree. If a block has few products, they form one tree with the epilogue, each added to the sum of
those before it, and stage 2 keeps the sums in registers. Otherwise sums go through memory: through a buffer of one
block if the type of the result would round them (half, bfloat), or if the epilogue reads the memory of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import Type, VectorType
from tlx.ir.values import ConstInt, Local, Value, zero
from tlx.lower.memory.views import Storage, TensorView, as_matrices
from tlx.lower.to_2d.contraction.blocking import Blocking, max_chained_products
from tlx.lower.to_2d.contraction.depthwise import DepthwiseBlocking, emit_depthwise
from tlx.lower.to_2d.contraction.problem import (
    ACC,
    LEAVES,
    LHS,
    OUT,
    RHS,
    Contraction,
    ContractionEpilogue,
    EpilogueOperand,
    EpilogueReduction,
    ModularStride,
    OperandMemory,
    QuasiAffineDim,
    rounds_sums,
    strided_view,
    sum_type,
)
from tlx.lower.to_2d.contraction.slices import SlicedOperand, constant_slices, slice_loops
from tlx.lower.to_2d.contraction.strategy import best_blocking, best_strategy, compute_unit
from tlx.lower.to_2d.contraction.vnni import VNNI, VNNI_STRIPS, VnniCopy, VnniRows, with_dense_strides
from tlx.lower.to_2d.emission import BOTH_STRIDED, EmitContext
from tlx.lower.to_2d.loop_nests import CollapsedDims, LoopDim, loop_nest
from tlx.lower.to_2d.memory.copies import copy, load_block, store_block
from tlx.lower.to_2d.reductions import TypedPointer, reduce_axes


@dataclass(frozen=True)
class ContractionLoops:
    """The loops of a contraction, with the strides of its operands or of their copies.

    Attributes:
        loops: The loops around the blocks of the result.
        sums: The loops around the products of a block.
        m, n, k: The dimensions of a product.
    """

    loops: list[LoopDim]
    sums: list[QuasiAffineDim]
    m: LoopDim
    n: LoopDim
    k: LoopDim


class OperandCopies:
    """Copies operands, which become dense in the order in which they are read."""

    def __init__(self, context: EmitContext, b: TensorBuilder, op: TensorOp, blocking: Blocking) -> None:
        self.context, self.op = context, op
        self.b = b
        self.blocking = blocking
        self.strides: dict[tuple[int, CollapsedDims], int] = {}
        self._column = _sliced_operand(context, blocking)
        self._runs = [] if self._column is None else [run for run in blocking.loops if run.strides[self._column]]
        self._write: Callable[[Value], None] | None = None

    @property
    def sliced(self) -> SlicedOperand | None:
        """The operand that is copied slice by slice, if there is one; call `operand` for both operands first."""
        if self._column is None or self._write is None:
            return None
        return SlicedOperand(self._column, [self._walk(run) for run in self._runs], self._write)

    def operand(self, column: int) -> OperandMemory:
        """The memory that an operand is read from: its own, or a copy; `sliced` fills the copy of a sliced operand."""
        memory = (self.blocking.contraction.lhs, self.blocking.contraction.rhs)[column]
        if column not in self.blocking.copied:
            return memory
        runs = self.blocking.order(column)
        if column == RHS and self.blocking.groups is not None:
            return self._grouped(memory, runs, self.blocking.groups)
        if column == self._column:
            runs = [run for run in runs if run not in self._runs]
        dims = [dim.of(column) for run in runs for dim in run.dims]
        dense = TensorType.dense(memory.element, [dim.extent for dim in dims] or [1])
        place = self._allocate(column, dense.count, BOTH_STRIDED)
        self._note(column, runs)
        source, destination = strided_view(memory, dims), TensorView.of(place, dense)
        if column == self._column:
            self._write = partial(_copy_part, self.b, source, destination)
        else:
            copy(self.b, source, destination)
        return OperandMemory(place.pointer, memory.element, small_floats=memory.small_floats)

    def _grouped(self, memory: OperandMemory, runs: Sequence[CollapsedDims], groups: VnniRows) -> OperandMemory:
        """The right operand with interleaved rows; strides of rows and columns count groups."""
        *outer, rows, columns = runs
        room = self.blocking.padded_columns
        self.strides[RHS, columns], self.strides[RHS, rows] = 1, room
        self._note(RHS, outer, rows.extent * room)
        size = math.prod(run.extent for run in outer) * rows.extent * room
        reason = f"the matrix unit reads its rows in groups of {groups.width}"
        place = self._allocate(RHS, size, reason)
        loops = [
            loop for run in outer for loop in with_dense_strides([d.of(RHS) for d in run.dims], self.strides[RHS, run])
        ]
        dims = tuple(dim.of(RHS) for dim in columns.dims)
        strip = self.blocking.tile_columns
        copied = VnniCopy(self.b, memory, groups, tuple(loops), dims, strip or room, strip * rows.extent)
        copied.write(place.pointer)
        return OperandMemory(place.pointer, memory.element, groups.width, room, strip)

    def _allocate(self, column: int, count: int, reason: str) -> Storage:
        """A buffer for the copy of an operand, named as the operation names it."""
        c = self.blocking.contraction
        return self.context.allocate_copy(self.op, (c.lhs, c.rhs)[column].element, count, c.names[column], reason)

    def _note(self, column: int, runs: Sequence[CollapsedDims], stride: int = 1) -> None:
        for run in reversed(runs):
            self.strides[column, run] = stride
            stride *= run.extent

    def nest(self) -> ContractionLoops:
        """The loops of the contraction; call `operand` for both operands first."""
        blocking = self.blocking
        loops = [self._walk(run) for run in blocking.loops if run not in self._runs]
        sums = [*self._quasi_affine(), *map(self._sum, blocking.outer_k)]
        return ContractionLoops(loops, sums, *map(self._walk, (blocking.m, blocking.n, blocking.k)))

    def _walk(self, run: CollapsedDims) -> LoopDim:
        strides = (self.strides.get((column, run), stride) for column, stride in enumerate(run.strides))
        return LoopDim(run.extent, tuple(strides))

    def _sum(self, run: CollapsedDims) -> QuasiAffineDim:
        extent, strides = self._walk(run)
        return QuasiAffineDim(extent, *(ModularStride.by(strides[column]) for column in (LHS, RHS)))

    def _quasi_affine(self) -> list[QuasiAffineDim]:
        """The quasi-affine dimension, whose strides are affine in a copy."""
        quasi_affine = self.blocking.contraction.quasi_affine
        if quasi_affine is None:
            return []
        (run,) = self.blocking.quasi_affine
        copies = [self.strides.get((column, run)) for column in (LHS, RHS)]
        in_place = quasi_affine.lhs, quasi_affine.rhs
        return [
            QuasiAffineDim(
                quasi_affine.extent,
                *(s if c is None else ModularStride.by(c) for s, c in zip(in_place, copies, strict=True)),
            )
        ]


def _copy_part(b: TensorBuilder, source: TensorView, destination: TensorView, offset: Value) -> None:
    """Copy the part of an operand that begins at an offset."""
    start = OperandMemory(b.gep(source.element, source.storage.pointer, offset), source.element)
    copy(b, strided_view(start, source.dims), destination)


def emit_contraction(
    context: EmitContext,
    b: TensorBuilder,
    op: TensorOp,
    contraction: Contraction,
    epilogue: ContractionEpilogue | None = None,
    sliced: SlicedOperand | None = None,
) -> None:
    """Write a contraction.

    Args:
        context: Target, temporaries and remarks.
        b: The builder.
        op: The operation that is lowered.
        contraction: The contraction.
        epilogue: The epilogue of the product.
        sliced: The operand that the caller makes slice by slice, if there is one; no other operand may be sliced then.
    """
    if epilogue is not None and epilogue.reduced is not None:
        _emit_reduced(context, b, op, contraction, epilogue, epilogue.reduced)
        return
    element = contraction.out.element if epilogue is None else epilogue.element
    choice, _ = best_blocking(context.target, contraction, element)
    if isinstance(choice, DepthwiseBlocking):
        emit_depthwise(b, choice, element, epilogue, sliced)
    else:
        if sliced is not None and choice.contraction.lhs == contraction.rhs:
            sliced = sliced.swapped()
        in_one_tree = choice.sums <= max_chained_products(choice, compute_unit(context.target, contraction, element))
        for part, starts in constant_slices(b, choice, _sliced_operand(context, choice)):
            copies = OperandCopies(context, b, op, part)
            lhs, rhs = (copies.operand(column) for column in (LHS, RHS))
            copied = replace(part.contraction, lhs=lhs, rhs=rhs)
            enclosing = copies.sliced or sliced
            _BlockEmitter(context, b, copied, enclosing, copies.nest(), starts, element, epilogue, in_one_tree).emit()


def _sliced_operand(context: EmitContext, blocking: Blocking) -> int | None:
    """The operand that is copied slice by slice, if there is one; threads cannot share the buffer of a slice."""
    return (
        blocking.sliced_operand(context.target.block_costs.cached_operand_bytes) if context.threads == "none" else None
    )


def _emit_reduced(
    context: EmitContext,
    b: TensorBuilder,
    op: TensorOp,
    contraction: Contraction,
    epilogue: ContractionEpilogue,
    reduced: EpilogueReduction,
) -> None:
    """Write a contraction whose result is reduced: in the epilogue, from a temporary, or partly in each."""
    strategy = best_strategy(context.target, contraction, epilogue.element)
    inside = replace(epilogue, emit=reduced.emit if strategy.contraction.reduces else epilogue.emit, reduced=None)
    if strategy.writes_result:
        emit_contraction(context, b, op, contraction, inside)
        return
    out = contraction.out
    strategy.remark(context, reduced.op, out.element)
    partial = OperandMemory(context.allocate(out.element, strategy.count, "partial").pointer, out.element)
    emit_contraction(
        context, b, op, replace(strategy.contraction, out=partial), replace(inside, may_use_destination=True)
    )
    reduce_axes(
        context,
        b,
        reduced.op,
        strategy.axes,
        TypedPointer(partial.pointer, partial.element),
        TypedPointer(out.pointer, out.element),
    )


# Blocks --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sums:
    """The memory of a block's partial sums: the result, or a buffer of one block."""

    pointer: Value
    type: TensorType
    pitch: int
    is_result: bool


@dataclass(eq=False)
class _BlockEmitter:
    """Writes the loops of one contraction, or of one slice, whose operands have been copied.

    Attributes:
        context, b: Where to emit.
        c: The contraction.
        sliced: The operand that is copied in the outermost loops, if there is one.
        nest: The other loops.
        starts: Where the slice starts in each operand.
        element: Type of the sums.
        epilogue: The epilogue, if there is one.
        in_one_tree: Whether the products of a block are one tree.
    """

    context: EmitContext
    b: TensorBuilder
    c: Contraction
    sliced: SlicedOperand | None
    nest: ContractionLoops
    starts: Sequence[int]
    element: Type
    epilogue: ContractionEpilogue | None
    in_one_tree: bool

    def __post_init__(self) -> None:
        self.blocks = BlockProduct(self.b, self.c, self.nest)
        self.rows, self.cols = self.nest.m.extent, self.nest.n.extent
        self.count = math.prod(extent for extent, _, _ in self.nest.sums)  # products of a block

    def emit(self) -> None:
        """Write the loops and the trees in them."""
        columns = [LHS, RHS, OUT, *([] if self.c.acc is None else [ACC])]
        columns += range(LEAVES, len(self.nest.m.strides))
        loops = [LoopDim(extent, tuple(strides[c] for c in columns)) for extent, strides in self.nest.loops]
        buffer = self._buffer() if not self.in_one_tree and not self._keeps_result() else None
        enclosing, blocks = slice_loops(self.b, self.sliced, columns), loop_nest(self.b, loops, len(columns), "batch")
        with enclosing as starts, blocks as steps:
            offsets = [
                self.b.add(self.b.add(start, step), self.starts[column])
                for column, start, step in zip(columns, starts, steps, strict=True)
            ]
            self._block(dict(zip(columns, offsets, strict=True)), buffer)

    def _keeps_result(self) -> bool:
        """Whether partial sums may be kept in the result's memory."""
        free = self.epilogue is None or self.epilogue.may_use_destination
        return free and not self.c.reduces and self.c.out.element == self.element and not rounds_sums(self.element)

    def _buffer(self) -> Value:
        return self.context.allocate(sum_type(self.element), self.rows * self.cols, "sums").pointer

    def _block(self, offsets: dict[int, Value], buffer: Value | None) -> None:
        """Write one block of the result: its products and its epilogue."""
        lhs, rhs, out = (
            self.b.gep(memory.element, memory.pointer, offsets[column], f"{name}.ptr")
            for column, name, memory in zip(
                (LHS, RHS, OUT), ("lhs", "rhs", "out"), (self.c.lhs, self.c.rhs, self.c.out), strict=True
            )
        )
        acc = None if self.c.acc is None else self.blocks.accumulator(self.c.acc, offsets, out)
        if self.count == 1:
            type_ = TensorType.dense(self.element, (self.rows, self.cols))
            vector = self.blocks.product(self.c.kind, acc, lhs, rhs, type_)
            self._store(vector, offsets, out, "product" if acc is None else "sum")
            return
        if self.in_one_tree:
            self._store(self._rounded(self._chain(acc, lhs, rhs)), offsets, out, "product")
            return
        sums = self._sums(out, buffer)
        self._add_up(acc, lhs, rhs, sums)
        if not sums.is_result or self.epilogue is not None:
            vector = load_block(self.b, sums.pointer, sums.type.element, self.rows, self.cols, sums.pitch, 1)
            self._store(self._rounded(vector), offsets, out, "product")

    def _rounded(self, vector: Value) -> Value:
        return self.b.cast("fptrunc", vector, VectorType(self.rows * self.cols, self.element))

    def _chain(self, acc: Local | None, lhs: Value, rhs: Value) -> Value:
        """The products of a block as one tree, each added to the sum of those before it."""
        b = self.b
        type_ = TensorType.dense(sum_type(self.element), (self.rows, self.cols))
        vector = self.blocks.product(self.c.kind, acc, lhs, rhs, type_)
        for index in range(1, self.count):
            places = self._places(index)
            there = b.gep(self.c.lhs.element, lhs, places[LHS], "lhs.ptr")
            other = b.gep(self.c.rhs.element, rhs, places[RHS], "rhs.ptr")
            vector = self.blocks.product(self.c.kind, b.typeinfo(vector, type_, "sum"), there, other, type_)
        return vector

    def _places(self, index: int) -> tuple[int, int]:
        """Element offsets of a product's lhs and rhs from those of the block's first product."""
        totals = [0, 0]
        for extent, *steps in reversed(self.nest.sums):
            index, here = divmod(index, extent)
            totals = [total + s.offset(here) for total, s in zip(totals, steps, strict=True)]
        return totals[LHS], totals[RHS]

    def _sums(self, out: Value, buffer: Value | None) -> _Sums:
        if buffer is None:
            pitch = _pitch(self.nest.m, self.nest.n)
            return _Sums(out, TensorType.dense(self.element, (self.rows, self.cols)), pitch, True)
        return _Sums(buffer, TensorType.dense(sum_type(self.element), (self.rows, self.cols)), self.cols, False)

    def _add_up(self, acc: Local | None, lhs: Value, rhs: Value, sums: _Sums) -> None:
        """Write the products of a block, summed in memory."""
        b = self.b
        first = self.blocks.product(self.c.kind, acc, lhs, rhs, sums.type)
        store_block(b, first, sums.pointer, sums.type.element, self.rows, self.cols, sums.pitch)
        with b.loop(1, self.count, name="k") as loop:
            offsets = self._offsets(loop.index)
            lhs = b.gep(self.c.lhs.element, lhs, offsets[LHS], "lhs.ptr")
            rhs = b.gep(self.c.rhs.element, rhs, offsets[RHS], "rhs.ptr")
            acc = b.tensor_load(sums.pointer, sums.type, (0, sums.pitch), "acc")
            vector = self.blocks.product(self.c.kind, acc, lhs, rhs, sums.type)
            store_block(b, vector, sums.pointer, sums.type.element, self.rows, self.cols, sums.pitch)

    def _offsets(self, index: Value) -> tuple[Value, Value]:
        """Element offsets of a product's lhs and rhs from those of the block's first product."""
        b = self.b
        totals: list[Value] = [ConstInt(index.type, 0), ConstInt(index.type, 0)]
        for number, (extent, *steps) in reversed(list(enumerate(self.nest.sums))):
            here = index
            if number > 0:
                here = b.binary("urem", index, ConstInt(index.type, extent))
                index = b.binary("udiv", index, ConstInt(index.type, extent))
            totals = [b.add(total, _offset(b, here, s)) for total, s in zip(totals, steps, strict=True)]
        return totals[LHS], totals[RHS]

    # Trees -----------------------------------------------------------------------------------------------------

    def _store(self, vector: Value, offsets: dict[int, Value], out: Value, name: str) -> None:
        """Apply the epilogue to a block and store it."""
        if self.epilogue is not None:
            vector = self.epilogue.emit(self.b, vector, self.rows, self.cols, self._leaves(offsets))
        if self.nest.n.strides[OUT] > 1 and self.cols > 1:
            self._store_columns(vector, out, name)
            return
        cols = 1 if self.c.reduces else self.cols
        token = self.b.typeinfo(vector, TensorType.dense(self.c.out.element, (self.rows, cols)), name)
        self.b.tensor_store(out, token, (0, _pitch(self.nest.m, LoopDim(cols, self.nest.n.strides))))

    def _store_columns(self, vector: Value, out: Value, name: str) -> None:
        """Store a block column by column."""
        type_ = TensorType.dense(self.c.out.element, (self.rows, self.cols))
        transposed = type_.transposed((1, 0))
        columns = self.b.transpose(self.b.typeinfo(vector, type_, name), (1, 0), transposed)
        self.b.tensor_store(out, self.b.typeinfo(columns, transposed, name), (0, self.nest.n.strides[OUT]))

    def _leaves(self, offsets: dict[int, Value]) -> list[EpilogueOperand]:
        m, n = self.nest.m.strides, self.nest.n.strides
        return [EpilogueOperand(offsets[column], m[column], n[column]) for column in range(LEAVES, len(m))]


def _pitch(m: LoopDim, n: LoopDim) -> int:
    """Elements between rows of a block of the result."""
    return m.strides[OUT] if m.extent > 1 else n.extent


def _offset(b: TensorBuilder, index: Value, steps: ModularStride) -> Value:
    """`ModularStride.offset` of an index at run time."""
    if steps.period == 1:
        return b.mul(index, steps.step * steps.stride)
    period = ConstInt(index.type, steps.period)
    position = b.mul(index, steps.step)
    region = b.mul(b.binary("urem", position, period), steps.region)
    return b.add(region, b.mul(b.binary("udiv", position, period), steps.stride))


@dataclass(frozen=True)
class BlockProduct:
    """Emits products of blocks.

    Attributes:
        b: The builder.
        c: The contraction, whose operands have been copied.
        nest: The dimensions of a block, and the loops around it.
    """

    b: TensorBuilder
    c: Contraction
    nest: ContractionLoops

    def accumulator(self, memory: OperandMemory, offsets: dict[int, Value], out: Value) -> Local:
        """Load a block of the accumulator; it is read from `out` if it is the result itself."""
        same = memory.pointer == self.c.out.pointer
        pointer = out if same else self.b.gep(memory.element, memory.pointer, offsets[ACC], "acc.ptr")
        return self._load(OperandMemory(pointer, memory.element), ACC, self.nest.m, self.nest.n, "acc")

    def product(self, kind: str, acc: Local | None, lhs: Value, rhs: Value, type_: TensorType) -> Local:
        """The product of the blocks of lhs and rhs at two addresses, added to `acc`."""
        m, k = self.nest.m, self.nest.k
        first = self._load(self.c.lhs._replace(pointer=lhs), LHS, m, k, "lhs")
        second = self._rhs(self.c.rhs._replace(pointer=rhs))
        if acc is None and kind == "matmul":
            return self.b.matmul(first, second, type_)
        acc = acc or self.b.typeinfo(zero(type_.vector), type_, "zeros")
        return self.b.mma("smma" if kind == "matmul" else kind, acc, first, second, type_)

    def _rhs(self, memory: OperandMemory) -> Local:
        """Load a block of the right operand; interleaved rows are permuted back."""
        (depth, steps), (cols, _) = self.nest.k, self.nest.n
        if memory.vnni_group == 1:
            return self._load(memory, RHS, self.nest.k, self.nest.n, "rhs")
        room = max(cols, memory.readable_columns)
        if memory.tile_columns:
            return self._strips(memory, depth, cols)
        shape = (depth // memory.vnni_group, room, memory.vnni_group)
        there = TensorType(memory.element, shape, (0, 1, 2), (0, room - cols, 0))
        pitches = None if steps[RHS] == room else (0, steps[RHS], memory.vnni_group)
        packed = self.b.tensor_load(memory.pointer, there, pitches, "rhs.vnni")
        type_ = TensorType.dense(memory.element, (depth, cols))
        return self.b.typeinfo(self.b.reshape_permute(packed, VNNI, (depth, cols), type_), type_, "rhs")

    def _strips(self, memory: OperandMemory, depth: int, cols: int) -> Local:
        """Load a right operand stored in strips of interleaved rows; columns after the last one are padding."""
        room, element = memory.readable_columns, memory.element
        shape = (room // memory.tile_columns, depth // memory.vnni_group, memory.tile_columns, memory.vnni_group)
        packed = self.b.tensor_load(memory.pointer, TensorType.dense(element, shape), None, "rhs.strips")
        flat = VectorType(depth * room, element)
        whole = self.b.reshape_permute(packed, VNNI_STRIPS, (depth, room), flat)
        return self.b.typeinfo(whole, TensorType(element, (depth, room), (0, 1), (0, room - cols)), "rhs")

    def _load(self, memory: OperandMemory, column: int, rows: LoopDim, cols: LoopDim, name: str) -> Local:
        matrix = as_matrices(strided_view(memory, [rows.of(column), cols.of(column)]))
        assert matrix is not None
        loaded = self.b.tensor_load(memory.pointer, matrix.type, (0, matrix.pitch), name)
        if memory.small_floats is None:
            return loaded
        format_, element = memory.small_floats.format, memory.small_floats.element
        numbers = replace(matrix.type, element=element)
        widened = self.b.from_small_float(self.b.tovector(loaded, matrix.type), format_, element)
        return self.b.typeinfo(widened, numbers, name)
