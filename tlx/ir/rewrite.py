"""Local edits of a function: uses and definitions, replacement, splitting blocks, incoming edges, declarations."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.ir.functions import Argument, Function, Signature
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Declaration, Module
from tlx.ir.parser.instructions import parse_instruction_text
from tlx.ir.types import LABEL, FunctionType, Type, mangled_name
from tlx.ir.values import Global, Keyword, Local, Value


@dataclass(eq=False, slots=True)
class Use:
    """One use of a local: the instruction, its block, and the index of the operand."""

    block: Block
    instruction: Instruction
    index: int


def uses(function: Function) -> dict[str, list[Use]]:
    """Uses of every local (blocks included), by name, in program order."""
    uses_by_name: dict[str, list[Use]] = defaultdict(list)
    for block in function.blocks:
        for instruction in block.instructions:
            for index, operand in enumerate(instruction.operands):
                if isinstance(operand, Local):
                    uses_by_name[operand.name].append(Use(block, instruction, index))
    return uses_by_name


def only_user(used: Mapping[str, Sequence[Use]], instruction: Instruction, block: str) -> Instruction | None:
    """The only user of a result, if it is in a block; else None.

    Args:
        used: The uses of the function's locals.
        instruction: The instruction that defines the result.
        block: Name of the block.
    """
    result_uses = used.get(str(instruction.result), ())
    return result_uses[0].instruction if len(result_uses) == 1 and result_uses[0].block.name == block else None


def definitions(function: Function) -> dict[str, Instruction]:
    """The instruction that defines each local; arguments and blocks are not in it."""
    return {i.result: i for i in function.instructions() if i.result is not None}


def underlying_object(pointer: Value, definitions: Mapping[str, Instruction], opcodes: Container[str]) -> Value:
    """The value that a pointer is derived from by instructions with these opcodes, by their first operands.

    In unreachable code a pointer may be derived from itself; the result is then any pointer of that cycle.
    """
    seen: set[str] = set()
    while isinstance(pointer, Local) and pointer.name not in seen:
        seen.add(pointer.name)
        definition = definitions.get(pointer.name)
        if definition is None or definition.opcode not in opcodes:
            break
        pointer = definition.operands[0]
    return pointer


def set_operand(instruction: Instruction, index: int, value: Value) -> None:
    """Replace one operand, in the list of operands and in the text.

    The type in the text stays: `value` has the type of the operand it replaces.
    """
    spelling = str(value)
    if instruction.spans is None and (span := _span_of_local(instruction, index)) is not None:
        start, end = span
    else:
        spans = instruction.spans or parse_instruction_text(instruction.text).spans or []
        start, end = spans[index]
        shift = len(spelling) - (end - start)
        instruction.spans = [
            (a, b + shift) if i == index else (a + shift, b + shift) if a >= end else (a, b)
            for i, (a, b) in enumerate(spans)
        ]
    instruction.text = instruction.text[:start] + spelling + instruction.text[end:]
    instruction.operands[index] = value


_NAME_END: Final = re.compile(r"(?![-a-zA-Z$._0-9])")


def _span_of_local(instruction: Instruction, index: int) -> tuple[int, int] | None:
    """Where an operand that is a local is in the text, found without parsing it; None if that is not certain."""
    operand, text = instruction.operands[index], instruction.text
    if not isinstance(operand, Local) or '"' in text or ";" in text:
        return None
    before = sum(isinstance(other, Local) and other.name == operand.name for other in instruction.operands[:index])
    before += instruction.result == operand.name
    spelling, end = f"%{operand.name}", 0
    while True:
        start = text.find(spelling, end)
        if start < 0:
            return None
        end = start + len(spelling)
        if _NAME_END.match(text, end):
            if not before:
                return start, end
            before -= 1


def replace_uses(function: Function, name: str, value: Value) -> None:
    """Replace every use of the local of that name in a function."""
    for use in uses(function).get(name, []):
        set_operand(use.instruction, use.index, value)


def drop_debug_uses(instructions: Iterable[Instruction], names: Container[str]) -> None:
    """Replace locals by `poison` in debug information: variables that held them have no value any more."""
    for instruction in instructions:
        for index, operand in enumerate(instruction.operands if instruction.is_debug else ()):
            if isinstance(operand, Local) and operand.name in names:
                set_operand(instruction, index, Keyword(operand.type, "poison"))


def remove_dead(function: Function, candidates: Iterable[Instruction]) -> None:
    """Remove the candidates whose results nothing uses but other dead candidates and debug information."""
    counts = {name: sum(not use.instruction.is_debug for use in found) for name, found in uses(function).items()}
    ids = set(map(id, candidates))
    by_result = {i.result: i for i in function.instructions() if id(i) in ids and i.result is not None}
    dead = {name for name in by_result if not counts.get(name)}
    pending = list(dead)
    while pending:
        for operand in by_result[pending.pop()].operands:
            if isinstance(operand, Local) and operand.name in by_result:
                counts[operand.name] -= 1
                if not counts[operand.name]:
                    dead.add(operand.name)
                    pending.append(operand.name)
    if not dead:
        return
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if i.result not in dead]
    drop_debug_uses(function.instructions(), dead)


def add_incoming(phi: Instruction, value: Value, block: str) -> None:
    """Add the value that a phi takes on the edge from the block of that name."""
    separator = ", " if phi.operands else ""
    phi.text += f"{separator}[ {value}, %{block} ]"
    phi.operands += [value, Local(LABEL, block)]
    phi.spans = None


def split_block(function: Function, block: Block, index: int, stem: str) -> Block:
    """Move the instructions from `index` on to a new block after `block`.

    `block` is left without a terminator; the phis of its successors then name the new block.
    """
    name = function.names.fresh(stem)
    tail = Block(name, f"\n\n{name}:", block.instructions[index:])
    del block.instructions[index:]
    function.blocks.insert(function.blocks.index(block) + 1, tail)
    if tail.instructions:
        rename_incoming(function, tail.terminator.successors, block.name, name)
    return tail


def rename_incoming(function: Function, successors: list[str], old: str, new: str) -> None:
    """Rename the predecessor `old` to `new` in the phis of `successors`."""
    for successor in set(successors):
        for phi in function.block(successor).phis:
            for index in range(1, len(phi.operands), 2):
                label = phi.operands[index]
                if isinstance(label, Local) and label.name == old:
                    set_operand(phi, index, Local(label.type, new))


def declare_function(module: Module, name: str, type_: FunctionType, attributes: str = "") -> Global:
    """A function to call; declared at the end of the module if it is not there."""
    if name not in module.declarations:
        params = ", ".join(str(p) for p in type_.params)
        if type_.vararg:
            params = f"{params}, ..." if params else "..."
        text = f"\n\ndeclare {type_.result} @{name}({params}){' ' + attributes if attributes else ''}"
        arguments = [Argument(param, "", str(index)) for index, param in enumerate(type_.params)]
        signature = Signature(name, type_.result, arguments, type_.vararg, "", attributes)
        module.append(Declaration(text, signature))
        module.global_names.taken.add(name)
    return Global(module.pointer_to(type_), name)


def declare_intrinsic(module: Module, name: str, overloads: list[Type], type_: FunctionType) -> Global:
    """An LLVM intrinsic to call, declared under its mangled name."""
    return declare_function(module, mangled_name(name, overloads), type_)
