"""Reading the bodies of functions: blocks, instructions, the numbers of what has no name."""

from __future__ import annotations

from tlx.diagnostics import ParseError, Span, did_you_mean
from tlx.ir.cursor import Cursor
from tlx.ir.headers import following
from tlx.ir.instructions import parse_instruction
from tlx.ir.module import Block, Function, Instruction
from tlx.ir.types import LABEL, VOID, Type
from tlx.ir.values import Local


def read_body(
    cursor: Cursor, function: Function, position: int, types: dict[str, Type], *, typed_pointers: bool
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
    cursor: Cursor, block: Block, position: int, types: dict[str, Type], *, typed_pointers: bool
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


def _check_terminated(cursor: Cursor, block: Block | None) -> None:
    if block is not None:
        raise cursor.error("expected an instruction: the block before has no terminator")


def name_values(function: Function) -> None:
    """Give blocks and results without a name the number LLVM gives them, and collect all names."""
    number = 0
    taken = function.names.taken
    for argument in function.arguments:
        number = following(argument.name, number)
        taken.add(argument.name)
    for block in function.blocks:
        if not block.name:
            block.name = str(number)
        number = following(block.name, number)
        taken.add(block.name)
        for instruction in block.instructions:
            if instruction.result is None and instruction.type != VOID and instruction.opcode != "#dbg":
                _give_number(instruction, number)
            if instruction.result is not None:
                number = following(instruction.result, number)
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
