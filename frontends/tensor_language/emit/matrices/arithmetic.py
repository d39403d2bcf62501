"""Arithmetic on cooperative matrices: entry by entry, products, scaling, construction, reductions.

Products, scaling and construction of cooperative matrices.

What lies column by column is the transposed matrix row by row, so a product needs no transposition:

    D = A B + C         D^T = B^T A^T + C^T
    MxN  MxK KxN MxN    NxM   NxK KxM  NxM

Sums, maxima and minima of the rows or columns of a cooperative matrix.

    .row      r_i = x_i0 + x_i1 + ...     M x 1
    .column   r_j = x_0j + x_1j + ...     1 x N

Lines are added up as vectors: of the columns for `.row`, of the rows for `.column`. Narrow floats are rounded once.
"""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.emit import arithmetic, numbers
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.masks import to_uniform
from tlx.frontends.tensor_language.emit.matrices.representation import (
    convert_matrix,
    map_matrices,
    matrix_type,
    read_entries,
    round_matrix,
    spill,
    splat_matrix,
)
from tlx.frontends.tensor_language.emit.values import Matrix, Parts, tensor_element
from tlx.frontends.tensor_language.operations.matrices import (
    CooperativeMatrixConstruct,
    CooperativeMatrixMulAdd,
    CooperativeMatrixReduce,
    CooperativeMatrixScale,
)
from tlx.frontends.tensor_language.operations.scalars import ArithBinary, ArithUnary, Cast, Constant
from tlx.frontends.tensor_language.types import F32, CoopMatrixType, ScalarType, promote
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.values import Local, Value


def arith_binary(e: Emitter, i: ArithBinary) -> None:
    """`%r = add %a, %b : type`."""
    if not isinstance(e.scope[i.lhs.text], Matrix):
        arithmetic.scalar_binary(e, i)
        return

    def entries(type_: ScalarType, parts: tuple[Parts, ...]) -> Parts:
        return arithmetic.binary(e, i.op, type_, *parts)

    e.bind(i.result, map_matrices(e, matrix_type(i), entries, e.matrix(i.lhs), e.matrix(i.rhs)))


def arith_unary(e: Emitter, i: ArithUnary) -> None:
    """`%r = neg %a : type`."""
    if not isinstance(e.scope[i.operand.text], Matrix):
        arithmetic.scalar_unary(e, i)
        return

    def entries(type_: ScalarType, parts: tuple[Parts, ...]) -> Parts:
        return arithmetic.unary(e, i.op, type_, *parts)

    e.bind(i.result, map_matrices(e, matrix_type(i), entries, e.matrix(i.operand)))


def constant(e: Emitter, i: Constant) -> None:
    """`%r = constant 1.0 : type`."""
    if not isinstance(i.type, CoopMatrixType):
        arithmetic.scalar_constant(e, i)
        return
    e.bind(i.result, splat_matrix(e, i.type, numbers.constant(i.type.component, i.value).parts))


def cast(e: Emitter, i: Cast) -> None:
    """`%r = cast %a : type`; the use of a matrix may change, its entries stay where they are."""
    if isinstance(i.type, CoopMatrixType):
        e.bind(i.result, convert_matrix(e, e.matrix(i.operand), i.type))
        return
    arithmetic.scalar_cast(e, i)


ARITHMETIC_RULES: Final = {ArithBinary: arith_binary, ArithUnary: arith_unary, Constant: constant, Cast: cast}


def mul_add(e: Emitter, i: CooperativeMatrixMulAdd) -> None:
    """`%d = cooperative_matrix_mul_add %a, %b, %c : type`, rounded once to the type of `%c`, then cast."""
    a, b, c = e.matrix(i.a), e.matrix(i.b), e.matrix(i.c)
    accumulated = F32 if c.type.component.is_narrow_float else c.type.component
    operand = _operand_type(a.type.component, b.type.component, accumulated)
    a, b = _as(e, a, operand), _as(e, b, operand)
    wide = _as(e, c, accumulated)
    product = _complex(e, a, b, wide) if accumulated.kind == "complex" else (_real(e, a, b, wide),)
    result = convert_matrix(e, Matrix(wide.type, product), c.type)
    e.bind(i.result, convert_matrix(e, result, matrix_type(i)))


def scale(e: Emitter, i: CooperativeMatrixScale) -> None:
    """`%r = cooperative_matrix_scale %scalar, %matrix : type`."""
    scalar, matrix = to_uniform(e, e.number(i.scalar)), e.matrix(i.matrix)
    count = matrix.type.rows * matrix.type.columns
    factor = tuple(numbers.splat(e, part, count) for part in scalar.parts)

    def entries(type_: ScalarType, parts: tuple[Parts, ...]) -> Parts:
        return arithmetic.binary(e, "mul", type_, factor, *parts)

    e.bind(i.result, map_matrices(e, matrix_type(i), entries, matrix))


def construct(e: Emitter, i: CooperativeMatrixConstruct) -> None:
    """`%r = cooperative_matrix_construct %value : type`."""
    e.bind(i.result, splat_matrix(e, matrix_type(i), to_uniform(e, e.number(i.value)).parts))


def _operand_type(a: ScalarType, b: ScalarType, accumulated: ScalarType) -> ScalarType:
    """The type that both operands are given: the accumulator's where only one of them is an integer or complex."""
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
    minus = Matrix(a.type, (a.parts[0], numbers.negated(e, a.parts[1])))
    first = Matrix(c.type, (_real(e, a, b, c, (0, 0, 0)), _real(e, a, b, c, (0, 1, 1))))
    return _real(e, minus, b, first, (1, 1, 0)), _real(e, a, b, first, (1, 0, 1))


def _transposed(e: Emitter, matrix: Matrix, part: Value) -> Local:
    return e.b.typeinfo(part, _transposed_type(matrix.type))


def _transposed_type(type_: CoopMatrixType) -> TensorType:
    """The transposed matrix as a row-major tensor: the same memory."""
    return TensorType.dense(tensor_element(type_.component), [type_.columns, type_.rows])


PRODUCT_RULES: Final = {
    CooperativeMatrixMulAdd: mul_add,
    CooperativeMatrixScale: scale,
    CooperativeMatrixConstruct: construct,
}


def reduce(e: Emitter, i: CooperativeMatrixReduce) -> None:
    """`%r = cooperative_matrix_reduce_add.row %matrix : type`."""
    matrix = e.matrix(i.matrix)
    component = matrix.type.component
    computed = F32 if component.is_narrow_float else component
    buffer = spill(e, matrix, by_rows=i.mode == "column")
    total = list(read_entries(e, buffer, 0, buffer.length))
    if buffer.lines > 1:
        with e.b.loop(1, buffer.lines, carry=total, name="line") as loop:
            line = read_entries(e, buffer, e.b.mul(loop.index, buffer.length), buffer.length)
            loop.next(*arithmetic.binary(e, i.op, computed, tuple(loop.carried), line))
        total = loop.results
    e.bind(i.result, round_matrix(e, matrix_type(i), tuple(total)))


REDUCTION_RULES: Final = {CooperativeMatrixReduce: reduce}
