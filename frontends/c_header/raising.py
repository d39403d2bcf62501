"""Raising: a flat list of steps, each of which leaves IR that can be printed.

calling_convention  what was passed in memory is passed as a value
mem2reg             variables become values
intrinsic_calls     calls that make tokens
token_flow          tokens that come from several places, or lie in vectors
intrinsic_calls     calls that take tokens
raising             nothing is left of placeholders: dead casts, declarations, `optnone`
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tlx.diagnostics import VerifyError
from tlx.frontends.c_header.calling_convention import pass_by_value
from tlx.frontends.c_header.checks import check_placeholders, check_tokens, source_note, warn_of_unknown
from tlx.frontends.c_header.inline import inline_helpers
from tlx.frontends.c_header.intrinsic_calls import StrayTokenError, make_operations, make_tokens
from tlx.frontends.c_header.mem2reg import promote_slots
from tlx.frontends.c_header.placeholders import parse_placeholder, placeholder_calls, symbol_name
from tlx.frontends.c_header.token_flow import merge_tokens, unpack_tokens
from tlx.ir.functions import Function
from tlx.ir.module import Declaration, Module, Raw
from tlx.ir.parser.module import needs_lowering, parse
from tlx.ir.tensors.calls import canonicalise
from tlx.ir.transform.rewrite import uses

_MENTION: Final = re.compile(r'@(?:"(?:\\01)?)?(tensor_[a-zA-Z0-9_]+)')


def raise_module(module: Module) -> Module | None:
    """The module with calls of placeholders turned into tensor operations.

    Args:
        module: A module as read; it is not changed.

    Returns:
        A new module, or None if there is no call of a placeholder.

    Raises:
        ParseError: A function with such calls cannot be read.
        VerifyError: A placeholder or a token is used in a way that has no meaning.
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
    """Whether the program calls placeholders, rather than functions of its own with such names."""
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
    """Turn the calls of placeholders in one function into tensor operations."""
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
    return any(parse_placeholder(found.group(1)) is not None for found in _MENTION.finditer(text))


_DEAD: Final = frozenset(
    "bitcast fpext fptrunc sext zext trunc phi select insertelement extractelement shufflevector load".split()
)


def remove_dead_code(function: Function) -> None:
    """Take out conversions, merges and loads without a use."""
    changed = True
    while changed:
        used = uses(function)
        changed = False
        for block in function.blocks:
            kept = [i for i in block.instructions if i.opcode not in _DEAD or i.flags or used.get(str(i.result))]
            changed = changed or len(kept) < len(block.instructions)
            block.instructions = kept


def remove_declarations(module: Module) -> None:
    """Take out the declarations of placeholders."""
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
    module.items.append(Raw(f"\nattributes {name} = {{ {body} }}\n"))
    return name
