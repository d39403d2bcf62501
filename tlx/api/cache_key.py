"""The key of a cached compilation: a hash of everything that determines its result.

    input              its bytes, and the language that they are read as
    options            all of the lowering, by value; the level of LLVM's optimiser; what is emitted
    target             by name where that determines it together with TLX and the machine, else by value
    knobs              those of the command line, of knobs files, of the tuning database
    TLX                its version, size and modification time of its files; also of packages with targets or front ends
    LLVM               the file of its library
    machine            its architecture, processors, features and caches: `tlx.target.system.machine_facts`

A value is described by a text that is the same in every process: dataclasses by their fields, functions by their names.
What has no such text, such as a lambda in a target, is not cached.

A target of `tlx.legalize` is part of TLX, so its name is enough, and a hit imports no target. The names of other
packages' targets are found by entry points: where there are any, every target is described by its value.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import platform
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from tlx.lower.knobs import DescribedKnobSource, FirstKnobSource, KnobSource, no_knobs
from tlx.lower.options import Options
from tlx.target.discovery import FRONT_END_GROUP, TARGET_GROUP, load_entry_point, provided_entry_points
from tlx.target.system import machine_facts

if TYPE_CHECKING:
    from tlx.target.target import Target

_SIDE_EFFECTS: Final = ("knobs", "print_after", "remarks")


class UncacheableError(Exception):
    """The result of a compilation depends on something that a key cannot describe."""


def cache_key(text: bytes, target: Target | str, options: Options, others: Mapping[str, Any]) -> str | None:
    """The key of a compilation; None if it cannot be cached.

    Args:
        text: The input.
        target: The target, or its name.
        options: How to lower; a compilation that prints its stages is not cached.
        others: What else determines the result.

    Raises:
        UsageError: There is no such target, and other packages provide targets.
    """
    if options.print_after is not None:
        return None
    try:
        described = _Description()
        described.add("target", target if is_determined_by_name(target) else _value(target))
        described.add("knobs", _knobs(options.knobs))
        for option in fields(Options):
            if option.name not in _SIDE_EFFECTS:
                described.add(option.name, getattr(options, option.name))
        for name, value in others.items():
            described.add(name, value)
        for entry in provided_entry_points(FRONT_END_GROUP):
            load_entry_point(entry, "front end")
            described.add(f"front end {entry.name}", entry.value)
            described.packages.add(entry.module.partition(".")[0])
        parts = [*described.lines, *_environment(described.packages)]
    except UncacheableError:
        return None
    digest = hashlib.sha256("\n".join(parts).encode(errors="surrogateescape"))
    digest.update(b"\n" + text)
    return digest.hexdigest()


def is_determined_by_name(target: Target | str) -> bool:
    """Whether the key describes a target by its name, which TLX and the machine give its value."""
    return isinstance(target, str) and machine_facts() is not None and not provided_entry_points(TARGET_GROUP)


def _value(target: Target | str) -> Target:
    from tlx.target.lookup import find_target

    return find_target(target) if isinstance(target, str) else target


def _knobs(source: KnobSource) -> object:
    """What determines the knobs of products.

    Raises:
        UncacheableError: They come from a function of the user.
    """
    if source is no_knobs:
        return None
    if isinstance(source, FirstKnobSource):
        return tuple(map(_knobs, source.sources))
    if isinstance(source, DescribedKnobSource):
        return source.description()
    raise UncacheableError


class _Description:
    """Lines that describe values.

    Attributes:
        lines: The lines.
        packages: The packages with the functions and classes that they mention.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.packages: set[str] = {"tlx"}

    def add(self, name: str, value: object) -> None:
        """Add a line for a value.

        Raises:
            UncacheableError: It has no text that is the same in every process.
        """
        self.lines.append(f"{name} = {self._text(value)}")

    def _text(self, value: Any) -> str:
        if value is None or (isinstance(value, bool | int | float | str | bytes) and not isinstance(value, Enum)):
            return repr(value)
        if isinstance(value, type | types.FunctionType | Enum):
            return self._name(value)
        if hasattr(value, "__wrapped__"):  # a function with `functools.cache`
            return self._text(value.__wrapped__)
        if isinstance(value, functools.partial):
            partial = cast("functools.partial[Any]", value)
            return f"partial({self._text(partial.func)}, {self._text(partial.args)}, {self._text(partial.keywords)})"
        if is_dataclass(value):
            parts = (f"{field.name}={self._text(getattr(value, field.name))}" for field in fields(value))
            return f"{self._name(type(value))}({', '.join(parts)})"
        return self._collection(value)

    def _collection(self, value: Any) -> str:
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value).items()
            return f"{{{', '.join(sorted(f'{self._text(key)}: {self._text(item)}' for key, item in items))}}}"
        if isinstance(value, AbstractSet):
            return f"{{{', '.join(sorted(map(self._text, cast('AbstractSet[Any]', value))))}}}"
        if isinstance(value, Sequence):
            return f"[{', '.join(map(self._text, cast('Sequence[Any]', value)))}]"
        raise UncacheableError

    def _name(self, value: Any) -> str:
        """Module and name of a class, a function or a member of an enumeration."""
        owner = cast("type", type(value)) if isinstance(value, Enum) else value
        if "<" in owner.__qualname__ or owner.__module__ == "__main__":
            raise UncacheableError
        self.packages.add(owner.__module__.partition(".")[0])
        return f"{owner.__module__}.{owner.__qualname__}{f'.{value.name}' if isinstance(value, Enum) else ''}"


def _environment(packages: AbstractSet[str]) -> Iterator[str]:
    """The programs that compile: TLX and other packages, LLVM, and the machine."""
    yield f"Python {sys.version_info[:2]}, {sys.platform} {platform.machine()}"
    yield f"machine: {machine_facts()}"
    for package in sorted(packages):
        yield f"{package}: {_files_of(package)}"
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        raise UncacheableError
    library = sorted(Path(spec.origin).parent.joinpath("binding").glob("*llvmlite*.*"))
    yield f"LLVM: {[_stamp(path) for path in library]}"


@functools.cache
def _files_of(package: str) -> str:
    """A package's version, and a hash of name, size and modification time of each of its Python files."""
    module = sys.modules.get(package)
    if module is None:
        raise UncacheableError
    roots: list[str] = list(getattr(module, "__path__", ()))
    own: str | None = getattr(module, "__file__", None)
    if not roots and own is None:
        return "built in"
    stamps = [_stamp(Path(own))] if not roots and own is not None else []
    for root in roots:
        stamps += _stamps_in(root)
    return f"{getattr(module, '__version__', '')} {hashlib.sha256(repr(stamps).encode()).hexdigest()}"


def _stamps_in(folder: str) -> Iterator[tuple[str, int, int]]:
    """The stamps of the Python files in a folder and in those in it."""
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):  # a path of a package need not exist
        return
    except OSError:
        raise UncacheableError from None
    for entry in entries:
        if entry.name.endswith(".py"):
            yield _stamp(entry)
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _stamps_in(entry.path)


def _stamp(path: Path | os.DirEntry[str]) -> tuple[str, int, int]:
    try:
        status = path.stat()
    except OSError:
        raise UncacheableError from None
    return os.fspath(path), status.st_size, status.st_mtime_ns
