"""What a program may not do with placeholders and tokens, said where it does it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Final

from tlx.diagnostics import Note, Span, TlxWarning, VerifyError
from tlx.frontends.c_header.calls import called
from tlx.frontends.c_header.promote import debug_only
from tlx.frontends.c_header.symbols import PREFIX, is_candidate, nearest, placeholder, plain
from tlx.frontends.c_header.tokens import StrayTokenError, Token
from tlx.ir.module import Function, Instruction, Module, Raw
from tlx.ir.tensor_calls import operand_span
from tlx.ir.types import VOID
from tlx.ir.values import Local, Value

_MENTION: Final = re.compile(r'@("(?:[^"]*)"|[-a-zA-Z$._0-9]+)')
_INLINE: Final = "make it static inline and compile with -O1, or take and return vectors"


def check_placeholders(module: Module) -> None:
    """Placeholders are declared and called, and nothing else.

    Raises:
        VerifyError: One is defined, its address is taken, it is called by invoke, or the name of one is misspelled.
    """
    for function in module.functions:
        if placeholder(function.name) is not None:
            message = f"@{function.name} is a placeholder for a tensor operation and has a body: rename the function"
            raise VerifyError(message, function.span)
        for instruction in function.instructions():
            _check_instruction(instruction)
    _check_globals(module)


def _check_instruction(instruction: Instruction) -> None:
    name = called(instruction)
    mentions = [found.group(1) for found in _MENTION.finditer(instruction.text)]
    if name in mentions:
        mentions.remove(name)
    for mention in mentions:
        if placeholder(mention) is not None and not debug_only(instruction):
            message = f"the address of @{mention} is taken: a placeholder can only be called"
            raise VerifyError(message, operand_span(instruction))
    if name is None or not is_candidate(name):
        return
    if placeholder(name) is None:
        near = nearest(name)
        if near is not None:
            raise VerifyError(
                f"unknown tensor operation {plain(name)}; did you mean {near}?", operand_span(instruction)
            )
    elif instruction.opcode != "call":
        message = f"{plain(name)} is called where it might throw: declare it noexcept"
        raise VerifyError(message, operand_span(instruction))


def warn_of_unknown(module: Module) -> None:
    """Warn of functions that are called, nobody defines, and have the name of no operation: the linker gets them."""
    seen: set[str] = set()
    for function in module.functions:
        for instruction in function.instructions():
            name = called(instruction)
            if name is None or name in seen or not is_candidate(name) or name not in module.declarations:
                continue
            seen.add(name)
            if placeholder(name) is None:
                near = nearest(name)
                advice = f"; did you mean {near}?" if near else ""
                message = f"{plain(name)} is no tensor operation and not defined here: it is left to the linker{advice}"
                warnings.warn(TlxWarning(message, operand_span(instruction)), stacklevel=2)


def _check_globals(module: Module) -> None:
    for item in module.items:
        if not isinstance(item, Raw):
            continue
        for line in re.finditer(r"(?m)^@[^\n;]+", item.text):
            for mention in _MENTION.finditer(line.group()):
                if placeholder(mention.group(1)) is not None:
                    message = f"the address of @{mention.group(1)} is taken: a placeholder can only be called"
                    raise VerifyError(message, _raw_span(module, line.group(), mention))


def _raw_span(module: Module, line: str, mention: re.Match[str]) -> Span | None:
    start = f"\n{module.source.text}".find(f"\n{line}")
    return None if start < 0 else module.source.span(start + mention.start(), start + mention.end())


def check_tokens(function: Function, tokens: dict[str, Token]) -> None:
    """Tokens are operands of tensor operations only; what a debugger was told of them is dropped.

    Raises:
        VerifyError: One is stored, returned, passed on or calculated with.
    """
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if not (debug_only(i) and _tokens_in(i, tokens))]
    for instruction in function.instructions():
        if _is_operation(instruction):
            continue
        for value in _tokens_in(instruction, tokens):
            note = Note("made here", tokens[value.name].maker.span)
            kind = StrayTokenError if instruction.is_call or instruction.opcode == "ret" else VerifyError
            raise kind(_misuse(instruction, function), operand_span(instruction, value), [note])


def _tokens_in(instruction: Instruction, tokens: dict[str, Token]) -> list[Local]:
    return list(_locals(instruction.operands, tokens))


def _locals(values: list[Value], tokens: dict[str, Token]) -> Iterator[Local]:
    for value in values:
        if isinstance(value, Local) and value.name in tokens:
            yield value


def _is_operation(instruction: Instruction) -> bool:
    name = called(instruction)
    return name is not None and (name.startswith("llvm.tensor.") or placeholder(name) is not None)


def _misuse(instruction: Instruction, function: Function) -> str:
    name = called(instruction)
    if name is not None and plain(name).startswith(PREFIX):
        return f"unknown tensor operation {plain(name)}"
    if name is not None:
        return f"a tensor's token is passed to @{name}, whose body is not known here: {_INLINE}"
    if instruction.is_call:
        return "a tensor's token is passed through a pointer to a function: call the function by its name"
    if instruction.opcode == "store":
        return "a tensor's token is stored to memory that is no plain local variable: keep it in an int variable"
    if instruction.opcode == "ret":
        return f"a tensor's token is returned from @{function.name}: {_INLINE}"
    what = f"{instruction.opcode} {instruction.predicate}".strip() if instruction.type != VOID else instruction.opcode
    return f"a tensor's token is no number: it cannot be an operand of {what}"
