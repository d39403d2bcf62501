"""The parser of the first version: its text becomes the syntax tree of the second.

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

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NoReturn, TypeVar, cast, get_args

from tlx.diagnostics import ParseError, Source
from tlx.frontends.tensor_language.errors import Reports, did_you_mean
from tlx.frontends.tensor_language.operations import OPERATIONS, Operation, control, memory, subgroups
from tlx.frontends.tensor_language.operations.core import Modifier, Transpose, spelt
from tlx.frontends.tensor_language.operations.subgroups import BuiltinName
from tlx.frontends.tensor_language.syntax.cursor import Cursor, Form, Results
from tlx.frontends.tensor_language.syntax.forms import Piece, body, bracketed, comma, integer, mark
from tlx.frontends.tensor_language.syntax.nodes import (
    Attribute,
    Dictionary,
    Function,
    Instruction,
    Name,
    NamedAttribute,
    Parameter,
    Program,
    TypeRef,
)
from tlx.frontends.tensor_language.syntax.parser import function, program
from tlx.frontends.tensor_language.syntax.parser_regions import region
from tlx.frontends.tensor_language.syntax.productions import (
    boolean_constant,
    constant_or_dynamic,
    floating_constant,
    list_of,
    modifiers,
    separator,
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
from tlx.frontends.tensor_language.v1 import tree
from tlx.frontends.tensor_language.v1.convert import convert, names_in
from tlx.frontends.tensor_language.v1.tree import Constant, Operand, Rest, Slice

_Word = TypeVar("_Word", bound=str)


def name(c: Cursor, what: str) -> Name:
    """`local-identifier` that an instruction reads."""
    return c.identifier("local", f"{what} of '{c.keyword}'")


def operand(c: Cursor, what: str) -> Operand:
    """`identifier-or-constant = local-identifier / integer-constant / floating-constant`."""
    if c.kind == "float":
        first = c.at
        return Constant(floating_constant(c), c.span(first))
    return _name_or_constant(c, what, "%name or a constant")


def integral_operand(c: Cursor, what: str) -> Operand:
    """`identifier-or-int-constant = local-identifier / integer-constant`."""
    return _name_or_constant(c, what, "%name or an integer")


def _name_or_constant(c: Cursor, what: str, allowed: str) -> Operand:
    first = c.at
    if c.kind == "local":
        return c.identifier("local", what)
    if c.kind == "integer":
        return Constant(c.integer_constant(what), c.span(first))
    if c.kind == "word" and c.text in ("true", "false"):
        return Constant(boolean_constant(c), c.span(first))
    is_late_comma = c.kind == "," and c.kinds[c.at - 1] in ("modifier", "word")
    hint = "no comma stands behind the instruction's name" if is_late_comma else ""
    raise c.expected(f"{what} of '{c.keyword}' ({allowed})", hint)


def choice(c: Cursor, words: Sequence[_Word]) -> _Word:
    """The modifier that selects the instruction: `.add` of `arith.add`."""
    for word in words:
        if c.kind == "modifier" and c.text == f".{word}":
            c.at += 1
            c.keyword += f".{word}"
            return word
    known = [f".{word}" for word in words]
    raise c.expected(f"one of {', '.join(known)} behind '{c.keyword}'", did_you_mean(c.text, known))


def index_list(c: Cursor) -> tuple[Operand, ...]:
    """`"[" [identifier-or-int-constant *("," identifier-or-int-constant)] "]"`."""
    c.expect("[", f"and the indices of '{c.keyword}'")
    return list_of(c, lambda c: integral_operand(c, "an index"), "]")


def slice_list(c: Cursor) -> tuple[Slice, ...]:
    """`"[" [index-or-slice *("," index-or-slice)] "]"`."""
    c.expect("[", f"and the slices of '{c.keyword}'")
    return list_of(c, index_or_slice, "]")


def index_or_slice(c: Cursor) -> Slice:
    """`index-or-slice = identifier-or-int-constant [":" (identifier-or-int-constant / "?")] / ":"`."""
    first = c.at
    if c.accept(":"):
        span = c.span(first)
        return Slice(Constant(0, span), Rest(span), span)
    offset = integral_operand(c, "an offset")
    size: Operand | Rest | None = None
    if c.accept(":"):
        at = c.at
        size = Rest(c.span(at)) if c.accept("?") else integral_operand(c, "a size")
    return Slice(offset, size, c.span_from(first))


def expand_shape(c: Cursor) -> tuple[int | Name | Rest, ...]:
    """`expand-shape = constant-or-dynamic-or-identifier 1*("x" constant-or-dynamic-or-identifier)`."""
    entries = [_expand_entry(c)]
    if c.kind != "x":
        raise c.expected("'x' and another size of 'expand'")
    while c.accept("x"):
        entries.append(_expand_entry(c))
    return tuple(entries)


def _expand_entry(c: Cursor) -> int | Name | Rest:
    if c.kind == "?":
        c.at += 1
        return Rest(c.span(c.at - 1))
    if c.kind == "local":
        return c.identifier("local", "a size")
    if c.kind != "integer":
        raise c.expected("a size of 'expand' (an integer, '?' or %name)")
    return c.integer_constant("a size")


_INTEGERS: Final = {"i1": BOOL, "i8": I8, "i16": I16, "i32": I32, "i64": I64, "index": INDEX}
_SCALARS: Final = {**_INTEGERS, "f32": F32, "f64": F64}

TypeProduction = Callable[[Cursor], Type]


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
    c.expect("<", "behind 'memref'")
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
    c.expect("<", "behind 'group'")
    memref = memref_type(c)
    if c.kind == "x":
        raise c.error("groups have no size in version 1: write 'group<memref<...>>'")
    offset: Extent = 0
    if c.accept(","):
        c.expect_word("offset", "behind the memref type")
        c.expect(":", "behind 'offset'")
        offset = constant_or_dynamic(c, "the offset")
    c.expect(">", "at the end of 'group<...'")
    return GroupType(memref, None, offset)


def types_behind_colon(c: Cursor, *productions: TypeProduction) -> tuple[TypeRef, ...]:
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
    found = allowed.get(c.text) if c.kind == "word" else None
    if found is None:
        raise _no_type(c, what, allowed)
    c.at += 1
    return found


def _no_type(c: Cursor, what: str, allowed: dict[str, ScalarType]) -> ParseError:
    if c.text == "bool":
        return c.expected(what, "version 1 calls it 'i1'")
    hint = "that type is of version 2" if c.text in NUMBERS and c.text not in _SCALARS else ""
    return c.expected(f"{what} ({', '.join(allowed)})", hint, known=() if c.text in _SCALARS else tuple(allowed))


_BINARY: Final[tuple[tree.BinaryOp, ...]] = get_args(tree.BinaryOp)
_UNARY: Final[tuple[tree.UnaryOp, ...]] = get_args(tree.UnaryOp)


def transposes_of(entry: Operation) -> list[Modifier]:
    """The modifiers of an operation that transpose its inputs."""
    return [m for m in entry.modifiers or () if m.field.startswith("transpose")]


def arith(c: Cursor) -> tree.ArithBinary | tree.ArithUnary:
    """`"arith" ("." op operand "," operand / (".neg" / ".not") operand) ":" scalar-type`."""
    op = choice(c, (*_BINARY, *_UNARY))
    first = operand(c, "an operand")
    if op in ("neg", "not"):
        return tree.ArithUnary(op=op, operand=first, types=types_behind_colon(c, scalar_type))
    separator(c, "the second operand")
    second = operand(c, "the second operand")
    return tree.ArithBinary(op=op, lhs=first, rhs=second, types=types_behind_colon(c, scalar_type))


def blas(c: Cursor) -> tree.Blas:
    """`name *transpose [".atomic"] alpha "," A ["," B] "," beta "," C ":" types of these`."""
    written = c.keyword
    kind = cast(tree.BlasName, "hadamard" if written == "hadamard_product" else written)
    entry = OPERATIONS[kind]
    count = len(transposes_of(entry))
    head = c.at
    *transposes, atomic = modifiers(c, *[m.words for m in transposes_of(entry)], ("atomic",))
    if None in transposes:
        raise c.error(f"version 1 names every transpose: write '{written}{'.n' * count}' or the like", at=head - 1)
    alpha = operand(c, "alpha")
    inputs: list[Name] = []
    for _ in range(len(entry.fields) - 3):  # without alpha, beta and the output
        separator(c, "a memref")
        inputs.append(name(c, "a memref"))
    separator(c, "beta")
    beta = operand(c, "beta")
    separator(c, "the memref that is updated")
    output = name(c, "the memref that is updated")
    types = types_behind_colon(c, scalar_type, *[memref_type] * len(inputs), scalar_type, memref_type)
    return tree.Blas(
        name=kind, transposes=cast(tuple[Transpose, ...], tuple(transposes)), atomic=atomic is not None, alpha=alpha,
        inputs=tuple(inputs), beta=beta, output=output, types=types,
    )  # fmt: skip


def cmp(c: Cursor) -> tree.Comparison:
    """`"cmp" (".eq" / ".ne" / ".gt" / ".ge" / ".lt" / ".le") operand "," operand ":" scalar-type`."""
    relation = choice(c, tuple(tree.RELATIONS))
    lhs = operand(c, "an operand")
    separator(c, "the second operand")
    rhs = operand(c, "the second operand")
    return tree.Comparison(relation=relation, lhs=lhs, rhs=rhs, types=types_behind_colon(c, scalar_type))


def if_(c: Cursor) -> tree.If:
    """`"if" condition ["->" "(" [scalar-type *("," scalar-type)] ")"] region ["else" region]`."""
    condition = integral_operand(c, "the condition")
    types: tuple[TypeRef, ...] = ()
    if c.accept("->"):
        c.expect("(", "before the types of the results")
        types = () if c.kind == ")" else c.separated(_scalar_type)
        c.expect(")", "behind the types of the results")
    then = region(c)
    otherwise = region(c) if c.accept_word("else") else None
    return tree.If(condition=condition, types=types, then=then, otherwise=otherwise)


def _loop_type(c: Cursor) -> tuple[TypeRef]:
    return (type_ref(c, integer_type) if c.accept(":") else TypeRef(INDEX),)


def yield_(c: Cursor) -> tree.Yield:
    """`"yield" ([operand *("," operand)] ":" [scalar-type *("," scalar-type)] / "(" ")" [":"])`."""
    if c.accept("("):
        c.expect(")", "of 'yield' without values")
        c.accept(":")
        return tree.Yield()
    values = () if c.kind == ":" else c.separated(lambda c: operand(c, "a value"))
    c.expect(":", "and the types of the values of 'yield'")
    types = c.separated(_scalar_type) if c.kind == "word" or values else ()
    return tree.Yield(values=values, types=types)


def _scalar_type(c: Cursor) -> TypeRef:
    return type_ref(c, scalar_type)


def newer(c: Cursor) -> NoReturn:
    """An instruction that only the second version has.

    Raises:
        ParseError: Always.
    """
    old = OLD_SPELLINGS.get(c.keyword)
    hint = f"write '{old}'" if old else "version 2 has it (--std=v2)"
    if c.keyword == "constant":
        hint = "write the constant in the place of the operand"
    raise c.error(f"'{c.keyword}' is no instruction of version 1: {hint}", at=c.at - 1)


OLD_SPELLINGS: Final = {
    **{op: f"arith.{op}" for op in (*_BINARY, *_UNARY)},
    **{new: f"cmp.{old}" for old, new in tree.RELATIONS.items()},
    "num_groups": "group_size",
}
"""The names in version 1 of instructions that are renamed in version 2."""


def _name(field: str, what: str) -> Piece:
    return Piece(lambda c: name(c, what), fields=(field,))


def _operand(field: str, what: str) -> Piece:
    return Piece(lambda c: operand(c, what), fields=(field,))


def _integral(field: str, what: str) -> Piece:
    return Piece(lambda c: integral_operand(c, what), fields=(field,))


def _types(*productions: TypeProduction) -> Piece:
    return Piece(lambda c: types_behind_colon(c, *productions), fields=("types",))


def _read_alloca_type(c: Cursor) -> tuple[TypeRef]:
    c.expect("->", "and the type of 'alloca'")
    return (type_ref(c, memref_type),)


def _read_cast_types(c: Cursor) -> tuple[TypeRef, TypeRef]:
    (source,) = types_behind_colon(c, scalar_type)
    c.expect("->", "and the type of the result of 'cast'")
    return source, type_ref(c, scalar_type)


def _read_step(c: Cursor) -> Operand | None:
    return integral_operand(c, "the step") if c.accept(",") else None


_RANGE: Final = (
    _name("variable", "the variable"), mark("=", "and where the loop starts"),
    _integral("start", "where the loop starts"), comma("where the loop stops"),
    _integral("stop", "where the loop stops"),
)  # fmt: skip
_LOOP_TYPE: Final = Piece(_loop_type, fields=("types",))
_INDICES: Final = Piece(index_list, fields=("indices",))
_MEMREF: Final = _name("operand", "the memref")


def _form(entry: Operation) -> Form:
    return Form(entry.reader(), entry.results)


def _operation(name: str, node: type[Instruction], *pieces: Piece, results: Results = "one") -> dict[str, Form]:
    return {name: _form(Operation(node=node, spellings=spelt(name), pieces=pieces, results=results))}


def _builtin(old: str, name: BuiltinName) -> dict[str, Form]:
    return {old: _form(Operation(node=subgroups.Builtin, spellings={old: {"name": name}}, pieces=()))}


FORMS: Final[Mapping[str, Form]] = {
    **dict.fromkeys((*OPERATIONS, "math"), Form(newer, "many")),
    **_operation("alloca", memory.Alloca, Piece(_read_alloca_type, fields=("types",))),
    "arith": Form(arith, "one"),
    **_operation("barrier", control.Barrier, results="none"),
    **_operation("cast", tree.Cast, _operand("operand", "the value"), Piece(_read_cast_types, fields=("types",))),
    "cmp": Form(cmp, "one"),
    **_operation(
        "expand", tree.Expand, _MEMREF, mark("[", "and the mode of 'expand'"), integer("mode", "the mode"),
        mark("->", "and the sizes of 'expand'"), Piece(expand_shape, fields=("shape",)),
        mark("]", "behind the sizes of 'expand'"), _types(memref_type),
    ),
    **_operation("for", tree.For, *_RANGE, Piece(_read_step, fields=("step",)), _LOOP_TYPE, body(), results="none"),
    **_operation("foreach", tree.Foreach, *_RANGE, _LOOP_TYPE, body(), results="none"),
    **_operation(
        "fuse", memory.Fuse, _MEMREF, mark("[", "and the modes of 'fuse'"), integer("first", "the first mode"),
        comma("the last mode"), integer("last", "the last mode"), mark("]", "behind the modes of 'fuse'"),
        _types(memref_type),
    ),
    **_builtin("group_id", "group_id"),
    **_builtin("group_size", "num_groups"),
    "if": Form(if_, "many"),
    "lifetime_stop": _form(OPERATIONS["lifetime_stop"]),
    **_operation("load", tree.Load, _name("source", "the memref or group"), _INDICES, _types(memref_or_group_type)),
    **_operation("size", memory.Size, _MEMREF, bracketed("mode", "the mode"), _types(memref_type)),
    **_operation(
        "store", tree.Store, _name("value", "the value"), comma("the memref"), _name("target", "the memref"), _INDICES,
        _types(memref_type), results="none",
    ),
    **_operation("subview", tree.Subview, _MEMREF, Piece(slice_list, fields=("slices",)), _types(memref_type)),
    "yield": Form(yield_, "none"),
    **dict.fromkeys((*get_args(tree.BlasName), "hadamard_product"), Form(blas, "none")),
}  # fmt: skip
_ATTRIBUTES: Final = {"work_group_size": 2, "subgroup_size": 1}  # and how many numbers they have


def parse(source: Source) -> Program:
    """The syntax tree of version 2 for a text in version 1.

    Raises:
        ProgramError: The text does not follow the grammar, uses undefined names or wrong types, or cannot be expressed
            in version 2; the exception has all errors.
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
    """Parameters and results in a text, including the parts that could not be parsed."""
    found: set[str] = set()
    in_head = False
    for at, kind in enumerate(c.kinds):
        if kind == "=" or (in_head and kind == "local"):
            found.update(_names_before(c, at))
        in_head = (in_head or c.texts[at] == "func") and kind != "{"
    return found


def _names_before(c: Cursor, at: int) -> Iterator[str]:
    """The names of a list that ends at a token, which may be a name itself."""
    at -= c.kinds[at] != "local"
    while at >= 0 and c.kinds[at] == "local":
        yield c.texts[at][1:]
        at -= 2 if c.kinds[at - 1] == "," else at + 1
