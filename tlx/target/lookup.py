"""A target by name: `amx`, with features (`avx2+avxvnni`), or with several versions (`avx2,avx512,amx`).

With several targets, each kernel gets a version for each of them. The result is the weakest of these targets, with all
of them as its `versions`, weakest first. A target whose optional features come in `tiers` counts as several: AVX-512
exists without VNNI, with VNNI, and with VNNI and BF16.

    avx2,avx512  ->  avx2   avx2.avxvnni   avx512   avx512.avx512vnni   avx512.avx512vnni.avx512bf16
    level            1      2              3        4                   5

Tiers have only features that LLVM 14 supports, as the same compiler compiles all versions in a file.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from tlx.diagnostics import UsageError, did_you_mean
from tlx.target.discovery import target_modules
from tlx.target.installed import names_of_packages, targets, targets_of_module
from tlx.target.target import Target

_ANY_PROCESSOR: Final = "generic"
"""What LLVM calls a processor of which nothing is known, or so begins its name: `generic-rv64`."""


def multiversion(targets: Sequence[Target]) -> Target:
    """One target with a version for each of several targets.

    Raises:
        UsageError: One is named twice, or a program cannot detect whether its machine supports it.
    """
    ordered = sorted(targets, key=lambda target: (target.rank, len(target.features)))
    names = ",".join(target.name for target in ordered)
    for first, second in pairwise([target for target in ordered if target.triples]):
        if not any(map(first.is_for, second.triples)):
            places = f"{first.triples[0]} and {second.triples[0]}"
            raise UsageError(f"targets {first.name} and {second.name} are for different machines: {places}")
    for first, second in pairwise(ordered):
        if first.name == second.name:
            raise UsageError(f"target '{first.name}' is named twice")
        if second.detection.emit is None:
            raise UsageError(f"target '{second.name}' cannot be one of several: a program cannot detect its machines")
    by_tier = [version for target in ordered for version in _versions_by_tier(target)]
    versions = tuple(replace(version, level=level) for level, version in enumerate(by_tier, 1))
    triples = next((target.triples for target in reversed(ordered) if target.triples), ())
    return replace(versions[0], name=names, title=f"versions for {names}", level=0, versions=versions, triples=triples)


def _versions_by_tier(target: Target) -> list[Target]:
    """The target with no optional features of its tiers, with some, with all."""
    optional = {feature for tier in target.tiers for feature in tier}
    base = tuple(f for f in target.features if f[1:] not in optional)
    return [
        replace(target, name=".".join((target.name, *tier)), features=(*base, *(f"+{feature}" for feature in tier)))
        for tier in target.tiers
    ] or [target]


def added_features(target: Target | str) -> list[str]:
    """Features that a target's name adds: `x` and `y` of `a+x,b+y`."""
    names = target.split(",") if isinstance(target, str) else []
    return [feature.strip() for name in names for feature in name.split("+")[1:]]


def find_target(name: str) -> Target:
    """The target of that name; `native` is the best one this machine runs.

    `a,b` is one with versions for both, `a+x+y` is `a` with the features `x` and `y`.

    Raises:
        UsageError: There is no such target, and the message lists those that exist; or a feature has no name.
    """
    if "," in name:
        return multiversion([find_target(part.strip()) for part in name.split(",")])
    if "+" in name:
        base, *features = name.split("+")
        if not all(features):
            raise UsageError(f"target '{name}': each '+' must be followed by a feature: TARGET+FEATURE")
        target = find_target(base).with_features(tuple(f"+{feature}" for feature in features))
        name = ".".join((target.name, *features))
        return replace(target, name=name, requires=(*target.requires, *features), tiers=())
    if name == "native":
        from tlx.target.host import native_target

        return native_target()
    for module in (name, name.rstrip("0123456789")):  # `sve256` is in the module of `sve`
        found = targets_of_module(module).get(name) if module in target_modules() else None
        if found is not None:
            return found  # without importing the other targets
    installed = targets()
    if name not in installed:
        suggestion = did_you_mean(name, ["native", *installed])
        raise UsageError(f"unknown target '{name}'; choose from native, {', '.join(installed)}{suggestion}")
    return installed[name]


def resolve_target(
    target: Target | str, *, cpu: str = "", features: Sequence[str] = (), vector_bits: int = 0, triple: str = ""
) -> Target:
    """The target with a processor, features and a width of vectors.

    Args:
        target: The target, or its name.
        cpu: The processor, by LLVM's name.
        features: Features to add (`+avxvnni`) and to remove (`-avx512bf16`).
        vector_bits: Width of vectors; 0 for the target's.
        triple: Triple of the machine; empty for that of this one.

    Raises:
        UsageError: There is no such target, processor or feature, or the processor lacks what the target needs.
    """
    resolved = find_target(target) if isinstance(target, str) else target
    triple = triple or foreign_triple(resolved)
    if triple and not resolved.is_for(triple):
        others = ", ".join(name for name, other in targets().items() if other.is_for(triple))
        message = f"target {resolved.name} is for {' and '.join(resolved.triples)}, not for triple '{triple}'"
        raise UsageError(f"{message}; targets for it: {others}")
    resolved = resolved.for_triple(triple)
    _check_detection(resolved, triple)
    if cpu:
        resolved = resolved.on_cpu(cpu)
    if features:
        resolved = resolved.with_attributes(tuple(features))
        resolved = resolved if cpu else resolved.with_features(_baseline_features(triple, features))
    requested = (*features, *(f"+{name}" for name in added_features(target)))
    _check_feature_names(resolved, requested, cpu, triple)
    resolved = _without_removed_features(resolved, [f for f in features if f[0] == "-"], cpu, triple)
    if cpu and not cpu.startswith(_ANY_PROCESSOR) and not resolved.versions:
        which = f"{resolved.name}{', native on this machine' if target == 'native' else ''}"
        resolved = _for_processor(resolved, which, cpu, requested, triple)
    return resolved.with_vector_bits(vector_bits) if vector_bits else resolved


def _check_detection(target: Target, triple: str) -> None:
    """Check that a program for a triple can detect each version of a target but the weakest.

    Raises:
        UsageError: It cannot.
    """
    from tlx.llvm.triples import may_be_linux

    asking = next((version for version in target.versions[1:] if version.detection.on_linux_only), None)
    if asking is not None and not may_be_linux(triple):
        message = f"target '{asking.name}' cannot be one of several for '{triple}'"
        remedy = "compile for it alone, or leave it out"
        raise UsageError(f"{message}: a program can detect its machines only on Linux; {remedy}")


def foreign_triple(target: Target | str) -> str:
    """The triple of a target that this machine's architecture cannot run; empty for other targets.

    Raises:
        UsageError: There is no such target.
    """
    found = find_target(target) if isinstance(target, str) else target
    return "" if found.is_for(platform.machine()) else found.triples[0]


def _baseline_features(triple: str, features: Sequence[str]) -> tuple[str, ...]:
    """The baseline features that functions with features of their own must name, except those turned off."""
    from tlx.llvm.triples import baseline, native_triple

    off = {feature[1:] for feature in features if feature[0] == "-"}
    off |= {"d"} if "f" in off else set()  # registers for doubles are registers for floats
    return tuple(f for f in baseline(triple or native_triple()) if f[1:] not in off)


def _without_removed_features(target: Target, removed: Sequence[str], cpu: str, triple: str) -> Target:
    """The target without features that imply, by LLVM, features that a user removed.

    Args:
        target: The target.
        removed: The features, with their minus.
        cpu: The processor; empty for any.
        triple: Triple of the machine.

    Raises:
        UsageError: A feature that all of the target's code needs implies a removed one, as AVX-512 implies AVX2.
    """
    from tlx.llvm.codegen import lacking_features

    for feature in removed:
        for version in target.versions or (target,):
            enabled = tuple(name[1:] for name in version.features if name[0] == "+")
            implying = lacking_features(triple, cpu, (*version.features, feature), enabled) or frozenset()
            if needed := next((name for name in enabled if name in implying and version.needs_feature(name)), ""):
                message = f"feature '{feature}': target {version.name} is for machines with {needed}, which implies it"
                raise UsageError(f"{message}; 'tlx targets' lists others")
            target = target.with_features(tuple(f"-{name}" for name in sorted(implying)))
    return target


def _for_processor(target: Target, which: str, cpu: str, requested: Sequence[str], triple: str) -> Target:
    """The target with the optional features of a processor that it has no data of, as LLVM knows them, if it does.

    Args:
        target: The target.
        which: What an error calls the target.
        cpu: The processor.
        requested: Features that the user added or removed.
        triple: Triple of the machine.

    Raises:
        UsageError: The processor lacks features that the target needs.
    """
    from tlx.llvm.codegen import lacking_features

    processor = target.cpus.get(cpu)
    known = {feature[1:] for feature in requested} | {*(processor.features if processor is not None else ())}
    needed = [feature for feature in target.needed_features if feature not in known]
    optional = sorted(target.optional - known) if processor is None else []
    if not needed and not optional:
        return target
    lacking = lacking_features(triple, cpu, tuple(requested), (*needed, *optional))
    if lacking is None:
        return target.with_features(tuple(f"-{feature}" for feature in optional))
    if missing := [feature for feature in needed if feature in lacking]:
        fitting = _targets_for(cpu, triple)
        remedy = f"use --target={' or --target='.join(fitting)}" if fitting else "name another processor, or none"
        raise UsageError(f"processor '{cpu}' cannot run target {which}: it lacks {', '.join(missing)}; {remedy}")
    return target.with_features(tuple(f"{'-' if feature in lacking else '+'}{feature}" for feature in optional))


def _targets_for(cpu: str, triple: str) -> list[str]:
    """The targets for a triple whose features a processor has; of targets for several lengths, the first."""
    from tlx.llvm.codegen import lacking_features

    machine = triple or platform.machine()
    candidates = [t for t in targets().values() if t.triples and t.is_for(machine) and t.needed_features]
    wanted = tuple(dict.fromkeys(feature for t in candidates for feature in t.needed_features))
    lacking = lacking_features(triple, cpu, (), wanted)
    fitting = [t for t in candidates if lacking is not None and lacking.isdisjoint(t.needed_features)]
    return list({t.features: t.name for t in reversed(fitting)}.values())[::-1]


def _check_feature_names(target: Target, requested: Sequence[str], cpu: str, triple: str) -> None:
    """Have LLVM check the names of features and processor, a triple of another architecture, and packages' targets."""
    versions = target.versions or (target,)
    is_provided = any(version.name.split(".")[0] in names_of_packages() for version in versions)
    if not requested and not cpu and not is_provided and triple.partition("-")[0] in ("", platform.machine()):
        return
    from tlx.llvm.codegen import check_subtarget
    from tlx.llvm.triples import native_triple

    triple = triple or (native_triple() if is_provided else "")

    features = dict.fromkeys(f for version in versions for f in version.features)
    check_subtarget(triple, target.name, tuple(features), cpu, requested)
