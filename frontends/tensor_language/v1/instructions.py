"""The instructions of version 1: each function reads one, and returns its conversion to version 2.

Conversion needs the types of names, which are known only after all of a text has been read: a name that is defined in
text that does not parse must not be reported as undefined.

BLAS instructions are read by their entries in the table of operations, which give operands and transposes. The other
instructions have productions of their own. Operands may be constants and are followed by their types, and most
instructions have other names, modifiers or operands than in version 2. Only `load`, `store`, `size`, `fuse` and
`lifetime_stop` share the order of their operands with an entry; to read those five by the table, its pieces would need
a description that each can be rebuilt from, which is more code than their productions.

    %y = arith.add %x, 1 : f32          an operand may be a constant, in version 2 it is a name
    %v = load %A[%i] : memref<f32x?>    the type is that of the operand that is read, in version 2 that of the result
    %s = subview %A[%i:?] : ...         a size may be left out, in version 2 it is written

BLAS instructions: the order of modifiers changes (`gemm.n.t.atomic` is `gemm.atomic.n.t` in version 2), and factors
become values. Version 1 allows an atomic update with any beta, and an alpha wider than the inputs; a function with one
of these gets the attribute `"wide_factors"`. Updates of local memory, which belongs to one work-group, need not be
atomic.

Scalars: `i1` is `bool` in version 2, which is not a number. Arithmetic on single bits becomes, where possible,

    arith.add, arith.sub      ->  xor                 the last bit of the sum
    arith.mul                 ->  and
    cmp.eq                    ->  xor, then not
    cmp.ne                    ->  xor
    cast %a : i1 -> i32       ->  if %a -> (i32) { 1 } else { 0 }
    cast %a : i32 -> i1       ->  not_equal %a, 0

Views: sizes that version 1 infers are computed.

Rewrite:

    %v = subview %A[%i:?] : memref<f32x16>      ->    %c16 = constant 16 : index
                                                      %rest = sub %c16, %i : index
                                                      %v = subview %A[%i:%rest] : memref<f32x?>

    %v = expand %A[0->4x?] : memref<f32x?>      ->    %extent = size %A[0] : index
                                                      %c4 = constant 4 : index
                                                      %part = div %extent, %c4 : index
                                                      %v = expand %A[0->4 x %part] : memref<f32x4x?>

If both are known, the size is a number in the view.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn, TypeVar

from tlx.diagnostics import Span, counted
from tlx.frontends.tensor_language.operations import OPERATIONS, control, memory, scalars, subgroups
from tlx.frontends.tensor_language.operations.core import operation_of
from tlx.frontends.tensor_language.syntax import nodes
from tlx.frontends.tensor_language.syntax.cursor import RENAMED, Cursor, InstructionForm, Results, region
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name, Region, TypeRef
from tlx.frontends.tensor_language.syntax.productions import bracketed_integer, list_of, modifiers, separator, type_ref
from tlx.frontends.tensor_language.syntax.productions import operand as local_operand
from tlx.frontends.tensor_language.types import BOOL, INDEX, Extent, ScalarType, Type, promotable, promote
from tlx.frontends.tensor_language.v1.convert import ConstantOperand, Converter, Operand, V1Instruction, spell
from tlx.frontends.tensor_language.v1.grammar import (
    index_list,
    integer_type,
    integral_operand,
    memref_or_group_type,
    memref_type,
    name,
    operand,
    scalar_type,
    types_after_colon,
)

Conversion = Callable[[Converter], Instruction | None]
"""Gives the instruction of version 2; see `V1Instruction`."""

_Word = TypeVar("_Word", bound=str)


def alloca(c: Cursor) -> Conversion:
    """`alloca`, whose memory is local in version 2."""
    c.expect("->", "and the type of 'alloca'")
    reference = type_ref(c, lambda c: replace(memref_type(c), address_space="local"))
    return lambda _: memory.Alloca(types=(reference,))


def lifetime_stop(c: Cursor) -> Conversion:
    """`lifetime_stop`."""
    memref = local_operand(c, "the memref")
    return lambda b: memory.LifetimeStop(memref=b.bound_name(memref))


def blas(c: Cursor) -> Conversion:
    """`axpby`, `gemm`, `gemv`, `ger`, `hadamard` and `sum`."""
    written = c.keyword
    entry = OPERATIONS["hadamard" if written == "hadamard_product" else written]
    transposes = [m for m in entry.modifiers or () if m.field.startswith("transpose")]
    head = c.at
    *words, atomic = modifiers(c, *[m.words for m in transposes], ("atomic",))
    if None in words:
        raise c.error(f"version 1 names every transpose: write '{written}{'.n' * len(words)}' or the like", at=head - 1)
    alpha = operand(c, "alpha")
    inputs: list[Name] = []
    for _ in range(len(entry.fields) - 3):  # without alpha, beta and the output
        separator(c, "a memref")
        inputs.append(name(c, "a memref"))
    separator(c, "beta")
    beta = operand(c, "beta")
    separator(c, "the memref that is updated")
    output = name(c, "the memref that is updated")
    types = types_after_colon(c, scalar_type, *[memref_type] * len(inputs), scalar_type, memref_type)

    def convert(converter: Converter) -> Instruction:
        alpha_type, *input_types, beta_type, output_type = types
        alpha_ = converter.operand(alpha, alpha_type)
        elements = [converter.memref(memref, type_).element for memref, type_ in zip(inputs, input_types, strict=True)]
        beta_ = converter.operand(beta, beta_type)
        is_global = converter.memref(output, output_type).address_space == "global"
        is_exact = isinstance(beta, ConstantOperand) and beta.value in {0, 1}
        converter.has_wide_factors |= _is_wide(alpha_type, elements) or (
            atomic is not None and is_global and not is_exact
        )
        fields: dict[str, Any] = dict(zip("abc", (*inputs, output), strict=False))
        fields |= {m.field: word for m, word in zip(transposes, words, strict=True)}
        fields |= {"alpha": alpha_, "beta": beta_, "atomic": atomic is not None and (is_global or is_exact)}
        return entry.node(**fields)

    return convert


def _is_wide(alpha: TypeRef, elements: list[ScalarType]) -> bool:
    """Whether the inputs do not hold all values of alpha."""
    computed: ScalarType | None = elements[0]
    for element in elements[1:]:
        computed = promote(computed, element) if computed else None
    return isinstance(alpha.type, ScalarType) and computed is not None and not promotable(alpha.type, computed)


def barrier(_: Cursor) -> Conversion:
    """`barrier`, with both fences, which version 1 implies."""
    return lambda _: control.Barrier(fence_global=True, fence_local=True)


def _range(c: Cursor) -> tuple[Name, Operand, Operand]:
    """The variable of a loop, where it starts and where it stops."""
    variable = name(c, "the variable")
    c.expect("=", "and where the loop starts")
    start = integral_operand(c, "where the loop starts")
    separator(c, "where the loop stops")
    return variable, start, integral_operand(c, "where the loop stops")


def _loop_type(c: Cursor) -> TypeRef:
    return type_ref(c, integer_type) if c.accept(":") else TypeRef(INDEX)


def for_(c: Cursor) -> Conversion:
    """`for`."""
    variable, start, stop = _range(c)
    step = integral_operand(c, "the step") if c.accept(",") else None
    type_ = _loop_type(c)
    body = region(c)
    return lambda b: control.For(
        variable=variable,
        start=b.operand(start, type_),
        stop=b.operand(stop, type_),
        step=None if step is None else b.operand(step, type_),
        body=b.region(body, (variable, type_.type)),
    )


def foreach(c: Cursor) -> Conversion:
    """`foreach`, over one dimension."""
    variable, start, stop = _range(c)
    type_ = _loop_type(c)
    body = region(c)
    return lambda b: control.Foreach(
        variables=(variable,),
        starts=(b.operand(start, type_),),
        stops=(b.operand(stop, type_),),
        body=b.region(body, (variable, type_.type)),
    )


def if_(c: Cursor) -> Conversion:
    """`if`."""
    condition = integral_operand(c, "the condition")
    types: tuple[TypeRef, ...] = ()
    if c.accept("->"):
        c.expect("(", "before the types of the results")
        types = () if c.kind == ")" else c.separated(_scalar_type)
        c.expect(")", "after the types of the results")
    then = region(c)
    otherwise = region(c) if c.accept_word("else") else None
    return lambda b: control.If(
        condition=b.bound_name(condition) if isinstance(condition, Name) else b.constant(condition, BOOL),
        then=b.region(then),
        otherwise=None if otherwise is None else b.region(otherwise),
        types=types,
    )


def yield_(c: Cursor) -> Conversion:
    """`yield`."""
    if c.accept("("):
        c.expect(")", "of 'yield' without values")
        c.accept(":")
        return lambda _: control.Yield()
    values = () if c.kind == ":" else c.separated(lambda c: operand(c, "a value"))
    c.expect(":", "and the types of the values of 'yield'")
    types = c.separated(_scalar_type) if c.kind == "word" or values else ()

    def convert(converter: Converter) -> Instruction | None:
        if len(values) == len(types):
            return control.Yield(values=tuple(map(converter.operand, values, types)))
        got = f"{counted(len(values), 'value')} and {counted(len(types), 'type')}"
        return converter.error(f"yield takes a type for each value, got {got}")

    return convert


def _scalar_type(c: Cursor) -> TypeRef:
    return type_ref(c, scalar_type)


def group_builtin(c: Cursor) -> Conversion:
    """`group_id` and `group_size`: groups of version 1 are numbered along one dimension."""
    name_: subgroups.BuiltinName = "group_id" if c.keyword == "group_id" else "num_groups"
    return lambda _: subgroups.Builtin(name=name_, component="x", types=(TypeRef(INDEX),))


_ON_BITS: Final[dict[str, scalars.ArithBinaryOp]] = {
    "add": "xor", "sub": "xor", "mul": "and", "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip
_BINARY: Final[tuple[scalars.ArithBinaryOp, ...]] = (
    "add", "sub", "mul", "div", "rem", "shl", "shr", "and", "or", "xor",
)  # fmt: skip
_UNARY: Final[tuple[scalars.ArithUnaryOp, ...]] = ("neg", "not")
_RELATIONS: Final[dict[str, Any]] = {
    old.removeprefix("cmp."): new for old, new in RENAMED.items() if old.startswith("cmp.")
}


def _choice(c: Cursor, words: Sequence[_Word]) -> _Word:
    """The modifier that selects the instruction: `.add` of `arith.add`."""
    for word in words:
        if c.kind == "modifier" and c.text == f".{word}":
            c.at += 1
            c.keyword += f".{word}"
            return word
    known = [f".{word}" for word in words]
    raise c.expected(f"one of {', '.join(known)} after '{c.keyword}'", known=known)


def _two_operands(c: Cursor) -> tuple[Operand, Operand, TypeRef]:
    """Two operands and their type."""
    lhs = operand(c, "an operand")
    separator(c, "the second operand")
    rhs = operand(c, "the second operand")
    (type_,) = types_after_colon(c, scalar_type)
    return lhs, rhs, type_


def arith(c: Cursor) -> Conversion:
    """`arith.add`, `arith.neg` and the like."""
    op = _choice(c, (*_BINARY, *_UNARY))
    if op in ("neg", "not"):
        return _unary(c, op)
    lhs, rhs, type_ = _two_operands(c)

    def convert(converter: Converter) -> Instruction | None:
        left, right = converter.operand(lhs, type_), converter.operand(rhs, type_)
        if type_.type == BOOL and op not in _ON_BITS:
            return converter.error(f"version 2 has no '{op}' of truth values; use arith.and, arith.or or arith.xor")
        own = _ON_BITS[op] if type_.type == BOOL else op
        return scalars.ArithBinary(op=own, lhs=left, rhs=right, types=(type_,))

    return convert


def _unary(c: Cursor, op: scalars.ArithUnaryOp) -> Conversion:
    value = operand(c, "an operand")
    (type_,) = types_after_colon(c, scalar_type)

    def convert(converter: Converter) -> Instruction | None:
        name_ = converter.operand(value, type_)
        if type_.type == BOOL and op == "neg":
            return converter.error("version 2 has no 'neg' of truth values; use arith.not")
        return scalars.ArithUnary(op=op, operand=name_, types=(type_,))

    return convert


def cmp(c: Cursor) -> Conversion:
    """`cmp.lt` and the like."""
    relation = _choice(c, tuple(_RELATIONS))
    lhs, rhs, type_ = _two_operands(c)

    def convert(converter: Converter) -> Instruction | None:
        left, right = converter.operand(lhs, type_), converter.operand(rhs, type_)
        bool_ = (TypeRef(BOOL),)
        if type_.type != BOOL:
            return scalars.Comparison(op=_RELATIONS[relation], lhs=left, rhs=right, types=bool_)
        if relation not in {"eq", "ne"}:
            return converter.error(f"version 2 has no 'cmp.{relation}' of truth values; use cmp.eq or cmp.ne")
        differ = scalars.ArithBinary(op="xor", lhs=left, rhs=right, types=bool_, span=converter.span)
        if relation == "ne":
            return differ
        return scalars.ArithUnary(op="not", operand=converter.value("differ", differ, BOOL), types=bool_)

    return convert


def cast(c: Cursor) -> Conversion:
    """`cast`, or its equivalent if one side is a boolean."""
    value = operand(c, "the value")
    (source,) = types_after_colon(c, scalar_type)
    c.expect("->", "and the type of the result of 'cast'")
    to = type_ref(c, scalar_type)

    def convert(converter: Converter) -> Instruction:
        name_ = converter.operand(value, source)
        if BOOL not in {source.type, to.type}:
            return scalars.Cast(operand=name_, types=(to,))
        if source.type == to.type:
            return scalars.ArithBinary(op="or", lhs=name_, rhs=name_, types=(to,))
        if source.type == BOOL:
            then, otherwise = (_region_of_constant(converter, number, to.type) for number in (1, 0))
            return control.If(condition=name_, then=then, otherwise=otherwise, types=(to,))
        zero = _number(converter, 0, source.type)
        return scalars.Comparison(op="not_equal", lhs=name_, rhs=zero, types=(to,))

    return convert


def _region_of_constant(converter: Converter, number: int, type_: Type) -> Region:
    """A region that only yields a number."""
    with converter.block() as written:
        converter.add(control.Yield(values=(_number(converter, number, type_),), span=converter.span))
    return Region(written, converter.span)


def _number(converter: Converter, number: int, type_: Type) -> Name:
    assert isinstance(type_, ScalarType)
    return converter.constant(
        ConstantOperand(float(number) if type_.kind == "float" else number, converter.span), type_
    )


def _with_inferred_type(node: Instruction, source: Type) -> Instruction:
    """An instruction whose result type follows from the type of the memref or group that it reads."""
    type_ = operation_of(node).gives(node, lambda _: source)
    assert type_ is not None
    node.types = (TypeRef(type_),)
    return node


def load(c: Cursor) -> Conversion:
    """`load`: an element of a memref, or a memref of a group."""
    source = name(c, "the memref or group")
    indices = index_list(c)
    (type_,) = types_after_colon(c, memref_or_group_type)

    def convert(converter: Converter) -> Instruction:
        viewed = converter.expect(source, type_)
        return _with_inferred_type(memory.Load(source=source, indices=tuple(map(converter.index, indices))), viewed)

    return convert


def store(c: Cursor) -> Conversion:
    """`store`."""
    value = name(c, "the value")
    separator(c, "the memref")
    destination = name(c, "the memref")
    indices = index_list(c)
    (type_,) = types_after_colon(c, memref_type)

    def convert(converter: Converter) -> Instruction:
        converter.bound_name(value)
        converter.expect(destination, type_)
        return memory.Store(value=value, destination=destination, indices=tuple(map(converter.index, indices)))

    return convert


def size(c: Cursor) -> Conversion:
    """`size`."""
    memref = name(c, "the memref")
    mode = bracketed_integer(c, "the mode")
    (type_,) = types_after_colon(c, memref_type)
    return lambda b: _with_inferred_type(memory.Size(operand=memref, mode=mode), b.expect(memref, type_))


def fuse(c: Cursor) -> Conversion:
    """`fuse`."""
    memref = name(c, "the memref")
    c.expect("[", "and the modes of 'fuse'")
    first = c.integer_constant("the first mode")
    separator(c, "the last mode")
    last = c.integer_constant("the last mode")
    c.expect("]", "after the modes of 'fuse'")
    (type_,) = types_after_colon(c, memref_type)

    def convert(converter: Converter) -> Instruction | None:
        source = converter.memref(memref, type_)
        if 0 <= first < last < source.order:
            return _with_inferred_type(memory.Fuse(operand=memref, first=first, last=last), source)
        limit = f"below {source.order} for {spell(source)}"
        return converter.error(f"fuse takes two modes in order, {limit}, got {first} and {last}")

    return convert


@dataclass(frozen=True, slots=True)
class _Rest:
    """`?` of a slice or of an expand shape: the rest of the mode."""

    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class _Slice:
    """`offset:size`, `offset:?`, `offset` or `:` of a subview; a plain colon is `0:?`."""

    offset: Operand
    size: Operand | _Rest | None
    span: Span | None = field(default=None, compare=False, repr=False)


def _read_slice(c: Cursor) -> _Slice:
    """`slice = integral [":" (integral / "?")] / ":"`."""
    first = c.at
    if c.accept(":"):
        span = c.span(first)
        return _Slice(ConstantOperand(0, span), _Rest(span), span)
    offset = integral_operand(c, "an offset")
    size: Operand | _Rest | None = None
    if c.accept(":"):
        at = c.at
        size = _Rest(c.span(at)) if c.accept("?") else integral_operand(c, "a size")
    return _Slice(offset, size, c.span_from(first))


def subview(c: Cursor) -> Conversion:
    """`subview`, with the sizes that it omits."""
    memref = name(c, "the memref")
    c.expect("[", "and the slices of 'subview'")
    written = list_of(c, _read_slice, "]")
    (type_,) = types_after_colon(c, memref_type)

    def convert(converter: Converter) -> Instruction | None:
        source = converter.memref(memref, type_)
        if len(written) != source.order:
            expected = f"{source.order} for {spell(source)}"
            return converter.error(f"subview takes a slice for each mode, {expected}, got {len(written)}")
        slices = tuple(_slice(converter, memref, mode, source.shape[mode], s) for mode, s in enumerate(written))
        return _with_inferred_type(memory.Subview(operand=memref, slices=slices), source)

    return convert


def _slice(converter: Converter, memref: Name, mode: int, extent: Extent, written: _Slice) -> nodes.Slice:
    offset = _entry(converter, written.offset)
    if written.size is None:
        return nodes.Slice(offset, None, written.span)
    if not isinstance(written.size, _Rest):
        entry = _entry(converter, written.size)
        size_ = (
            _positive(converter, entry, written.size.span, "the size of a slice") if isinstance(entry, int) else entry
        )
        return nodes.Slice(offset, size_, written.span)
    if isinstance(offset, int) and extent is not None:
        left = _positive(converter, extent - offset, written.span, f"what is left of {extent} after {offset}")
        return nodes.Slice(offset, left, written.span)
    whole = _extent(converter, memref, mode, extent)
    if offset == 0:
        return nodes.Slice(offset, whole, written.span)
    first = converter.index(written.offset)
    rest = scalars.ArithBinary(op="sub", lhs=whole, rhs=first, span=written.span)
    return nodes.Slice(offset, converter.value("rest", rest, INDEX), written.span)


def _read_extent(c: Cursor) -> int | Name | _Rest:
    """`expand-size = integer-constant / "?" / local-identifier`."""
    if c.accept("?"):
        return _Rest(c.span(c.at - 1))
    if c.kind == "local":
        return c.identifier("local", "a size")
    if c.kind != "integer":
        raise c.expected("a size of 'expand' (an integer, '?' or %name)")
    return c.integer_constant("a size")


def expand(c: Cursor) -> Conversion:
    """`expand`, with the size that it omits."""
    memref = name(c, "the memref")
    c.expect("[", "and the mode of 'expand'")
    mode = c.integer_constant("the mode")
    c.expect("->", "and the sizes of 'expand'")
    written = [_read_extent(c)]
    if c.kind != "x":
        raise c.expected("'x' and another size of 'expand'")
    while c.accept("x"):
        written.append(_read_extent(c))
    c.expect("]", "after the sizes of 'expand'")
    (type_,) = types_after_colon(c, memref_type)

    def convert(converter: Converter) -> Instruction | None:
        source = converter.memref(memref, type_)
        if not 0 <= mode < source.order:
            return converter.error(f"expand takes a mode below {source.order} for {spell(source)}, got {mode}")
        shape = _shape(converter, memref, mode, source.shape[mode], written)
        return (
            None
            if shape is None
            else _with_inferred_type(memory.Expand(operand=memref, mode=mode, shape=shape), source)
        )

    return convert


def _shape(
    converter: Converter, memref: Name, mode: int, extent: Extent, written: list[int | Name | _Rest]
) -> tuple[int | Name, ...] | None:
    """The shape of an expand, with the inferred size if there is one."""
    rests = [e for e in written if isinstance(e, _Rest)]
    if len(rests) > 1:
        return converter.error("only one '?' can be inferred in an expand shape; name the other sizes", rests[1].span)
    names = [converter.bound_name(e) for e in written if isinstance(e, Name)]
    known = math.prod(e for e in written if isinstance(e, int))
    if rests and known <= 0:
        return converter.error("the sizes of an expand shape are positive where one is to be inferred", rests[0].span)
    if rests and extent is not None and not names and extent % known:
        return converter.error(
            f"the mode's size {extent} is not a multiple of {known}, so '?' has no value", rests[0].span
        )
    return tuple(_part(converter, memref, mode, extent, known, names) if isinstance(e, _Rest) else e for e in written)


def _part(converter: Converter, memref: Name, mode: int, extent: Extent, known: int, names: list[Name]) -> int | Name:
    """The mode's size divided by all other entries."""
    if extent is not None and not names:
        return extent // known
    whole = _extent(converter, memref, mode, extent)
    factors = ([] if known == 1 else [converter.constant(ConstantOperand(known, converter.span), INDEX)]) + names
    if not factors:
        return whole
    divisor = factors[0]
    for factor in factors[1:]:
        product = scalars.ArithBinary(op="mul", lhs=divisor, rhs=factor, span=converter.span)
        divisor = converter.value("product", product, INDEX)
    return converter.value("part", scalars.ArithBinary(op="div", lhs=whole, rhs=divisor, span=converter.span), INDEX)


def _extent(converter: Converter, memref: Name, mode: int, extent: Extent) -> Name:
    """The size of a mode as a value."""
    if extent is not None:
        return converter.constant(ConstantOperand(extent, converter.span), INDEX)
    return converter.value("extent", memory.Size(operand=memref, mode=mode, span=converter.span), INDEX)


def _entry(converter: Converter, operand: Operand) -> int | Name:
    """An offset or a size: version 2 has integers there, too."""
    return converter.bound_name(operand) if isinstance(operand, Name) else int(operand.value)


def _positive(converter: Converter, number: int, span: Span | None, what: str) -> int:
    if number <= 0:
        converter.error(f"{what} must be positive, got {number}", span)
    return max(number, 1)


def newer(c: Cursor) -> NoReturn:
    """An instruction that only version 2 has.

    Raises:
        ParseError: Always.
    """
    old = _OLD_SPELLINGS.get(c.keyword)
    hint = f"write '{old}'" if old else "version 2 has it (--std=v2)"
    if c.keyword == "constant":
        hint = "write the constant in the place of the operand"
    raise c.error(f"'{c.keyword}' is not an instruction of version 1: {hint}", at=c.at - 1)


_OLD_SPELLINGS: Final = {
    **{op: f"arith.{op}" for op in (*_BINARY, *_UNARY)},
    **{new.removesuffix(".x"): old for old, new in RENAMED.items()},
}
"""The names in version 1 of instructions that are renamed in version 2."""


def _form(production: Callable[[Cursor], Conversion], results: Results = "one") -> InstructionForm:
    return InstructionForm(lambda c: V1Instruction(convert=production(c)), results)


FORMS: Final[Mapping[str, InstructionForm]] = {
    **dict.fromkeys((*OPERATIONS, "math"), InstructionForm(newer, "many")),
    "alloca": _form(alloca),
    "arith": _form(arith),
    "barrier": _form(barrier, "none"),
    "cast": _form(cast),
    "cmp": _form(cmp),
    "expand": _form(expand),
    "for": _form(for_, "none"),
    "foreach": _form(foreach, "none"),
    "fuse": _form(fuse),
    "group_id": _form(group_builtin),
    "group_size": _form(group_builtin),
    "if": _form(if_, "many"),
    "lifetime_stop": _form(lifetime_stop, "none"),
    "load": _form(load),
    "size": _form(size),
    "store": _form(store, "none"),
    "subview": _form(subview),
    "yield": _form(yield_, "none"),
    **dict.fromkeys(("axpby", "gemm", "gemv", "ger", "hadamard", "hadamard_product", "sum"), _form(blas, "none")),
}
