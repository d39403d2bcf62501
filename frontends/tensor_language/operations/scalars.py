"""Arithmetic, comparisons, mathematical functions, casts and constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from tlx.frontends.tensor_language.errors import listed
from tlx.frontends.tensor_language.operations.context import FunctionCheck
from tlx.frontends.tensor_language.operations.core import TypeOf, always, operation, same_as, spelt
from tlx.frontends.tensor_language.syntax.forms import constant, operand, operands, refused, result
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name, constant_text
from tlx.frontends.tensor_language.syntax.productions import (
    boolean_type,
    number_or_coopmatrix_type,
    number_type,
    return_type,
)
from tlx.frontends.tensor_language.types import BOOL, MAX_INTEGER, CoopMatrixType, ScalarType, Type
from tlx.frontends.tensor_language.work_items import (
    UNIFORM,
    Spread,
    binary_spread,
    cast_spread,
    constant_spread,
    function_spread,
)

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
class ScalarSemantics:
    """The operand types of a scalar operation, and its meaning.

    Attributes:
        kinds: The kinds of operand types.
        text: What it computes.
    """

    kinds: frozenset[str]
    text: str


_FUNCTIONS: Final = {
    "cos": ScalarSemantics(FLOAT, "the cosine"),
    "sin": ScalarSemantics(FLOAT, "the sine"),
    "exp": ScalarSemantics(FLOAT | COMPLEX, "e to the power of the operand"),
    "exp2": ScalarSemantics(FLOAT | COMPLEX, "2 to the power of the operand"),
    "log": ScalarSemantics(FLOAT, "the natural logarithm"),
    "log2": ScalarSemantics(FLOAT, "the logarithm to base 2"),
}
MEANINGS: Final = {
    "add": ScalarSemantics(NUMBER, "the sum, entry by entry of matrices. Integers wrap around."),
    "sub": ScalarSemantics(NUMBER, "the difference. Integers wrap around."),
    "mul": ScalarSemantics(NUMBER, "the product, of matrices entry by entry. Integers wrap around."),
    "div": ScalarSemantics(NUMBER, "the quotient, rounded towards zero for integers."),
    "rem": ScalarSemantics(REAL, "the remainder of a division, with the sign of the dividend."),
    "max": ScalarSemantics(REAL, "the larger one; of a number and NaN the number."),
    "min": ScalarSemantics(REAL, "the smaller one; of a number and NaN the number."),
    "shl": ScalarSemantics(INTEGER, "lhs shifted to the left."),
    "shr": ScalarSemantics(INTEGER, "lhs shifted to the right; copies of its sign come in."),
    "and": ScalarSemantics(BITS, "the bits of which both are set; of bool the logical operation."),
    "or": ScalarSemantics(BITS, "the bits of which one or both are set; of bool the logical operation."),
    "xor": ScalarSemantics(BITS, "the bits of which exactly one are set; of bool the logical operation."),
    "pow": ScalarSemantics(FLOAT, "lhs to the power of rhs, with the special cases of C's `pow`; an extension."),
    "abs": ScalarSemantics(NUMBER, "the absolute value; of a complex number c32 an f32, of c64 an f64."),
    "neg": ScalarSemantics(NUMBER, "the number with the other sign."),
    "not": ScalarSemantics(BITS, "the bits that are not set; of bool the negation."),
    "conj": ScalarSemantics(COMPLEX, "the complex conjugate."),
    "im": ScalarSemantics(COMPLEX, "the imaginary part; of c32 an f32, of c64 an f64."),
    "re": ScalarSemantics(COMPLEX, "the real part; of c32 an f32, of c64 an f64."),
    "sqrt": ScalarSemantics(FLOAT, "the square root, correctly rounded; NaN below zero; an extension."),
    "tanh": ScalarSemantics(FLOAT, "the hyperbolic tangent; an extension."),
    "equal": ScalarSemantics(NUMBER, "whether two numbers are equal; NaN equals nothing; gives a `bool`."),
    "not_equal": ScalarSemantics(NUMBER, "whether two numbers differ; NaN differs from everything; gives a `bool`."),
    "greater_than": ScalarSemantics(REAL, "whether lhs > rhs; not if one of them is NaN; gives a `bool`."),
    "greater_than_equal": ScalarSemantics(REAL, "whether lhs >= rhs; not if one of them is NaN; gives a `bool`."),
    "less_than": ScalarSemantics(REAL, "whether lhs < rhs; not if one of them is NaN; gives a `bool`."),
    "less_than_equal": ScalarSemantics(REAL, "whether lhs <= rhs; not if one of them is NaN; gives a `bool`."),
    **{op: ScalarSemantics(row.kinds, f"{row.text}.") for op, row in _FUNCTIONS.items()},
    **{
        f"native_{op}": ScalarSemantics(row.kinds, f"{row.text}, as exact here as `{op}` is.")
        for op, row in _FUNCTIONS.items()
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


@operation("constant", constant("value"), result(return_type), value="value")
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


_WORDS: Final = {"bool": "bool", "int": "integer", "float": "floating", "complex": "complex"}


def check_binary(context: FunctionCheck, node: ArithBinary) -> None:
    """Two operands and a result of one type."""
    lhs, rhs = context.scalar_or_matrix(node, node.lhs), context.scalar_or_matrix(node, node.rhs)
    if lhs and not _takes(context, node, node.lhs, lhs, MEANINGS[node.op].kinds):
        return
    if lhs and rhs and lhs != rhs:
        _differ(context, node, node.lhs, lhs, node.rhs, rhs)
    elif lhs and rhs:
        context.check_result(node, "the type of the operands")
    if node.op in {"div", "rem"} and rhs and component(rhs).kind == "int" and context.constant(node.rhs) == 0:
        context.report_operand(node, node.rhs, f"{node.rhs} is the constant 0; integers cannot be divided by it")


def check_unary(context: FunctionCheck, node: ArithUnary) -> None:
    """A result of the operand's type, or of the type of its parts."""
    type_ = context.scalar_or_matrix(node, node.operand)
    if not type_ or not _takes(context, node, node.operand, type_, MEANINGS[node.op].kinds):
        return
    is_part = node.op in {"abs", "im", "re"} and component(type_).kind == "complex"
    context.check_result(node, f"the parts of {type_}" if is_part else "the type of the operand")


def check_cast(context: FunctionCheck, node: Cast) -> None:
    """Scalar to scalar, or coopmatrix to coopmatrix of the same shape."""
    source, result = context.scalar_or_matrix(node, node.operand), node.types[0].type
    if not isinstance(result, ScalarType | CoopMatrixType):
        context.error(f"cast: the result must be a number or a coopmatrix, not {result}", node.types[0].span)
    elif source:
        problem = cast_problem(source, result)
        if problem:
            context.report_operand(node, node.operand, f"{source} cannot become {result}: {problem}")


def cast_problem(source: ScalarType | CoopMatrixType, result: ScalarType | CoopMatrixType) -> str | None:
    """Why a cast is forbidden, None where it is allowed."""
    if isinstance(source, CoopMatrixType) != isinstance(result, CoopMatrixType):
        return "scalars and coopmatrices are not cast to each other"
    if "bool" in {component(source).kind, component(result).kind}:
        return "bool is not cast; use if or a comparison"
    if component(source).kind == "complex" and component(result).kind != "complex":
        return "complex numbers are not cast to others; use re, im or abs"
    if not isinstance(source, CoopMatrixType) or not isinstance(result, CoopMatrixType):
        return None
    if source.shape != result.shape:
        return "the shapes must match"
    if source.use not in {result.use, "matrix_acc"}:
        return f"use {source.use} stays; only matrix_acc becomes another use"
    return None


def check_comparison(context: FunctionCheck, node: Comparison) -> None:
    """Two numbers of one type."""
    lhs, rhs = context.number(node, node.lhs), context.number(node, node.rhs)
    if lhs and not _takes(context, node, node.lhs, lhs, MEANINGS[node.op].kinds):
        return
    if lhs and rhs and lhs != rhs:
        _differ(context, node, node.lhs, lhs, node.rhs, rhs)
    if node.types[0].type != BOOL:
        context.error(f"{node.op}: the result must be bool, not {node.types[0]}", node.types[0].span)


def check_constant(context: FunctionCheck, node: Constant) -> None:
    """A constant of the kind of its type."""
    type_, value = node.types[0].type, node.value
    if not isinstance(type_, ScalarType | CoopMatrixType):
        message = f"constant: the result must be bool, a number or a coopmatrix, not {type_}"
        context.error(message, node.types[0].span)
        return
    scalar = component(type_)
    kind = _kind_of(value)
    if kind != scalar.kind:
        message = f"constant: {scalar} takes {_EXAMPLES[scalar.kind]}, but {constant_text(value)} is {_CONSTANTS[kind]}"
        context.error(message, node.span)
    elif kind == "int" and isinstance(value, int):
        low, high = max(scalar.integers.start, -MAX_INTEGER), scalar.integers.stop - 1
        if not low <= value <= high:
            context.error(f"constant: {value} does not fit {scalar}, which holds {low} to {high}", node.span)


def check_math(context: FunctionCheck, node: Math) -> None:
    """A floating number, for exponential functions also a complex one."""
    type_ = context.number(node, node.operand)
    if type_ and _takes(context, node, node.operand, type_, MEANINGS[node.op].kinds):
        context.check_result(node, "the type of the operand")


def component(type_: ScalarType | CoopMatrixType) -> ScalarType:
    """The scalar type of a value: of itself or of its entries."""
    return type_.component if isinstance(type_, CoopMatrixType) else type_


def _takes(
    context: FunctionCheck, node: Instruction, name: Name, type_: ScalarType | CoopMatrixType, kinds: frozenset[str]
) -> bool:
    if component(type_).kind in kinds:
        return True
    allowed = listed((word for kind, word in _WORDS.items() if kind in kinds), "and")
    context.report_operand(node, name, f"{name} has type {type_}, but only {allowed} types are allowed")
    return False


def _differ(context: FunctionCheck, node: Instruction, a: Name, a_type: Type, b: Name, b_type: Type) -> None:
    message = f"{a} has type {a_type} but {b} has type {b_type}; both must have one type"
    context.report_operand(node, b, message, a)


_CONSTANTS: Final = {"bool": "a truth value", "int": "an integer", "float": "a floating number", "complex": "complex"}
_EXAMPLES: Final = {
    "bool": "true or false",
    "int": "an integer",
    "float": "a floating number such as 1.0",
    "complex": "two floating numbers such as [1.0, 0.0]",
}


def _kind_of(value: bool | complex) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    return "float" if isinstance(value, float) else "complex"


def spread_of_binary(context: FunctionCheck, node: ArithBinary) -> Spread | None:
    """The offsets combined."""
    type_ = node.types[0].type
    lhs, rhs = context.value(node.lhs).spread, context.value(node.rhs).spread
    return binary_spread(node.op, lhs, rhs, type_) if isinstance(type_, ScalarType) else None


def spread_of_unary(context: FunctionCheck, node: ArithUnary) -> Spread | None:
    """`-x = 0 - x`, `not x = -1 - x`, of truth values `1 - x`; uniform if the operand is."""
    type_, spread = node.types[0].type, context.value(node.operand).spread
    if not isinstance(type_, ScalarType):
        return None
    if node.op in {"neg", "not"} and type_.kind in {"int", "bool"}:
        start = 0 if node.op == "neg" else 1 if type_.kind == "bool" else -1
        return binary_spread("sub", constant_spread(start), spread, type_)
    return function_spread(spread)


def spread_of_comparison(context: FunctionCheck, node: Comparison) -> Spread | None:
    """The offsets compared."""
    lhs, rhs = context.value(node.lhs), context.value(node.rhs)
    return binary_spread(node.op, lhs.spread, rhs.spread, BOOL)


def spread_of_cast(context: FunctionCheck, node: Cast) -> Spread | None:
    """The offsets, if they fit the type."""
    type_ = node.types[0].type
    return cast_spread(context.value(node.operand).spread, type_) if isinstance(type_, ScalarType) else None


def spread_of_constant(_context: FunctionCheck, node: Constant) -> Spread | None:
    """One exact offset."""
    return constant_spread(int(node.value)) if isinstance(node.value, int) else UNIFORM


def spread_of_math(context: FunctionCheck, node: Math) -> Spread | None:
    """Uniform if the operand is."""
    return function_spread(context.value(node.operand).spread)
