"""Putting the body of a function in the place of a call of it.

    caller                                        callee
    head:  ...                                    entry: %m = alloca [64 x i8]
           call void @f(ptr %x, i64 3)                   br label %loop
           %next = add i64 %i, 1                  loop:  %k = phi i64 [ 0, %entry ], [ %k.1, %loop ] ...
                                                  end:   ret void
Rewrite:
    entry: %m = alloca [64 x i8]                  memory on the stack is made once
    head:  ...
           br label %loop
    loop:  %k = phi i64 [ 0, %head ], [ %k.1, %loop ]        arguments stand for parameters, names are made fresh
    end:   br label %head.rest
    head.rest:
           %next = add i64 %i, 1
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.transform.rewrite import split_block
from tlx.ir.types import LABEL, VOID
from tlx.ir.values import Local, Value

_LOCAL: Final = re.compile(r'%("[^"]*"|[-a-zA-Z$._0-9]+)')


def can_inline(callee: Function) -> bool:
    """Whether a function's calls can be replaced: it returns nothing, and at one place."""
    returns = sum(block.terminator.opcode == "ret" for block in callee.blocks)
    return returns == 1 and callee.signature.result == VOID


def inline_call(caller: Function, block: Block, call: Instruction, callee: Function) -> Block:
    """Replace a call by the callee's body.

    Args:
        caller: Where the call stands.
        block: Its block.
        call: The call, of a function that `can_inline` accepts and that is not the caller.
        callee: The function; it is not changed.

    Returns:
        The block in which the instructions behind the call are.
    """
    names = _names(caller, block, call, callee)
    index = next(i for i, instruction in enumerate(block.instructions) if instruction is call)
    rest = split_block(caller, block, index + 1, f"{_stem(block)}.rest") if len(callee.blocks) > 1 else None
    last = block.instructions[index + 1 :]
    del block.instructions[index:]
    made = [_copied(source, names, rest) for source in callee.blocks]
    head, *others = made
    body = [i for i in head.instructions if i.opcode != "alloca"]
    caller.entry.instructions[:0] = [i for i in head.instructions if i.opcode == "alloca"]
    block.instructions += body + last
    at = caller.blocks.index(block) + 1
    caller.blocks[at:at] = others
    return rest or block


def _stem(block: Block) -> str:
    return "entry" if block.name.isdecimal() else block.name.removesuffix(".rest")


def _names(caller: Function, block: Block, call: Instruction, callee: Function) -> dict[str, Value]:
    """What each of the callee's names becomes."""
    names: dict[str, Value] = {p.name: a for p, a in zip(callee.arguments, call.args, strict=True)}
    names[callee.entry.name] = block.value
    for other in callee.blocks[1:]:
        names[other.name] = Local(LABEL, caller.names.fresh(other.name))
    for instruction in callee.instructions():
        if instruction.result is not None:
            names[instruction.result] = Local(instruction.type, caller.names.fresh(instruction.result))
    return names


def _copied(source: Block, names: dict[str, Value], rest: Block | None) -> Block:
    """A block with other names; a return becomes a branch to `rest`, or nothing where there is no other block."""
    name = str(names[source.name])[1:]
    block = Block(name, f"\n\n{name}:")
    for instruction in source.instructions:
        if instruction.opcode == "ret":
            block.instructions += [] if rest is None else [_branch(rest)]
        else:
            block.instructions.append(_renamed(instruction, names))
    return block


def _branch(to: Block) -> Instruction:
    return Instruction("br", VOID, [to.value], f"br label %{to.name}")


def _renamed(instruction: Instruction, names: dict[str, Value]) -> Instruction:
    def spelled(found: re.Match[str]) -> str:
        return str(names.get(found[1], found[0]))

    operands = [names.get(o.name, o) if isinstance(o, Local) else o for o in instruction.operands]
    result = instruction.result and str(names[instruction.result])[1:]
    text = _LOCAL.sub(spelled, instruction.text)
    trailer = _LOCAL.sub(spelled, instruction.trailer)
    return replace(instruction, operands=operands, text=text, result=result, trailer=trailer, spans=None)
