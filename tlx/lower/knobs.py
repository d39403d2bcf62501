"""Knobs: settings for the kernel of a product, from the user or the tuner, that override the cost model's choice.

    matmul 512x512x512 float        a product: `KnobQuery`
    tile=8x48,kc=512                its settings: `Knobs`

A `KnobSource` is a function from queries to knobs. The text of a query is a list of words, which patterns match:

    query    = "matmul" extents types ["us"|"ss"|...] ["nt"|"tn"|"nv2"|...] [lda] [ldb] ["fused"] ["openmp"]
    extents  = M "x" N "x" [TERMS "*"] K              TERMS: a sum of this many products
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Final, Protocol, cast, runtime_checkable

from tlx.diagnostics import Span, UsageError, did_you_mean

WEIGHT_BYTES: Final = 8 << 20
"""Bytes of a constant B up to which it is packed at compile time: a MB takes 3 MB of text and half a second."""
_TILE: Final = re.compile(r"([1-9]\d{0,5})x([1-9]\d{0,5})")
_SWITCHES: Final = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
_MAX_BLOCK: Final = 1 << 30
_MAX_AHEAD: Final = 64


@dataclass(frozen=True, slots=True)
class KnobOrigin:
    """Where knobs come from.

    Attributes:
        text: Its words in remarks: "from --tile".
        span: The entry of a knobs file.
        binding: Whether knobs that do not fit are an error; else they are ignored with a remark.
    """

    text: str
    span: Span | None = None
    binding: bool = True


@dataclass(frozen=True, slots=True)
class Knobs:
    """Requested decisions; None leaves one to the cost model.

    Attributes:
        tile: Rows and columns of the register tile, in elements.
        kc, mc, nc: Cache blocks along K, M (in rows) and N (in columns).
        pack_a, pack_b: Whether the operand is copied into panels first.
        ahead: Steps by which B is prefetched into the first-level cache, 0 for none.
        origin: Where they come from; None without any setting.
    """

    tile: tuple[int, int] | None = None
    kc: int | None = None
    mc: int | None = None
    nc: int | None = None
    pack_a: bool | None = None
    pack_b: bool | None = None
    ahead: int | None = None
    origin: KnobOrigin | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.tile is not None and min(self.tile) < 1:
            raise UsageError(f"tile {self.tile[0]}x{self.tile[1]}: rows and columns are positive")
        for name in ("kc", "mc", "nc"):
            block = getattr(self, name)
            if block is not None and not 1 <= block <= _MAX_BLOCK:
                raise UsageError(f"{name}={block}: a block has 1 to {_MAX_BLOCK} rows or columns")
        if self.ahead is not None and not 0 <= self.ahead <= _MAX_AHEAD:
            raise UsageError(f"ahead={self.ahead}: B is prefetched 1 to {_MAX_AHEAD} steps ahead; 0 turns it off")

    def __bool__(self) -> bool:
        """Whether any knob is set."""
        return bool(self.settings)

    @property
    def settings(self) -> dict[str, Any]:
        """The knobs that are set, by name."""
        return {name: value for name in KNOB_NAMES if (value := getattr(self, name)) is not None}

    @property
    def description(self) -> tuple[str, str]:
        """The settings, and where they come from."""
        return str(self), self.origin.text if self.origin else ""

    def __str__(self) -> str:
        """The spelling of `--knobs`: `tile=8x48,kc=512,pack_b=false`."""
        return ",".join(f"{name}={value_text(value)}" for name, value in self.settings.items())


KNOB_NAMES: Final = tuple(f.name for f in fields(Knobs) if f.name != "origin")
NO_KNOBS: Final = Knobs()
FUSED: Final = "fused"
OPENMP: Final = "openmp"


@dataclass(frozen=True, slots=True)
class KnobQuery:
    """A product whose kernel takes knobs.

    Attributes:
        text: The product in words; see the grammar above.
        target: Name of the target.
        features: The target's features.
    """

    text: str
    target: str
    features: tuple[str, ...]


KnobSource = Callable[[KnobQuery], Knobs]


def no_knobs(_query: KnobQuery) -> Knobs:
    """No knobs: the cost model decides."""
    return NO_KNOBS


@runtime_checkable
class TrackedKnobSource(Protocol):
    """A source of knobs that can report which of them no product used."""

    def __call__(self, query: KnobQuery, /) -> Knobs:
        """The knobs of a product."""
        ...

    def unused(self) -> Iterator[tuple[str, Span | None]]:
        """A message for each entry that no product used, with the entry's position."""
        ...


@runtime_checkable
class DescribedKnobSource(Protocol):
    """A source of knobs whose answers are determined by a description, so that they can be cached."""

    def __call__(self, query: KnobQuery, /) -> Knobs:
        """The knobs of a product."""
        ...

    def description(self) -> object:
        """What determines the answers, in tuples, strings and numbers."""
        ...


@dataclass(slots=True)
class FixedKnobs:
    """The same knobs for every product."""

    knobs: Knobs
    used: bool = False

    def __call__(self, _query: KnobQuery, /) -> Knobs:
        """The knobs."""
        self.used = True
        return self.knobs

    def unused(self) -> Iterator[tuple[str, Span | None]]:
        """See `TrackedKnobSource`."""
        origin = self.knobs.origin
        if not self.used and origin is not None:
            yield f"no product takes {self.knobs} {origin.text}", origin.span

    def description(self) -> object:
        """See `DescribedKnobSource`."""
        return self.knobs.description


@dataclass(frozen=True, slots=True)
class FirstKnobSource:
    """The knobs of the first source that has some."""

    sources: tuple[KnobSource, ...]

    def __call__(self, query: KnobQuery, /) -> Knobs:
        """The knobs."""
        return next((knobs for source in self.sources if (knobs := source(query))), NO_KNOBS)

    def unused(self) -> Iterator[tuple[str, Span | None]]:
        """See `TrackedKnobSource`."""
        for source in self.sources:
            if isinstance(source, TrackedKnobSource):
                yield from source.unused()


def knobs_from(settings: dict[str, Any], origin: KnobOrigin | None = None) -> Knobs:
    """Knobs from names and values, which may be strings.

    Raises:
        UsageError: There is no such knob, or it does not take that value.
    """
    return Knobs(**{name: parse_value(name, value) for name, value in settings.items()}, origin=origin)


def parse_knobs(text: str, origin: KnobOrigin | None = None) -> Knobs:
    """Knobs in the spelling of the command line: `tile=8x48,kc=512,pack_b=false`.

    Raises:
        UsageError: The text is not of that form.
    """
    settings: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals:
            raise UsageError(f"'{part}' is not a knob; write NAME=VALUE, where NAME is one of {', '.join(KNOB_NAMES)}")
        if name.strip() in settings:
            raise UsageError(f"{name.strip()} is given twice: {settings[name.strip()]} and {value.strip()}")
        settings[name.strip()] = value.strip()
    return knobs_from(settings, origin)


def parse_value(name: str, value: object) -> Any:
    """The value of a knob.

    Raises:
        UsageError: There is no such knob, or it does not take that value.
    """
    if name not in KNOB_NAMES:
        raise UsageError(f"unknown knob '{name}'; choose from {', '.join(KNOB_NAMES)}{did_you_mean(name, KNOB_NAMES)}")
    if name == "tile":
        return _tile(value)
    return _switch(name, value) if name.startswith("pack_") else _number(name, value)


def value_text(value: object) -> str:
    """The spelling of a knob's value."""
    if isinstance(value, tuple):
        return "x".join(map(str, cast("tuple[int, ...]", value)))
    return str(value).lower()


def _tile(value: object) -> tuple[int, int]:
    match = _TILE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise UsageError(f"tile '{value}' is not of the form ROWSxCOLUMNS, such as 8x48")
    return int(match[1]), int(match[2])


def _switch(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() not in _SWITCHES:
        raise UsageError(f"{name} is true or false, not '{value}'")
    return _SWITCHES[str(value).lower()]


def _number(name: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str) or not value.removeprefix("-").isdecimal() or len(value) > 10:
        raise UsageError(f"{name} is a number, not '{value_text(value)}'")
    return int(value)
