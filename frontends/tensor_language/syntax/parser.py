"""The parser of version 2. Its grammar, in ABNF; a production is read by the function of the same name.

A word ends where no letter, digit or `_` follows. White space and comments (`;` to the end of the line) may separate
any two tokens, and must separate two words. An `x` beside a number needs none: `f32x4x?`, `2x8`.

    program                = *function-definition
    function-definition    = "func" global-identifier "(" [argument *("," argument)] ")"
                             ["attributes" dictionary-attribute] region
    argument               = local-identifier ":" type [dictionary-attribute]
    region                 = "{" *instruction "}"

    identifier             = 1*DIGIT / (ALPHA *(ALPHA / DIGIT / "_"))
    local-identifier       = "%" identifier
    global-identifier      = "@" identifier
    identifier-list        = "(" local-identifier *("," local-identifier) ")"

    constant               = boolean-constant / integer-constant / floating-constant / complex-constant
    boolean-constant       = "true" / "false"
    integer-constant       = [sign] 1*DIGIT                         ; -(2^63-1) ... 2^63-1
    sign                   = "-" / "+"
    floating-constant      = [sign] (decimal / hexadecimal / "inf" / "nan")
    decimal                = (*DIGIT "." 1*DIGIT / 1*DIGIT ".") ["e" [sign] 1*DIGIT] / 1*DIGIT "e" [sign] 1*DIGIT
    hexadecimal            = "0x" (*HEXDIG "." 1*HEXDIG / 1*HEXDIG ".") ["p" [sign] 1*DIGIT]
                           / "0x" 1*HEXDIG "p" [sign] 1*DIGIT
    complex-constant       = "[" floating-constant "," floating-constant "]"

    attribute              = array-attribute / boolean-constant / dictionary-attribute / integer-constant
                           / string-attribute
    array-attribute        = "[" [attribute *("," attribute)] "]"
    dictionary-attribute   = "{" [named-attribute *("," named-attribute)] "}"
    named-attribute        = attribute-name "=" attribute
    attribute-name         = "alignment" / "shape_gcd" / "stride_gcd" / "subgroup_size" / "unroll"
                           / "work_group_size" / string-attribute
    string-attribute       = %x22 *(%x20-21 / %x23-7E) %x22

    type                   = boolean-type / number-type / memref-type / group-type / coopmatrix-type
    return-type            = boolean-type / number-type / coopmatrix-type
    boolean-type           = "bool"
    number-type            = integer-type / floating-type / complex-type
    integer-type           = "i8" / "i16" / "i32" / "i64" / "index"
    floating-type          = "bf16" / "f16" / "f32" / "f64"
    complex-type           = "c32" / "c64"
    memref-type            = "memref" "<" number-type tensor-shape ["," strided-layout] ["," address-space] ">"
    tensor-shape           = *("x" constant-or-dynamic)
    constant-or-dynamic    = integer-constant / "?"
    strided-layout         = "strided" "<" [constant-or-dynamic *("," constant-or-dynamic)] ">"
    address-space          = "global" / "local"
    group-type             = "group" "<" memref-type "x" constant-or-dynamic ["," "offset" ":" constant-or-dynamic] ">"
    coopmatrix-type        = "coopmatrix" "<" number-type 2*2("x" integer-constant) "," matrix-use ">"
    matrix-use             = "matrix_a" / "matrix_b" / "matrix_acc"

    instruction            = local-identifier "=" value-instruction
                           / [local-identifier *("," local-identifier) "="] multi-value-instruction
                           / void-instruction

The table of operations says which of these an instruction is, and what follows its name. Modifiers in brackets may be
left out:

    .scope                   .cross_device .device .work_group .subgroup
    .semantics               .relaxed .acquire .release .acquire_release .sequentially_consistent
    .X_checked               .rows_checked .cols_checked .both_checked
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tlx.diagnostics import Note, ParseError, Source, TlxError
from tlx.frontends.tensor_language.errors import Reports, did_you_mean
from tlx.frontends.tensor_language.operations import OPERATIONS, forms
from tlx.frontends.tensor_language.syntax.cursor import (
    Cursor,
    InstructionForm,
    after_braces,
    after_dictionary,
    begins_instruction,
    is_dictionary,
    is_function,
    region,
)
from tlx.frontends.tensor_language.syntax.nodes import Dictionary, Function, Parameter, Program
from tlx.frontends.tensor_language.syntax.productions import (
    any_type,
    dictionary_attribute,
    optional_attributes,
    type_ref,
)

__doc__ = f"{__doc__}{forms()}"
FORMS: Final = {name: InstructionForm(entry.reader(), entry.results) for name, entry in OPERATIONS.items()}
_OLD_ATTRIBUTES: Final = {"work_group_size": "work_group_size=[m,n]", "subgroup_size": "subgroup_size=s"}


def parse(source: Source) -> Program:
    """The tree of a text of version 2.

    Args:
        source: The text.

    Raises:
        ProgramError: The text does not follow the grammar; the exception has all errors.
    """
    reports = Reports()
    result = program(Cursor(source, reports, FORMS), function_definition)
    reports.finish()
    return result


def program(c: Cursor, definition: Callable[[Cursor], Function]) -> Program:
    """`program = *function-definition`, in either version of the language."""
    functions: list[Function] = []
    while c.kind != "end":
        first = c.at
        try:
            functions.append(definition(c))
        except TlxError as error:
            c.collect(error)
            _next_function(c, first)
    return Program(functions)


def function_definition(c: Cursor) -> Function:
    """`"func" global-identifier "(" [argument-list] ")" ["attributes" dictionary-attribute] region`."""
    return function(c, argument, _function_attributes)


def function(
    c: Cursor, parameter: Callable[[Cursor], Parameter], attribute_list: Callable[[Cursor], Dictionary]
) -> Function:
    """A function, with parameters and attributes of either version of the language."""
    first = c.at
    c.head_end = None
    c.keyword = "func"
    if not c.is_word("func"):
        raise _no_function(c)
    c.function = first
    c.at += 1
    name = c.identifier("global", "the function's name")
    c.expect("(", "after the function's name")
    parameters = argument_list(c, parameter)
    attributes = attribute_list(c)
    head = c.span_from(first)
    return Function(name=name, parameters=parameters, attributes=attributes, body=region(c), span=head)


def _no_function(c: Cursor) -> ParseError:
    """The error that a function was expected; it points to an extra brace if there is one."""
    closing = c.at - 1
    if c.function is not None and c.region_end == c.at:
        (first, indent), (line, column) = c.location(c.function), c.location(closing)
        is_in_place = line == first or (c.begins_line(closing) and column == indent)
        is_outside = not is_in_place if c.kind == "}" else begins_instruction(c, c.at) or not c.begins_line(c.at)
        if is_outside:
            note = Note("this stands outside of it", c.span(c.at))
            return c.error("'}' ends the function, but more follows: one '}' too many?", note, at=closing)
    if c.kind == "}":
        return c.error("expected 'func', found '}': one '}' too many?")
    near = did_you_mean(c.text, ("func",)) if c.kind == "word" else ""
    return c.error(f"expected 'func', found {c.shown()}{near or ': instructions belong in functions'}")


def argument_list(c: Cursor, parameter: Callable[[Cursor], Parameter]) -> tuple[Parameter, ...]:
    """`[argument *("," argument)] ")"`; arguments that do not parse are dropped."""
    if c.accept(")"):
        return ()
    parameters: list[Parameter] = []
    while True:
        try:
            parameters.append(parameter(c))
            if c.kind not in (",", ")"):
                raise c.expected("',' or ')' after a parameter")
        except TlxError as error:
            c.collect(error)
            _next_argument(c)
        if not c.accept(","):
            break
    c.expect(")", "after the parameters")
    return tuple(parameters)


def argument(c: Cursor) -> Parameter:
    """`argument = local-identifier ":" type [dictionary-attribute]`."""
    name = c.identifier("local", "a parameter")
    c.expect(":", "and the type of the parameter")
    reference = type_ref(c, any_type)
    attributes = dictionary_attribute(c) if c.kind == "{" and is_dictionary(c, c.at) else Dictionary()
    return Parameter(name=name, type=reference, attributes=attributes)


def _function_attributes(c: Cursor) -> Dictionary:
    if c.kind == "word" and c.text in _OLD_ATTRIBUTES:
        raise _old_attribute(c)
    return optional_attributes(c)


def _old_attribute(c: Cursor) -> ParseError:
    new = _OLD_ATTRIBUTES[c.text]
    return c.error(f"'{c.text}(...)' is a spelling of version 1: write 'attributes {{{new}}}'")


def _next_argument(c: Cursor) -> None:
    at = c.at
    while c.kinds[at] not in (")", "end") and not is_function(c, at):
        if c.kinds[at] == "," and c.kinds[at + 1] == "local":
            break
        if c.kinds[at] != "{":
            at += 1
        elif is_dictionary(c, at):
            at = after_dictionary(c, at)
        else:
            break
    c.at = at


def _next_function(c: Cursor, first: int) -> None:
    """Continue after an error outside regions; skipped regions are parsed for their errors."""
    at = max(first + 1, c.region_end)
    while c.kinds[at] != "end" and not is_function(c, at):
        at = after_braces(c, at) if c.kinds[at] == "{" else at + 1
    c.at = at
