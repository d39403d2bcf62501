"""Arithmetic, comparisons, functions, casts and constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from tlx.frontends.tensor_language.operations.core import TypeOf, always, operation, same_as, spelt
from tlx.frontends.tensor_language.syntax.forms import constant, operand, operands, refused, result
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name
from tlx.frontends.tensor_language.syntax.productions import (
    boolean_type,
    number_or_coopmatrix_type,
    number_type,
    return_type,
)
from tlx.frontends.tensor_language.types import BOOL, CoopMatrixType, ScalarType, Type

ArithBinaryOp = Literal["add", "sub", "mul", "div", "rem", "max", "min", "shl", "shr", "and", "or", "xor", "pow"]
ArithUnaryOp = Literal["abs", "neg", "not", "conj", "im", "re", "sqrt", "tanh"]
ComparisonOp = Literal["equal", "not_equal", "greater_than", "greater_than_equal", "less_than", "less_than_equal"]
MathOp = Literal[
    "cos", "sin", "exp", "exp2", "log", "log2",
    "native_cos", "native_sin", "native_exp", "native_exp2", "native_log", "native_log2",
]  # fmt: skip

NUMBER: Final = frozenset({"int", "float", "complex"})
REAL: Final = frozenset({"int", "float"})
INTEGER: Final = frozenset({"int"})
BITS: Final = frozenset({"bool", "int"})
FLOAT: Final = frozenset({"float"})
COMPLEX: Final = frozenset({"complex"})


@dataclass(frozen=True, slots=True)
class Meaning:
    """The operand types of a scalar operation, and what it computes.

    Attributes:
        kinds: The kinds of operand types.
        text: What it computes.
    """

    kinds: frozenset[str]
    text: str


_FUNCTIONS: Final = {
    "cos": Meaning(FLOAT, "the cosine"),
    "sin": Meaning(FLOAT, "the sine"),
    "exp": Meaning(FLOAT | COMPLEX, "e to the power of the operand"),
    "exp2": Meaning(FLOAT | COMPLEX, "2 to the power of the operand"),
    "log": Meaning(FLOAT, "the natural logarithm"),
    "log2": Meaning(FLOAT, "the logarithm to base 2"),
}
MEANINGS: Final = {
    "add": Meaning(NUMBER, "the sum, entry by entry of matrices. Integers wrap around."),
    "sub": Meaning(NUMBER, "the difference. Integers wrap around."),
    "mul": Meaning(NUMBER, "the product, of matrices entry by entry. Integers wrap around."),
    "div": Meaning(NUMBER, "the quotient, rounded towards zero for integers."),
    "rem": Meaning(REAL, "the remainder of a division, with the sign of the dividend."),
    "max": Meaning(REAL, "the larger one; of a number and NaN the number."),
    "min": Meaning(REAL, "the smaller one; of a number and NaN the number."),
    "shl": Meaning(INTEGER, "lhs shifted to the left."),
    "shr": Meaning(INTEGER, "lhs shifted to the right; copies of its sign come in."),
    "and": Meaning(BITS, "the bits of which both are set; of bool the logical operation."),
    "or": Meaning(BITS, "the bits of which one or both are set; of bool the logical operation."),
    "xor": Meaning(BITS, "the bits of which exactly one are set; of bool the logical operation."),
    "pow": Meaning(FLOAT, "lhs to the power of rhs, with the special cases of C's `pow`; an extension."),
    "abs": Meaning(NUMBER, "the absolute value; of a complex number c32 an f32, of c64 an f64."),
    "neg": Meaning(NUMBER, "the number with the other sign."),
    "not": Meaning(BITS, "the bits that are not set; of bool the negation."),
    "conj": Meaning(COMPLEX, "the complex conjugate."),
    "im": Meaning(COMPLEX, "the imaginary part; of c32 an f32, of c64 an f64."),
    "re": Meaning(COMPLEX, "the real part; of c32 an f32, of c64 an f64."),
    "sqrt": Meaning(FLOAT, "the square root, correctly rounded; NaN below zero; an extension."),
    "tanh": Meaning(FLOAT, "the hyperbolic tangent; an extension."),
    "equal": Meaning(NUMBER, "whether two numbers are equal; NaN equals nothing; gives a `bool`."),
    "not_equal": Meaning(NUMBER, "whether two numbers differ; NaN differs from everything; gives a `bool`."),
    "greater_than": Meaning(REAL, "whether lhs > rhs; not if one of them is NaN; gives a `bool`."),
    "greater_than_equal": Meaning(REAL, "whether lhs >= rhs; not if one of them is NaN; gives a `bool`."),
    "less_than": Meaning(REAL, "whether lhs < rhs; not if one of them is NaN; gives a `bool`."),
    "less_than_equal": Meaning(REAL, "whether lhs <= rhs; not if one of them is NaN; gives a `bool`."),
    **{op: Meaning(row.kinds, f"{row.text}.") for op, row in _FUNCTIONS.items()},
    **{
        f"native_{op}": Meaning(row.kinds, f"{row.text}, as exact here as `{op}` is.") for op, row in _FUNCTIONS.items()
    },
}
"""The operations whose operands and result are of one type, and the comparisons."""

_ONE: Final = operand("operand", "the operand")
_TWO: Final = operands(lhs="the first operand", rhs="the second operand")


def _type_of_unary(node: ArithUnary, type_of: TypeOf) -> Type | None:
    """The operand's type; of `abs`, `im` and `re` of complex numbers the type of their parts."""
    type_ = type_of(node.operand)
    if node.op in ("abs", "im", "re") and isinstance(type_, ScalarType | CoopMatrixType):
        return type_.part
    return type_


@operation(spelt("{op}", op=get_args(ArithBinaryOp)), *_TWO, result(return_type), gives=same_as("lhs"))
@dataclass(kw_only=True, slots=True)
class ArithBinary(Instruction):
    """`%r = add %a, %b : type`, on scalars and on cooperative matrices."""

    op: ArithBinaryOp
    lhs: Name
    rhs: Name


@operation(spelt("{op}", op=get_args(ArithUnaryOp)), _ONE, result(return_type), gives=_type_of_unary)
@dataclass(kw_only=True, slots=True)
class ArithUnary(Instruction):
    """`%r = neg %a : type`, on scalars and on cooperative matrices."""

    op: ArithUnaryOp
    operand: Name


@operation(
    "cast", _ONE, result(number_or_coopmatrix_type),
    refused("->", "version 2 writes the type of the result only: 'cast %a : type'"),
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class Cast(Instruction):
    """`%r = cast %a : type`, of scalars and of cooperative matrices."""

    operand: Name


@operation(spelt("{op}", op=get_args(ComparisonOp)), *_TWO, result(boolean_type), gives=always(BOOL))
@dataclass(kw_only=True, slots=True)
class Comparison(Instruction):
    """`%r = less_than %a, %b : bool`."""

    op: ComparisonOp
    lhs: Name
    rhs: Name


@operation("constant", constant("value"), result(return_type))
@dataclass(kw_only=True, slots=True)
class Constant(Instruction):
    """`%r = constant 1.0 : type`; every entry of a cooperative matrix."""

    value: bool | int | float | complex


@operation(spelt("{op}", op=get_args(MathOp)), _ONE, result(number_type), gives=same_as("operand"))
@dataclass(kw_only=True, slots=True)
class Math(Instruction):
    """`%r = exp %a : type`."""

    op: MathOp
    operand: Name
