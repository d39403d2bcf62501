"""Raising calls to placeholders to tensor operations: a flat list of steps, each of which leaves printable IR.

    calling_convention  arguments and results that are passed in memory become values
    mem2reg             variables become values
    intrinsic_calls     calls that make tokens
    token_flow          tokens that reach phis or vectors
    intrinsic_calls     calls that take tokens
    raising             dead casts, declarations of placeholders and `optnone` are removed

Errors also name the line of the C program if it was compiled with `-g`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from tlx.diagnostics import Note, Span, TlxWarning, VerifyError, suggestion, warn
from tlx.frontends.c_header.calling_convention import pass_by_value
from tlx.frontends.c_header.inline import inline_helpers
from tlx.frontends.c_header.intrinsic_calls import StrayTokenError, TensorToken, make_operations, make_tokens
from tlx.frontends.c_header.mem2reg import debug_only, promote_slots
from tlx.frontends.c_header.placeholders import (
    PREFIX,
    callee_name,
    is_candidate,
    nearest_placeholder,
    parse_placeholder,
    placeholder_calls,
    symbol_name,
)
from tlx.frontends.c_header.token_flow import merge_tokens, unpack_tokens
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Declaration, Module, UnparsedText
from tlx.ir.parser.debug_locations import source_places
from tlx.ir.parser.module import needs_lowering, parse
from tlx.ir.rewrite import uses
from tlx.ir.tensors.calls import canonicalise, operand_span
from tlx.ir.types import VOID
from tlx.ir.values import Local, Value

_MENTION: Final = re.compile(r'@(?:"(?:\\01)?)?((?:_ZN3tlx\d+)?tensor_[a-zA-Z0-9_]+)')


def raise_module(module: Module) -> Module | None:
    """The module with calls to placeholders turned into tensor operations.

    Args:
        module: A module as read; it is not changed.

    Returns:
        A new module, or None if there is no call to a placeholder.

    Raises:
        ParseError: A function with such calls cannot be read.
        VerifyError: A placeholder or a token is used incorrectly.
    """
    text = str(module)
    if not _mentions_placeholder(text):
        warn_of_unknown(parse(text, module.source.name, _mentions_candidate))
        return None
    try:
        return _raised_text(text, module.source.name)
    except VerifyError as error:
        note = source_note(error.span)
        error.notes.extend([note] if note else [])
        raise


def _raised_text(text: str, filename: str) -> Module | None:
    module = parse(text, filename, lambda body: needs_lowering(body) or _mentions_candidate(body))
    if not _calls_undefined(module):
        warn_of_unknown(module)
        return None
    check_placeholders(module)
    warn_of_unknown(module)
    try:
        return _raised(module)
    except StrayTokenError:
        module = parse(text, filename, lambda _: True)
        inline_helpers(module)
        return _raised(module)


def _calls_undefined(module: Module) -> bool:
    """Whether the program calls placeholders, and not only functions of its own with such names."""
    declared = {symbol_name(name) for name in module.declarations}
    return any(call.placeholder.symbol in declared for f in module.functions for call in placeholder_calls(f))


def _raised(module: Module) -> Module:
    functions = [function for function in module.functions if placeholder_calls(function)]
    for function in functions:
        raise_function(module, function)
    allow_optimisation(module, functions)
    remove_declarations(module)
    canonicalise(module)
    return module


def raise_function(module: Module, function: Function) -> None:
    """Turn the calls to placeholders in one function into tensor operations."""
    pass_by_value(module, function)
    promote_slots(function)
    tokens = make_tokens(module, function)
    unpack_tokens(function, tokens)
    merge_tokens(module, function, tokens)
    check_tokens(function, tokens)
    make_operations(module, function, tokens)
    remove_dead_code(function)


def _mentions_candidate(text: str) -> bool:
    return _MENTION.search(text) is not None


def _mentions_placeholder(text: str) -> bool:
    return any(parse_placeholder(match.group(1)) is not None for match in _MENTION.finditer(text))


_DEAD: Final = frozenset(
    "bitcast fpext fptrunc sext zext trunc phi select insertelement extractelement shufflevector load".split()
)


def remove_dead_code(function: Function) -> None:
    """Remove conversions, merges and loads without uses."""
    changed = True
    while changed:
        used = uses(function)
        changed = False
        for block in function.blocks:
            live = [i for i in block.instructions if i.opcode not in _DEAD or i.flags or used.get(str(i.result))]
            changed = changed or len(live) < len(block.instructions)
            block.instructions = live


def remove_declarations(module: Module) -> None:
    """Remove the declarations of placeholders."""
    for item in list(module.items):
        if isinstance(item, Declaration) and parse_placeholder(item.name) is not None:
            module.remove(item)


def allow_optimisation(module: Module, functions: Iterable[Function]) -> None:
    """Drop `optnone`, which clang puts on functions at -O0."""
    fresh: dict[str, str] = {}
    for function in functions:
        attributes = function.signature.attributes
        for group in re.findall(r"#\d+", attributes):
            if re.search(r"\boptnone\b", module.attribute_groups.get(group, "")):
                fresh.setdefault(group, _without_optnone(module, group))
                function.replace_attributes(re.sub(rf"{group}\b", fresh[group], function.signature.attributes))
        if re.search(r"\boptnone\b", attributes):
            function.replace_attributes(re.sub(r"\s*\boptnone\b", "", function.signature.attributes))


def _without_optnone(module: Module, group: str) -> str:
    """The number of a new attribute group: the old one without `optnone`."""
    numbers = [int(name.removeprefix("#")) for name in module.attribute_groups]
    name = f"#{max(numbers) + 1}"
    body = re.sub(r"\boptnone\s*", "", module.attribute_groups[group])
    module.attribute_groups[name] = body
    module.items.append(UnparsedText(f"\nattributes {name} = {{ {body} }}\n"))
    return name


_MENTIONED: Final = re.compile(r'@("(?:[^"]*)"|[-a-zA-Z$._0-9]+)')
_INLINE: Final = "make it static inline and compile with -O1, or take and return vectors"


def check_placeholders(module: Module) -> None:
    """Placeholders may only be declared and called.

    Raises:
        VerifyError: One is defined, its address is taken, it is called by invoke, or its name is misspelled.
    """
    for function in module.functions:
        if parse_placeholder(function.name) is not None:
            message = f"@{function.name} is a placeholder for a tensor operation and has a body: rename the function"
            raise VerifyError(message, function.span)
        for instruction in function.instructions():
            _check_instruction(instruction)
    _check_globals(module)


def _check_instruction(instruction: Instruction) -> None:
    name = callee_name(instruction)
    mentions = [match.group(1) for match in _MENTIONED.finditer(instruction.text)]
    if name in mentions:
        mentions.remove(name)
    for mention in mentions:
        if parse_placeholder(mention) is not None and not debug_only(instruction):
            message = f"the address of @{mention} is taken: a placeholder can only be called"
            raise VerifyError(message, operand_span(instruction))
    if name is None or not is_candidate(name):
        return
    if parse_placeholder(name) is None:
        near = nearest_placeholder(name)
        if near is not None:
            message = f"unknown tensor operation {symbol_name(name)}{suggestion(near)}"
            raise VerifyError(message, operand_span(instruction))
    elif instruction.opcode != "call":
        message = f"{symbol_name(name)} is called where it might throw: declare it noexcept"
        raise VerifyError(message, operand_span(instruction))


def warn_of_unknown(module: Module) -> None:
    """Warn of calls to undefined functions `tensor_*` that are not operations: they are left to the linker."""
    seen: set[str] = set()
    for function in module.functions:
        for instruction in function.instructions():
            name = callee_name(instruction)
            if name is None or name in seen or not is_candidate(name) or name not in module.declarations:
                continue
            seen.add(name)
            if parse_placeholder(name) is None:
                what = f"{symbol_name(name)} is neither a tensor operation nor defined here"
                message = f"{what}: it is left to the linker{suggestion(nearest_placeholder(name))}"
                warn(TlxWarning(message, operand_span(instruction)), stacklevel=2)


def _check_globals(module: Module) -> None:
    for item in module.items:
        if not isinstance(item, UnparsedText):
            continue
        for line in re.finditer(r"(?m)^@[^\n;]+", item.text):
            for mention in _MENTIONED.finditer(line.group()):
                if parse_placeholder(mention.group(1)) is not None:
                    message = f"the address of @{mention.group(1)} is taken: a placeholder can only be called"
                    raise VerifyError(message, _raw_span(module, line.group(), mention), name=module.source.name)


def _raw_span(module: Module, line: str, mention: re.Match[str]) -> Span | None:
    start = f"\n{module.source.text}".find(f"\n{line}")
    return None if start < 0 else module.source.span(start + mention.start(), start + mention.end())


def check_tokens(function: Function, tokens: dict[str, TensorToken]) -> None:
    """Tokens may only be operands of tensor operations; debug records of them are dropped.

    Raises:
        VerifyError: One is stored, returned, passed to a function or used in arithmetic.
    """
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if not (debug_only(i) and _tokens_in(i, tokens))]
    for instruction in function.instructions():
        if _is_operation(instruction):
            continue
        for value in _tokens_in(instruction, tokens):
            note = Note("defined here", tokens[value.name].definition.span)
            kind = StrayTokenError if instruction.is_call or instruction.opcode == "ret" else VerifyError
            raise kind(_misuse(instruction, function), operand_span(instruction, value), [note])


def _tokens_in(instruction: Instruction, tokens: dict[str, TensorToken]) -> list[Local]:
    return list(_locals(instruction.operands, tokens))


def _locals(values: list[Value], tokens: dict[str, TensorToken]) -> Iterator[Local]:
    for value in values:
        if isinstance(value, Local) and value.name in tokens:
            yield value


def _is_operation(instruction: Instruction) -> bool:
    name = callee_name(instruction)
    return name is not None and (name.startswith("llvm.tensor.") or parse_placeholder(name) is not None)


def _misuse(instruction: Instruction, function: Function) -> str:
    name = callee_name(instruction)
    if name is not None and symbol_name(name).startswith(PREFIX):
        return f"unknown tensor operation {symbol_name(name)}"
    if name is not None:
        return f"a tensor's token is passed to @{name}, whose body is not known here: {_INLINE}"
    if instruction.is_call:
        return "a tensor's token is passed through a pointer to a function: call the function by its name"
    if instruction.opcode == "store":
        return "a tensor's token is stored to memory that is not a plain local variable: keep it in an int variable"
    if instruction.opcode == "ret":
        return f"a tensor's token is returned from @{function.name}: {_INLINE}"
    what = f"{instruction.opcode} {instruction.predicate}".strip() if instruction.type != VOID else instruction.opcode
    return f"a tensor's token is not a number: it cannot be an operand of {what}"


def source_note(span: Span | None) -> Note | None:
    """A note with the line of the C program, None without debug information."""
    places = source_places(span)
    return Note(f"this is {places[0]} of the C program") if places else None
