"""Parser of the first version of the language; what it gives is the syntax tree of the second.

The grammar, in ABNF. White space separates tokens and means nothing else; comments run from `;` to the end of the line.

    program             = *function-definition

    identifier          = 1*DIGIT / (ALPHA *(ALPHA / DIGIT / "_"))
    local-identifier    = "%" identifier
    global-identifier   = "@" identifier
    sign                = "-" / "+"
    integer-constant    = "true" / "false" / [sign] 1*DIGIT
    floating-constant   = [sign] (floating-dec / floating-hex / "inf" / "nan")
    floating-dec        = *DIGIT "." 1*DIGIT [exponent-dec] / 1*DIGIT "." [exponent-dec] / 1*DIGIT exponent-dec
    exponent-dec        = "e" [sign] 1*DIGIT
    floating-hex        = "0x" (*HEXDIG "." 1*HEXDIG / 1*HEXDIG ".") [exponent-hex] / "0x" 1*HEXDIG exponent-hex
    exponent-hex        = "p" [sign] 1*DIGIT

    function-definition = "func" global-identifier "(" [argument *("," argument)] ")" *attribute region
    argument            = local-identifier ":" type
    attribute           = "work_group_size" "(" 1*DIGIT "," 1*DIGIT ")" / "subgroup_size" "(" 1*DIGIT ")"
    region              = "{" *instruction "}"

    type                = scalar-type / memref-or-group
    scalar-type         = integer-type / "f32" / "f64"
    integer-type        = "i1" / "i8" / "i16" / "i32" / "i64" / "index"
    memref-type         = "memref" "<" scalar-type *("x" extent) ["," "strided" "<" [extent *("," extent)] ">"] ">"
    group-type          = "group" "<" memref-type ["," "offset" ":" extent] ">"
    memref-or-group     = memref-type / group-type
    extent              = integer-constant / "?"

    instruction         = [local-identifier *("," local-identifier) "="] instruction-name ...
    operand             = local-identifier / integer-constant / floating-constant
    integral            = local-identifier / integer-constant
    index-list          = "[" [integral *("," integral)] "]"

    alloca              = "alloca" "->" memref-type
    arith-binary        = "arith" binary-op operand "," operand ":" scalar-type
    binary-op           = ".add" / ".sub" / ".mul" / ".div" / ".rem" / ".shl" / ".shr" / ".and" / ".or" / ".xor"
    arith-unary         = "arith" (".neg" / ".not") operand ":" scalar-type
    barrier             = "barrier"
    cast                = "cast" operand ":" scalar-type "->" scalar-type
    comparison          = "cmp" (".eq" / ".ne" / ".gt" / ".ge" / ".lt" / ".le") operand "," operand ":" scalar-type
    expand              = "expand" local-identifier "[" integer-constant "->" expand-shape "]" ":" memref-type
    expand-shape        = expand-size 1*("x" expand-size)
    expand-size         = integer-constant / "?" / local-identifier
    for                 = "for" local-identifier "=" integral "," integral ["," integral] [":" integer-type] region
    foreach             = "foreach" local-identifier "=" integral "," integral [":" integer-type] region
    fuse                = "fuse" local-identifier "[" integer-constant "," integer-constant "]" ":" memref-type
    group-id            = "group_id"
    group-size          = "group_size"
    if                  = "if" integral ["->" "(" [scalar-type *("," scalar-type)] ")"] region ["else" region]
    lifetime-stop       = "lifetime_stop" local-identifier
    load                = "load" local-identifier index-list ":" memref-or-group
    size                = "size" local-identifier "[" integer-constant "]" ":" memref-type
    store               = "store" local-identifier "," local-identifier index-list ":" memref-type
    subview             = "subview" local-identifier "[" [slice *("," slice)] "]" ":" memref-type
    slice               = integral [":" (integral / "?")] / ":"
    yield               = "yield" [operand *("," operand)] ":" [scalar-type *("," scalar-type)]
                        / "yield" "(" ")" [":"]

    axpby               = "axpby" transpose [".atomic"] unary-operands
    sum                 = "sum" transpose [".atomic"] unary-operands
    gemm                = "gemm" transpose transpose [".atomic"] binary-operands
    gemv                = "gemv" transpose [".atomic"] binary-operands
    ger                 = "ger" [".atomic"] binary-operands
    hadamard            = ("hadamard" / "hadamard_product") [".atomic"] binary-operands
    transpose           = ".t" / ".n"
    unary-operands      = operand "," local-identifier "," operand "," local-identifier
                          ":" scalar-type "," memref-type "," scalar-type "," memref-type
    binary-operands     = operand "," local-identifier "," local-identifier "," operand "," local-identifier
                          ":" scalar-type "," memref-type "," memref-type "," scalar-type "," memref-type
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tlx.diagnostics import Source
from tlx.frontends.tensor_language.errors import Reports
from tlx.frontends.tensor_language.syntax.cursor import Cursor
from tlx.frontends.tensor_language.syntax.nodes import (
    Attribute,
    Dictionary,
    Function,
    NamedAttribute,
    Parameter,
    Program,
)
from tlx.frontends.tensor_language.syntax.parser import function, program
from tlx.frontends.tensor_language.syntax.parser_types import type_ref
from tlx.frontends.tensor_language.v1.convert import convert, names_in
from tlx.frontends.tensor_language.v1.grammar import FORMS, any_type

_ATTRIBUTES: Final = {"work_group_size": 2, "subgroup_size": 1}  # and how many numbers they have


def parse(source: Source) -> Program:
    """The syntax tree, of version 2, of a text in version 1.

    Raises:
        ProgramError: The text does not follow the grammar, names what is not there, says a type that an operand does
            not have, or has no equal in version 2; it has every error that was found.
    """
    reports = Reports()
    c = Cursor(source, reports, FORMS)
    written = program(c, function_definition)
    lost = _assigned(c) if reports.errors else set[str]()
    converted = convert(written, names_in(source.text), lost, reports)
    reports.finish()
    return converted


def function_definition(c: Cursor) -> Function:
    """`function-definition`; its region holds instructions of version 1."""
    return function(c, argument, attribute_list)


def argument(c: Cursor) -> Parameter:
    """`argument = local-identifier ":" type`."""
    name = c.identifier("local", "a parameter")
    c.expect(":", "and the type of the parameter")
    type_ = type_ref(c, any_type)
    if c.kind == "{":
        raise c.error("parameters have no attributes in version 1")
    return Parameter(name=name, type=type_)


def attribute_list(c: Cursor) -> Dictionary:
    """`*attribute`."""
    first = c.at
    entries: list[NamedAttribute] = []
    while c.kind == "word":
        entries.append(attribute(c))
    return Dictionary(tuple(entries), c.span_from(first) if entries else None)


def attribute(c: Cursor) -> NamedAttribute:
    """`attribute = work-group-size-attribute / subgroup-size-attribute`."""
    first = c.at
    word = c.text
    if word not in _ATTRIBUTES:
        hint = "write 'work_group_size(m,n) subgroup_size(s)'" if word == "attributes" else ""
        raise c.expected("'work_group_size(m,n)', 'subgroup_size(s)' or '{'", hint, known=tuple(_ATTRIBUTES))
    c.at += 1
    c.expect("(", f"behind '{word}'")
    sizes = [_size(c)]
    for _ in range(1, _ATTRIBUTES[word]):
        c.expect(",", f"and the second size of '{word}'")
        sizes.append(_size(c))
    c.expect(")", f"behind the {'sizes' if len(sizes) > 1 else 'size'} of '{word}'")
    span = c.span_from(first)
    value = Attribute(tuple(sizes), span) if len(sizes) > 1 else sizes[0]
    return NamedAttribute(word, quoted=False, value=value, span=span)


def _size(c: Cursor) -> Attribute:
    first = c.at
    return Attribute(c.integer_constant("a size"), c.span(first))


def _assigned(c: Cursor) -> set[str]:
    """Parameters and results of a text: where a part of it was not read, they are there all the same."""
    found: set[str] = set()
    in_head = False
    for at, kind in enumerate(c.kinds):
        if kind == "=" or (in_head and kind == "local"):
            found.update(_names_before(c, at))
        in_head = (in_head or c.texts[at] == "func") and kind != "{"
    return found


def _names_before(c: Cursor, at: int) -> Iterator[str]:
    """The names of a list that a token ends, which may be a name itself."""
    at -= c.kinds[at] != "local"
    while at >= 0 and c.kinds[at] == "local":
        yield c.texts[at][1:]
        at -= 2 if c.kinds[at - 1] == "," else at + 1
