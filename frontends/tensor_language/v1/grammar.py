"""The grammar of version 1, in ABNF, and its productions of operands, types, parameters and attributes.

White space separates tokens and means nothing else; comments run from `;` to the end of the line.

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

from typing import Final

from tlx.frontends.tensor_language.syntax.cursor import Cursor
from tlx.frontends.tensor_language.syntax.nodes import Attribute, Dictionary, Name, NamedAttribute, Parameter, TypeRef
from tlx.frontends.tensor_language.syntax.productions import (
    TypeProduction,
    boolean_constant,
    constant_or_dynamic,
    floating_constant,
    list_of,
    strided_layout,
    tensor_shape,
    type_ref,
)
from tlx.frontends.tensor_language.types import (
    BOOL,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    INDEX,
    NUMBERS,
    Extent,
    GroupType,
    MemrefType,
    ScalarType,
    Type,
)
from tlx.frontends.tensor_language.v1.convert import ConstantOperand, Operand


def name(c: Cursor, what: str) -> Name:
    """`local-identifier` that an instruction reads."""
    return c.identifier("local", f"{what} of '{c.keyword}'")


def operand(c: Cursor, what: str) -> Operand:
    """`identifier-or-constant = local-identifier / integer-constant / floating-constant`."""
    if c.kind == "float":
        first = c.at
        return ConstantOperand(floating_constant(c), c.span(first))
    return _name_or_constant(c, what, "%name or a constant")


def integral_operand(c: Cursor, what: str) -> Operand:
    """`identifier-or-int-constant = local-identifier / integer-constant`."""
    return _name_or_constant(c, what, "%name or an integer")


def _name_or_constant(c: Cursor, what: str, allowed: str) -> Operand:
    first = c.at
    if c.kind == "local":
        return c.identifier("local", what)
    if c.kind == "integer":
        return ConstantOperand(c.integer_constant(what), c.span(first))
    if c.kind == "word" and c.text in ("true", "false"):
        return ConstantOperand(boolean_constant(c), c.span(first))
    is_late_comma = c.kind == "," and c.kinds[c.at - 1] in ("modifier", "word")
    hint = "no comma follows the instruction's name" if is_late_comma else ""
    raise c.expected(f"{what} of '{c.keyword}' ({allowed})", hint)


def index_list(c: Cursor) -> tuple[Operand, ...]:
    """`"[" [identifier-or-int-constant *("," identifier-or-int-constant)] "]"`."""
    c.expect("[", f"and the indices of '{c.keyword}'")
    return list_of(c, lambda c: integral_operand(c, "an index"), "]")


_INTEGERS: Final = {"i1": BOOL, "i8": I8, "i16": I16, "i32": I32, "i64": I64, "index": INDEX}
_SCALARS: Final = {**_INTEGERS, "f32": F32, "f64": F64}


def any_type(c: Cursor) -> Type:
    """`type = void-type / scalar-type / memref-type / group-type`, of a parameter: not `void`."""
    if c.is_word("void"):
        raise c.error("no value has type 'void'")
    return memref_or_group_type(c) if c.is_word("memref") or c.is_word("group") else scalar_type(c, "a type")


def scalar_type(c: Cursor, what: str = "a scalar type") -> ScalarType:
    """`scalar-type = integer-type / floating-type`."""
    return _scalar(c, what, _SCALARS)


def integer_type(c: Cursor) -> ScalarType:
    """`integer-type = "i" ("1" / "8" / "16" / "32" / "64") / "index"`."""
    return _scalar(c, "an integer type", _INTEGERS)


def memref_type(c: Cursor) -> MemrefType:
    """`memref-type = "memref" "<" scalar-type tensor-shape ["," strided-layout] ">"`."""
    c.expect_word("memref", "and what it holds")
    c.expect("<", "after 'memref'")
    if c.is_word("i1"):
        raise c.error("version 2 has no memory of single bits: write 'i8', and compare what is loaded with 0")
    element = scalar_type(c)
    shape = tensor_shape(c)
    stride: tuple[Extent, ...] | None = None
    if c.accept(","):
        at = c.at
        stride = strided_layout(c)
        if len(stride) != len(shape):
            raise c.error(f"a memref has a stride for each mode, {len(shape)}, found {len(stride)}", at=at)
    c.expect(">", "at the end of 'memref<...'")
    return MemrefType.packed(element, shape) if stride is None else MemrefType(element, shape, stride)


def memref_or_group_type(c: Cursor) -> MemrefType | GroupType:
    """`memref-or-group-type = memref-type / group-type`."""
    if not c.is_word("group"):
        return memref_type(c)
    c.at += 1
    c.expect("<", "after 'group'")
    memref = memref_type(c)
    if c.kind == "x":
        raise c.error("groups have no size in version 1: write 'group<memref<...>>'")
    offset: Extent = 0
    if c.accept(","):
        c.expect_word("offset", "after the memref type")
        c.expect(":", "after 'offset'")
        offset = constant_or_dynamic(c, "the offset")
    c.expect(">", "at the end of 'group<...'")
    return GroupType(memref, None, offset)


def types_after_colon(c: Cursor, *productions: TypeProduction) -> tuple[TypeRef, ...]:
    """`":" type *("," type)`, the types of the operands."""
    if not c.accept(":"):
        raise c.expected(f"':' and the types of the operands of '{c.keyword}'")
    types = [type_ref(c, productions[0])]
    for production in productions[1:]:
        if not c.accept(","):
            raise c.expected(f"',' and the type of the next operand of '{c.keyword}'")
        types.append(type_ref(c, production))
    return tuple(types)


def _scalar(c: Cursor, what: str, allowed: dict[str, ScalarType]) -> ScalarType:
    if c.kind == "word" and c.text in allowed:
        c.at += 1
        return allowed[c.texts[c.at - 1]]
    if c.text == "bool":
        raise c.expected(what, "version 1 calls it 'i1'")
    hint = "that type is of version 2" if c.text in NUMBERS and c.text not in _SCALARS else ""
    raise c.expected(f"{what} ({', '.join(allowed)})", hint, known=() if c.text in _SCALARS else tuple(allowed))


_ATTRIBUTES: Final = {"work_group_size": 2, "subgroup_size": 1}  # and how many numbers they have


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
    c.expect("(", f"after '{word}'")
    sizes = [_size(c)]
    for _ in range(1, _ATTRIBUTES[word]):
        c.expect(",", f"and the second size of '{word}'")
        sizes.append(_size(c))
    c.expect(")", f"after the {'sizes' if len(sizes) > 1 else 'size'} of '{word}'")
    span = c.span_from(first)
    value = Attribute(tuple(sizes), span) if len(sizes) > 1 else sizes[0]
    return NamedAttribute(word, quoted=False, value=value, span=span)


def _size(c: Cursor) -> Attribute:
    first = c.at
    return Attribute(c.integer_constant("a size"), c.span(first))
