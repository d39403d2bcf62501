"""Products of matrices of run-time size: operands packed in padded blocks of static size, and loops over these blocks.

A matrix of P x K (K is the dimension that a product sums over, P the other one) becomes consecutive blocks in memory.
Blocks have 256 or 32 positions along K; along P the caller chooses the sizes, the larger first:

          k0 = 0 .. 255     256 .. 511    512 .. 543   (K = 520: two deep blocks, and a shallow one half empty)
    p0=0  [ block          ][ block      ][ block   ]
    p0=64 ...

Block (p0, k0) is p0 * kr + k0 * (its size along P) elements after the first, where kr is K rounded up to 32.

The helper of a product loops over these blocks:

    define internal void @tlx.dynamic.smma...(ptr %c, i64 %c.row, ptr %a, ..., ptr %b, ..., i64 %m, i64 %n, i64 %k) {
      pack A and B into zero-padded blocks
      for n0: for m0:
        %block = 0 (or the accumulator's elements)
        for k0:
          store(%block, typeinfo(smma(load(%block), load(A block), load(B block))))        static, 64 x 64 x 256
        the elements of %block that exist -> C
    }

Both operands are packed before anything is written, so that the result may overlap an operand.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder import Builder
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import FLOAT, I8, I32, I64, ArrayType, FloatType, IntType, Type, bits_of, bytes_of, mangle
from tlx.ir.values import Local, Value
from tlx.lower.dynamic.helpers import HelperFunctions, i64_parameters
from tlx.lower.dynamic.views import DynamicView, copy_row, i64, is_one
from tlx.lower.memory.allocation import CACHE_LINE, emit_allocation, emit_release, frame_metadata, trap_if_null
from tlx.lower.operations import emit_scalar_truncation

BLOCK_DEPTHS: Final = (256, 32)
PackUnit = Literal["p", "k"]
"""The dimension that is contiguous in a block."""


def round_up(b: Builder, value: Value, step: int) -> Value:
    """The next multiple of a power of two."""
    return b.binary("and", b.add(value, step - 1), i64(-step), "rounded")


@dataclass(frozen=True)
class BlockSegment:
    """Blocks of one size: those that begin at `first`, `first + size`, ... below `last`."""

    size: int
    first: Value
    last: Value
    is_full: bool


def split_into_blocks(b: Builder, extent: Value, sizes: Sequence[int]) -> list[BlockSegment]:
    """Full blocks of the larger sizes, and blocks of the smallest size for the rest of an extent."""
    first: Value = i64(0)
    segments: list[BlockSegment] = []
    for size in sizes:
        is_last = size == sizes[-1]
        last = round_up(b, extent, size) if is_last else b.binary("and", extent, i64(-size), "full")
        segments.append(BlockSegment(size, first, last, not is_last))
        first = last
    return segments


@contextmanager
def each_block(b: Builder, segment: BlockSegment, extent: Value, name: str) -> Generator[tuple[Value, Value]]:
    """A loop over the blocks of a segment; yields a block's start and how many of its positions hold data."""
    with b.loop(segment.first, segment.last, segment.size, name=name) as loop:
        start = loop.index
        if segment.is_full:
            yield start, i64(segment.size)
        else:
            yield start, b.umin(b.sub(extent, start, "remaining"), segment.size, "valid")


@dataclass(frozen=True)
class PackSource:
    """A matrix of P x K: its first element, extents, and elements between neighbours."""

    pointer: Value
    p: Value
    k: Value
    p_step: Value
    k_step: Value


def emit_pack(
    b: TensorBuilder, destination: Value, source: PackSource, element: IntType, sizes: Sequence[int], unit: PackUnit
) -> None:
    """Write all blocks of a matrix to memory."""
    depth = round_up(b, source.k, BLOCK_DEPTHS[-1])
    for p_segment in split_into_blocks(b, source.p, sizes):
        with each_block(b, p_segment, source.p, "p") as (p0, p_valid):
            row = b.gep(element, source.pointer, b.mul(p0, source.p_step, "offset"), "from")
            panel = b.gep(element, destination, b.mul(p0, depth, "offset"), "to")
            for k_segment in split_into_blocks(b, source.k, BLOCK_DEPTHS):
                with each_block(b, k_segment, source.k, "k") as (k0, k_valid):
                    start = b.gep(element, row, b.mul(k0, source.k_step, "offset"), "from")
                    block = b.gep(element, panel, b.mul(k0, p_segment.size, "offset"), "to")
                    p_side = _PackSide(p_segment, p_valid, source.p_step)
                    k_side = _PackSide(k_segment, k_valid, source.k_step)
                    outer, inner = (p_side, k_side) if unit == "k" else (k_side, p_side)
                    _emit_block(b, block, start, element, outer, inner)


@dataclass(frozen=True)
class _PackSide:
    segment: BlockSegment
    valid: Value
    step: Value


def _emit_block(
    b: TensorBuilder, destination: Value, source: Value, element: IntType, outer: _PackSide, inner: _PackSide
) -> None:
    """Write the rows of a block: data is copied, the rest is zero."""
    size = bytes_of(element)
    if not (outer.segment.is_full and inner.segment.is_full):
        b.memset(destination, 0, outer.segment.size * inner.segment.size * size)
    with b.loop(0, outer.valid, name="row") as loop:
        row = b.gep(element, destination, b.mul(loop.index, inner.segment.size, "offset"), "to")
        start = b.gep(element, source, b.mul(loop.index, outer.step, "offset"), "from")
        copy_row(b, element, (row, i64(1)), (start, inner.step), inner.valid)


BLOCK_ROWS: Final = (64, 8)
BLOCK_COLUMNS: Final = (64, 16)


@dataclass(frozen=True)
class _ProductKind:
    """The static properties of a product; its helper is named after them."""

    kind: str
    a: Type
    b: Type
    c: Type
    a_unit: PackUnit
    b_unit: PackUnit
    has_acc: bool

    @property
    def block_type(self) -> Type:
        """Element type of the sums: at least as precise as the result's."""
        if isinstance(self.c, FloatType):
            return self.c if bits_of(self.c) >= 32 else FLOAT
        return self.c if bits_of(self.c) >= 32 else I32

    @property
    def name(self) -> str:
        """Name of the helper."""
        order = f"{'r' if self.a_unit == 'k' else 'c'}{'r' if self.b_unit == 'p' else 'c'}"
        words = [self.kind, *map(mangle, (self.a, self.b, self.c)), order, *(["acc"] if self.has_acc else [])]
        return ".".join(words)


def emit_matrix_product(
    helpers: HelperFunctions,
    b: Builder,
    kind: str,
    c: DynamicView,
    lhs: DynamicView,
    rhs: DynamicView,
    acc: DynamicView | None,
) -> None:
    """`C = A @ B`, or `C = Acc + A @ B`, of the last two dimensions; the columns of C are adjacent.

    Args:
        helpers: The module's helpers.
        b: The builder.
        kind: How integers are extended: the name of a product with an accumulator.
        c: The result; its memory may be that of an operand, or exactly that of `acc`.
        lhs: A.
        rhs: B.
        acc: The accumulator.
    """
    a_unit: PackUnit = "p" if _is_column_major(lhs) else "k"
    b_unit: PackUnit = "k" if _is_column_major(rhs) else "p"
    shape = _ProductKind(kind, lhs.element, rhs.element, c.element, a_unit, b_unit, acc is not None)
    parameters: list[tuple[str, Type]] = [("c", _shared(helpers, c.element)), ("c.row", I64)]
    args: list[Value] = [b.retype(c.pointer, c.element), c.dims[-2].stride]
    for name, matrix in (("a", lhs), ("b", rhs), *((("acc", acc),) if acc is not None else ())):
        parameters += [(name, _shared(helpers, matrix.element)), *i64_parameters(f"{name}.row", f"{name}.column")]
        args += [b.retype(matrix.pointer, matrix.element), *(dim.stride for dim in matrix.dims[-2:])]
    parameters += i64_parameters("m", "n", "k")
    args += [*c.extents[-2:], lhs.extents[-1]]

    def build(inner: TensorBuilder, p: dict[str, Local]) -> None:
        _ProductBuilder(inner, shape, p).run()

    helpers.call(b, shape.name, parameters, args, build)


def _is_column_major(matrix: DynamicView) -> bool:
    return [is_one(dim.stride) for dim in matrix.dims[-2:]] == [True, False]


def _shared(helpers: HelperFunctions, element: Type) -> Type:
    """The type of a pointer to memory that other parameters may alias."""
    return helpers.module.pointer_to(element)


@dataclass(eq=False)
class _ProductBuilder:
    """Emits the body of a product's helper."""

    b: TensorBuilder
    shape: _ProductKind
    p: dict[str, Local]

    def run(self) -> None:
        b, p = self.b, self.p
        depth = round_up(b, p["k"], BLOCK_DEPTHS[-1])
        a_bytes = self._bytes(self.shape.a, round_up(b, p["m"], BLOCK_ROWS[-1]), depth)
        b_bytes = self._bytes(self.shape.b, round_up(b, p["n"], BLOCK_COLUMNS[-1]), depth)
        memory = emit_allocation(
            b, b.add(a_bytes, b_bytes, "bytes"), "memory", frame_metadata("packed operands of run-time size")
        )
        trap_if_null(b, [memory])
        a = self._packed("a", "m", BLOCK_ROWS, memory, self.shape.a_unit)
        rhs = self._packed("b", "n", BLOCK_COLUMNS, b.gep(I8, memory, a_bytes, "b.memory"), self.shape.b_unit)
        largest = ArrayType(BLOCK_ROWS[0] * BLOCK_COLUMNS[0], self.shape.block_type)
        block = b.retype(b.alloca(largest, "block"), self.shape.block_type)
        for columns in split_into_blocks(b, p["n"], BLOCK_COLUMNS):
            with each_block(b, columns, p["n"], "n0") as (n0, n_valid):
                b_panel = b.gep(self.shape.b, rhs, b.mul(n0, depth, "offset"), "b.panel")
                for rows in split_into_blocks(b, p["m"], BLOCK_ROWS):
                    with each_block(b, rows, p["m"], "m0") as (m0, m_valid):
                        a_panel = b.gep(self.shape.a, a, b.mul(m0, depth, "offset"), "a.panel")
                        edge = _ResultBlock(rows.size, columns.size, m0, n0, m_valid, n_valid)
                        self._block(block, a_panel, b_panel, edge)
        emit_release(b, memory, frame_metadata())

    def _bytes(self, element: Type, extent: Value, depth: Value) -> Value:
        """Bytes of a packed operand, with room to align it to a cache line."""
        b = self.b
        count = b.mul(extent, depth, "count")
        return b.add(b.mul(count, bytes_of(element), "bytes"), CACHE_LINE - 1)

    def _packed(self, name: str, extent: str, sizes: Sequence[int], memory: Value, unit: PackUnit) -> Value:
        """Pack an operand to the first cache line of some memory; returns its address."""
        b, p = self.b, self.p
        element = self.shape.a if name == "a" else self.shape.b
        bits = IntType(8 * bytes_of(element))
        blocks = b.align_up(memory, CACHE_LINE, f"{name}.blocks")
        row, column = p[f"{name}.row"], p[f"{name}.column"]
        p_step, k_step = (row, column) if name == "a" else (column, row)
        source = PackSource(b.retype(p[name], bits), p[extent], p["k"], p_step, k_step)
        emit_pack(b, b.retype(blocks, bits), source, bits, sizes, unit)
        return b.retype(blocks, element)

    def _block(self, block: Value, a_panel: Value, b_panel: Value, edge: _ResultBlock) -> None:
        b, type_ = self.b, self.shape.block_type
        b.memset(block, 0, edge.rows * edge.columns * bytes_of(type_))
        if self.shape.has_acc:
            self._rows(edge, "acc", block)
        for segment in split_into_blocks(b, self.p["k"], BLOCK_DEPTHS):
            with each_block(b, segment, self.p["k"], "k0") as (k0, _):
                a = b.gep(self.shape.a, a_panel, b.mul(k0, edge.rows, "offset"), "a.block")
                rhs = b.gep(self.shape.b, b_panel, b.mul(k0, edge.columns, "offset"), "b.block")
                self._tree(block, a, rhs, edge, segment)
        self._rows(edge, "c", block)

    def _tree(self, block: Value, a: Value, rhs: Value, edge: _ResultBlock, segment: BlockSegment) -> None:
        """The static product."""
        b = self.b
        sums = TensorType.dense(self.shape.block_type, (edge.rows, edge.columns))
        left = _block_type(self.shape.a, edge.rows, segment.size, transposed=self.shape.a_unit == "p")
        right = _block_type(self.shape.b, segment.size, edge.columns, transposed=self.shape.b_unit == "k")
        acc = b.tensor_load(block, sums)
        tokens = b.tensor_load(a, left), b.tensor_load(rhs, right)
        result = b.mma(self.shape.kind, acc, *tokens, sums)
        b.tensor_store(block, b.typeinfo(result, sums))

    def _rows(self, edge: _ResultBlock, name: str, block: Value) -> None:
        """Copy the valid part of a block from the accumulator or to the result."""
        b, p = self.b, self.p
        step = p["acc.column"] if name == "acc" else i64(1)
        start = b.add(b.mul(edge.m0, p[f"{name}.row"], "offset"), b.mul(edge.n0, step, "offset"), "offset")
        outside = b.gep(self.shape.c, p[name], start, name)
        with b.loop(0, edge.m_valid, name="row") as loop:
            inner = b.gep(self.shape.block_type, block, b.mul(loop.index, edge.columns, "offset"), "sums")
            outer = b.gep(self.shape.c, outside, b.mul(loop.index, p[f"{name}.row"], "offset"), name)
            to_block = (inner, outer, step) if name == "acc" else (outer, inner, i64(1))
            self._row(*to_block, edge.n_valid, into_block=name == "acc")

    def _row(self, destination: Value, source: Value, step: Value, count: Value, *, into_block: bool) -> None:
        b = self.b
        types = (self.shape.c, self.shape.block_type) if into_block else (self.shape.block_type, self.shape.c)
        if types[0] == types[1]:
            bits = IntType(8 * bytes_of(types[0]))
            copy_row(b, bits, (b.retype(destination, bits), i64(1)), (b.retype(source, bits), step), count)
            return
        with b.loop(0, count, name="j") as loop:
            value = b.load(types[0], b.gep(types[0], source, b.mul(loop.index, step, "offset")), bytes_of(types[0]))
            conversion = _conversion(*types, unsigned=self.shape.kind == "umma")
            if conversion == "fptrunc":
                value = emit_scalar_truncation(b, value, types[1])
            else:
                value = b.cast(conversion, value, types[1])
            b.store(value, b.gep(types[1], destination, loop.index), bytes_of(types[1]))


@dataclass(frozen=True)
class _ResultBlock:
    """A block of the result: its size, where it begins, and how much of it exists."""

    rows: int
    columns: int
    m0: Value
    n0: Value
    m_valid: Value
    n_valid: Value


def _conversion(source: Type, to: Type, *, unsigned: bool) -> str:
    """The cast between elements of the result and sums."""
    is_wider = bits_of(to) > bits_of(source)
    if isinstance(source, FloatType):
        return "fpext" if is_wider else "fptrunc"
    return ("zext" if unsigned else "sext") if is_wider else "trunc"


def _block_type(element: Type, rows: int, columns: int, *, transposed: bool) -> TensorType:
    if transposed:
        return TensorType(element, (columns, rows), (1, 0), (0, 0))
    return TensorType.dense(element, (rows, columns))
