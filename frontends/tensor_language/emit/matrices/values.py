"""Cooperative matrices: their representation, arithmetic, and the components that each work-item holds.

A matrix is one uniform value of the whole subgroup: a flattened vector in column-major order, a tensor, or a buffer.

    coopmatrix<f32x8x4,matrix_acc>  ->  <32 x float>: rows 0..7 of column 0, of column 1, ...
                                        tensor: memory shape <4, 8>, layout <1, 0>

Its element type is that of tensors (`bfloat`, `half`); arithmetic widens it to the register type.

A buffer on the stack holds the columns of a matrix, or its rows where it is transposed, one line after the other.
Narrow floats have their memory type; complex numbers have a buffer for each part. A work-item vector fits after the
last entry, so that reading one never leaves the buffer.

A column-major matrix is its transpose in row-major order, so a product needs no transposition:

    D = A B + C         D^T = B^T A^T + C^T
    MxN  MxK KxN MxN    NxM   NxK KxM  NxM

Reductions add up lines as vectors, columns for `.row` and rows for `.column`; narrow floats are rounded once:

    .row      r_i = x_i0 + x_i1 + ...     M x 1
    .column   r_j = x_0j + x_1j + ...     1 x N

Work-item vectors: an M x N matrix in a subgroup of S is split into chunks of S entries; component v of work-item p is
entry p of chunk v. A chunk consists of neighbours in a column, and continues in the next column where these are shorter
than S:

    M <= S    chunk v begins at entry v S of the matrix, column by column
    M >  S    blocks of S rows, one below the other (`matrix_b` of small types: K1 = 2 / size of them side by side):
              v = k1 + K1 (j + N k2)  ->  column j, first row S (k1 + K1 k2)

So a chunk is S adjacent entries of a buffer; the last one may extend beyond the matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tlx.frontends.tensor_language.emit.arithmetic import registers, scalars
from tlx.frontends.tensor_language.emit.arithmetic.scalars import convert, from_memory, lane_ids, splat, to_memory, vary
from tlx.frontends.tensor_language.emit.emitter import (
    Emitter,
    Matrix,
    Number,
    Parts,
    memory_type,
    register_type,
    tensor_element,
)
from tlx.frontends.tensor_language.emit.matrices import distributed
from tlx.frontends.tensor_language.emit.subgroups import to_uniform
from tlx.frontends.tensor_language.operations.scalars import ArithBinary, ArithUnary, Cast, Constant
from tlx.frontends.tensor_language.operations.subgroups import (
    CooperativeMatrixApply,
    CooperativeMatrixConstruct,
    CooperativeMatrixExtract,
    CooperativeMatrixInsert,
    CooperativeMatrixMulAdd,
    CooperativeMatrixReduce,
    CooperativeMatrixScale,
)
from tlx.frontends.tensor_language.syntax.nodes import Instruction
from tlx.frontends.tensor_language.types import F32, CoopMatrixType, ScalarType, promote
from tlx.frontends.tensor_language.types import I32 as LANGUAGE_I32
from tlx.frontends.tensor_language.work_items import WorkItemLayout
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import I32, I64, ArrayType, VectorType
from tlx.ir.values import Local, Value, const_int, const_ints


def matrix_type(i: Instruction) -> CoopMatrixType:
    """The type of the matrix that is the result of an instruction."""
    assert isinstance(i.type, CoopMatrixType)
    return i.type


def tensor_type(type_: CoopMatrixType, *, by_rows: bool = False) -> TensorType:
    """A part of a matrix as a tensor, logically rows x columns: column-major, or row-major."""
    element = tensor_element(type_.component)
    if by_rows:
        return TensorType.dense(element, type_.shape)
    return TensorType(element, (type_.columns, type_.rows), (1, 0), (0, 0))


def as_tensor(e: Emitter, type_: CoopMatrixType, part: Value, *, by_rows: bool) -> Local:
    """A part of a matrix as a tensor; by rows it is transposed."""
    token = e.b.typeinfo(part, tensor_type(type_))
    return e.b.typeinfo(e.b.transpose(token, (0, 1)), tensor_type(type_, by_rows=True)) if by_rows else token


def from_tensor(e: Emitter, token: Local, *, by_rows: bool) -> Value:
    """A tensor as a part of a matrix."""
    return e.b.transpose(token, (1, 0)) if by_rows else e.b.tovector(token)


def entries_of(e: Emitter, type_: CoopMatrixType) -> int:
    """Number of entries in the vector of a part: those of the whole matrix or, on a grid, of one thread."""
    return type_.rows * type_.columns if e.item is None else distributed.layout_of(e, type_).components


def _widened(e: Emitter, matrix: Matrix) -> Parts:
    """The parts in the register type."""
    vector = VectorType(entries_of(e, matrix.type), register_type(matrix.type.component))
    return tuple(e.b.cast("fpext", part, vector) for part in matrix.parts)


def round_matrix(e: Emitter, type_: CoopMatrixType, parts: Parts) -> Matrix:
    """A matrix of parts in the register type; narrow floats are rounded to nearest, ties to even."""
    if e.item is not None:
        return Matrix(type_, tuple(scalars.round_to_type(e, part, type_.component.part) for part in parts))
    vector = VectorType(type_.rows * type_.columns, tensor_element(type_.component))
    return Matrix(type_, tuple(e.b.cast("fptrunc", part, vector) for part in parts))


def splat_matrix(e: Emitter, type_: CoopMatrixType, parts: Parts) -> Matrix:
    """A matrix with the same (register) value in every entry."""
    return round_matrix(e, type_, tuple(splat(e, part, entries_of(e, type_)) for part in parts))


def convert_matrix(e: Emitter, matrix: Matrix, type_: CoopMatrixType) -> Matrix:
    """A matrix cast to another component type or use."""
    source, component = matrix.type.component, type_.component
    if e.item is not None:
        return distributed.converted(e, matrix, type_)
    if source == component:
        return Matrix(type_, matrix.parts)
    if source.kind == component.kind == "float":
        vector = VectorType(type_.rows * type_.columns, tensor_element(component))
        opcode = "fptrunc" if component.bits < source.bits else "fpext"
        if component.bits != source.bits:
            return Matrix(type_, (e.b.cast(opcode, matrix.value, vector),))
        return round_matrix(e, type_, _widened(e, matrix))
    return round_matrix(e, type_, convert(e, _widened(e, matrix), source, component))


def map_matrices(
    e: Emitter,
    result: CoopMatrixType,
    function: Callable[[ScalarType, tuple[Parts, ...]], Parts],
    *operands: Matrix,
) -> Matrix:
    """A function of matrices, entry by entry.

    Args:
        e: The emitter.
        result: Type of the result.
        function: Maps the type of the computation and the parts of the operands to the parts of the result.
        operands: The matrices, of one component type.
    """
    component = operands[0].type.component
    computed = F32 if component.is_narrow_float else component
    return round_matrix(e, result, function(computed, tuple(_widened(e, operand) for operand in operands)))


@dataclass(frozen=True, slots=True)
class MatrixInMemory:
    """A matrix in memory.

    Attributes:
        type: Type of the matrix.
        pointers: First element, of each part.
        by_rows: Whether lines are rows.
    """

    type: CoopMatrixType
    pointers: tuple[Value, ...]
    by_rows: bool = False

    @property
    def lines(self) -> int:
        """Number of lines."""
        return self.type.rows if self.by_rows else self.type.columns

    @property
    def length(self) -> int:
        """Entries of a line."""
        return self.type.columns if self.by_rows else self.type.rows

    @property
    def tensor(self) -> TensorType:
        """A part as a tensor."""
        return tensor_type(self.type, by_rows=self.by_rows)


def new_buffer(e: Emitter, type_: CoopMatrixType, *, by_rows: bool = False) -> MatrixInMemory:
    """An uninitialised buffer."""
    count = type_.rows * type_.columns + e.lanes
    element = memory_type(type_.component)
    parts = 2 if type_.component.kind == "complex" else 1
    pointers = [e.b.retype(e.b.alloca(ArrayType(count, element), "matrix"), element) for _ in range(parts)]
    return MatrixInMemory(type_, tuple(pointers), by_rows)


def spill(e: Emitter, matrix: Matrix, *, by_rows: bool = False) -> MatrixInMemory:
    """A new buffer with the entries of a matrix."""
    buffer = new_buffer(e, matrix.type, by_rows=by_rows)
    for part, pointer in zip(matrix.parts, buffer.pointers, strict=True):
        e.b.tensor_store(pointer, as_tensor(e, matrix.type, part, by_rows=by_rows))
    return buffer


def reload(e: Emitter, buffer: MatrixInMemory) -> Matrix:
    """The matrix in a buffer."""
    tensor, by_rows = buffer.tensor, buffer.by_rows
    parts = (from_tensor(e, e.b.tensor_load(pointer, tensor), by_rows=by_rows) for pointer in buffer.pointers)
    return Matrix(buffer.type, tuple(parts))


def read_entries(e: Emitter, buffer: MatrixInMemory, offset: Value | int, count: int | None = None) -> Parts:
    """Load entries from an offset on, in the register type: a vector, or without a count a scalar."""
    component = buffer.type.component
    element = memory_type(component)
    type_ = element if count is None else VectorType(count, element)
    places = (_place(e, buffer, pointer, offset) for pointer in buffer.pointers)
    return tuple(from_memory(e, e.b.load(type_, place, component.part.size), component) for place in places)


def write_entries(e: Emitter, buffer: MatrixInMemory, offset: Value | int, parts: Parts) -> None:
    """Store one entry (scalars) or several (vectors), in the register type, at an offset."""
    component = buffer.type.component
    for part, pointer in zip(parts, buffer.pointers, strict=True):
        e.b.store(to_memory(e, part, component), _place(e, buffer, pointer, offset), component.part.size)


def _place(e: Emitter, buffer: MatrixInMemory, pointer: Value, offset: Value | int) -> Value:
    position = const_int(I64, offset) if isinstance(offset, int) else offset
    return e.b.gep(memory_type(buffer.type.component), pointer, position)


def arith_binary(e: Emitter, i: ArithBinary) -> None:
    """`%r = add %a, %b : type`."""

    def entries(type_: ScalarType, parts: tuple[Parts, ...]) -> Parts:
        return scalars.binary(e, i.op, type_, *parts)

    if isinstance(i.type, CoopMatrixType):
        e.bind(i.result, map_matrices(e, i.type, entries, e.matrix(i.lhs), e.matrix(i.rhs)))
    else:
        e.bind(i.result, scalars.scalar_binary(e, i))


def arith_unary(e: Emitter, i: ArithUnary) -> None:
    """`%r = neg %a : type`."""

    def entries(type_: ScalarType, parts: tuple[Parts, ...]) -> Parts:
        return scalars.unary(e, i.op, type_, *parts)

    if isinstance(i.type, CoopMatrixType):
        e.bind(i.result, map_matrices(e, i.type, entries, e.matrix(i.operand)))
    else:
        e.bind(i.result, scalars.scalar_unary(e, i))


def constant(e: Emitter, i: Constant) -> None:
    """`%r = constant 1.0 : type`."""
    if isinstance(i.type, CoopMatrixType):
        e.bind(i.result, splat_matrix(e, i.type, scalars.constant(i.type.component, i.value).parts))
    else:
        assert isinstance(i.type, ScalarType)
        e.bind(i.result, scalars.constant(i.type, i.value))


def cast(e: Emitter, i: Cast) -> None:
    """`%r = cast %a : type`; the use of a matrix may change, its entries stay where they are."""
    if isinstance(i.type, CoopMatrixType):
        e.bind(i.result, convert_matrix(e, e.matrix(i.operand), i.type))
    else:
        assert isinstance(i.type, ScalarType)
        e.bind(i.result, scalars.cast_number(e, e.number(i.operand), i.type))


def mul_add(e: Emitter, i: CooperativeMatrixMulAdd) -> None:
    """`%d = cooperative_matrix_mul_add %a, %b, %c : type`, rounded once to the type of `%c`, then cast."""
    a, b, c = e.matrix(i.a), e.matrix(i.b), e.matrix(i.c)
    accumulated = F32 if c.type.component.is_narrow_float else c.type.component
    operand = _operand_type(a.type.component, b.type.component, accumulated)
    if e.item is not None:
        wide = _as(e, c, accumulated)
        result = distributed.product(e, a, b, wide, operand)
        e.bind(i.result, convert_matrix(e, convert_matrix(e, result, c.type), matrix_type(i)))
        return
    a, b = _as(e, a, operand), _as(e, b, operand)
    wide = _as(e, c, accumulated)
    product = _complex(e, a, b, wide) if accumulated.kind == "complex" else (_real(e, a, b, wide),)
    result = convert_matrix(e, Matrix(wide.type, product), c.type)
    e.bind(i.result, convert_matrix(e, result, matrix_type(i)))


def scale(e: Emitter, i: CooperativeMatrixScale) -> None:
    """`%r = cooperative_matrix_scale %scalar, %matrix : type`."""
    scalar, matrix = to_uniform(e, e.number(i.scalar)), e.matrix(i.matrix)
    count = entries_of(e, matrix.type)
    factor = tuple(scalars.splat(e, part, count) for part in scalar.parts)

    def entries(type_: ScalarType, parts: tuple[Parts, ...]) -> Parts:
        return scalars.binary(e, "mul", type_, factor, *parts)

    e.bind(i.result, map_matrices(e, matrix_type(i), entries, matrix))


def construct(e: Emitter, i: CooperativeMatrixConstruct) -> None:
    """`%r = cooperative_matrix_construct %value : type`."""
    e.bind(i.result, splat_matrix(e, matrix_type(i), to_uniform(e, e.number(i.value)).parts))


def _operand_type(a: ScalarType, b: ScalarType, accumulated: ScalarType) -> ScalarType:
    """The type to which both operands are converted: the accumulator's if the kinds differ."""
    common = promote(a, b)
    assert common is not None, "the checker lets only promotable operands pass"
    return common if common.kind == accumulated.kind else accumulated


def _as(e: Emitter, matrix: Matrix, component: ScalarType) -> Matrix:
    type_ = matrix.type
    return convert_matrix(e, matrix, CoopMatrixType(component, type_.rows, type_.columns, type_.use))


def _real(e: Emitter, a: Matrix, b: Matrix, c: Matrix, parts: tuple[int, int, int] = (0, 0, 0)) -> Value:
    """`C + A B` of one part of each."""
    acc = _transposed(e, c, c.parts[parts[2]])
    lhs, rhs = _transposed(e, b, b.parts[parts[1]]), _transposed(e, a, a.parts[parts[0]])
    return e.b.mma("smma", acc, lhs, rhs, _transposed_type(c.type))


def _complex(e: Emitter, a: Matrix, b: Matrix, c: Matrix) -> Parts:
    """(Ar + Ai i)(Br + Bi i) + C: four real products."""
    minus = Matrix(a.type, (a.parts[0], registers.negated(e, a.parts[1])))
    first = Matrix(c.type, (_real(e, a, b, c, (0, 0, 0)), _real(e, a, b, c, (0, 1, 1))))
    return _real(e, minus, b, first, (1, 1, 0)), _real(e, a, b, first, (1, 0, 1))


def _transposed(e: Emitter, matrix: Matrix, part: Value) -> Local:
    return e.b.typeinfo(part, _transposed_type(matrix.type))


def _transposed_type(type_: CoopMatrixType) -> TensorType:
    """The transposed matrix as a row-major tensor: the same memory."""
    return TensorType.dense(tensor_element(type_.component), [type_.columns, type_.rows])


def reduce(e: Emitter, i: CooperativeMatrixReduce) -> None:
    """`%r = cooperative_matrix_reduce_add.row %matrix : type`."""
    matrix = e.matrix(i.matrix)
    component = matrix.type.component
    computed = F32 if component.is_narrow_float else component
    if e.item is not None:
        components = distributed.reduced(e, i.op, matrix, matrix_type(i), computed, by_row=i.mode == "row")
        e.bind(
            i.result, round_matrix(e, matrix_type(i), distributed.from_components(e, matrix_type(i), components).parts)
        )
        return
    buffer = spill(e, matrix, by_rows=i.mode == "column")
    total = list(read_entries(e, buffer, 0, buffer.length))
    if buffer.lines > 1:
        with e.b.loop(1, buffer.lines, carry=total, name="line") as loop:
            line = read_entries(e, buffer, e.b.mul(loop.index, buffer.length), buffer.length)
            loop.next(*scalars.binary(e, i.op, computed, tuple(loop.carried), line))
        total = loop.results
    e.bind(i.result, round_matrix(e, matrix_type(i), tuple(total)))


def extract(e: Emitter, i: CooperativeMatrixExtract) -> None:
    """`%r = cooperative_matrix_extract %matrix[index] : type`."""
    matrix = e.matrix(i.matrix)
    layout = WorkItemLayout(matrix.type, e.launch.subgroup_size)
    if e.item is not None:
        parts = tuple(splat(e, part) for part in distributed.component_of(e, matrix, i.index))
    else:
        parts = read_entries(e, spill(e, matrix), layout.offset(i.index), e.lanes)
    e.bind(i.result, Number(matrix.type.component, parts))


def insert(e: Emitter, i: CooperativeMatrixInsert) -> None:
    """`%r = cooperative_matrix_insert %value, %matrix[index] : type`."""
    matrix = e.matrix(i.matrix)
    layout = WorkItemLayout(matrix.type, e.launch.subgroup_size)
    if e.item is not None:
        values = [e.b.extract_element(part, 0) for part in vary(e, e.number(i.value)).parts]
        parts = (e.b.insert_element(p, v, i.index) for p, v in zip(matrix.parts, values, strict=True))
        e.bind(i.result, Matrix(matrix.type, tuple(parts)))
        return
    buffer = spill(e, matrix)
    write_entries(e, buffer, layout.offset(i.index), vary(e, e.number(i.value)).parts)
    e.bind(i.result, reload(e, buffer))


def apply(e: Emitter, i: CooperativeMatrixApply) -> None:
    """`%r = cooperative_matrix_apply (%row,%column,%value)=%matrix -> type { ... }`: the region for each chunk."""
    matrix = e.matrix(i.matrix)
    layout = WorkItemLayout(matrix.type, e.launch.subgroup_size)
    if e.item is not None:
        count = distributed.layout_of(e, matrix.type).components
        components = [_component(e, i, matrix, number) for number in range(count)]
        e.bind(i.result, distributed.from_components(e, matrix_type(i), components))
        return
    source, result = spill(e, matrix), new_buffer(e, matrix.type)
    with e.b.loop(0, layout.components, name="component") as component:
        _chunk(e, i, layout, (source, result), component.index)
    e.bind(i.result, reload(e, result))


def _component(e: Emitter, i: CooperativeMatrixApply, matrix: Matrix, number: int) -> Parts:
    """What the region of `apply` gives for a component of a thread."""
    row, column, mask = distributed.positions(e, matrix.type, number)
    with e.masked(mask), e.region():
        e.bind(i.row, Number(LANGUAGE_I32, (row,)))
        e.bind(i.column, Number(LANGUAGE_I32, (column,)))
        parts = tuple(splat(e, part) for part in distributed.component_of(e, matrix, number))
        e.bind(i.value_name, Number(matrix.type.component, parts))
        (value,) = e.instructions(i.body.instructions)
        assert isinstance(value, Number)
        return tuple(e.b.extract_element(part, 0) for part in vary(e, value).parts)


def _chunk(
    e: Emitter,
    i: CooperativeMatrixApply,
    layout: WorkItemLayout,
    buffers: tuple[MatrixInMemory, MatrixInMemory],
    component: Value,
) -> None:
    """Run the region of `apply` on one chunk."""
    source, result = buffers
    row, column, offset, mask = _positions(e, layout, component)
    with e.masked(mask), e.region():
        e.bind(i.row, Number(LANGUAGE_I32, (row,)))
        e.bind(i.column, Number(LANGUAGE_I32, (column,)))
        e.bind(i.value_name, Number(layout.type.component, read_entries(e, source, offset, e.lanes)))
        (value,) = e.instructions(i.body.instructions)
        assert isinstance(value, Number)
        write_entries(e, result, offset, vary(e, value).parts)


def _positions(e: Emitter, layout: WorkItemLayout, component: Value) -> tuple[Value, Value, Value, Value | None]:
    """Row and column of each lane's entry (i32), the chunk's offset (i64), and which lanes have an entry."""
    b, rows, lanes = e.b, layout.type.rows, e.lanes
    ids = lane_ids(e)
    if layout.is_linear:
        offset = b.mul(component, lanes)
        entries = b.add(b.splat(b.cast("trunc", offset, I32), lanes), ids)
        height = const_ints(I32, [rows] * lanes)
        full = layout.is_full
        mask = None if full else b.icmp("ult", entries, rows * layout.type.columns)
        return b.binary("urem", entries, height), b.binary("udiv", entries, height), offset, mask
    width, k = layout.type.columns, layout.side_by_side
    k1 = b.binary("urem", component, const_int(I64, k))
    rest = b.binary("udiv", component, const_int(I64, k))
    column = b.binary("urem", rest, const_int(I64, width))
    block = b.add(k1, b.mul(b.binary("udiv", rest, const_int(I64, width)), k))
    first = b.mul(block, lanes)
    row = b.add(b.splat(b.cast("trunc", first, I32), lanes), ids)
    return row, b.splat(b.cast("trunc", column, I32), lanes), b.add(first, b.mul(column, rows)), None
