"""Methods that write arithmetic, comparisons and functions: one an operation.

k.add(a, 2.0)       a + 2.0
k.less_than(i, n)   i < n
k.exp(x)
"""

from __future__ import annotations

from tlx.diagnostics import UsageError
from tlx.frontends.tensor_language.builder.core import Core
from tlx.frontends.tensor_language.builder.types import TypeLike, scalar_of
from tlx.frontends.tensor_language.builder.values import Operand, Value
from tlx.frontends.tensor_language.syntax.ast.base import Name
from tlx.frontends.tensor_language.syntax.ast.mixed import (
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
from tlx.frontends.tensor_language.types import BOOL, CoopMatrixType, ScalarType, Type


class Arithmetic(Core):
    """Operations on scalars and on cooperative matrices. One of two operands may be a number."""

    def add(self, lhs: Operand, rhs: Operand) -> Value:
        """`add`: the sum, entry by entry of matrices. Integers wrap around.

        Args:
            lhs: A number or a cooperative matrix.
            rhs: As lhs. Either may be a Python number, which takes the type of the other.

        Raises:
            TlxError: The types differ, or are bool.
        """
        return self._binary("add", lhs, rhs)

    def sub(self, lhs: Operand, rhs: Operand) -> Value:
        """`sub`: the difference. Integers wrap around.

        Args:
            lhs: A number or a cooperative matrix.
            rhs: As lhs. Either may be a Python number, which takes the type of the other.

        Raises:
            TlxError: The types differ, or are bool.
        """
        return self._binary("sub", lhs, rhs)

    def mul(self, lhs: Operand, rhs: Operand) -> Value:
        """`mul`: the product, of matrices entry by entry. Integers wrap around.

        Args:
            lhs: A number or a cooperative matrix.
            rhs: As lhs. Either may be a Python number, which takes the type of the other.

        Raises:
            TlxError: The types differ, or are bool.
        """
        return self._binary("mul", lhs, rhs)

    def div(self, lhs: Operand, rhs: Operand) -> Value:
        """`div`: the quotient, rounded towards zero for integers.

        Args:
            lhs: A number or a cooperative matrix.
            rhs: The divisor, as lhs. Either may be a Python number, which takes the type of the other.

        Raises:
            TlxError: The types differ, are bool, or the divisor is the integer constant 0.
        """
        return self._binary("div", lhs, rhs)

    def rem(self, lhs: Operand, rhs: Operand) -> Value:
        """`rem`: the remainder of a division, with the sign of the dividend.

        Args:
            lhs: A real number or a cooperative matrix of them.
            rhs: The divisor, as lhs. Either may be a Python number, which takes the type of the other.

        Raises:
            TlxError: The types differ, are bool or complex, or the divisor is the integer constant 0.
        """
        return self._binary("rem", lhs, rhs)

    def max(self, lhs: Operand, rhs: Operand) -> Value:
        """`max`: the larger one; of a number and NaN the number.

        Args:
            lhs: A real number or a cooperative matrix of them.
            rhs: As lhs. Either may be a Python number, which takes the type of the other.

        Raises:
            TlxError: The types differ, or are bool or complex.
        """
        return self._binary("max", lhs, rhs)

    def min(self, lhs: Operand, rhs: Operand) -> Value:
        """`min`: the smaller one; of a number and NaN the number.

        Args:
            lhs: A real number or a cooperative matrix of them.
            rhs: As lhs. Either may be a Python number, which takes the type of the other.

        Raises:
            TlxError: The types differ, or are bool or complex.
        """
        return self._binary("min", lhs, rhs)

    def shl(self, lhs: Operand, rhs: Operand) -> Value:
        """`shl`: lhs shifted to the left.

        Args:
            lhs: An integer or a cooperative matrix of them.
            rhs: By how many bits, modulo the width, as lhs. Either may be a Python number, which takes the type of the
                other.

        Raises:
            TlxError: The types differ, or are not integers.
        """
        return self._binary("shl", lhs, rhs)

    def shr(self, lhs: Operand, rhs: Operand) -> Value:
        """`shr`: lhs shifted to the right; copies of its sign come in.

        Args:
            lhs: An integer or a cooperative matrix of them.
            rhs: By how many bits, modulo the width, as lhs. Either may be a Python number, which takes the type of the
                other.

        Raises:
            TlxError: The types differ, or are not integers.
        """
        return self._binary("shr", lhs, rhs)

    def and_(self, lhs: Operand, rhs: Operand) -> Value:
        """`and`: the bits of which both are set; of bool the logical operation.

        Args:
            lhs: An integer, a bool, or a cooperative matrix of integers.
            rhs: As lhs. Either may be a Python number, which takes the type of the other.

        Raises:
            TlxError: The types differ, or are neither integers nor bool.
        """
        return self._binary("and", lhs, rhs)

    def or_(self, lhs: Operand, rhs: Operand) -> Value:
        """`or`: the bits of which one or both are set; of bool the logical operation.

        Args:
            lhs: An integer, a bool, or a cooperative matrix of integers.
            rhs: As lhs. Either may be a Python number, which takes the type of the other.

        Raises:
            TlxError: The types differ, or are neither integers nor bool.
        """
        return self._binary("or", lhs, rhs)

    def xor(self, lhs: Operand, rhs: Operand) -> Value:
        """`xor`: the bits of which exactly one are set; of bool the logical operation.

        Args:
            lhs: An integer, a bool, or a cooperative matrix of integers.
            rhs: As lhs. Either may be a Python number, which takes the type of the other.

        Raises:
            TlxError: The types differ, or are neither integers nor bool.
        """
        return self._binary("xor", lhs, rhs)

    def pow(self, lhs: Operand, rhs: Operand) -> Value:
        """`pow`: lhs to the power of rhs, with the special cases of C's `pow`; an extension.

        Args:
            lhs: A floating number or a cooperative matrix of them.
            rhs: As lhs. Either may be a Python number, which takes the type of the other.

        Raises:
            TlxError: The types differ, or are not floating.
        """
        return self._binary("pow", lhs, rhs)

    def sqrt(self, operand: Value) -> Value:
        """`sqrt`: the square root, correctly rounded; NaN below zero; an extension.

        Args:
            operand: A floating number or a cooperative matrix of them.

        Raises:
            TlxError: The operand is not floating.
        """
        return self._unary("sqrt", operand)

    def tanh(self, operand: Value) -> Value:
        """`tanh`: the hyperbolic tangent; an extension.

        Args:
            operand: A floating number or a cooperative matrix of them.

        Raises:
            TlxError: The operand is not floating.
        """
        return self._unary("tanh", operand)

    def abs(self, operand: Value) -> Value:
        """`abs`: the absolute value; of a complex number c32 an f32, of c64 an f64.

        Args:
            operand: A number or a cooperative matrix.

        Raises:
            TlxError: The operand is bool.
        """
        return self._unary("abs", operand)

    def neg(self, operand: Value) -> Value:
        """`neg`: the number with the other sign.

        Args:
            operand: A number or a cooperative matrix.

        Raises:
            TlxError: The operand is bool.
        """
        return self._unary("neg", operand)

    def not_(self, operand: Value) -> Value:
        """`not`: the bits that are not set; of bool the negation.

        Args:
            operand: An integer, a bool, or a cooperative matrix of integers.

        Raises:
            TlxError: The operand is neither.
        """
        return self._unary("not", operand)

    def conj(self, operand: Value) -> Value:
        """`conj`: the complex conjugate.

        Args:
            operand: A complex number or a cooperative matrix of them.

        Raises:
            TlxError: The operand is not complex.
        """
        return self._unary("conj", operand)

    def im(self, operand: Value) -> Value:
        """`im`: the imaginary part; of c32 an f32, of c64 an f64.

        Args:
            operand: A complex number or a cooperative matrix of them.

        Raises:
            TlxError: The operand is not complex.
        """
        return self._unary("im", operand)

    def re(self, operand: Value) -> Value:
        """`re`: the real part; of c32 an f32, of c64 an f64.

        Args:
            operand: A complex number or a cooperative matrix of them.

        Raises:
            TlxError: The operand is not complex.
        """
        return self._unary("re", operand)

    def equal(self, lhs: Operand, rhs: Operand) -> Value:
        """`equal`: whether two numbers are equal; NaN equals nothing; gives a `bool`.

        Args:
            lhs: A number.
            rhs: As lhs. Either may be a Python number, which takes the type of the other.

        Raises:
            TlxError: The types differ, or are not numbers.
        """
        return self._compare("equal", lhs, rhs)

    def not_equal(self, lhs: Operand, rhs: Operand) -> Value:
        """`not_equal`: whether two numbers differ; NaN differs from everything; gives a `bool`.

        Args:
            lhs: A number.
            rhs: As lhs. Either may be a Python number, which takes the type of the other.

        Raises:
            TlxError: The types differ, or are not numbers.
        """
        return self._compare("not_equal", lhs, rhs)

    def greater_than(self, lhs: Operand, rhs: Operand) -> Value:
        """`greater_than`: whether lhs > rhs; not if one of them is NaN; gives a `bool`.

        Args:
            lhs: A real number.
            rhs: As lhs. Either may be a Python number, which takes the type of the other.

        Raises:
            TlxError: The types differ, or are not real numbers.
        """
        return self._compare("greater_than", lhs, rhs)

    def greater_than_equal(self, lhs: Operand, rhs: Operand) -> Value:
        """`greater_than_equal`: whether lhs >= rhs; not if one of them is NaN; gives a `bool`.

        Args:
            lhs: A real number.
            rhs: As lhs. Either may be a Python number, which takes the type of the other.

        Raises:
            TlxError: The types differ, or are not real numbers.
        """
        return self._compare("greater_than_equal", lhs, rhs)

    def less_than(self, lhs: Operand, rhs: Operand) -> Value:
        """`less_than`: whether lhs < rhs; not if one of them is NaN; gives a `bool`.

        Args:
            lhs: A real number.
            rhs: As lhs. Either may be a Python number, which takes the type of the other.

        Raises:
            TlxError: The types differ, or are not real numbers.
        """
        return self._compare("less_than", lhs, rhs)

    def less_than_equal(self, lhs: Operand, rhs: Operand) -> Value:
        """`less_than_equal`: whether lhs <= rhs; not if one of them is NaN; gives a `bool`.

        Args:
            lhs: A real number.
            rhs: As lhs. Either may be a Python number, which takes the type of the other.

        Raises:
            TlxError: The types differ, or are not real numbers.
        """
        return self._compare("less_than_equal", lhs, rhs)

    def cos(self, operand: Value) -> Value:
        """`cos`: the cosine.

        Args:
            operand: A floating number: f32, f64, or f16 and bf16, which are computed in f32.

        Raises:
            TlxError: The operand is not floating.
        """
        return self._function("cos", operand)

    def sin(self, operand: Value) -> Value:
        """`sin`: the sine.

        Args:
            operand: A floating number: f32, f64, or f16 and bf16, which are computed in f32.

        Raises:
            TlxError: The operand is not floating.
        """
        return self._function("sin", operand)

    def exp(self, operand: Value) -> Value:
        """`exp`: e to the power of the operand.

        Args:
            operand: A floating number: f32, f64, or f16 and bf16, which are computed in f32; or a complex one.

        Raises:
            TlxError: The operand is neither floating nor complex.
        """
        return self._function("exp", operand)

    def exp2(self, operand: Value) -> Value:
        """`exp2`: 2 to the power of the operand.

        Args:
            operand: A floating number: f32, f64, or f16 and bf16, which are computed in f32; or a complex one.

        Raises:
            TlxError: The operand is neither floating nor complex.
        """
        return self._function("exp2", operand)

    def log(self, operand: Value) -> Value:
        """`log`: the natural logarithm.

        Args:
            operand: A floating number: f32, f64, or f16 and bf16, which are computed in f32.

        Raises:
            TlxError: The operand is not floating.
        """
        return self._function("log", operand)

    def log2(self, operand: Value) -> Value:
        """`log2`: the logarithm to base 2.

        Args:
            operand: A floating number: f32, f64, or f16 and bf16, which are computed in f32.

        Raises:
            TlxError: The operand is not floating.
        """
        return self._function("log2", operand)

    def native_cos(self, operand: Value) -> Value:
        """`native_cos`: the cosine, as exact here as `cos` is.

        Args:
            operand: A floating number: f32, f64, or f16 and bf16, which are computed in f32.

        Raises:
            TlxError: The operand is not floating.
        """
        return self._function("native_cos", operand)

    def native_sin(self, operand: Value) -> Value:
        """`native_sin`: the sine, as exact here as `sin` is.

        Args:
            operand: A floating number: f32, f64, or f16 and bf16, which are computed in f32.

        Raises:
            TlxError: The operand is not floating.
        """
        return self._function("native_sin", operand)

    def native_exp(self, operand: Value) -> Value:
        """`native_exp`: e to the power of the operand, as exact here as `exp` is.

        Args:
            operand: A floating number: f32, f64, or f16 and bf16, which are computed in f32; or a complex one.

        Raises:
            TlxError: The operand is neither floating nor complex.
        """
        return self._function("native_exp", operand)

    def native_exp2(self, operand: Value) -> Value:
        """`native_exp2`: 2 to the power of the operand, as exact here as `exp2` is.

        Args:
            operand: A floating number: f32, f64, or f16 and bf16, which are computed in f32; or a complex one.

        Raises:
            TlxError: The operand is neither floating nor complex.
        """
        return self._function("native_exp2", operand)

    def native_log(self, operand: Value) -> Value:
        """`native_log`: the natural logarithm, as exact here as `log` is.

        Args:
            operand: A floating number: f32, f64, or f16 and bf16, which are computed in f32.

        Raises:
            TlxError: The operand is not floating.
        """
        return self._function("native_log", operand)

    def native_log2(self, operand: Value) -> Value:
        """`native_log2`: the logarithm to base 2, as exact here as `log2` is.

        Args:
            operand: A floating number: f32, f64, or f16 and bf16, which are computed in f32.

        Raises:
            TlxError: The operand is not floating.
        """
        return self._function("native_log2", operand)

    def cast(self, operand: Value, type_: TypeLike) -> Value:
        """`cast`: the value in another type. Floats are rounded to nearest; to integers they are cut off and saturate.

        Args:
            operand: A number or a cooperative matrix.
            type_: The type of the result; for a matrix of the same shape and use, where matrix_acc may become any use.

        Raises:
            TlxError: Either type is bool, complex becomes real, or the shapes differ.
        """
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
