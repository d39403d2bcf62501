"""Several targets at once: `--target=avx2,avx512,amx` makes a version of each kernel for each of them.

The result is a target, the weakest of those named, that knows the others as its `versions`, weakest first. A target
whose optional features come in `tiers` counts as several: AVX-512 came without VNNI, with it, and with BF16 as well.

    avx2,avx512  ->  avx2   avx2.avxvnni   avx512   avx512.avx512vnni   avx512.avx512vnni.avx512bf16
    level            1      2              3        4                   5

Tiers have only features that LLVM 14 makes code for, as all of a file is compiled wherever one part of it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from tlx.diagnostics import UsageError
from tlx.target import Target


def several(targets: Sequence[Target]) -> Target:
    """One target for the machines of all.

    Raises:
        UsageError: One is named twice, or a program cannot find out whether its machine is that.
    """
    ordered = sorted(targets, key=lambda target: (target.rank, len(target.features)))
    names = ",".join(target.name for target in ordered)
    for first, second in pairwise(ordered):
        if first.name == second.name:
            raise UsageError(f"target '{first.name}' is named twice")
        if second.detect is None:
            raise UsageError(f"target '{second.name}' stands alone: a program cannot ask whether its machine is that")
    made = [version for target in ordered for version in _tiers(target)]
    versions = tuple(replace(version, level=level) for level, version in enumerate(made, 1))
    return replace(versions[0], name=names, title=f"versions for {names}", level=0, versions=versions)


def _tiers(target: Target) -> list[Target]:
    """The target with no optional features of its tiers, with some, with all."""
    optional = {feature for tier in target.tiers for feature in tier}
    base = tuple(f for f in target.features if f[1:] not in optional)
    return [
        replace(target, name=".".join((target.name, *tier)), features=(*base, *(f"+{feature}" for feature in tier)))
        for tier in target.tiers
    ] or [target]
