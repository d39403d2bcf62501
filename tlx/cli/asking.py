"""Options by which a command line asks something of products' kernels: --tile, --knobs, --tuned."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from tlx.cli.spelling import CACHE
from tlx.diagnostics import UsageError

if TYPE_CHECKING:
    from tlx.knobs import Answers

_KNOBS_HELP: Final = "Tiles, cache blocks and packing of products, for all by name (kc=512) or in a file by pattern."
_OPTIONS: Final = (
    click.option("--tile", metavar="RxC", help="Register tile of every product: rows and columns, such as 8x48."),
    click.option("--knobs", metavar="NAME=VALUE,...|FILE", multiple=True, help=_KNOBS_HELP),
    click.option("--tuned", metavar="[=FILE]", help="Use what 'tlx tune' found for this machine, or another database."),
)


def knob_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, whose function takes `tile`, `knobs` and `tuned`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def answers(tile: str | None, knobs: tuple[str, ...], tuned: str | None) -> Answers:
    """What is asked of products: on the command line for all of them, else by the files, else by the database."""
    from tlx.knobs import Always, FirstOf, Origin, parse_knobs

    if "" in knobs:
        raise UsageError("--knobs= is empty; write NAME=VALUE,... or the name of a file")
    given = [text for text in knobs if "=" in text.partition(",")[0]]
    sources: list[Answers] = []
    if given or tile is not None:
        settings = [f"tile={tile}"] * (tile is not None) + given
        by = " and ".join(["--tile"] * (tile is not None) + ["--knobs"] * bool(given))
        sources.append(Always(parse_knobs(",".join(settings), Origin(f"from {by}"))))
    for path in knobs:
        if path not in given:
            from tlx.knobs_file import read_knobs_file

            sources.append(read_knobs_file(path))
    if tuned is not None:
        from tlx.tune import database

        sources.append(database.tuned(None if tuned == CACHE else tuned))
    return FirstOf(tuple(sources))
