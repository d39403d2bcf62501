"""Parser of functions: signatures, named types, bodies, the numbers of unnamed values."""

from __future__ import annotations

import re
from typing import Final

from tlx.diagnostics import ParseError, Source, Span, did_you_mean
from tlx.ir.functions import Argument, Function, Signature
from tlx.ir.instructions import Block, Instruction
from tlx.ir.parser.instructions import parse_instruction
from tlx.ir.parser.lexer import LazyTokens
from tlx.ir.parser.values import ValueParser
from tlx.ir.types import LABEL, VOID, Type
from tlx.ir.values import Local

_TO_FIRST_BRACE: Final = re.compile(r'[^"{};]*+\{')
_NAMED_TYPE: Final = re.compile(r"(?m)^[ \t]*(%(?:[-a-zA-Z$._0-9]+|\"[^\"]*\"))\s*=\s*type\b")
_ITEM_WORDS: Final = frozenset(
    "define declare attributes module source_filename target uselistorder uselistorder_bb".split()
)
_CONSTANT_KEYWORDS: Final = ("prefix", "prologue", "personality")
_MOST_DIGITS: Final = 10


def find_body(source: Source, start: int) -> int:
    """Offset of a function's opening brace.

    Result type, parameters, prefix data and metadata may hold braces as well.
    """
    found = _TO_FIRST_BRACE.match(source.text, start)
    header = found.group() if found else ""
    closed = "@" in header and "\n" not in header and header.count("(") == header.count(")") > 0
    if closed and "prefix" not in header and "prologue" not in header:
        return start + len(header) - 1
    cursor = ValueParser(source, LazyTokens(source, start))
    while (kind := cursor.token.kind) != "global":
        if kind == "end":
            raise cursor.error("expected a function's name")
        skip_word(cursor)
    cursor.next()
    if not cursor.at("("):
        raise cursor.error("expected '('")
    cursor.skip_parens()
    while not cursor.at("{"):
        if starts_item(cursor):
            raise ParseError("function has no body: a '{' is missing", source.span(start, start + len("define")))
        if cursor.accept(*_CONSTANT_KEYWORDS):
            cursor.typed_value()
        else:
            skip_word(cursor)
    return cursor.token.start


def skip_word(cursor: ValueParser) -> None:
    """Skip a token, or a bracket with all that is in it, or `!{...}`."""
    if cursor.token.text in ("(", "[", "{", "<"):
        cursor.skip_parens()
        return
    token = cursor.next()
    if token.kind == "meta" and (cursor.at("(") or (token.text == "!" and cursor.at("{"))):
        cursor.skip_parens()


def starts_item(cursor: ValueParser) -> bool:
    """Whether the token at the cursor begins a top-level item, and cannot belong to the declaration before it."""
    token = cursor.token
    if token.kind in ("local", "global", "comdat", "meta"):
        return cursor.at("=", 1)
    return token.kind in ("end", "label") or token.text == "^" or token.text in _ITEM_WORDS


def named_types(source: Source) -> dict[str, Type]:
    """The types of `%name = type ...`, by name with `%`."""
    types: dict[str, Type] = {}
    for found in _NAMED_TYPE.finditer(source.text):
        types[found.group(1)] = ValueParser(source, LazyTokens(source, found.end())).type()
    return types


def read_signature(cursor: ValueParser) -> Signature:
    """Parse `define ... @name(params)` or `declare ...`; what follows is the caller's."""
    cursor.next()
    prefix_start = cursor.token.start
    while not cursor.starts_type():
        if cursor.token.kind in ("meta", "number"):  # `!dbg !3`, `cc 10`
            skip_word(cursor)
        elif not cursor.attribute():
            raise cursor.error("expected a function's result type")
    prefix = cursor.source.text[prefix_start : cursor.previous_end] if cursor.token.start > prefix_start else ""
    result = cursor.type()
    name = cursor.next()
    if name.kind != "global":
        raise cursor.error("expected a function's name", name)
    arguments, vararg = _parameters(cursor)
    return Signature(name.text[1:], result, arguments, vararg, prefix, "")


def _parameters(cursor: ValueParser) -> tuple[list[Argument], bool]:
    cursor.expect("(")
    arguments: list[Argument] = []
    number = 0
    while not cursor.accept(")"):
        if cursor.accept("..."):
            cursor.expect(")")
            return arguments, True
        type_ = cursor.type()
        attributes = cursor.param_attributes()
        name = cursor.next().text[1:] if cursor.token.kind == "local" else str(number)
        number = next_number(name, number)
        arguments.append(Argument(type_, attributes, name))
        if not cursor.at(")"):
            cursor.expect(",")
    return arguments, False


def next_number(name: str, number: int) -> int:
    """The number that LLVM gives next, after a value of that name."""
    return int(name) + 1 if name.isdecimal() and len(name) <= _MOST_DIGITS else number


def read_body(
    cursor: ValueParser, function: Function, position: int, types: dict[str, Type], *, typed_pointers: bool
) -> None:
    """Read blocks and instructions; the cursor is left behind the last one.

    Args:
        cursor: On the first token of the body.
        function: What gets the blocks.
        position: Where the body begins.
        types: The module's named types.
        typed_pointers: Whether the module spells pointers as `T*`.
    """
    text = cursor.source.text
    block: Block | None = None
    while cursor.token.kind != "end" and not cursor.token.text.startswith("uselistorder"):
        token = cursor.token
        if token.kind == "label":
            _check_terminated(cursor, block)
            block = Block(token.text[:-1], text[position : token.end])
            function.blocks.append(block)
            position = cursor.next().end
            continue
        if block is None:  # LLVM numbers it
            block = Block("")
            function.blocks.append(block)
        position = read_instruction(cursor, block, position, types, typed_pointers=typed_pointers)
        if block.terminator.is_terminator:
            block = None
    _check_terminated(cursor, block)
    if not function.blocks:
        raise ParseError("function body has no instructions", cursor.source.span(position - 1))


def read_instruction(
    cursor: ValueParser, block: Block, position: int, types: dict[str, Type], *, typed_pointers: bool
) -> int:
    """Read one instruction to the end of a block; gives where it ends.

    Args:
        cursor: On its first token.
        block: What gets it.
        position: Where the white space and comments in front of it begin.
        types: The module's named types.
        typed_pointers: Whether the module spells pointers as `T*`.
    """
    start = cursor.token.start
    instruction = parse_instruction(cursor, types, typed_pointers=typed_pointers)
    instruction.lead = cursor.source.text[position:start]
    block.instructions.append(instruction)
    return cursor.previous_end


def _check_terminated(cursor: ValueParser, block: Block | None) -> None:
    if block is not None:
        raise cursor.error("expected an instruction: the block before has no terminator")


def name_values(function: Function) -> None:
    """Give blocks and results without a name the number LLVM gives them, and collect all names."""
    number = 0
    taken = function.names.taken
    for argument in function.arguments:
        number = next_number(argument.name, number)
        taken.add(argument.name)
    for block in function.blocks:
        if not block.name:
            block.name = str(number)
        number = next_number(block.name, number)
        taken.add(block.name)
        for instruction in block.instructions:
            if instruction.result is None and instruction.type != VOID and instruction.opcode != "#dbg":
                _give_number(instruction, number)
            if instruction.result is not None:
                number = next_number(instruction.result, number)
                taken.add(instruction.result)


def _give_number(instruction: Instruction, number: int) -> None:
    """Write the number of an unnamed result in front of the instruction."""
    instruction.result = str(number)
    instruction.text = f"%{number} = {instruction.text}"
    shift = len(str(number)) + 4
    if instruction.spans is not None:
        instruction.spans = [(a + shift, b + shift) for a, b in instruction.spans]


def check_labels(function: Function) -> None:
    """Every block that a terminator or phi names exists."""
    names = {block.name for block in function.blocks}
    for block in function.blocks:
        for instruction in block.instructions:
            if instruction.is_terminator or instruction.opcode == "phi":
                _check_labels_of(instruction, names)


def _check_labels_of(instruction: Instruction, names: set[str]) -> None:
    for index, operand in enumerate(instruction.operands):
        if operand.type == LABEL and not (isinstance(operand, Local) and operand.name in names):
            near = did_you_mean(str(operand), [f"%{name}" for name in names])
            raise ParseError(f"use of undefined block '{operand}'{near}", _operand_span(instruction, index))


def _operand_span(instruction: Instruction, index: int) -> Span | None:
    span = instruction.span
    if span is None or instruction.spans is None:
        return span
    shift = span.end - len(instruction.text)
    start, end = instruction.spans[index]
    return Span(span.source, start + shift, end + shift)
