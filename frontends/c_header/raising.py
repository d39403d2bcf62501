"""Raising: a flat list of steps, each of which leaves IR that can be printed.

by_value      what was passed in memory is passed as a value
promote       variables become values
tokens        calls that make tokens
merges        tokens that come from several places
operations    calls that take tokens
tidy          nothing is left of placeholders
"""

from __future__ import annotations

import re
from typing import Final

from tlx.diagnostics import VerifyError
from tlx.frontends.c_header.by_value import pass_by_value
from tlx.frontends.c_header.calls import placeholder_calls
from tlx.frontends.c_header.checks import check_placeholders, check_tokens, warn_of_unknown
from tlx.frontends.c_header.inline import inline_helpers
from tlx.frontends.c_header.merges import merge_tokens
from tlx.frontends.c_header.operations import make_operations
from tlx.frontends.c_header.origin import origin
from tlx.frontends.c_header.promote import promote_slots
from tlx.frontends.c_header.symbols import placeholder, plain
from tlx.frontends.c_header.tidy import allow_optimisation, remove_dead_code, remove_declarations
from tlx.frontends.c_header.tokens import StrayTokenError, make_tokens
from tlx.frontends.c_header.unpack import unpack_tokens
from tlx.ir.canonical import canonicalise
from tlx.ir.module import Function, Module
from tlx.ir.reader import needs_lowering, parse

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
        note = origin(error.span)
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
    declared = {plain(name) for name in module.declarations}
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
    return any(placeholder(found.group(1)) is not None for found in _MENTION.finditer(text))
