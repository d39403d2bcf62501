"""The CPU that this process runs on: its features, its caches, and the best target for it."""

from __future__ import annotations

import contextlib
import platform
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Final, cast

from tlx.diagnostics import UsageError
from tlx.llvm.triples import architecture as canonical_architecture
from tlx.target.costs.memory import Caches
from tlx.target.installed import targets
from tlx.target.system import cache_entries, cache_sharers, cpuinfo
from tlx.target.target import Target, normalized_feature

_ISA: Final = re.compile(r"(?m)^(?:hart )?isa\s*: rv(?:32|64|128)(\S*)$")
_G: Final = ("i", "m", "a", "f", "d", "zicsr", "zifencei")


@cache
def native_target() -> Target:
    """The best target whose code this machine runs, with exactly the features and caches that it has.

    Matrix units come first, then wider vectors, then more requirements.

    Raises:
        UsageError: This machine runs none of the targets' code.
    """
    return best_target(_host_targets(), cpu_flags(), host_caches())


def best_target(
    candidates: Iterable[Target], flags: frozenset[str], sizes: Caches | None, architecture: str = platform.machine()
) -> Target:
    """The best of some targets for a machine with these flags and caches, and an architecture by the system's name.

    Without `sizes`, the target's own stay.

    Raises:
        UsageError: The machine runs none of the targets' code.
    """
    fitting = [target for target in candidates if target.is_for(architecture) and not missing_features(target, flags)]
    if not fitting:
        raise UsageError("this machine supports no target; name one with --target= ('tlx targets' lists them)")
    best = max(fitting, key=lambda target: target.rank)
    best = best.with_features(_feature_changes(best, flags, architecture))
    return with_host_dot_costs(best if sizes is None else replace(best, caches=sizes), flags)


def with_host_dot_costs(target: Target, flags: frozenset[str]) -> Target:
    """The target with dot products as fast as on a machine with these flags."""
    slower = {dot.slower_with[0] for dot in target.dots if dot.slower_with is not None}
    return target.with_dot_costs([feature for feature in slower if has_feature(feature, flags)])


def missing_features(target: Target, flags: frozenset[str]) -> list[str]:
    """The features that a machine with these flags lacks to run the target's code; no processor is a GPU."""
    if target.grid is not None:
        return ["a GPU"]
    return [flag for flag in target.requires if not has_feature(flag, flags)]


def version_for(target: Target, flags: frozenset[str]) -> Target:
    """Of several versions, the one that a machine with these flags runs; the target itself where it has only one."""
    supported = [
        v
        for v in target.versions
        if not missing_features(v, flags) and all(has_feature(f[1:], flags) for f in v.features)
    ]
    return supported[-1] if supported else target


@cache
def cpu_flags() -> frozenset[str]:
    """Names of the processor's features, as Linux spells them (as LLVM does where there is no /proc/cpuinfo).

    Those that Linux does not list are spelled as LLVM does.
    """
    with contextlib.suppress(OSError):
        text = cpuinfo()
        readers = {
            target.detection.features_in_cpuinfo for target in _host_targets() if target.detection.features_in_cpuinfo
        }
        if listed := _features_in_cpuinfo(text).union(*(read(text) for read in readers)):
            finders = {
                target.detection.find_features
                for target in _host_targets()
                if target.detection.find_features is not None
            }
            return listed.union(*(find() for find in finders))
    return _flags_by_llvm()


def _features_in_cpuinfo(text: str) -> frozenset[str]:
    """The features in a text of /proc/cpuinfo: those of the first processor; on RISC-V those that all of them have."""
    if match := re.search(r"(?m)^(?:flags|Features)\s*: (.*)$", text):
        return frozenset(match[1].split())
    cores = [frozenset(_extensions(isa)) for isa in _ISA.findall(text)]
    return cores[0].intersection(*cores[1:]) if cores else frozenset()


def _extensions(isa: str) -> Iterator[str]:
    """The extensions in `imafdcv_zicsr_zba`, in LLVM's names."""
    letters, *named = isa.lower().split("_")
    letters, *more = re.split(r"(?=[zsx])", letters, maxsplit=1)  # Z..., S... and X... have whole words for names
    for letter in letters:
        yield from _G if letter == "g" else (letter,)
    yield from (name for name in (*more, *named) if name)


@cache
def _host_targets() -> tuple[Target, ...]:
    """The targets for machines of this architecture; modules of others are not imported."""
    return tuple(targets(platform.machine()).values())


def host_caches() -> Caches:
    """Data caches that one thread can count on; the defaults where the system does not report them."""
    sizes = {level: size for kind, level, size in cache_entries() if kind in ("Data", "Unified")}
    default = Caches()
    return Caches(sizes.get(1, default.l1), sizes.get(2, default.l2), sizes.get(3, default.l3), cache_sharers())


def _flags_by_llvm() -> frozenset[str]:
    with contextlib.suppress(ImportError, RuntimeError):
        from llvmlite.binding import get_host_cpu_features

        features = cast("dict[str, bool]", get_host_cpu_features())
        return frozenset(name for name, present in features.items() if present)
    return frozenset()


def _feature_changes(target: Target, flags: frozenset[str], architecture: str) -> tuple[str, ...]:
    """Features to add, which the machine has and the target or LLVM uses, and features to remove."""
    host_features = target.detection.host_features.get(canonical_architecture(architecture), ())
    useful = dict.fromkeys([*target.used_features, *host_features])
    on = [f"+{feature}" for feature in useful if has_feature(feature, flags)]
    off = [f"-{f[1:]}" for f in target.features if f.startswith("+") and not has_feature(f[1:], flags)]
    return (*on, *off)


def has_feature(feature: str, flags: frozenset[str]) -> bool:
    """Whether a feature, in LLVM's or Linux's spelling, is among the flags, in either."""
    names = _plain_names(flags)
    plain = normalized_feature(feature)
    return plain in names or _linux_names().get(plain, plain) in names


@cache
def _linux_names() -> dict[str, str]:
    """Linux's names of features, where they differ from LLVM's in more than punctuation."""
    return {name: linux for target in _host_targets() for name, linux in target.detection.linux_names.items()}


@cache
def _plain_names(flags: frozenset[str]) -> frozenset[str]:
    return frozenset(map(normalized_feature, flags))
