"""Methods that write arithmetic, comparisons and functions: one an operation.

k.add(a, 2.0)       a + 2.0
k.less_than(i, n)   i < n
k.exp(x)
"""

from __future__ import annotations

from tlx.diagnostics import UsageError
from tlx.frontends.tensor_language.ast.base import Name
from tlx.frontends.tensor_language.ast.mixed import (
    ArithBinary,
    ArithBinaryOp,
    ArithUnary,
    ArithUnaryOp,
    Cast,
    Comparison,
    ComparisonOp,
    Math,
    MathOp,
)
from tlx.frontends.tensor_language.builder_core import Core
from tlx.frontends.tensor_language.builder_types import TypeLike, scalar_of
from tlx.frontends.tensor_language.builder_values import Operand, Value
from tlx.frontends.tensor_language.types import BOOL, CoopMatrixType, ScalarType, Type


class Arithmetic(Core):
    """Operations on scalars and on cooperative matrices. One of two operands may be a number."""

    def add(self, lhs: Operand, rhs: Operand) -> Value:
        """`add` of two values: their sum."""
        return self._binary("add", lhs, rhs)

    def sub(self, lhs: Operand, rhs: Operand) -> Value:
        """`sub` of two values: their difference."""
        return self._binary("sub", lhs, rhs)

    def mul(self, lhs: Operand, rhs: Operand) -> Value:
        """`mul` of two values: their product."""
        return self._binary("mul", lhs, rhs)

    def div(self, lhs: Operand, rhs: Operand) -> Value:
        """`div` of two values: their quotient, towards zero for integers."""
        return self._binary("div", lhs, rhs)

    def rem(self, lhs: Operand, rhs: Operand) -> Value:
        """`rem` of two values: the remainder, with the sign of the first."""
        return self._binary("rem", lhs, rhs)

    def max(self, lhs: Operand, rhs: Operand) -> Value:
        """`max` of two values: the larger."""
        return self._binary("max", lhs, rhs)

    def min(self, lhs: Operand, rhs: Operand) -> Value:
        """`min` of two values: the smaller."""
        return self._binary("min", lhs, rhs)

    def shl(self, lhs: Operand, rhs: Operand) -> Value:
        """`shl` of two integers: the first, shifted to the left."""
        return self._binary("shl", lhs, rhs)

    def shr(self, lhs: Operand, rhs: Operand) -> Value:
        """`shr` of two integers: the first, shifted to the right with its sign."""
        return self._binary("shr", lhs, rhs)

    def and_(self, lhs: Operand, rhs: Operand) -> Value:
        """`and` of two integers or truth values."""
        return self._binary("and", lhs, rhs)

    def or_(self, lhs: Operand, rhs: Operand) -> Value:
        """`or` of two integers or truth values."""
        return self._binary("or", lhs, rhs)

    def xor(self, lhs: Operand, rhs: Operand) -> Value:
        """`xor` of two integers or truth values."""
        return self._binary("xor", lhs, rhs)

    def pow(self, lhs: Operand, rhs: Operand) -> Value:
        """`pow` of two floating numbers: the first to the power of the second."""
        return self._binary("pow", lhs, rhs)

    def sqrt(self, operand: Value) -> Value:
        """`sqrt` of a floating number: its square root."""
        return self._unary("sqrt", operand)

    def tanh(self, operand: Value) -> Value:
        """`tanh` of a floating number: its hyperbolic tangent."""
        return self._unary("tanh", operand)

    def abs(self, operand: Value) -> Value:
        """`abs` of a value; real for complex numbers."""
        return self._unary("abs", operand)

    def neg(self, operand: Value) -> Value:
        """`neg` of a value."""
        return self._unary("neg", operand)

    def not_(self, operand: Value) -> Value:
        """`not` of an integer or truth value."""
        return self._unary("not", operand)

    def conj(self, operand: Value) -> Value:
        """`conj` of a complex number."""
        return self._unary("conj", operand)

    def im(self, operand: Value) -> Value:
        """`im` of a complex number: the imaginary part."""
        return self._unary("im", operand)

    def re(self, operand: Value) -> Value:
        """`re` of a complex number: the real part."""
        return self._unary("re", operand)

    def equal(self, lhs: Operand, rhs: Operand) -> Value:
        """`equal` of two scalars."""
        return self._compare("equal", lhs, rhs)

    def not_equal(self, lhs: Operand, rhs: Operand) -> Value:
        """`not_equal` of two scalars."""
        return self._compare("not_equal", lhs, rhs)

    def greater_than(self, lhs: Operand, rhs: Operand) -> Value:
        """`greater_than` of two scalars."""
        return self._compare("greater_than", lhs, rhs)

    def greater_than_equal(self, lhs: Operand, rhs: Operand) -> Value:
        """`greater_than_equal` of two scalars."""
        return self._compare("greater_than_equal", lhs, rhs)

    def less_than(self, lhs: Operand, rhs: Operand) -> Value:
        """`less_than` of two scalars."""
        return self._compare("less_than", lhs, rhs)

    def less_than_equal(self, lhs: Operand, rhs: Operand) -> Value:
        """`less_than_equal` of two scalars."""
        return self._compare("less_than_equal", lhs, rhs)

    def cos(self, operand: Value) -> Value:
        """`cos` of a scalar: the cosine."""
        return self._function("cos", operand)

    def sin(self, operand: Value) -> Value:
        """`sin` of a scalar: the sine."""
        return self._function("sin", operand)

    def exp(self, operand: Value) -> Value:
        """`exp` of a scalar: e to the power of it."""
        return self._function("exp", operand)

    def exp2(self, operand: Value) -> Value:
        """`exp2` of a scalar: two to the power of it."""
        return self._function("exp2", operand)

    def log(self, operand: Value) -> Value:
        """`log` of a scalar: the natural logarithm."""
        return self._function("log", operand)

    def log2(self, operand: Value) -> Value:
        """`log2` of a scalar: the logarithm to base two."""
        return self._function("log2", operand)

    def native_cos(self, operand: Value) -> Value:
        """`native_cos` of a scalar: the cosine, less exactly."""
        return self._function("native_cos", operand)

    def native_sin(self, operand: Value) -> Value:
        """`native_sin` of a scalar: the sine, less exactly."""
        return self._function("native_sin", operand)

    def native_exp(self, operand: Value) -> Value:
        """`native_exp` of a scalar: e to the power of it, less exactly."""
        return self._function("native_exp", operand)

    def native_exp2(self, operand: Value) -> Value:
        """`native_exp2` of a scalar: two to the power of it, less exactly."""
        return self._function("native_exp2", operand)

    def native_log(self, operand: Value) -> Value:
        """`native_log` of a scalar: the natural logarithm, less exactly."""
        return self._function("native_log", operand)

    def native_log2(self, operand: Value) -> Value:
        """`native_log2` of a scalar: the logarithm to base two, less exactly."""
        return self._function("native_log2", operand)

    def cast(self, operand: Value, type_: TypeLike) -> Value:
        """`cast`: a value in another type."""
        return self._write_one(Cast(operand=self._name(operand)), self._type(type_))

    def _binary(self, op: ArithBinaryOp, lhs: Operand, rhs: Operand) -> Value:
        left, right, type_ = self._alike(op, lhs, rhs)
        return self._write_one(ArithBinary(op=op, lhs=left, rhs=right), type_)

    def _unary(self, op: ArithUnaryOp, operand: Value) -> Value:
        name = self._name(operand)
        type_ = operand.type
        if op in ("abs", "im", "re") and isinstance(type_, ScalarType | CoopMatrixType):
            type_ = type_.part
        return self._write_one(ArithUnary(op=op, operand=name), type_)

    def _compare(self, op: ComparisonOp, lhs: Operand, rhs: Operand) -> Value:
        left, right, _ = self._alike(op, lhs, rhs)
        return self._write_one(Comparison(op=op, lhs=left, rhs=right), BOOL)

    def _function(self, op: MathOp, operand: Value) -> Value:
        return self._write_one(Math(op=op, operand=self._name(operand)), operand.type)

    def _alike(self, what: str, lhs: Operand, rhs: Operand) -> tuple[Name, Name, Type]:
        """Names of two operands of one type; a number takes the type of the other operand."""
        type_ = self._common_type((lhs, rhs))
        if type_ is None:
            raise UsageError(f"{what} of two numbers: compute it in Python, or make one a constant()", self.here())
        left, right = self._given(lhs, type_), self._given(rhs, type_)
        if left.type != right.type or scalar_of(type_) is None:
            raise UsageError(f"{what} needs operands of one type, got {left!r} and {right!r}: cast() one", self.here())
        return self._name(left), self._name(right), type_
