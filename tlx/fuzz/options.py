"""Random options of a lowering besides its target: processor, features, vector width, knobs.

    --mcpu=alderlake --mattr=+avxvnniint8 --knobs=tile=4x16,kc=8,pack_b=true

Knobs that do not fit a product are ignored for it.

Half of the programs name a processor or features, or have functions compiled for some; two of three set knobs. Half
let a seed decide in place of the cost model, and so reach kernels that the model never selects.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeVar

from tlx.diagnostics import UsageError
from tlx.lower.cost import needed_registers
from tlx.lower.knobs import NO_KNOBS, KnobOrigin, KnobQuery, Knobs, parse_knobs
from tlx.lower.options import VECTOR_BITS, WORKSPACES, Options, Workspace
from tlx.target.host import has_feature
from tlx.target.lookup import find_target, resolve_target
from tlx.target.target import Target

_TYPES: Final = re.compile(r"matmul \S+ (\w+)(?: (\w+))?")
_DEFINE: Final = re.compile(r"(?m)^(define .*?)( \{)$")
_ORIGIN: Final = KnobOrigin("from the fuzzer", binding=False)


@dataclass(frozen=True)
class RandomOptions:
    """Options drawn at random.

    Attributes:
        cpu: `--mcpu`.
        features: `--mattr`.
        vector_bits: `--vector-bits`; 0 for the target's default.
        functions: `target-features` attribute of the program's functions, `+a,+b`; empty for none.
        knobs: `--knobs`, for products on vectors.
        matrix_knobs: `--knobs`, for products on a matrix unit.
        weight_bytes: Maximum size of the panels of a constant B packed at compile time; None for the default.
        decision_seed: Decides in place of the cost model; None for the model.
        workspace: Where temporaries live.
    """

    cpu: str = ""
    features: tuple[str, ...] = ()
    vector_bits: int = 0
    functions: str = ""
    knobs: str = ""
    matrix_knobs: str = ""
    weight_bytes: int | None = None
    decision_seed: int | None = None
    workspace: Workspace = "malloc"

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> RandomOptions:
        """The options that `dataclasses.asdict` converted."""
        options = cls(**value)
        return replace(options, features=tuple(options.features))

    @property
    def has_machine(self) -> bool:
        """Whether any of them describes the machine."""
        return bool(self.cpu or self.features or self.vector_bits or self.functions)

    def options(self, options: Options) -> Options:
        """Add these options to others."""
        weights = options.weight_bytes if self.weight_bytes is None else self.weight_bytes
        return replace(
            options,
            cpu=self.cpu,
            features=self.features,
            vector_bits=self.vector_bits,
            knobs=self._knobs,
            weight_bytes=weights,
            decision_seed=self.decision_seed,
            workspace=self.workspace,
        )

    def machine_features(self, target: Target) -> tuple[str, ...]:
        """Features that the options add or remove, `+a` or `-b`: those of the processor as well."""
        processor = target.cpus[self.cpu].features if self.cpu in target.cpus else ()
        return (*self.features, *self.functions.split(","), *(f"+{f}" for f in processor))

    def compiled_for(self, text: str) -> str:
        """A module whose functions have the attribute `target-features` of these options."""
        return _DEFINE.sub(rf'\1 "target-features"="{self.functions}"\2', text) if self.functions else text

    def simpler(self) -> Iterator[RandomOptions]:
        """Subsets of the options, the empty one first."""
        plain = RandomOptions()
        for names in ([f.name for f in fields(self)], *([f.name] for f in fields(self))):
            less = replace(self, **{name: getattr(plain, name) for name in names})
            if less != self:
                yield less
        yield from (replace(self, features=less) for less in _all_but_one(self.features))
        for name in ("knobs", "matrix_knobs", "functions"):
            yield from (
                replace(self, **{name: ",".join(less)}) for less in _all_but_one(getattr(self, name).split(","))
            )

    def __str__(self) -> str:
        """The options of `tlx-lower`, with the knobs for a matrix unit in brackets."""
        words = {
            "--mcpu": self.cpu,
            "--mattr": ",".join(self.features),
            "--vector-bits": str(self.vector_bits or ""),
            "--weight-bytes": "" if self.weight_bytes is None else str(self.weight_bytes),
            "decision_seed": "" if self.decision_seed is None else str(self.decision_seed),
            "--workspace": "" if self.workspace == "malloc" else self.workspace,
            "--knobs": self.knobs + (f" (on a matrix unit: {self.matrix_knobs})" if self.matrix_knobs else ""),
        }
        return " ".join(f"{name}={value}" for name, value in words.items() if value)

    def _knobs(self, query: KnobQuery) -> Knobs:
        text = self.matrix_knobs if _multiplies_on_matrix_unit(query) else self.knobs
        return parse_knobs(text, _ORIGIN) if text else NO_KNOBS


_WithWorkspace = TypeVar("_WithWorkspace", Options, RandomOptions)


def without_workspace_argument(options: _WithWorkspace) -> _WithWorkspace:
    """The options for functions whose callers have no memory for temporaries: malloc in place of the argument."""
    return replace(options, workspace="malloc") if options.workspace == "argument" else options


def _all_but_one(items: Sequence[str]) -> list[tuple[str, ...]]:
    """The items without each one of them in turn."""
    return [(*items[:i], *items[i + 1 :]) for i in range(len(items))] if len(items) > 1 else []


def _multiplies_on_matrix_unit(query: KnobQuery) -> bool:
    """Whether the target's matrix unit multiplies the elements of a product."""
    target = find_target(query.target.partition(".")[0])  # a version is named `target.features`
    types = _TYPES.match(query.text)
    if target.matrix is None or types is None:
        return False
    lhs, rhs = types[1], types[2] or types[1]
    have = {feature[1:] for feature in query.features}
    return any((dot.lhs[0], dot.rhs[0]) == (lhs, rhs) and dot.feature in have for dot in target.matrix.dots)


_TUNING_FEATURES: Final = (
    "prefer-256-bit",
    "prefer-128-bit",
    "fast-gather",
    "fast-variable-perlane-shuffle",
    "slow-3ops-lea",
)
"""Tuning features: they describe speed, so every machine runs the code."""
_EXTRA_FEATURES: Final = ("avx512fp16", "avx512vbmi", "avx512vbmi2", "gfni", "bmi2", "avx512bitalg")
_GENERIC_FEATURES: Final = (
    "avx2",
    "fma",
    "f16c",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512dq",
    "avx",
    "sse4.1",
    "ssse3",
)
"""Features to draw for a target that names none, such as `generic`."""
_REMOVED_FEATURES: Final = ("fma", "f16c", "avx512bw", "avx512dq", "avx512vbmi")
_VENDOR_CPUS: Final = ("znver", "knl", "knm")
"""Prefixes of processors with instructions that others lack and that LLVM uses: SSE4A, PREFETCHWT1."""
_MATRIX_TILES: Final = ("32x32", "32x32", "16x64", "64x16", "")
"""Register tiles; the empty one leaves the choice to the cost model, which takes vectors for small products."""
_LONGEST_PREFETCH_DISTANCE: Final = 16


def random_options(name: str, seed: int, *, has_machine: bool = True) -> RandomOptions:
    """The options for the program of a seed on a target.

    Args:
        name: The target's name; empty for none.
        seed: Seed of the random numbers.
        has_machine: Whether they may name a processor or features.
    """
    if not name:
        return RandomOptions()
    dice = random.Random(f"asked {name} {seed}")
    target = find_target(name)
    machine = _random_machine(target, dice) if has_machine and dice.random() < 0.5 else RandomOptions()
    return RandomOptions(
        machine.cpu,
        machine.features,
        machine.vector_bits,
        machine.functions,
        _random_knobs(target, machine, dice) if dice.random() < 0.67 else "",
        _random_matrix_knobs(dice) if any(version.matrix for version in target.versions or (target,)) else "",
        dice.choice((None, None, 0)),
        dice.randrange(1000) if dice.random() < 0.5 else None,
        dice.choice(("malloc", *WORKSPACES)),
    )


def is_runnable(drawn: RandomOptions, target: Target, flags: frozenset[str]) -> bool:
    """Whether a machine with these flags that runs the target's code also runs it with these options."""
    if drawn.cpu.startswith(_VENDOR_CPUS):
        return False
    wanted = (f for f in drawn.machine_features(target) if f.startswith("+"))
    return all(f[1:] in _TUNING_FEATURES or has_feature(f[1:], flags) for f in wanted)


def _random_machine(target: Target, dice: random.Random) -> RandomOptions:
    """One or two of processor, features and vector width."""
    if target.register_files and dice.random() < 0.3:
        return RandomOptions(
            vector_bits=dice.choice(VECTOR_BITS),
            features=_random_features(target, dice) if dice.random() < 0.3 else (),
        )
    kind = dice.choice(("cpu", "features", "features", "both", "functions"))
    needed = set(target.needed_features)
    fitting = sorted(name for name, processor in target.cpus.items() if needed <= {*processor.features})
    cpu = dice.choice(fitting) if kind in ("cpu", "both") and fitting else ""
    if kind == "functions" and target.cpus:
        features = dice.choice(sorted(processor.features for processor in target.cpus.values()))
        return RandomOptions(functions=",".join(f"+{feature}" for feature in features))
    return RandomOptions(cpu, _random_features(target, dice) if kind != "cpu" else ())


def _random_features(target: Target, dice: random.Random) -> tuple[str, ...]:
    """A few features to add or remove, none of which the target requires."""
    known = sorted(frozenset[str]().union(*(version.optional for version in target.versions or (target,))))
    more = [*known * 2, *(_GENERIC_FEATURES if target.register_files else _EXTRA_FEATURES), *_TUNING_FEATURES]
    found: list[str] = []
    for _ in range(dice.randint(1, 3)):
        feature = f"-{dice.choice([*known, *_REMOVED_FEATURES])}" if dice.random() < 0.35 else f"+{dice.choice(more)}"
        if feature[1:] not in [f[1:] for f in found] and _is_accepted(target, feature):
            found.append(feature)
    return tuple(found)


def _is_accepted(target: Target, feature: str) -> bool:
    """Whether a target and LLVM 22 accept a feature; LLVM crashes on AVX512-FP16 without AVX512VL."""
    if feature == "+avx512fp16" and not all("+avx512vl" in v.features for v in target.versions or (target,)):
        return False
    try:
        resolve_target(target, features=(feature,))
    except UsageError:
        return False
    return True


def _random_knobs(target: Target, machine: RandomOptions, dice: random.Random) -> str:
    """Knobs for products on vectors that fit the target's registers, for most of their elements."""
    machine_target = target.on_cpu(machine.cpu).with_features(machine.features)
    machine_target = machine_target.with_vector_bits(machine.vector_bits) if machine.vector_bits else machine_target
    version = dice.choice(machine_target.versions or (machine_target,))
    if version.register_files and not machine.has_machine:
        version = version.with_vector_bits(dice.choice(VECTOR_BITS))  # what this machine may have
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
        "mc": str(_random_block(rows, dice)),
        "nc": str(_random_block(vectors * lanes, dice)),
        "pack_a": dice.choice(("true", "true", "true", "false")),
        "pack_b": dice.choice(("true", "true", "true", "false")),
        "ahead": str(dice.randint(0, _LONGEST_PREFETCH_DISTANCE)),
    }
    return _random_subset(settings, dice, (0.6, 0.4, 0.4, 0.4, 0.3, 0.3, 0.2))


def _random_matrix_knobs(dice: random.Random) -> str:
    """Knobs that force a register tile for four of five programs, however small their products are."""
    tile = dice.choice(_MATRIX_TILES)
    if not tile:
        return ""
    rows, columns = map(int, tile.split("x"))
    more = {
        "mc": str(_random_block(rows, dice)),
        "nc": str(_random_block(columns, dice)),
        "pack_a": "true",
        "pack_b": "true",
    }
    return ",".join(filter(None, [f"tile={tile}", _random_subset(more, dice, (0.2, 0.2, 0.15, 0.15))]))


def _random_block(tile: int, dice: random.Random) -> int:
    """A cache block of a few tiles, not always whole ones."""
    return tile * dice.randint(1, 4) + (dice.randint(0, tile - 1) if dice.random() < 0.3 else 0)


def _random_subset(settings: dict[str, str], dice: random.Random, chances: Sequence[float]) -> str:
    """A subset of the settings, each with its own probability."""
    return ",".join(
        f"{n}={v}" for (n, v), chance in zip(settings.items(), chances, strict=True) if dice.random() < chance
    )
