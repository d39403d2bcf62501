"""Methods that write arithmetic, comparisons and functions: one an operation.

k.add(a, 2.0)       a + 2.0
k.less_than(i, n)   i < n
k.exp(x)
"""

from __future__ import annotations

from typing import Final

from tlx.diagnostics import UsageError
from tlx.frontends.tensor_language.builder.core import Core, document, method
from tlx.frontends.tensor_language.builder.types import TypeLike, scalar_of
from tlx.frontends.tensor_language.builder.values import Operand, Value
from tlx.frontends.tensor_language.operations import OPERATIONS
from tlx.frontends.tensor_language.operations.scalars import (
    BITS,
    COMPLEX,
    FLOAT,
    INTEGER,
    MEANINGS,
    NUMBER,
    REAL,
    Cast,
    Comparison,
)
from tlx.frontends.tensor_language.types import BOOL, CoopMatrixType, ScalarType

# By the kinds that an operation takes: its operands, and types of two operands or of one that it refuses.
_SCALARS_OR_MATRICES: Final = {
    NUMBER: ("A number or a cooperative matrix.", "are bool", "bool"),
    REAL: ("A real number or a cooperative matrix of them.", "are bool or complex", "bool or complex"),
    INTEGER: ("An integer or a cooperative matrix of them.", "are not integers", "no integer"),
    BITS: ("An integer, a bool, or a cooperative matrix of integers.", "are neither integers nor bool", "neither"),
    FLOAT: ("A floating number or a cooperative matrix of them.", "are not floating", "not floating"),
    COMPLEX: ("A complex number or a cooperative matrix of them.", "are not complex", "not complex"),
}
_NUMBERS: Final = {
    NUMBER: ("A number.", "are not numbers"),
    REAL: ("A real number.", "are not real numbers"),
}
_FLOATING: Final = "A floating number: f32, f64, or f16 and bf16, which are computed in f32"
_ARGUMENTS: Final = {
    FLOAT: (f"{_FLOATING}.", "not floating"),
    FLOAT | COMPLEX: (f"{_FLOATING}; or a complex one.", "neither floating nor complex"),
}
_DIVISIONS: Final = ("div", "rem")
_RIGHT: Final = {
    **dict.fromkeys(_DIVISIONS, "The divisor, as lhs."),
    **dict.fromkeys(("shl", "shr"), "By how many bits, modulo the width, as lhs."),
}


def _of_two(name: str) -> str:
    operands, refused, _ = _SCALARS_OR_MATRICES[MEANINGS[name].kinds]
    divisor = ", or the divisor is the integer constant 0"
    return _pair(name, operands, f"{refused}{divisor}" if name in _DIVISIONS else f"or {refused}")


def _compared(name: str) -> str:
    operands, refused = _NUMBERS[MEANINGS[name].kinds]
    return _pair(name, operands, f"or {refused}")


def _pair(name: str, operands: str, refused: str) -> str:
    right = f"{_RIGHT.get(name, 'As lhs.')} Either may be a Python number, which takes the type of the other."
    return document(MEANINGS[name].text, {"lhs": operands, "rhs": right}, f"The types differ, {refused}.")


def _of_one(name: str) -> str:
    operand, _, refused = _SCALARS_OR_MATRICES[MEANINGS[name].kinds]
    return document(MEANINGS[name].text, {"operand": operand}, f"The operand is {refused}.")


def _function(name: str) -> str:
    operand, refused = _ARGUMENTS[MEANINGS[name].kinds]
    return document(MEANINGS[name].text, {"operand": operand}, f"The operand is {refused}.")


class Arithmetic(Core):
    """Operations on scalars and on cooperative matrices. One of two operands may be a number."""

    def _unary(self, name: str, operand: Value) -> Value:
        type_ = operand.type
        if name in ("abs", "im", "re") and isinstance(type_, ScalarType | CoopMatrixType):
            type_ = type_.part
        return self._write_named(name, type_, operand=self._name(operand))

    def _binary(self, name: str, lhs: Operand, rhs: Operand) -> Value:
        """Write an operation on two operands of one type; a number takes the type of the other operand."""
        type_ = self._common_type((lhs, rhs))
        if type_ is None:
            raise UsageError(f"{name} of two numbers: compute it in Python, or make one a constant()", self.here())
        left, right = self._given(lhs, type_), self._given(rhs, type_)
        if left.type != right.type or scalar_of(type_) is None:
            raise UsageError(f"{name} needs operands of one type, got {left!r} and {right!r}: cast() one", self.here())
        result = BOOL if OPERATIONS[name].node is Comparison else type_
        return self._write_named(name, result, lhs=self._name(left), rhs=self._name(right))

    add = method(_binary, "add", _of_two)
    sub = method(_binary, "sub", _of_two)
    mul = method(_binary, "mul", _of_two)
    div = method(_binary, "div", _of_two)
    rem = method(_binary, "rem", _of_two)
    max = method(_binary, "max", _of_two)
    min = method(_binary, "min", _of_two)
    shl = method(_binary, "shl", _of_two)
    shr = method(_binary, "shr", _of_two)
    and_ = method(_binary, "and", _of_two)
    or_ = method(_binary, "or", _of_two)
    xor = method(_binary, "xor", _of_two)
    pow = method(_binary, "pow", _of_two)
    sqrt = method(_unary, "sqrt", _of_one)
    tanh = method(_unary, "tanh", _of_one)
    abs = method(_unary, "abs", _of_one)
    neg = method(_unary, "neg", _of_one)
    not_ = method(_unary, "not", _of_one)
    conj = method(_unary, "conj", _of_one)
    im = method(_unary, "im", _of_one)
    re = method(_unary, "re", _of_one)
    equal = method(_binary, "equal", _compared)
    not_equal = method(_binary, "not_equal", _compared)
    greater_than = method(_binary, "greater_than", _compared)
    greater_than_equal = method(_binary, "greater_than_equal", _compared)
    less_than = method(_binary, "less_than", _compared)
    less_than_equal = method(_binary, "less_than_equal", _compared)
    cos = method(_unary, "cos", _function)
    sin = method(_unary, "sin", _function)
    exp = method(_unary, "exp", _function)
    exp2 = method(_unary, "exp2", _function)
    log = method(_unary, "log", _function)
    log2 = method(_unary, "log2", _function)
    native_cos = method(_unary, "native_cos", _function)
    native_sin = method(_unary, "native_sin", _function)
    native_exp = method(_unary, "native_exp", _function)
    native_exp2 = method(_unary, "native_exp2", _function)
    native_log = method(_unary, "native_log", _function)
    native_log2 = method(_unary, "native_log2", _function)

    def cast(self, operand: Value, type_: TypeLike) -> Value:
        """`cast`: the value in another type. Floats are rounded to nearest; to integers they are cut off and saturate.

        Args:
            operand: A number or a cooperative matrix.
            type_: The type of the result; for a matrix of the same shape and use, where matrix_acc may become any use.

        Raises:
            TlxError: Either type is bool, complex becomes real, or the shapes differ.
        """
        return self._write_one(Cast(operand=self._name(operand)), self._type(type_))
