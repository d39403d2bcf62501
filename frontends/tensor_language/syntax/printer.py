"""Writes a syntax tree as text of version 2, one form for each tree; the text parses to the same tree again.

    func @scale(%alpha: f32, %A: memref<f32x?x?>) {
        %zero = constant 0.0 : f32
        axpby %alpha, %A, %zero, %A
    }

Layouts, address spaces, modifiers and attributes are left out where they are the default.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from functools import singledispatch
from typing import Any, Final

from tlx.diagnostics import UsageError
from tlx.frontends.tensor_language.syntax.ast import collective, mixed, spmd
from tlx.frontends.tensor_language.syntax.ast.base import (
    Attribute,
    Dictionary,
    Function,
    Instruction,
    Name,
    NamedAttribute,
    Parameter,
    Program,
    Region,
    Slice,
)
from tlx.frontends.tensor_language.syntax.ast.mixed import For

_STRING: Final = re.compile("[\\x20-\\x21\\x23-\\x7e]*")


def names(of: Iterable[Name]) -> str:
    """Local names with commas between them."""
    return ", ".join(map(str, of))


def constant_text(value: bool | complex) -> str:
    """A constant; floating-point numbers get as many digits as tell them from their neighbours."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _floating(value)
    return f"[{_floating(value.real)}, {_floating(value.imag)}]"


def dictionary(of: Dictionary) -> str:
    """`{name=value, ...}`.

    Raises:
        UsageError: A string holds characters that no string of the language can.
    """
    return f"{{{', '.join(map(_named, of.entries))}}}"


def _floating(value: float) -> str:
    if math.isnan(value):
        return "-nan" if math.copysign(1.0, value) < 0 else "nan"
    return repr(float(value))  # of a number of numpy, which is one of Python, too


def _named(entry: NamedAttribute) -> str:
    return f"{_quoted(entry.name) if entry.quoted else entry.name}={_value(entry.value)}"


def _value(attribute: Attribute) -> str:
    value = attribute.value
    if isinstance(value, Dictionary):
        return dictionary(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return _quoted(value) if isinstance(value, str) else constant_text(value)


def is_printable(text: str) -> bool:
    """Whether the language has a string for a text."""
    return _STRING.fullmatch(text) is not None


def _quoted(text: str) -> str:
    if not is_printable(text):
        raise UsageError(f"the attribute string {text!a} has no text: only printable ASCII without '\"' does")
    return f'"{text}"'


@singledispatch
def head(instruction: Instruction) -> str:
    """The text of an instruction before its regions, types of results included."""
    raise NotImplementedError(f"no printed form of {type(instruction).__name__}")


@head.register
def _(i: collective.Alloca) -> str:
    attributes = f" {dictionary(i.attributes)}" if i.attributes.entries else ""
    return f"alloca{attributes}{_typed(i)}"


@head.register
def _(i: collective.LifetimeStop) -> str:
    return f"lifetime_stop {i.memref}"


@head.register
def _(i: collective.Axpby) -> str:
    return f"axpby{_atomic(i)}{_transpose(i.transpose)} {names((i.alpha, i.a, i.beta, i.b))}"


@head.register
def _(i: collective.Cumsum) -> str:
    return f"cumsum{_atomic(i)} {i.alpha}, {i.a}, {i.mode}, {i.beta}, {i.b}"


@head.register
def _(i: collective.Sum) -> str:
    return f"sum{_atomic(i)}{_transpose(i.transpose)} {names((i.alpha, i.a, i.beta, i.b))}"


@head.register
def _(i: collective.Gemm) -> str:
    # The first modifier is that of A, so it cannot be left out before a second one.
    transposes = "" if (i.transpose_a, i.transpose_b) == ("n", "n") else f".{i.transpose_a}.{i.transpose_b}"
    return f"gemm{_atomic(i)}{transposes} {names((i.alpha, i.a, i.b, i.beta, i.c))}"


@head.register
def _(i: collective.Gemv) -> str:
    return f"gemv{_atomic(i)}{_transpose(i.transpose)} {names((i.alpha, i.a, i.b, i.beta, i.c))}"


@head.register
def _(i: collective.Ger) -> str:
    return f"ger{_atomic(i)} {names((i.alpha, i.a, i.b, i.beta, i.c))}"


@head.register
def _(i: collective.Hadamard) -> str:
    return f"hadamard{_atomic(i)} {names((i.alpha, i.a, i.b, i.beta, i.c))}"


@head.register
def _(i: collective.Parallel) -> str:  # noqa: ARG001 (nothing of it is in its head)
    return "parallel"


@head.register
def _(i: collective.Foreach) -> str:
    return f"foreach ({names(i.variables)})=({names(i.starts)}),({names(i.stops)})"


@head.register
def _(i: collective.ForeachTile) -> str:
    shape = ", ".join(map(str, i.tile_shape))
    loops = f"({names(i.variables)})=({names(i.starts)}),({names(i.stops)})"
    return f"foreach_tile {loops} as ({names(i.sizes)})<=({shape})"


@head.register
def _(i: mixed.ArithBinary | mixed.Comparison) -> str:
    return f"{i.op} {i.lhs}, {i.rhs}{_typed(i)}"


@head.register
def _(i: mixed.ArithUnary | mixed.Math) -> str:
    return f"{i.op} {i.operand}{_typed(i)}"


@head.register
def _(i: mixed.Associated) -> str:
    return f"associated {i.operand}{_typed(i)}"


@head.register
def _(i: mixed.AtomicLoad) -> str:
    return f"atomic_load{_memory(i.scope, i.semantics)} {i.source}[{names(i.indices)}]{_typed(i)}"


@head.register
def _(i: mixed.AtomicStore) -> str:
    return f"atomic_store{_memory(i.scope, i.semantics)} {i.value}, {i.target}[{names(i.indices)}]"


@head.register
def _(i: mixed.AtomicUpdate) -> str:
    memory = _memory(i.scope, i.semantics)
    return f"atomic_{i.op}{memory} {i.value}, {i.target}[{names(i.indices)}]{_typed(i)}"


@head.register
def _(i: mixed.Barrier) -> str:
    return f"barrier{'.global' * i.fence_global}{'.local' * i.fence_local}"


@head.register
def _(i: mixed.Builtin) -> str:
    return f"{i.name}{f'.{i.component}' if i.component else ''}{_typed(i)}"


@head.register
def _(i: mixed.Cast) -> str:
    return f"cast {i.operand}{_typed(i)}"


@head.register
def _(i: mixed.Constant) -> str:
    return f"constant {constant_text(i.value)}{_typed(i)}"


@head.register
def _(i: mixed.Expand) -> str:
    return f"expand {i.operand}[{i.mode}->{' x '.join(map(str, i.shape))}]{_typed(i)}"


@head.register
def _(i: mixed.Fuse) -> str:
    return f"fuse {i.operand}[{i.first},{i.last}]{_typed(i)}"


@head.register
def _(i: mixed.For) -> str:
    text = f"for {i.variable}={i.start},{i.stop}{f',{i.step}' if i.step else ''}"
    if not i.carried:
        return text
    pairs = ", ".join(f"{name}={first}" for name, first in zip(i.carried, i.initial, strict=True))
    return f"{text} init({pairs}){_arrow(i)}"


@head.register
def _(i: mixed.If) -> str:
    return f"if {i.condition}{_arrow(i)}"


@head.register
def _(i: mixed.Load) -> str:
    return f"load {i.source}[{names(i.indices)}]{_typed(i)}"


@head.register
def _(i: mixed.Size) -> str:
    return f"size {i.operand}[{i.mode}]{_typed(i)}"


@head.register
def _(i: mixed.Store) -> str:
    return f"store {i.value}, {i.target}[{names(i.indices)}]"


@head.register
def _(i: mixed.Subview) -> str:
    return f"subview {i.operand}[{', '.join(map(_slice, i.slices))}]{_typed(i)}"


@head.register
def _(i: mixed.Yield) -> str:
    return f"yield ({names(i.values)})"


@head.register
def _(i: spmd.SubgroupBroadcast) -> str:
    return f"subgroup_broadcast {i.value}, {i.lane}{_typed(i)}"


@head.register
def _(i: spmd.SubgroupOperation) -> str:
    return f"subgroup_{i.kind}_{i.op} {i.value}{_typed(i)}"


@head.register
def _(i: spmd.CooperativeMatrixApply) -> str:
    types = ", ".join(map(str, i.types))
    return f"cooperative_matrix_apply ({i.row}, {i.column}, {i.value_name})={i.matrix} -> {types}"


@head.register
def _(i: spmd.CooperativeMatrixLoad) -> str:
    memory = _memory(i.scope, i.semantics) if i.atomic else ""
    name = f"cooperative_matrix{'_atomic' * i.atomic}_load{_access(i)}{memory}"
    return f"{name} {i.source}[{i.x}, {i.y}]{_typed(i)}"


@head.register
def _(i: spmd.CooperativeMatrixStore) -> str:
    memory = _memory(i.scope, i.semantics) if i.atomic else ""
    name = f"cooperative_matrix{'_atomic' * i.atomic}_store{_access(i)}{memory}"
    return f"{name} {i.matrix}, {i.target}[{i.x}, {i.y}]"


@head.register
def _(i: spmd.CooperativeMatrixAtomicUpdate) -> str:
    name = f"cooperative_matrix_atomic_{i.op}{_access(i)}{_memory(i.scope, i.semantics)}"
    return f"{name} {i.matrix}, {i.target}[{i.x}, {i.y}]{_typed(i)}"


@head.register
def _(i: spmd.CooperativeMatrixConstruct) -> str:
    return f"cooperative_matrix_construct {i.value}{_typed(i)}"


@head.register
def _(i: spmd.CooperativeMatrixExtract) -> str:
    return f"cooperative_matrix_extract {i.matrix}[{i.index}]{_typed(i)}"


@head.register
def _(i: spmd.CooperativeMatrixInsert) -> str:
    return f"cooperative_matrix_insert {i.value}, {i.matrix}[{i.index}]{_typed(i)}"


@head.register
def _(i: spmd.CooperativeMatrixMulAdd) -> str:
    return f"cooperative_matrix_mul_add {i.a}, {i.b}, {i.c}{_typed(i)}"


@head.register
def _(i: spmd.CooperativeMatrixPrefetch) -> str:
    return f"cooperative_matrix_prefetch {i.level}, {i.source}[{i.x}, {i.y}], {i.rows}, {i.columns}"


@head.register
def _(i: spmd.CooperativeMatrixReduce) -> str:
    return f"cooperative_matrix_reduce_{i.op}.{i.mode} {i.matrix}{_typed(i)}"


@head.register
def _(i: spmd.CooperativeMatrixScale) -> str:
    return f"cooperative_matrix_scale {i.scalar}, {i.matrix}{_typed(i)}"


def _typed(i: Instruction) -> str:
    return f" : {', '.join(map(str, i.types))}" if i.types else ""


def _arrow(i: Instruction) -> str:
    return f" -> ({', '.join(map(str, i.types))})" if i.types else ""


def _atomic(i: collective.Blas) -> str:
    return ".atomic" if i.atomic else ""


def _transpose(transpose: collective.Transpose) -> str:
    return ".t" if transpose == "t" else ""


def _access(i: spmd.MatrixAccess) -> str:
    return _transpose(i.transpose) + (f".{i.checked}" if i.checked else "")


def _memory(scope: mixed.Scope, semantics: mixed.Semantics) -> str:
    return ("" if scope == "work_group" else f".{scope}") + ("" if semantics == "relaxed" else f".{semantics}")


def _slice(item: Slice) -> str:
    return str(item.offset) if item.size is None else f"{item.offset}:{item.size}"


_INDENT: Final = "    "
_WIDTH: Final = 100  # columns of a function's first line before its parameters get a line each


def print_program(program: Program) -> str:
    """The text of a program, with a newline at its end unless it is empty.

    Raises:
        UsageError: A string of an attribute holds characters that no string of the language can.
    """
    return "\n".join(print_function(f) for f in program.functions)


def print_function(function: Function) -> str:
    """The text of a function, with a newline at its end."""
    parameters = [_parameter(p) for p in function.parameters]
    start = f"func @{function.name.text}("
    end = f"){_attributes(function.attributes)} "
    line = f"{start}{', '.join(parameters)}{end}"
    if len(line) > _WIDTH and parameters:
        following = f",\n{_INDENT * 2}"
        line = f"{start}\n{_INDENT * 2}{following.join(parameters)}\n{end}"
    return f"{line}{_region(function.body, 0)}\n"


def print_instruction(instruction: Instruction, depth: int = 0) -> str:
    """The text of an instruction and its regions, indented to a depth, without a newline at its end."""
    results = f"{names(instruction.results)} = " if instruction.results else ""
    text = f"{_INDENT * depth}{results}{head(instruction)}"
    regions = [_region(r, depth) for r in instruction.regions()]
    if regions:
        tail = _attributes(instruction.attributes) if isinstance(instruction, For) else ""
        return f"{text} {' else '.join(regions)}{tail}"
    return text


def _region(region: Region, depth: int) -> str:
    if not region.instructions:
        return "{}"
    lines = [print_instruction(i, depth + 1) for i in region.instructions]
    return "\n".join(["{", *lines, f"{_INDENT * depth}}}"])


def _parameter(parameter: Parameter) -> str:
    attributes = f" {dictionary(parameter.attributes)}" if parameter.attributes.entries else ""
    return f"{parameter.name}: {parameter.type}{attributes}"


def _attributes(of: Dictionary) -> str:
    return f" attributes {dictionary(of)}" if of.entries else ""


_UPPER: Final = re.compile(r"(?<!^)(?=[A-Z])")

# Classes that stand for several instructions; the name of any other is its class's.
_SPELLINGS: Final[dict[type[Instruction], Callable[[Any], str]]] = {
    mixed.ArithBinary: lambda node: node.op,
    mixed.ArithUnary: lambda node: node.op,
    mixed.Comparison: lambda node: node.op,
    mixed.Math: lambda node: node.op,
    mixed.AtomicUpdate: lambda node: f"atomic_{node.op}",
    mixed.Builtin: lambda node: node.name if node.component is None else f"{node.name}.{node.component}",
    spmd.SubgroupOperation: lambda node: f"subgroup_{node.kind}_{node.op}",
    spmd.CooperativeMatrixLoad: lambda node: f"cooperative_matrix_{'atomic_' * node.atomic}load",
    spmd.CooperativeMatrixStore: lambda node: f"cooperative_matrix_{'atomic_' * node.atomic}store",
    spmd.CooperativeMatrixAtomicUpdate: lambda node: f"cooperative_matrix_atomic_{node.op}",
    spmd.CooperativeMatrixReduce: lambda node: f"cooperative_matrix_reduce_{node.op}",
}


def mnemonic(node: Instruction) -> str:
    """The instruction's name, without modifiers."""
    spelling = _SPELLINGS.get(type(node))
    return spelling(node) if spelling else _UPPER.sub("_", type(node).__name__).lower()
