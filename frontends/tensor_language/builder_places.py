"""Places in the Python program that writes a kernel."""

from __future__ import annotations

import inspect
import linecache
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Final

from tlx.diagnostics import Source, Span

_PACKAGE: Final = "tlx.frontends.tensor_language"


def place_of_call(sources: dict[str, Source] | None = None) -> Span | None:
    """The place in the Python program that calls the builder; None where its text cannot be had.

    Args:
        sources: The files that were seen before, so that places in one file are of one source.
    """
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith((_PACKAGE, "contextlib")):
        frame = frame.f_back
    return None if frame is None else _place(frame, {} if sources is None else sources)


def _place(frame: FrameType, sources: dict[str, Source]) -> Span | None:
    code = frame.f_code
    if code.co_filename not in sources:
        lines = linecache.getlines(code.co_filename, frame.f_globals)
        sources[code.co_filename] = Source(_shown(code.co_filename), "".join(lines))
    source = sources[code.co_filename]
    line, last, start, end = next(islice(code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    if not source.text or line is None or start is None or end is None:
        return None
    text = source.line(line).encode()
    begin = source.offset(line, len(text[:start].decode(errors="replace")) + 1)
    if last != line:
        return source.span(begin)
    return source.span(begin, source.offset(line, len(text[:end].decode(errors="replace")) + 1))


def _shown(path: str) -> str:
    """A path as a user names it: relative where it lies below the working directory."""
    with suppress(ValueError, OSError):
        return str(Path(path).relative_to(Path.cwd()))
    return path
