"""Products, scaling and construction of cooperative matrices.

What lies column by column is the transposed matrix row by row, so a product needs no transposition:

    D = A B + C         D^T = B^T A^T + C^T
    MxN  MxK KxN MxN    NxM   NxK KxM  NxM
"""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.ast.spmd import (
    CooperativeMatrixConstruct,
    CooperativeMatrixMulAdd,
    CooperativeMatrixScale,
)
from tlx.frontends.tensor_language.emit import arithmetic, numbers
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.masks import uniform
from tlx.frontends.tensor_language.emit.matrices import converted, mapped, matrix_type, splat_matrix
from tlx.frontends.tensor_language.emit.values import Matrix, Parts, tensor_element
from tlx.frontends.tensor_language.types import F32, CoopMatrixType, ScalarType, promote
from tlx.ir.values import Local, Value
from tlx.types import TensorType


def mul_add(e: Emitter, i: CooperativeMatrixMulAdd) -> None:
    """`%d = cooperative_matrix_mul_add %a, %b, %c : type`, rounded once to the type of `%c`, then cast."""
    a, b, c = e.matrix(i.a), e.matrix(i.b), e.matrix(i.c)
    accumulated = F32 if c.type.component.is_narrow_float else c.type.component
    operand = _operand_type(a.type.component, b.type.component, accumulated)
    a, b = _as(e, a, operand), _as(e, b, operand)
    wide = _as(e, c, accumulated)
    product = _complex(e, a, b, wide) if accumulated.kind == "complex" else (_real(e, a, b, wide),)
    result = converted(e, Matrix(wide.type, product), c.type)
    e.bind(i.result, converted(e, result, matrix_type(i)))


def scale(e: Emitter, i: CooperativeMatrixScale) -> None:
    """`%r = cooperative_matrix_scale %scalar, %matrix : type`."""
    scalar, matrix = uniform(e, e.number(i.scalar)), e.matrix(i.matrix)
    count = matrix.type.rows * matrix.type.columns
    factor = tuple(numbers.splat(e, part, count) for part in scalar.parts)

    def entries(type_: ScalarType, parts: tuple[Parts, ...]) -> Parts:
        return arithmetic.binary(e, "mul", type_, factor, *parts)

    e.bind(i.result, mapped(e, matrix_type(i), entries, matrix))


def construct(e: Emitter, i: CooperativeMatrixConstruct) -> None:
    """`%r = cooperative_matrix_construct %value : type`."""
    e.bind(i.result, splat_matrix(e, matrix_type(i), uniform(e, e.number(i.value)).parts))


def _operand_type(a: ScalarType, b: ScalarType, accumulated: ScalarType) -> ScalarType:
    """The type that both operands are given: the accumulator's where only one of them is an integer or complex."""
    common = promote(a, b)
    assert common is not None, "the checker lets only promotable operands pass"
    return common if common.kind == accumulated.kind else accumulated


def _as(e: Emitter, matrix: Matrix, component: ScalarType) -> Matrix:
    type_ = matrix.type
    return converted(e, matrix, CoopMatrixType(component, type_.rows, type_.columns, type_.use))


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


RULES: Final = {
    CooperativeMatrixMulAdd: mul_add,
    CooperativeMatrixScale: scale,
    CooperativeMatrixConstruct: construct,
}
