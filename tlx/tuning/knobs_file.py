"""Knobs files: TOML or JSON, with knobs for patterns of products.

    ["matmul 1024x1024x1024 float"]            {"matmul 1024x1024x1024 float":
    tile = "8x48"                                 {"tile": "8x48", "kc": 1024},
    kc = 1024                                   "avx2: matmul * bfloat -> float":
    ["avx2: matmul * bfloat -> float"]            {"tile": "3x24"}}
    tile = "3x24"

    file    = { pattern table }
    pattern = [ target ":" ] words, in which `*` matches anything, `?` a character, `[a-z]` a character of a range
    table   = { knob value }

The first pattern that matches a product applies. A pattern may omit the last words of a product. A word that no product
can have is an error; a pattern that matches no product of an input is only a remark, as knobs files serve many inputs.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final, cast

from tlx.diagnostics import Source, Span, UsageError
from tlx.lower.knobs import NO_KNOBS, KnobOrigin, KnobQuery, Knobs, parse_value

_MAX_LISTED: Final = 3
_WILD: Final = re.compile(r"[*?\[]")
_EXTENTS: Final = re.compile(r"\d+x\d+x\d+")
_WORD: Final = re.compile(
    r"\d+x\d+x\d+|half|bfloat|float|double|i\d+|->|[su]{2}|[nt](?:[nt]|v\d+)|ld[ab]=\d+|fused|openmp"
)
_TOML_PLACE: Final = re.compile(r"^(.*) \(at (?:line (\d+), column (\d+)|end of document)\)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KnobsEntry:
    """A pattern, and the knobs for the products that it matches."""

    pattern: str
    knobs: Knobs

    def matches(self, query: KnobQuery) -> bool:
        """Whether the pattern matches a product."""
        target, colon, words = self.pattern.partition(": ")
        if not colon:
            target, words = "*", self.pattern
        if not fnmatchcase(query.target, target.replace("+", ".")):
            return False
        return fnmatchcase(query.text, words) or fnmatchcase(query.text, f"{words} *")


@dataclass(frozen=True, slots=True)
class KnobsFile:
    """The entries of a file, as a source of knobs.

    Attributes:
        entries: The entries, in the order of the file.
        queries: The queries so far, in order.
        used: Patterns of the entries that have matched a query.
    """

    entries: tuple[KnobsEntry, ...]
    queries: dict[str, None] = field(default_factory=dict[str, None])
    used: set[str] = field(default_factory=set[str])

    def __call__(self, query: KnobQuery, /) -> Knobs:
        """The knobs of the first entry that matches."""
        self.queries[query.text] = None
        match = next((entry for entry in self.entries if entry.matches(query)), None)
        if match is None:
            return NO_KNOBS
        self.used.add(match.pattern)
        return match.knobs

    def unused(self) -> Iterator[tuple[str, Span | None]]:
        """See `tlx.lower.knobs.TrackedKnobSource`."""
        products = list(self.queries)
        others = (
            f"; there are {', '.join(products[:_MAX_LISTED])}{', ...' * (len(products) > _MAX_LISTED)}"
            if products
            else ""
        )
        for entry in self.entries:
            if entry.pattern not in self.used and entry.knobs.origin is not None:
                yield f"no product matches '{entry.pattern}'{others}", entry.knobs.origin.span

    def description(self) -> object:
        """See `tlx.lower.knobs.DescribedKnobSource`."""
        return tuple((entry.pattern, entry.knobs.description) for entry in self.entries)


def read_knobs_file(path: str) -> KnobsFile:
    """Read a file.

    Raises:
        UsageError: It cannot be read, or is invalid; with file, line and column.
    """
    from tlx.api import files

    return parse_knobs_file(files.decode(files.read_bytes(path), path, hint=""), path)


def parse_knobs_file(text: str, name: str) -> KnobsFile:
    """Parse a text, as JSON if it begins with a brace, else as TOML.

    Raises:
        UsageError: The text is invalid; with file, line and column.
    """
    source = Source(name, text)
    table = _json(source) if text.lstrip().startswith("{") else _toml(source)
    return KnobsFile(tuple(_entry(source, pattern, settings) for pattern, settings in table.items()))


def _entry(source: Source, pattern: str, settings: object) -> KnobsEntry:
    span = _place(source, pattern)
    if not isinstance(settings, dict):
        raise UsageError(f'\'{pattern}\' has no table of knobs, such as ["{pattern}"] with tile = "8x48" below', span)
    _check_pattern(pattern, span)
    parsed: dict[str, Any] = {}
    for key, value in cast("dict[str, object]", settings).items():
        try:
            parsed[key] = parse_value(key, value)
        except UsageError as error:
            raise UsageError(error.message, _place(source, key, span.end)) from None
    line = source.location(span.start)[0]
    origin = KnobOrigin(f"from {source.name}, line {line}", span)
    try:
        return KnobsEntry(pattern, Knobs(**parsed, origin=origin))
    except UsageError as error:
        raise UsageError(error.message, span) from None


def _check_pattern(pattern: str, span: Span) -> None:
    """Reject words that no product can have, and unknown targets."""
    target, colon, text = pattern.partition(": ")
    if colon and not _WILD.search(target):
        _check_target(target, span)
    first, *words = (text if colon else pattern).split() or [""]
    if first != "matmul" and not _WILD.search(first):
        raise UsageError("a pattern names products, such as 'matmul 64x64x64 float'", span)
    for place, word in enumerate(words):
        known = _EXTENTS if place == 0 and first == "matmul" else _WORD
        if not _WILD.search(word) and not known.fullmatch(word):
            raise UsageError(f"no product contains the word '{word}'{_hint(word)}", span)


def _check_target(name: str, span: Span) -> None:
    from tlx.target.lookup import find_target

    try:
        find_target(name.partition(".")[0])
    except UsageError as error:
        raise UsageError(error.message, span) from None


def _hint(word: str) -> str:
    from tlx.tuning.product import TYPE_WORDS

    if word in TYPE_WORDS:
        return f"; write {word} as '{TYPE_WORDS[word]}'"
    return "; it is 'matmul MxNxK TYPES ...', such as 'matmul 64x64x64 bfloat -> float'"


def _place(source: Source, name: str, start: int = 0) -> Span:
    """The span of a key, quoted or bare, from `start` on; the character at `start` if it is spelled differently."""
    spellings = (json.dumps(name), json.dumps(name, ensure_ascii=False), f"'{name}'")
    for spelling in (*spellings, name):
        pattern = rf"(?m)(?<![\w-]){re.escape(spelling)}(?=\s*[\]=:])"
        match = re.compile(pattern).search(source.text, start)
        if match:
            return source.span(match.start(), match.end())
    return source.span(start)


TOO_MANY_DIGITS: Final = "a number has too many digits"


def place_of_digits(source: Source) -> int:
    """The offset of a number with more digits than Python converts."""
    match = re.search(rf"\d{{{sys.get_int_max_str_digits() + 1}}}", source.text)
    return match.start() if match else 0


def _toml(source: Source) -> dict[str, object]:
    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        match = _TOML_PLACE.match(str(error))
        message = match[1] if match else str(error)
        offset = source.offset(int(match[2]), int(match[3])) if match and match[2] else len(source.text.rstrip())
        raise UsageError(message[:1].lower() + message[1:], source.span(offset)) from None
    except ValueError:
        raise UsageError(TOO_MANY_DIGITS, source.span(place_of_digits(source))) from None
    except RecursionError:
        raise UsageError("tables are nested too deeply", source.span(0)) from None


def _json(source: Source) -> dict[str, object]:
    def table(pairs: list[tuple[str, object]]) -> dict[str, object]:
        values: dict[str, object] = {}
        for key, value in pairs:
            if key in values:
                first = _place(source, key)
                raise UsageError(f"duplicate key '{key}'", _place(source, key, first.end))
            values[key] = value
        return values

    try:
        return json.loads(source.text, object_pairs_hook=table)
    except json.JSONDecodeError as error:
        raise UsageError(error.msg[:1].lower() + error.msg[1:], source.span(error.pos)) from None
    except ValueError:
        raise UsageError(TOO_MANY_DIGITS, source.span(place_of_digits(source))) from None
    except RecursionError:
        raise UsageError("tables are nested too deeply", source.span(0)) from None
