"""Products of matrices of run-time size: loops over blocks of static size.

    define internal void @tlx.dynamic.smma...(ptr %c, i64 %c.row, ptr %a, ..., ptr %b, ..., i64 %m, i64 %n, i64 %k) {
      pack A and B into zero-padded blocks
      for n0: for m0:
        %block = 0 (or the accumulator's elements)
        for k0:
          store(%block, typeinfo(smma(load(%block), load(A block), load(B block))))        static, 64 x 64 x 256
        the elements of %block that exist -> C
    }

Both operands are packed before anything is written, so that the result may lie where an operand does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.mangle import mangle
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import FLOAT, I8, I32, I64, VOID, ArrayType, FloatType, IntType, Type, bits_of, bytes_of
from tlx.ir.values import Keyword, Local, Value
from tlx.lower.dynamic.copies import copy_row
from tlx.lower.dynamic.heap import LINE
from tlx.lower.dynamic.helpers import Helpers, numbers
from tlx.lower.dynamic.numbers import number, trap
from tlx.lower.dynamic.packs import DEPTHS, Segment, Source, Unit, each_block, emit_pack, round_up, segments
from tlx.lower.dynamic.views import Dim, is_one
from tlx.types import TensorType

ROWS: Final = (64, 8)
COLUMNS: Final = (64, 16)


@dataclass(frozen=True)
class Matrix:
    """A matrix in memory."""

    pointer: Value
    element: Type
    rows: Dim
    columns: Dim

    @property
    def steps(self) -> list[Value]:
        """Elements between rows and between columns."""
        return [self.rows.step, self.columns.step]


@dataclass(frozen=True)
class _Shape:
    """What is known of a product when its helper is made."""

    kind: str
    a: Type
    b: Type
    c: Type
    a_unit: Unit
    b_unit: Unit
    has_acc: bool

    @property
    def block_type(self) -> Type:
        """Element type that sums are kept in: at least as precise as the result's."""
        if isinstance(self.c, FloatType):
            return self.c if bits_of(self.c) >= 32 else FLOAT
        return self.c if bits_of(self.c) >= 32 else I32

    @property
    def name(self) -> str:
        """Name of the helper."""
        order = f"{'r' if self.a_unit == 'k' else 'c'}{'r' if self.b_unit == 'p' else 'c'}"
        words = [self.kind, *map(mangle, (self.a, self.b, self.c)), order, *(["acc"] if self.has_acc else [])]
        return ".".join(words)


def multiply(
    helpers: Helpers, b: Builder, kind: str, c: Matrix, lhs: Matrix, rhs: Matrix, acc: Matrix | None = None
) -> None:
    """`C = A @ B`, or `C = Acc + A @ B`; the columns of C are next to each other.

    Args:
        helpers: The module's helpers.
        b: Where.
        kind: How integers are extended: the name of a product with an accumulator.
        c: The result; its memory may be that of an operand, or exactly that of `acc`.
        lhs: A.
        rhs: B.
        acc: The accumulator.
    """
    a_unit: Unit = "p" if is_one(lhs.rows.step) and not is_one(lhs.columns.step) else "k"
    b_unit: Unit = "k" if is_one(rhs.rows.step) and not is_one(rhs.columns.step) else "p"
    shape = _Shape(kind, lhs.element, rhs.element, c.element, a_unit, b_unit, acc is not None)
    parameters: list[tuple[str, Type]] = [("c", _shared(helpers, c.element)), ("c.row", I64)]
    args: list[Value] = [b.retype(c.pointer, c.element), c.rows.step]
    for name, matrix in (("a", lhs), ("b", rhs), *((("acc", acc),) if acc is not None else ())):
        parameters += [(name, _shared(helpers, matrix.element)), *numbers(f"{name}.row", f"{name}.column")]
        args += [b.retype(matrix.pointer, matrix.element), *matrix.steps]
    parameters += numbers("m", "n", "k")
    args += [c.rows.extent, c.columns.extent, lhs.columns.extent]

    def build(inner: TensorBuilder, p: dict[str, Local]) -> None:
        _Builder(inner, shape, p).run()

    helpers.call(b, shape.name, parameters, args, build)


def _shared(helpers: Helpers, element: Type) -> Type:
    """A pointer to memory that other parameters may point to as well."""
    return helpers.module.pointer_to(element)


@dataclass(eq=False)
class _Builder:
    """Fills the helper."""

    b: TensorBuilder
    shape: _Shape
    p: dict[str, Local]

    def run(self) -> None:
        b, p = self.b, self.p
        depth = round_up(b, p["k"], DEPTHS[-1])
        a_bytes = self._bytes(self.shape.a, round_up(b, p["m"], ROWS[-1]), depth)
        b_bytes = self._bytes(self.shape.b, round_up(b, p["n"], COLUMNS[-1]), depth)
        memory = _malloc(b, b.add(a_bytes, b_bytes, "bytes"), "memory")
        a = self._packed("a", "m", ROWS, memory, self.shape.a_unit)
        rhs = self._packed("b", "n", COLUMNS, b.gep(I8, memory, a_bytes, "behind"), self.shape.b_unit)
        biggest = ArrayType(ROWS[0] * COLUMNS[0], self.shape.block_type)
        block = b.retype(b.alloca(biggest, "block"), self.shape.block_type)
        for columns in segments(b, p["n"], COLUMNS):
            with each_block(b, columns, p["n"], "n0") as (n0, n_valid):
                b_panel = b.gep(self.shape.b, rhs, b.mul(n0, depth, "offset"), "b.panel")
                for rows in segments(b, p["m"], ROWS):
                    with each_block(b, rows, p["m"], "m0") as (m0, m_valid):
                        a_panel = b.gep(self.shape.a, a, b.mul(m0, depth, "offset"), "a.panel")
                        edge = _Edge(rows.size, columns.size, m0, n0, m_valid, n_valid)
                        self._block(block, a_panel, b_panel, edge)
        b.call_named("free", VOID, [memory])

    def _bytes(self, element: Type, extent: Value, depth: Value) -> Value:
        """Bytes for an operand in blocks, from a line of the caches on."""
        b = self.b
        count = b.mul(extent, depth, "count")
        return b.add(b.mul(count, bytes_of(element), "bytes"), LINE - 1)

    def _packed(self, name: str, extent: str, sizes: Sequence[int], memory: Value, unit: Unit) -> Value:
        """An operand in blocks, from a line of the caches on in some memory."""
        b, p = self.b, self.p
        element = self.shape.a if name == "a" else self.shape.b
        bits = IntType(8 * bytes_of(element))
        blocks = b.at_boundary(memory, LINE, f"{name}.blocks")
        row, column = p[f"{name}.row"], p[f"{name}.column"]
        p_step, k_step = (row, column) if name == "a" else (column, row)
        source = Source(b.retype(p[name], bits), p[extent], p["k"], p_step, k_step)
        emit_pack(b, b.retype(blocks, bits), source, bits, sizes, unit)
        return b.retype(blocks, element)

    def _block(self, block: Value, a_panel: Value, b_panel: Value, edge: _Edge) -> None:
        b, type_ = self.b, self.shape.block_type
        b.memset(block, 0, edge.rows * edge.columns * bytes_of(type_))
        if self.shape.has_acc:
            self._rows(edge, "acc", block)
        for part in segments(b, self.p["k"], DEPTHS):
            with each_block(b, part, self.p["k"], "k0") as (k0, _):
                a = b.gep(self.shape.a, a_panel, b.mul(k0, edge.rows, "offset"), "a.block")
                rhs = b.gep(self.shape.b, b_panel, b.mul(k0, edge.columns, "offset"), "b.block")
                self._tree(block, a, rhs, edge, part)
        self._rows(edge, "c", block)

    def _tree(self, block: Value, a: Value, rhs: Value, edge: _Edge, part: Segment) -> None:
        """The static product."""
        b = self.b
        sums = TensorType.dense(self.shape.block_type, (edge.rows, edge.columns))
        left = _block_type(self.shape.a, edge.rows, part.size, transposed=self.shape.a_unit == "p")
        right = _block_type(self.shape.b, part.size, edge.columns, transposed=self.shape.b_unit == "k")
        acc = b.tensor_load(block, sums)
        tokens = b.tensor_load(a, left), b.tensor_load(rhs, right)
        result = b.mma(self.shape.kind, acc, *tokens, sums)
        b.tensor_store(block, b.typeinfo(result, sums))

    def _rows(self, edge: _Edge, name: str, block: Value) -> None:
        """The part of a block that exists, from the accumulator or to the result."""
        b, p = self.b, self.p
        step = p["acc.column"] if name == "acc" else number(1)
        start = b.add(b.mul(edge.m0, p[f"{name}.row"], "offset"), b.mul(edge.n0, step, "offset"), "offset")
        outside = b.gep(self.shape.c, p[name], start, name)
        with b.loop(0, edge.m_valid, name="row") as loop:
            inner = b.gep(self.shape.block_type, block, b.mul(loop.index, edge.columns, "offset"), "sums")
            outer = b.gep(self.shape.c, outside, b.mul(loop.index, p[f"{name}.row"], "offset"), name)
            to_block = (inner, outer, step) if name == "acc" else (outer, inner, number(1))
            self._row(*to_block, edge.n_valid, into_block=name == "acc")

    def _row(self, to: Value, source: Value, step: Value, count: Value, *, into_block: bool) -> None:
        b = self.b
        types = (self.shape.c, self.shape.block_type) if into_block else (self.shape.block_type, self.shape.c)
        if types[0] == types[1]:
            bits = IntType(8 * bytes_of(types[0]))
            copy_row(b, bits, (b.retype(to, bits), number(1)), (b.retype(source, bits), step), count)
            return
        with b.loop(0, count, name="j") as loop:
            value = b.load(types[0], b.gep(types[0], source, b.mul(loop.index, step, "offset")), bytes_of(types[0]))
            value = b.cast(_conversion(*types, unsigned=self.shape.kind == "umma"), value, types[1])
            b.store(value, b.gep(types[1], to, loop.index), bytes_of(types[1]))


@dataclass(frozen=True)
class _Edge:
    """A block of the result: its size, where it begins, and how much of it exists."""

    rows: int
    columns: int
    m0: Value
    n0: Value
    m_valid: Value
    n_valid: Value


def _conversion(source: Type, to: Type, *, unsigned: bool) -> str:
    """The cast between a result's elements and the sums (whose upper bits are cut off again)."""
    is_wider = bits_of(to) > bits_of(source)
    if isinstance(source, FloatType):
        return "fpext" if is_wider else "fptrunc"
    return ("zext" if unsigned else "sext") if is_wider else "trunc"


def _block_type(element: Type, rows: int, columns: int, *, transposed: bool) -> TensorType:
    if transposed:
        return TensorType(element, (columns, rows), (1, 0), (0, 0))
    return TensorType.dense(element, (rows, columns))


def _malloc(b: TensorBuilder, size: Value, name: str) -> Value:
    """Memory, or the end of the program."""
    pointer = b.pointer(I8)
    memory = b.call_named("malloc", pointer, [size], name).value
    here = b.block
    end = b.new_block("allocated", here)
    stop = b.new_block("out.of.memory", here)
    b.at_end(here)
    b.branch_if(b.icmp("eq", memory, Keyword(pointer, "null"), "none"), stop, end)
    trap(b, stop)
    b.at_end(end)
    return memory
