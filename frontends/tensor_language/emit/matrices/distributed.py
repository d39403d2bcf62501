"""Cooperative matrices on a grid: each thread of a subgroup holds the components that the layout assigns to it.

    coopmatrix<f32x16x32,matrix_acc>, 16 threads   ->   <32 x float> in each; component v of lane p is entry (p, v)

A layout belongs to a type of matrices. It is the layout of fragments (`fragments.FragmentLayout`) where the grid
multiplies such operands or gives such sums, unless the kernel accesses components by their numbers or combines them
with values that differ between work-items; otherwise it is that of the language (`WorkItemLayout`). Matrices that are
only copied are chunks of memory (`chunks.ChunkLayout`), and operands of fragments that are only multiplied are their
registers.

Components have the register type. If threads need each other's entries, a matrix passes through the subgroup's scratch
memory, column by column. So do the operands of products that are not products of fragments:

    D = A B + C      scratch := A, B;   each thread: sums := C;  for k: sums_v += A[row_v, k] * B[k, column_v]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tlx.frontends.tensor_language.emit import threads
from tlx.frontends.tensor_language.emit.arithmetic.registers import gathered, negated, scalars_of
from tlx.frontends.tensor_language.emit.arithmetic.scalars import binary, convert, from_memory, to_memory
from tlx.frontends.tensor_language.emit.emitter import Emitter, Matrix, Parts, memory_type
from tlx.frontends.tensor_language.emit.matrices.chunks import ChunkLayout
from tlx.frontends.tensor_language.emit.matrices.fragments import (
    FragmentLayout,
    Fragments,
    fits,
    from_registers,
    multiplied,
    product_of,
    registers_of,
)
from tlx.frontends.tensor_language.operations.core import UpdateOp
from tlx.frontends.tensor_language.types import CoopMatrixType, ScalarType
from tlx.frontends.tensor_language.work_items import WorkItemLayout
from tlx.ir.types import I8, I32, I64
from tlx.ir.values import Value, const_int

_ALIGNMENT = 16


Layout = WorkItemLayout | FragmentLayout


def chunks_of(e: Emitter, type_: CoopMatrixType) -> ChunkLayout | None:
    """How a matrix that is only copied is distributed over the work-items of a subgroup; None for others."""
    assert e.item is not None
    layout = ChunkLayout(type_, e.launch.subgroup_size)
    return layout if type_ in e.item.uses.copied and layout.is_exact else None


def layout_of(e: Emitter, type_: CoopMatrixType) -> Layout:
    """How a matrix that is not only copied is distributed over the work-items of a subgroup."""
    assert e.item is not None
    if type_ not in e.item.uses.by_components and any(fits(product, type_) for product in e.item.products):
        return FragmentLayout(type_)
    return WorkItemLayout(type_, e.launch.subgroup_size)


def is_in_registers(e: Emitter, type_: CoopMatrixType) -> bool:
    """Whether a matrix is held as the registers of an operand, each of which has several components."""
    assert e.item is not None
    layout = layout_of(e, type_)
    return type_ in e.item.uses.multiplied and isinstance(layout, FragmentLayout) and layout.adjacent > 1


@dataclass(frozen=True, slots=True)
class MatrixEntry:
    """The entry of a matrix that is a component of a thread.

    Attributes:
        row, column: Its place, i64; of a component beyond the matrix, some place in it.
        exists: Whether there is one; None if all threads have one.
    """

    row: Value
    column: Value
    exists: Value | None

    def offset(self, e: Emitter, type_: CoopMatrixType) -> Value:
        """Its number, counted column by column."""
        return e.b.add(self.row, e.b.mul(self.column, type_.rows))


def entry_of(e: Emitter, layout: Layout, component: int) -> MatrixEntry:
    """The entry of a component."""
    assert e.item is not None
    b, type_ = e.b, layout.type
    row, column = layout.place(component)
    lane = b.cast("zext", e.item.lane, I64)
    if isinstance(layout, FragmentLayout):
        down, across = layout.from_lane_0(e, lane)
        return MatrixEntry(b.add(down, row), b.add(across, column), None)
    if not layout.is_linear:
        return MatrixEntry(b.add(lane, row), const_int(I64, column), None)
    if type_.rows == layout.subgroup_size:
        return MatrixEntry(lane, const_int(I64, column), None)
    number, count = b.add(lane, component * layout.subgroup_size), type_.rows * type_.columns
    exists = None
    if (component + 1) * layout.subgroup_size > count:
        exists = b.icmp("ult", number, count)
        number = b.umin(number, count - 1)
    rows = const_int(I64, type_.rows)
    return MatrixEntry(b.binary("urem", number, rows), b.binary("udiv", number, rows), exists)


def component_of(e: Emitter, matrix: Matrix, number: int) -> Parts:
    """A component, a scalar of each part in the register type."""
    return tuple(e.b.extract_element(part, number) for part in matrix.parts)


def from_components(e: Emitter, type_: CoopMatrixType, components: Sequence[Parts]) -> Matrix:
    """The matrix of some components."""
    return Matrix(type_, tuple(gathered(e, scalars) for scalars in zip(*components, strict=True)))


def relaid(e: Emitter, parts: Parts, old: Layout, new: Layout) -> Parts:
    """The components that a matrix has in another layout; both are of the same shape and component type."""
    if not _are_aligned(old, new):
        (scratch,) = write_scratch(e, [(parts, old)])
        entries = [entry_of(e, new, number) for number in range(new.components)]
        components = [read_scratch(e, scratch, entry.row, entry.column) for entry in entries]
        return tuple(gathered(e, scalars) for scalars in zip(*components, strict=True))
    places = {old.place(component): component for component in range(old.components)}
    order = [places[new.place(component)] for component in range(new.components)]
    if order == list(range(len(order))):
        return parts
    return tuple(gathered(e, [e.b.extract_element(part, number) for number in order]) for part in parts)


def _are_aligned(old: Layout, new: Layout) -> bool:
    """Whether each lane holds the same entries in both layouts."""
    if isinstance(old, WorkItemLayout) or isinstance(new, WorkItemLayout):
        return type(old) is type(new)
    return old.is_aligned_with(new)


def converted(e: Emitter, matrix: Matrix, type_: CoopMatrixType) -> Matrix:
    """A matrix with the component type, the use, and the layout of another type of the same shape."""
    parts = relaid(e, matrix.parts, layout_of(e, matrix.type), layout_of(e, type_))
    return Matrix(type_, convert(e, parts, matrix.type.component, type_.component))


@dataclass(frozen=True, slots=True)
class ScratchMatrix:
    """A matrix in the subgroup's scratch memory, column by column, its parts one after the other."""

    type: CoopMatrixType
    offset: int

    @property
    def part_bytes(self) -> int:
        """Bytes of a part."""
        size = self.type.rows * self.type.columns * self.type.component.part.size
        return -(-size // _ALIGNMENT) * _ALIGNMENT

    def bytes_of_all(self) -> int:
        """Bytes of all parts."""
        return self.part_bytes * (2 if self.type.component.kind == "complex" else 1)


def write_scratch(e: Emitter, matrices: Sequence[tuple[Parts, Layout]]) -> list[ScratchMatrix]:
    """Write matrices to the scratch memory, where all threads of the subgroup can read them."""
    assert e.item is not None
    offset, written = 0, list[ScratchMatrix]()
    for _, layout in matrices:
        written.append(ScratchMatrix(layout.type, offset))
        offset += written[-1].bytes_of_all()
    shared = e.item.shared
    shared.most_scratch = max(shared.most_scratch, offset)
    threads.barrier(e)
    for (parts, layout), scratch in zip(matrices, written, strict=True):
        _write(e, parts, layout, scratch)
    threads.barrier(e)
    return written


def _write(e: Emitter, parts: Parts, layout: Layout, scratch: ScratchMatrix) -> None:
    component = layout.type.component
    for number in range(layout.components):
        entry = entry_of(e, layout, number)
        with threads.where(e, entry.exists):
            for part, vector in enumerate(parts):
                place = _place(e, scratch, part, entry.offset(e, layout.type))
                e.b.store(to_memory(e, e.b.extract_element(vector, number), component), place, component.part.size)


def _place(e: Emitter, scratch: ScratchMatrix, part: int, number: Value) -> Value:
    assert e.item is not None
    base = e.b.gep(I8, e.item.shared.scratch, scratch.offset + part * scratch.part_bytes)
    return e.b.gep(memory_type(scratch.type.component), base, number)


def read_scratch(e: Emitter, scratch: ScratchMatrix, row: Value, column: Value) -> Parts:
    """An entry, a scalar of each part in the register type."""
    component = scratch.type.component
    number = e.b.add(row, e.b.mul(column, scratch.type.rows))
    parts = range(2 if component.kind == "complex" else 1)
    return tuple(
        from_memory(
            e, e.b.load(memory_type(component), _place(e, scratch, part, number), component.part.size), component
        )
        for part in parts
    )


def product(e: Emitter, a: Matrix, b: Matrix, c: Matrix, operand: ScalarType) -> Matrix:
    """`A B + C`, of the type of C; operands are converted to a type."""
    types = [replace(m.type, component=operand) for m in (a, b)]
    fragments = product_of(e, types[0], types[1], c.type)
    if fragments is None:
        return _product_of_entries(e, _in_components(e, a), _in_components(e, b), c, operand)
    layout = FragmentLayout(c.type)
    (start,) = relaid(e, c.parts, layout_of(e, c.type), layout)
    left, right = (_fragments(e, m, type_) for m, type_ in zip((a, b), types, strict=True))
    sums = multiplied(e, fragments, left, right, start)
    return Matrix(c.type, relaid(e, (sums,), layout, layout_of(e, c.type)))


def _in_components(e: Emitter, matrix: Matrix) -> Matrix:
    """A matrix as its components, if it is held in registers."""
    if not is_in_registers(e, matrix.type):
        return matrix
    layout = FragmentLayout(matrix.type)
    return Matrix(matrix.type, (from_registers(e, layout, scalars_of(e, matrix.value)),))


def _fragments(e: Emitter, matrix: Matrix, type_: CoopMatrixType) -> Fragments:
    """A matrix, converted to a type, as an operand of a product of fragments."""
    layout = FragmentLayout(type_)
    if matrix.type == type_ and is_in_registers(e, type_):
        return Fragments(layout, scalars_of(e, matrix.value))
    matrix = converted(e, _in_components(e, matrix), type_)
    (components,) = relaid(e, matrix.parts, layout_of(e, type_), layout)
    return Fragments(layout, registers_of(e, components, layout))


def _product_of_entries(e: Emitter, a: Matrix, b: Matrix, c: Matrix, operand: ScalarType) -> Matrix:
    component, layout = c.type.component, layout_of(e, c.type)
    left, right = write_scratch(e, [(m.parts, layout_of(e, m.type)) for m in (a, b)])
    entries = [entry_of(e, layout, number) for number in range(layout.components)]
    start = [value for number in range(len(entries)) for value in component_of(e, c, number)]
    width = len(c.parts)
    with e.b.loop(0, a.type.columns, carry=start, name="k") as loop:
        sums: list[Value] = []
        for number, entry in enumerate(entries):
            x = read_scratch(e, left, entry.row, loop.index)
            y = read_scratch(e, right, loop.index, entry.column)
            x, y = convert(e, x, a.type.component, operand), convert(e, y, b.type.component, operand)
            x, y = convert(e, x, operand, component), convert(e, y, operand, component)
            old = tuple(loop.carried[number * width : (number + 1) * width])
            sums += _multiplied(e, component, x, y, old)
        loop.next(*sums)
    components = [tuple(loop.results[k : k + width]) for k in range(0, len(loop.results), width)]
    return from_components(e, c.type, components)


def _multiplied(e: Emitter, type_: ScalarType, x: Parts, y: Parts, old: Parts) -> Parts:
    """`x y + old`."""
    if type_.kind == "float":
        return (e.b.fma(x[0], y[0], old[0]),)
    if type_.kind == "complex":
        real = e.b.fma(negated(e, x[1]), y[1], e.b.fma(x[0], y[0], old[0]))
        return real, e.b.fma(x[1], y[0], e.b.fma(x[0], y[1], old[1]))
    return binary(e, "add", type_, old, binary(e, "mul", type_, x, y))


def reduced(
    e: Emitter, op: UpdateOp, matrix: Matrix, to: CoopMatrixType, computed: ScalarType, *, by_row: bool
) -> list[Parts]:
    """The components of a matrix of one column or row: `op` of the rows or columns of another, not yet rounded."""
    (scratch,) = write_scratch(e, [(matrix.parts, layout_of(e, matrix.type))])
    components: list[Parts] = []
    layout = layout_of(e, to)
    for number in range(layout.components):
        entry = entry_of(e, layout, number)

        def read(k: Value, entry: MatrixEntry = entry) -> Parts:
            return read_scratch(e, scratch, *((entry.row, k) if by_row else (k, entry.column)))

        count = matrix.type.columns if by_row else matrix.type.rows
        first = read(const_int(I64, 0))
        if count == 1:
            components.append(first)
            continue
        with e.b.loop(1, count, carry=list(first), name="line") as loop:
            loop.next(*binary(e, op, computed, tuple(loop.carried), read(loop.index)))
        components.append(tuple(loop.results))
    return components


def positions(e: Emitter, type_: CoopMatrixType, component: int) -> tuple[Value, Value, Value | None]:
    """Row and column of a component (vectors of an i32), and the mask of the threads that have one."""
    entry = entry_of(e, layout_of(e, type_), component)
    row, column = (e.b.splat(e.b.cast("trunc", value, I32), 1) for value in (entry.row, entry.column))
    return row, column, None if entry.exists is None else e.b.splat(entry.exists, 1)
