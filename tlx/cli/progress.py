"""Progress bars on standard error if it is a terminal; coloured unless NO_COLOR is set."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

Step = Callable[..., None]


class ProgressBars:
    """Shows one bar at a time, and prints lines above it."""

    def __init__(self) -> None:
        self._bar: Any = None

    def echo(self, line: str, *, err: bool = False) -> None:
        """Print a line; the bar, if there is one, is drawn again below it with the next step."""
        if self._bar is not None:
            click.echo("\r\033[K", nl=False, err=True)
        click.echo(line, err=err)

    @contextmanager
    def watch(self, label: str, length: int) -> Generator[Step]:
        """Show a bar while the context lasts; nothing if standard error is not a terminal, or cannot move its cursor.

        Args:
            label: Text before the bar.
            length: Number of steps.

        Yields:
            A function `step(text, count=1)`: counts steps, a negative number takes some back, and shows a text.
        """
        if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
            yield _ignore
            return
        fill = "#" if os.environ.get("NO_COLOR") else click.style("#", fg="green")
        progressbar: Any = click.progressbar
        with progressbar(length=length, label=label, file=sys.stderr, fill_char=fill, item_show_func=_shown) as bar:
            self._bar = bar
            try:
                yield partial(_advance, bar)
            finally:
                self._bar = None


def _advance(bar: Any, text: str = "", count: int = 1) -> None:
    bar.update(count, text)


def _ignore(_text: str = "", _count: int = 1) -> None:
    pass


def _shown(item: str | None) -> str | None:
    return item
