"""Discovery of front ends, the modules of `tlx.frontends`, and raising a module by those that apply to it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from tlx.ir.module import Module

FRONT_ENDS: Final = "tlx.frontends"


@cache
def front_ends() -> tuple[ModuleType, ...]:
    """All front ends: the modules of `tlx.frontends`.

    A front end that raises LLVM IR has `RAISE`, which takes a module and returns the raised one, or None if there is
    nothing to raise. With `MARKERS`, it is only applied to texts that contain one of these words.

    A front end for a language has `TRANSLATE`, which takes a text, its name, the library that runs threads, and a
    version of the language, and returns LLVM assembly, or a module whose `str` is LLVM assembly; `LANGUAGE` and
    `TITLE`, the language's name in options and in messages; `STANDARDS`, its versions, the default last; `SUFFIXES`,
    the endings of file names; and `OPENINGS`, words with which a text begins.

    A front end for files that are not text, such as models, has `READ` in place of `TRANSLATE`: it takes the bytes of a
    file and its name. Its `STANDARDS` are empty.
    """
    package = importlib.import_module(FRONT_ENDS)
    names = sorted(info.name for info in pkgutil.iter_modules(package.__path__))
    return tuple(importlib.import_module(f"{FRONT_ENDS}.{name}") for name in names)


def concerns_front_ends(text: str) -> bool:
    """Whether some front end may raise a text."""
    return any(_concerns(front_end, text) for front_end in front_ends())


def raised(module: Module) -> Module:
    """The module with the calls of front ends' placeholder functions turned into tensor operations."""
    for front_end in front_ends():
        if _concerns(front_end, module.source.text):
            module = cast("Module | None", front_end.RAISE(module)) or module
    return module


def _concerns(front_end: ModuleType, text: str) -> bool:
    if not hasattr(front_end, "RAISE"):
        return False
    markers = cast("Iterable[str] | None", getattr(front_end, "MARKERS", None))
    return markers is None or any(marker in text for marker in markers)
