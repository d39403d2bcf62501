"""Arithmetic, comparisons, casts, constants and mathematical functions."""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.analysis import (
    UNIFORM,
    Spread,
    binary_spread,
    cast_spread,
    constant_spread,
    function_spread,
)
from tlx.frontends.tensor_language.check.context import (
    Context,
    check_result,
    constant,
    number,
    report_operand,
    scalar_or_matrix,
)
from tlx.frontends.tensor_language.errors import listed
from tlx.frontends.tensor_language.operations.scalars import (
    MEANINGS,
    ArithBinary,
    ArithUnary,
    Cast,
    Comparison,
    Constant,
    Math,
)
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name, constant_text
from tlx.frontends.tensor_language.types import BOOL, MAX_INTEGER, CoopMatrixType, ScalarType, Type

_WORDS: Final = {"bool": "bool", "int": "integer", "float": "floating", "complex": "complex"}


def check_binary(context: Context, node: ArithBinary) -> None:
    """Two operands and a result of one type."""
    lhs, rhs = scalar_or_matrix(context, node, node.lhs), scalar_or_matrix(context, node, node.rhs)
    if lhs and not _takes(context, node, node.lhs, lhs, MEANINGS[node.op].kinds):
        return
    if lhs and rhs and lhs != rhs:
        _differ(context, node, node.lhs, lhs, node.rhs, rhs)
    elif lhs and rhs:
        check_result(context, node, "the type of the operands")
    if node.op in {"div", "rem"} and rhs and component(rhs).kind == "int" and constant(context, node.rhs) == 0:
        report_operand(
            context, node, node.rhs, f"{node.rhs} is the constant 0; integers cannot be divided by it", node.rhs
        )


def check_unary(context: Context, node: ArithUnary) -> None:
    """A result of the operand's type, or of the type of its parts."""
    type_ = scalar_or_matrix(context, node, node.operand)
    if not type_ or not _takes(context, node, node.operand, type_, MEANINGS[node.op].kinds):
        return
    is_part = node.op in {"abs", "im", "re"} and component(type_).kind == "complex"
    check_result(context, node, f"the parts of {type_}" if is_part else "the type of the operand")


def check_cast(context: Context, node: Cast) -> None:
    """Scalar to scalar, or coopmatrix to coopmatrix of the same shape."""
    source, target = scalar_or_matrix(context, node, node.operand), node.types[0].type
    if not isinstance(target, ScalarType | CoopMatrixType):
        context.error(f"cast: the result must be a number or a coopmatrix, not {target}", node.types[0].span)
    elif source:
        problem = cast_problem(source, target)
        if problem:
            report_operand(context, node, node.operand, f"{source} cannot become {target}: {problem}", node.operand)


def cast_problem(source: ScalarType | CoopMatrixType, target: ScalarType | CoopMatrixType) -> str | None:
    """Why a cast is forbidden, None where it is allowed."""
    if isinstance(source, CoopMatrixType) != isinstance(target, CoopMatrixType):
        return "scalars and coopmatrices are not cast to each other"
    if "bool" in {component(source).kind, component(target).kind}:
        return "bool is not cast; use if or a comparison"
    if component(source).kind == "complex" and component(target).kind != "complex":
        return "complex numbers are not cast to others; use re, im or abs"
    if not isinstance(source, CoopMatrixType) or not isinstance(target, CoopMatrixType):
        return None
    if source.shape != target.shape:
        return "the shapes must match"
    if source.use not in {target.use, "matrix_acc"}:
        return f"use {source.use} stays; only matrix_acc becomes another use"
    return None


def check_comparison(context: Context, node: Comparison) -> None:
    """Two numbers of one type."""
    lhs, rhs = number(context, node, node.lhs), number(context, node, node.rhs)
    if lhs and not _takes(context, node, node.lhs, lhs, MEANINGS[node.op].kinds):
        return
    if lhs and rhs and lhs != rhs:
        _differ(context, node, node.lhs, lhs, node.rhs, rhs)
    if node.types[0].type != BOOL:
        context.error(f"{node.op}: the result must be bool, not {node.types[0]}", node.types[0].span)


def check_constant(context: Context, node: Constant) -> None:
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


def check_math(context: Context, node: Math) -> None:
    """A floating number, for exponential functions also a complex one."""
    type_ = number(context, node, node.operand)
    if type_ and _takes(context, node, node.operand, type_, MEANINGS[node.op].kinds):
        check_result(context, node, "the type of the operand")


def component(type_: ScalarType | CoopMatrixType) -> ScalarType:
    """The scalar type of a value: of itself or of its entries."""
    return type_.component if isinstance(type_, CoopMatrixType) else type_


def _takes(
    context: Context, node: Instruction, name: Name, type_: ScalarType | CoopMatrixType, kinds: frozenset[str]
) -> bool:
    if component(type_).kind in kinds:
        return True
    allowed = listed((word for kind, word in _WORDS.items() if kind in kinds), "and")
    report_operand(context, node, name, f"{name} has type {type_}, but only {allowed} types are allowed", name)
    return False


def _differ(context: Context, node: Instruction, a: Name, a_type: Type, b: Name, b_type: Type) -> None:
    message = f"{a} has type {a_type} but {b} has type {b_type}; both must have one type"
    report_operand(context, node, b, message, a, b)


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


def spread_of_binary(context: Context, node: ArithBinary) -> Spread | None:
    """The offsets combined."""
    type_ = node.types[0].type
    lhs, rhs = context.value(node.lhs).spread, context.value(node.rhs).spread
    return binary_spread(node.op, lhs, rhs, type_) if isinstance(type_, ScalarType) else None


def spread_of_unary(context: Context, node: ArithUnary) -> Spread | None:
    """`-x = 0 - x`, `not x = -1 - x`, of truth values `1 - x`; uniform if the operand is."""
    type_, spread = node.types[0].type, context.value(node.operand).spread
    if not isinstance(type_, ScalarType):
        return None
    if node.op in {"neg", "not"} and type_.kind in {"int", "bool"}:
        start = 0 if node.op == "neg" else 1 if type_.kind == "bool" else -1
        return binary_spread("sub", constant_spread(start), spread, type_)
    return function_spread(spread)


def spread_of_comparison(context: Context, node: Comparison) -> Spread | None:
    """The offsets compared."""
    lhs, rhs = context.value(node.lhs), context.value(node.rhs)
    return binary_spread(node.op, lhs.spread, rhs.spread, BOOL)


def spread_of_cast(context: Context, node: Cast) -> Spread | None:
    """The offsets, if they fit the type."""
    type_ = node.types[0].type
    return cast_spread(context.value(node.operand).spread, type_) if isinstance(type_, ScalarType) else None


def spread_of_constant(_context: Context, node: Constant) -> Spread | None:
    """One exact offset."""
    return constant_spread(int(node.value)) if isinstance(node.value, int) else UNIFORM


def spread_of_math(context: Context, node: Math) -> Spread | None:
    """Uniform if the operand is."""
    return function_spread(context.value(node.operand).spread)
