"""Draws what programs are asked for: see `tlx.fuzz.asked`.

Half of the programs name a processor or features, or have functions that are compiled for some; two of three ask
something of their products.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from tlx.diagnostics import UsageError
from tlx.fuzz.asked import Asked
from tlx.lower.to_tiles.given import needed_registers
from tlx.native import has_feature
from tlx.pipeline import VECTOR_BITS
from tlx.target import Target, find

_PACES: Final = ("prefer-256-bit", "prefer-128-bit", "fast-gather", "fast-variable-perlane-shuffle", "slow-3ops-lea")
"""Features that say how fast something is: every machine runs their code."""
_EXTRAS: Final = ("avx512fp16", "avx512vbmi", "avx512vbmi2", "gfni", "bmi2", "avx512bitalg")
_OPEN: Final = ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx", "sse4.1", "ssse3")
"""What a target for any backend may be given."""
_TAKEN: Final = ("fma", "f16c", "avx512bw", "avx512dq", "avx512vbmi")
_OWN: Final = ("znver", "knl", "knm")
"""Processors with instructions that others lack and that LLVM makes use of: SSE4A, PREFETCHWT1."""
_MATRIX_TILES: Final = ("32x32", "32x32", "16x64", "64x16", "")
"""An empty one leaves it to the model, which takes vectors for small products."""
_MOST_AHEAD: Final = 16


def draw(name: str, seed: int) -> Asked:
    """What the program of a seed is asked for on a target.

    Args:
        name: The target's name; empty for none.
        seed: Decides.
    """
    if not name:
        return Asked()
    dice = random.Random(f"asked {name} {seed}")
    target = find(name)
    machine = _machine(target, dice) if dice.random() < 0.5 else Asked()
    return Asked(
        machine.cpu,
        machine.attrs,
        machine.vector_bits,
        machine.functions,
        _knobs(target, machine, dice) if dice.random() < 0.67 else "",
        _matrix_knobs(dice) if any(version.matrix for version in target.versions or (target,)) else "",
        dice.choice((None, None, 0)),
    )


def runs_here(asked: Asked, target: Target, flags: frozenset[str]) -> bool:
    """Whether a machine with these flags, which runs the target's own code, runs what is asked for."""
    if asked.cpu.startswith(_OWN):
        return False
    wanted = (*asked.attrs, *asked.functions.split(","), *(f"+{f}" for f in target.cpus.get(asked.cpu, ())))
    return all(f[1:] in _PACES or has_feature(f[1:], flags) for f in wanted if f.startswith("+"))


def _machine(target: Target, dice: random.Random) -> Asked:
    """A processor, features, a width: one of them, or two."""
    if target.vectors and dice.random() < 0.3:
        return Asked(
            vector_bits=dice.choice(VECTOR_BITS[1:]), attrs=_attrs(target, dice) if dice.random() < 0.3 else ()
        )
    kind = dice.choice(("cpu", "attrs", "attrs", "both", "functions"))
    cpu = dice.choice(sorted(target.cpus)) if kind in ("cpu", "both") and target.cpus else ""
    if kind == "functions" and target.cpus:
        return Asked(functions=",".join(f"+{feature}" for feature in dice.choice(sorted(target.cpus.values()))))
    return Asked(cpu, _attrs(target, dice) if kind != "cpu" else ())


def _attrs(target: Target, dice: random.Random) -> tuple[str, ...]:
    """A few features that come or go, without those that the target is nothing without."""
    known = sorted(frozenset[str]().union(*(version.optional for version in target.versions or (target,))))
    more = [*known * 2, *(_OPEN if target.vectors else _EXTRAS), *_PACES]
    found: list[str] = []
    for _ in range(dice.randint(1, 3)):
        feature = f"-{dice.choice([*known, *_TAKEN])}" if dice.random() < 0.35 else f"+{dice.choice(more)}"
        if feature[1:] not in [f[1:] for f in found] and _is_possible(target, feature):
            found.append(feature)
    return tuple(found)


def _is_possible(target: Target, feature: str) -> bool:
    """Whether a target takes a feature, and LLVM 22: it dies of AVX512-FP16 without AVX512VL, as no machine is."""
    if feature == "+avx512fp16" and not all("+avx512vl" in v.features for v in target.versions or (target,)):
        return False
    try:
        target.changed((feature,))
    except UsageError:
        return False
    return True


def _knobs(target: Target, machine: Asked, dice: random.Random) -> str:
    """Knobs for products on vectors that fit the target's registers, for most of their elements."""
    asked = target.on_cpu(machine.cpu).with_features(machine.attrs)
    asked = asked.with_vector_bits(machine.vector_bits) if machine.vector_bits else asked
    version = dice.choice(asked.versions or (asked,))
    if version.vectors and not machine.has_machine:
        version = version.with_vector_bits(dice.choice(VECTOR_BITS[1:]))  # as wide as the machine at hand has them
    lanes = version.vector_bytes // dice.choice((4, 4, 4, 8))
    tiles = [
        (rows, vectors)
        for rows in range(1, version.registers)
        for vectors in range(1, 7)
        if needed_registers(rows, vectors) <= version.registers
    ]
    rows, vectors = dice.choice(tiles)
    settings = {
        "tile": f"{rows}x{vectors * lanes}",
        "kc": str(4 * dice.choice((1, 2, 3, 4, 5, 8, 16, 32))),
        "mc": str(_block(rows, dice)),
        "nc": str(_block(vectors * lanes, dice)),
        "pack_a": dice.choice(("true", "true", "true", "false")),
        "pack_b": dice.choice(("true", "true", "true", "false")),
        "ahead": str(dice.randint(0, _MOST_AHEAD)),
    }
    return _some(settings, dice, (0.6, 0.4, 0.4, 0.4, 0.3, 0.3, 0.2))


def _matrix_knobs(dice: random.Random) -> str:
    """Four of five programs multiply on tiles, however small their products are."""
    tile = dice.choice(_MATRIX_TILES)
    if not tile:
        return ""
    rows, columns = map(int, tile.split("x"))
    more = {"mc": str(_block(rows, dice)), "nc": str(_block(columns, dice)), "pack_a": "true", "pack_b": "true"}
    return ",".join(filter(None, [f"tile={tile}", _some(more, dice, (0.2, 0.2, 0.15, 0.15))]))


def _block(tile: int, dice: random.Random) -> int:
    """A cache block of a few tiles, whole ones or not."""
    return tile * dice.randint(1, 4) + (dice.randint(0, tile - 1) if dice.random() < 0.3 else 0)


def _some(settings: dict[str, str], dice: random.Random, chances: Sequence[float]) -> str:
    """Some of several settings, each by its chance."""
    return ",".join(
        f"{n}={v}" for (n, v), chance in zip(settings.items(), chances, strict=True) if dice.random() < chance
    )
