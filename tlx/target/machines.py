"""The machines of a target: their vector registers, and their processors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tlx.target.costs.core import CoreModel
from tlx.target.costs.memory import Caches
from tlx.target.grid_unit import GridUnit
from tlx.target.instructions.vectors import NarrowFloats, VectorInstructions


@dataclass(frozen=True, slots=True)
class VectorRegisterFile:
    """Vector registers that machines have with a feature, or of an architecture (as triples call it).

    Attributes:
        register_bytes: Bytes of a register.
        registers: How many there are.
        feature: The feature that provides them.
        architectures: Architectures that have them.
        instructions: Instructions on them.
        narrow_floats: Conversions of half and bfloat to and from them.
        core: What a core does in a cycle.
    """

    register_bytes: int
    registers: int
    feature: str = ""
    architectures: tuple[str, ...] = ()
    instructions: VectorInstructions = field(default_factory=VectorInstructions)
    narrow_floats: NarrowFloats = field(default_factory=NarrowFloats)
    core: CoreModel = field(default_factory=CoreModel)


@dataclass(frozen=True, slots=True)
class VectorLengths:
    """The lengths of vectors that machines of a target have; code is for one of them.

    Attributes:
        sizes: Bytes of a vector register, the target's own first; empty where all machines have the target's. Each of
            the others is a target of its own, too, for several versions in a program: `sve256` besides `sve`.
        features: Features that mean a length, in bytes, shortest first: ("zvl256b", 32).
    """

    sizes: tuple[int, ...] = ()
    features: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class OptionalVectors:
    """Vectors that machines of a target may lack: all of them, or those of floats.

    Attributes:
        feature: The feature without which a machine has no vectors at all, and with which the names of the other
            features of vectors begin.
        float_features: Floating-point types that vector registers hold, each with features of which it needs one; None
            for all types. Functions with other floats are lowered as `Target.without_vectors`.
    """

    feature: str
    float_features: Mapping[str, tuple[str, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor of a target: what `--mcpu` says beside LLVM's scheduling model.

    Attributes:
        features: The features it has, in LLVM's spelling; those that the target does not use may be omitted.
        vector_bytes: Bytes of its vector registers, where the target has several lengths; 0 for the target's.
        caches: Its caches; None for the target's.
        core: What its core does in a cycle; None for the target's. Dot products are slower, or faster, as its
            multiply-adds are.
        grid: Its grid of blocks of threads; None for the target's.
    """

    features: tuple[str, ...]
    vector_bytes: int = 0
    caches: Caches | None = None
    core: CoreModel | None = None
    grid: GridUnit | None = None
