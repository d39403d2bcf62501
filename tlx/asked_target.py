"""The target that somebody means: by name or as it is, changed by processor, features and widths, for a triple."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tlx.pipeline import Options
    from tlx.target import Target

TARGET_FEATURES: Final = '"tlx-features"="target"'
"""Attribute of a function that wants the target's features."""
_TRIPLE: Final = re.compile(r'(?m)^target triple = "([^"]*)"')


def triple_of(text: str) -> str:
    """A module's own triple; empty where it has none."""
    found = _TRIPLE.search(text)
    return found[1] if found else ""


def asked_target(target: Target | str, options: Options, triple: str = "") -> Target:
    """The target that options ask for.

    Args:
        target: The machine to aim at, or its name.
        options: Their processor, features and widths of vectors.
        triple: Triple of the machine; empty for that of this one.

    Raises:
        UsageError: There is no such target, processor or feature.
    """
    from tlx.target import find

    found = find(target) if isinstance(target, str) else target
    found = found.for_triple(triple)
    if options.cpu:
        found = found.on_cpu(options.cpu)
    if options.attrs:
        found = found.changed(options.attrs)
        found = found if options.cpu else found.with_features(_taken_for_granted(triple, options.attrs))
    _check_names(found, [*options.attrs, *(f"+{name}" for name in added_features(target))], options.cpu, triple)
    return found.with_vector_bits(options.vector_bits) if options.vector_bits else found


def _taken_for_granted(triple: str, attrs: Sequence[str]) -> tuple[str, ...]:
    """What functions that name features must name besides, unless somebody takes it away."""
    from tlx.llvm.triples import baseline, native_triple

    off = {feature[1:] for feature in attrs if feature[0] == "-"}
    off |= {"d"} if "f" in off else set()  # registers for doubles are registers for floats
    return tuple(f for f in baseline(triple or native_triple()) if f[1:] not in off)


def added_features(target: Target | str) -> list[str]:
    """Features that a target's name adds: `x` and `y` of `a+x,b+y`."""
    names = target.split(",") if isinstance(target, str) else []
    return [feature.strip() for name in names for feature in name.split("+")[1:]]


def _check_names(found: Target, asked: Sequence[str], cpu: str, triple: str) -> None:
    """Have LLVM look at names that the user gave, and at a triple that may not be of the target's architecture."""
    if not asked and not cpu and triple.partition("-")[0] in ("", platform.machine()):
        return
    from tlx.llvm.subtarget import check_names

    features = dict.fromkeys(f for version in found.versions or (found,) for f in version.features)
    check_names(triple, found.name, tuple(features), cpu, asked)
