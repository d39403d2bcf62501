"""Options by which a command line says what its input is written in: -x, --std."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import click

from tlx.files import Reading

_LANGUAGE_HELP: Final = (
    "What the input is written in: ll or ir for LLVM assembly or bitcode, tl for the tensor language; by default what "
    "its name says."
)
_STD_HELP: Final = "Version of the tensor language: v1, or v2, which is the default."


def input_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, whose function takes `reading` (`tlx.files.Reading`) in their place."""

    @wraps(function)
    def command(*, language: str, std: str, **given: Any) -> Any:
        return function(reading=Reading(language, std), **given)

    std = click.option("--std", default="", metavar="VERSION", help=_STD_HELP)
    return click.option("-x", "language", default="", metavar="LANGUAGE", help=_LANGUAGE_HELP)(std(command))
