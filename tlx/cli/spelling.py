"""Converts LLVM's spellings of options to click's.

-target=amx            ->  --target=amx            one dash will do, as for opt and llc
-o=x.ll                ->  -o x.ll
--remarks              ->  --remarks=<stderr>      an optional value comes only with '='
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import click

from tlx.diagnostics import nearest

STDERR: Final = "<stderr>"
CACHE: Final = "<cache>"
_OPTIONAL_VALUE: Final = {"--remarks": STDERR, "--check": "3", "--tuned": CACHE}
_NUMBER: Final = re.compile(r"-(?:\.?\d|inf$|nan$)")


def respell(command: click.Command, arguments: list[str]) -> list[str]:
    """The arguments of a command in click's spelling; those of a group go through as they are."""
    if isinstance(command, click.Group):
        return arguments
    return list(_respelled(command, arguments))


def _respelled(command: click.Command, arguments: list[str]) -> Iterator[str]:
    takes_value = {
        spelling: not option.is_flag and not option.count
        for option in command.params
        if isinstance(option, click.Option)
        for spelling in (*option.opts, *option.secondary_opts)
    }
    takes_value |= {"--help": False, "-h": False}
    pending = iter(arguments)
    for argument in pending:
        if argument == "--":
            yield argument
            yield from pending
            return
        is_negative_number = bool(_NUMBER.match(argument))
        if not argument.startswith("-") or argument == "-" or is_negative_number:
            yield argument
            continue
        option, equals, value = argument.partition("=")
        option = _known(option, takes_value)
        if equals:
            yield from ([f"{option}={value}"] if option.startswith("--") else [option, value])
        elif option in _OPTIONAL_VALUE:
            yield f"{option}={_OPTIONAL_VALUE[option]}"
        else:
            yield option
            if takes_value.get(option):
                yield from _next(pending)


def _known(option: str, takes_value: dict[str, bool]) -> str:
    """The option with two dashes where one was meant; an error for one that does not exist."""
    if option in takes_value:
        return option
    if f"-{option}" in takes_value:
        return f"-{option}"
    if option[:2] == "-O" and takes_value.get("-O"):
        return option
    raise click.NoSuchOption(option, possibilities=_similar(option, takes_value))


def _similar(option: str, known: dict[str, bool]) -> list[str]:
    near = nearest(f"--{option.lstrip('-')}", known)
    return [near] if near else []


def _next(pending: Iterator[str]) -> list[str]:
    return [value for value in [next(pending, None)] if value is not None]
