"""Reading LLVM assembly into the model.

Top level first: a scan for `define` and `declare` that knows strings, comments and braces. A body is parsed to
instructions only where the caller wants it (`wanted`); all else stays text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tlx.diagnostics import ParseError, Source, Span
from tlx.ir.cursor import Cursor
from tlx.ir.instructions import OPCODES, parse_instruction
from tlx.ir.lexer import Token, tokenize
from tlx.ir.module import Argument, Block, Declaration, Function, Instruction, Module, NameScope, Raw, Signature
from tlx.ir.types import LABEL, VOID, Type
from tlx.ir.values import Local

_TENSOR: Final = re.compile(r"@\"?llvm\.(?:tensor\.|vector\.totensor)")
_DEFINITION: Final = re.compile(r"(?m)^[ \t]*(define|declare)\b")
_BRACE: Final = re.compile(r'"[^"]*"|;[^\n]*|[{}]')
_POINTER: Final = re.compile(r'"[^"]*"|;[^\n]*|(?<![%@\w.$!-])(ptr)(?![\w.$-])|[\w\])}>"]\s?(\*)')
_NAMED_TYPE: Final = re.compile(r"(?m)^(%(?:[-a-zA-Z$._0-9]+|\"[^\"]*\")) = type ")
_BLANK: Final = re.compile(r"(?:[ \t\r\n]+|;[^\n]*)*")


def parse(text: str, filename: str = "<string>", wanted: Callable[[str], bool] | None = None) -> Module:
    """Read a module.

    Args:
        text: LLVM assembly.
        filename: What diagnostics call the text.
        wanted: Tells from the text of a function whether its body is parsed to instructions; by default those
            that call a tensor intrinsic. The text of the others is kept.

    Raises:
        ParseError: The text is not LLVM assembly; only what is parsed is looked at closely.
    """
    wanted = wanted or has_tensors
    source = Source(filename, text)
    module = Module(source, [], uses_typed_pointers(text))
    types = _named_types(source)
    position = 0
    raw_from = 0
    while found := _DEFINITION.search(text, position):
        start = found.start(1)
        if found.group(1) == "declare":
            end = _declaration_end(text, found.end())
            position = end
            lead_start = _lead_start(text, raw_from, found.start())
            signature = _signature(source, start, end)
            _flush(module, text, raw_from, lead_start)
            module.items.append(Declaration(text[lead_start:end], signature, Span(source, start, end)))
            raw_from = end
            continue
        opening, end = _body(source, found.end())
        position = end
        if not wanted(text[start:end]):
            continue
        _flush(module, text, raw_from, found.start())
        module.items.append(_function(source, found.start(), start, opening, end, types))
        raw_from = end
    _flush(module, text, raw_from, len(text))
    return module


def has_tensors(text: str) -> bool:
    """Whether a text mentions a tensor intrinsic."""
    return _TENSOR.search(text) is not None


def uses_typed_pointers(text: str) -> bool:
    """Whether a module spells pointers as `T*`: decided by the first pointer in it."""
    for found in _POINTER.finditer(text):
        if found.group(1):
            return False
        if found.group(2):
            return True
    return False


def _flush(module: Module, text: str, start: int, end: int) -> None:
    if end > start:
        module.items.append(Raw(text[start:end]))


def _lead_start(text: str, floor: int, start: int) -> int:
    """Where the blank space and comment lines directly in front of a declaration begin."""
    line = start
    while line > floor:
        previous = text.rfind("\n", floor, line - 1) + 1
        previous = max(previous, floor)
        content = text[previous:line].strip()
        if content and not content.startswith("; Function Attrs"):
            break
        line = previous
    return line


def _declaration_end(text: str, position: int) -> int:
    """A declaration ends with its line, unless brackets are open (a parameter list over several lines)."""
    depth = 0
    for found in re.compile(r'"[^"]*"|;[^\n]*|[()\n]').finditer(text, position):
        piece = found.group()
        if piece == "(":
            depth += 1
        elif piece == ")":
            depth -= 1
        elif piece == "\n" and depth <= 0:
            return found.start()
        elif piece[0] == ";" and depth <= 0:
            return found.start()
    return len(text)


def _body(source: Source, position: int) -> tuple[int, int]:
    """Offsets of a function's opening brace and behind its closing brace."""
    text = source.text
    opening = -1
    depth = 0
    header = _header_end(source, position)
    for found in _BRACE.finditer(text, header):
        piece = found.group()
        if piece == "{":
            if depth == 0 and opening < 0:
                opening = found.start()
            depth += 1
        elif piece == "}":
            depth -= 1
            if depth == 0:
                return opening, found.end()
    start = text.rfind("define", 0, position)
    raise ParseError("function body has no end: a '}' is missing", source.span(start, position))


def _header_end(source: Source, position: int) -> int:
    """Offset of a function's opening brace: the first one behind the parameter list."""
    text = source.text
    at = text.find("@", position)
    depth = 0
    seen = False
    for found in re.compile(r'"[^"]*"|;[^\n]*|[(){]').finditer(text, at if at >= 0 else position):
        piece = found.group()
        if piece == "(":
            depth += 1
            seen = True
        elif piece == ")":
            depth -= 1
        elif piece == "{" and seen and depth == 0:
            return found.start()
    raise ParseError("function has no body: a '{' is missing", source.span(position))


def _named_types(source: Source) -> dict[str, Type]:
    types: dict[str, Type] = {}
    for found in _NAMED_TYPE.finditer(source.text):
        line_end = source.text.find("\n", found.end())
        end = line_end if line_end >= 0 else len(source.text)
        cursor = Cursor(source, tokenize(source, found.end(), end))
        types[found.group(1)] = cursor.type()
    return types


def _signature(source: Source, start: int, end: int) -> Signature:
    """Parse `define ... @name(params) attributes`, from the keyword to `end`."""
    cursor = Cursor(source, tokenize(source, start, end))
    cursor.next()
    prefix_start = cursor.token.start
    while not _is_result(cursor):
        if cursor.token.kind == "meta":
            cursor.next()
        elif not cursor.attribute():
            raise cursor.error("expected a function's result type")
    prefix = source.text[prefix_start : cursor.previous_end] if cursor.token.start > prefix_start else ""
    result = cursor.type()
    name = cursor.next()
    if name.kind != "global":
        raise cursor.error("expected a function's name", name)
    arguments, vararg = _parameters(cursor)
    attributes = source.text[cursor.previous_end : end].strip()
    return Signature(name.text[1:], result, arguments, vararg, prefix, attributes)


def _is_result(cursor: Cursor) -> bool:
    """Whether the result type begins here: a type, and not an attribute word."""
    return cursor.starts_type()


def _parameters(cursor: Cursor) -> tuple[list[Argument], bool]:
    cursor.expect("(")
    arguments: list[Argument] = []
    while not cursor.accept(")"):
        if cursor.accept("..."):
            cursor.expect(")")
            return arguments, True
        type_ = cursor.type()
        attributes = cursor.param_attributes()
        name = cursor.next().text[1:] if cursor.token.kind == "local" else str(len(arguments))
        arguments.append(Argument(type_, attributes, name))
        if not cursor.at(")"):
            cursor.expect(",")
    return arguments, False


def _function(source: Source, lead: int, start: int, opening: int, end: int, types: dict[str, Type]) -> Function:
    signature = _signature(source, start, opening)
    _number_arguments(signature)
    tokens = tokenize(source, opening + 1, end - 1)
    function = Function(
        signature, source.text[lead : opening + 1], [], span=Span(source, start, opening), names=NameScope()
    )
    _split_body(source, tokens, opening + 1, end, function, types)
    _name_values(function)
    return function


def _number_arguments(signature: Signature) -> None:
    number = 0
    for argument in signature.arguments:
        if argument.name.isdecimal():
            argument.name = str(number)
            number += 1


def _starts_instruction(tokens: list[Token], index: int, first: int, source: Source) -> bool:
    """Whether a new instruction begins at token `index`, outside all brackets; `first` began the current one."""
    token = tokens[index]
    if token.kind == "label":
        return True
    if token.kind == "local":
        return tokens[index + 1].text == "="
    if token.kind == "group":
        return token.text[1:2].isalpha()
    if token.kind != "word" or token.text not in OPCODES | {"tail", "musttail", "notail"}:
        return False
    before = tokens[index - 1]
    if index == first or before.text in ("=", "tail", "musttail", "notail"):
        return index == first
    return before.kind == "label" or "\n" in source.text[before.end : token.start]


def _split_body(
    source: Source, tokens: list[Token], body: int, end: int, function: Function, types: dict[str, Type]
) -> None:
    """Cut the tokens of a body into labels and instructions."""
    index = 0
    previous_end = body
    block: Block | None = None
    while tokens[index].kind != "end" and not tokens[index].text.startswith("uselistorder"):
        token = tokens[index]
        if token.kind == "label" and _starts_instruction(tokens, index, index, source):
            block = Block(token.text[:-1], source.text[previous_end : token.end])
            function.blocks.append(block)
            previous_end = token.end
            index += 1
            continue
        if block is None:
            block = Block("")
            function.blocks.append(block)
        stop = _instruction_end(tokens, index, source)
        instruction = parse_instruction(source, tokens[index:stop], types)
        instruction.lead = source.text[previous_end : token.start]
        block.instructions.append(instruction)
        previous_end = tokens[stop - 1].end
        index = stop
        if instruction.is_terminator:
            block = _implicit_block(function, tokens, index)
    function.footer = source.text[previous_end:end]
    if not function.blocks:
        raise ParseError("function body has no instructions", source.span(body - 1))


def _implicit_block(function: Function, tokens: list[Token], index: int) -> Block | None:
    """A terminator ends a block: what follows without a label is a block that LLVM numbers."""
    token = tokens[index]
    if token.kind in ("label", "end") or token.text.startswith("uselistorder"):
        return None
    block = Block("")
    function.blocks.append(block)
    return block


def _instruction_end(tokens: list[Token], start: int, source: Source) -> int:
    depth = 0
    index = start
    while tokens[index].kind != "end":
        text = tokens[index].text
        fresh = depth == 0 and index > start and tokens[index - 1].text != "="
        if fresh and (_starts_instruction(tokens, index, start, source) or text.startswith("uselistorder")):
            return index
        if text in ("(", "[", "{", "<"):
            depth += 1
        elif text in (")", "]", "}", ">"):
            depth -= 1
        index += 1
    return index


def _name_values(function: Function) -> None:
    """Give blocks and results without a name the number LLVM gives them, and collect all names."""
    number = sum(1 for a in function.arguments if a.name.isdecimal())
    taken = function.names.taken
    taken.update(a.name for a in function.arguments)
    for block in function.blocks:
        if not block.name:
            block.name = str(number)
        if block.name.isdecimal():
            number = int(block.name) + 1
        taken.add(block.name)
        for instruction in block.instructions:
            number = _name_result(instruction, number)
            if instruction.result is not None:
                taken.add(instruction.result)


def _name_result(instruction: Instruction, number: int) -> int:
    if instruction.result is None and instruction.type != VOID and instruction.opcode != "#dbg":
        instruction.result = str(number)
        instruction.text = f"%{number} = {instruction.text}"
        shift = len(str(number)) + 4
        if instruction.spans is not None:
            instruction.spans = [(a + shift, b + shift) for a, b in instruction.spans]
    if instruction.result is not None and instruction.result.isdecimal():
        return int(instruction.result) + 1
    return number


def block_value(name: str) -> Local:
    """A block's name as an operand."""
    return Local(LABEL, name)
