"""Instructions that work on scalars and, entry by entry, on cooperative matrices: arithmetic, constants, casts."""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.ast.mixed import ArithBinary, ArithUnary, Cast, Constant
from tlx.frontends.tensor_language.emit import arithmetic, conversions, numbers
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.matrices import converted, mapped, matrix_type, splat_matrix
from tlx.frontends.tensor_language.emit.values import Matrix, Parts
from tlx.frontends.tensor_language.types import CoopMatrixType, ScalarType


def arith_binary(e: Emitter, i: ArithBinary) -> None:
    """`%r = add %a, %b : type`."""
    if not isinstance(e.scope[i.lhs.text], Matrix):
        arithmetic.arith_binary(e, i)
        return

    def entries(type_: ScalarType, parts: tuple[Parts, ...]) -> Parts:
        return arithmetic.binary(e, i.op, type_, *parts)

    e.bind(i.result, mapped(e, matrix_type(i), entries, e.matrix(i.lhs), e.matrix(i.rhs)))


def arith_unary(e: Emitter, i: ArithUnary) -> None:
    """`%r = neg %a : type`."""
    if not isinstance(e.scope[i.operand.text], Matrix):
        arithmetic.arith_unary(e, i)
        return

    def entries(type_: ScalarType, parts: tuple[Parts, ...]) -> Parts:
        return arithmetic.unary(e, i.op, type_, *parts)

    e.bind(i.result, mapped(e, matrix_type(i), entries, e.matrix(i.operand)))


def constant(e: Emitter, i: Constant) -> None:
    """`%r = constant 1.0 : type`."""
    if not isinstance(i.type, CoopMatrixType):
        conversions.constant_rule(e, i)
        return
    e.bind(i.result, splat_matrix(e, i.type, numbers.constant(i.type.component, i.value).parts))


def cast(e: Emitter, i: Cast) -> None:
    """`%r = cast %a : type`; the use of a matrix may change, its entries stay where they are."""
    if isinstance(i.type, CoopMatrixType):
        e.bind(i.result, converted(e, e.matrix(i.operand), i.type))
        return
    conversions.cast(e, i)


RULES: Final = {ArithBinary: arith_binary, ArithUnary: arith_unary, Constant: constant, Cast: cast}
