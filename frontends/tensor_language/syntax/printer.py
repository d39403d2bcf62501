"""Writes a syntax tree as canonical text of version 2; the text parses to the same tree.

    func @scale(%alpha: f32, %A: memref<f32x?x?>) {
        %zero = constant 0.0 : f32
        axpby %alpha, %A, %zero, %A
    }

Default layouts, address spaces, modifiers and attributes are omitted.
"""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.operations.control import For
from tlx.frontends.tensor_language.operations.core import operation_of
from tlx.frontends.tensor_language.syntax.nodes import (
    Dictionary,
    Function,
    Instruction,
    Parameter,
    Program,
    Region,
    names_text,
)

_INDENT: Final = "    "
_WIDTH: Final = 100  # columns of a function's first line; longer lists of parameters have a line for each


def print_program(program: Program) -> str:
    """The text of a program, with a newline at its end unless it is empty.

    Raises:
        UsageError: A string of an attribute contains characters that the language cannot represent.
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
    results = f"{names_text(instruction.results)} = " if instruction.results else ""
    text = f"{_INDENT * depth}{results}{operation_of(instruction).head(instruction)}"
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
    attributes = f" {parameter.attributes}" if parameter.attributes.entries else ""
    return f"{parameter.name}: {parameter.type}{attributes}"


def _attributes(of: Dictionary) -> str:
    return f" attributes {of}" if of.entries else ""
