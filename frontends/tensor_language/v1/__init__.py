"""Version 1 of the language: its grammar, and the conversion to version 2.

A text is read by its own grammar into the functions and regions of the common syntax tree. Its instructions are read
into their conversions, which run once all of the text has been read.

    grammar         the grammar; operands, types, parameters and attributes
    instructions    the syntax of each instruction, and its translation
    convert         scopes, fresh names, and the writer of instructions

    version 1                                       version 2

    %t = alloca -> memref<f32x16x8>                 %t = alloca : memref<f32x16x8,local>
    %g = group_id                                   %g = group_id.x : index
    %a = load %A[%g] : group<memref<f32x16x8>>      %a = load %A[%g] : memref<f32x16x8>
    %v = subview %t[:,0] : memref<f32x16x8>         %v = subview %t[0:16,0] : memref<f32x16,local>
    gemm.n.t.atomic 1.0, %a, %B, 1.0, %C : ...      %c1_f32 = constant 1.0 : f32
                                                    gemm.atomic.n.t %c1_f32, %a, %B, %c1_f32, %C
    %c = cmp.lt %i, %n : index                      %c = less_than %i, %n : bool
    foreach %i=%g,%n { ... }                        foreach (%i)=(%g),(%n) { ... }
    barrier                                         barrier.global.local
    work_group_size(16,2) subgroup_size(16)         attributes {work_group_size=[16,2], subgroup_size=16}
    group<memref<f32x16x8>>                         group<memref<f32x16x8>x?>, and the function does not get the size

Version 1 states the types of operands, version 2 those of results: the former are checked against the operands, the
latter follow from them. What version 2 cannot express is an error with a suggestion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tlx.diagnostics import Source
from tlx.frontends.tensor_language.errors import Reports
from tlx.frontends.tensor_language.syntax.cursor import Cursor
from tlx.frontends.tensor_language.syntax.nodes import (
    GROUPS_WITHOUT_SIZE,
    WIDE_FACTORS,
    Attribute,
    Dictionary,
    Function,
    NamedAttribute,
    Program,
)
from tlx.frontends.tensor_language.syntax.parser import function, program
from tlx.frontends.tensor_language.types import GroupType
from tlx.frontends.tensor_language.v1.convert import Converter
from tlx.frontends.tensor_language.v1.grammar import argument, attribute_list
from tlx.frontends.tensor_language.v1.instructions import FORMS


def parse(source: Source) -> Program:
    """The syntax tree of version 2 for a text in version 1.

    Raises:
        ProgramError: The text does not follow the grammar, uses undefined names or wrong types, or cannot be expressed
            in version 2; the exception has all errors.
    """
    reports = Reports()
    c = Cursor(source, reports, FORMS)
    read = program(c, lambda c: function(c, argument, attribute_list))
    unparsed = _assigned(c) if reports.errors else set[str]()
    names = frozenset(re.findall(r"%(\w+)", source.text, re.ASCII))
    converted = Program([_converted(f, Converter(reports, names, unparsed)) for f in read.functions])
    reports.finish()
    return converted


def _converted(f: Function, converter: Converter) -> Function:
    """A function in version 2, with attributes for groups without sizes and wide factors."""
    body = converter.region(f.body, *((p.name, p.type.type) for p in f.parameters))
    has_groups = any(isinstance(p.type.type, GroupType) for p in f.parameters)
    more = [
        name
        for name, is_set in ((GROUPS_WITHOUT_SIZE, has_groups), (WIDE_FACTORS, converter.has_wide_factors))
        if is_set
    ]
    attributes = f.attributes
    if more:
        entries = [NamedAttribute(name, quoted=True, value=Attribute(True)) for name in more]
        attributes = Dictionary((*attributes.entries, *entries), attributes.span)
    return Function(name=f.name, parameters=f.parameters, attributes=attributes, body=body, span=f.span)


def _assigned(c: Cursor) -> set[str]:
    """Parameters and results in a text, including the parts that could not be parsed."""
    names: set[str] = set()
    in_head = False
    for at, kind in enumerate(c.kinds):
        if kind == "=" or (in_head and kind == "local"):
            names.update(_names_before(c, at))
        in_head = (in_head or c.texts[at] == "func") and kind != "{"
    return names


def _names_before(c: Cursor, at: int) -> Iterator[str]:
    """The names of a list that ends at a token, which may be a name itself."""
    at -= c.kinds[at] != "local"
    while at >= 0 and c.kinds[at] == "local":
        yield c.texts[at][1:]
        at -= 2 if c.kinds[at - 1] == "," else at + 1
