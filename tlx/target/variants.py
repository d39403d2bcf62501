"""How machines of one target differ: in vector registers, by feature or architecture, and by processor."""

from __future__ import annotations

from dataclasses import dataclass, field

from tlx.target.costs.core import CoreModel
from tlx.target.costs.memory import Caches


@dataclass(frozen=True, slots=True)
class VectorRegisters:
    """Vector registers that machines have with a feature, or of an architecture (as triples call it).

    Attributes:
        size: Bytes of a register.
        registers: How many there are.
        feature: The feature that provides them.
        architectures: Architectures that have them.
        masked_bits: Element widths that masked loads and stores of them have instructions for.
        fused: Whether multiply-add of them is one instruction.
        converts_half: Whether an instruction converts half to and from float.
        rounds: Whether an instruction rounds floats to integers.
        core: What a core does in a cycle.
    """

    size: int
    registers: int
    feature: str = ""
    architectures: tuple[str, ...] = ()
    masked_bits: tuple[int, ...] = ()
    fused: bool = False
    converts_half: bool = False
    rounds: bool = False
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
class Processor:
    """A processor of a target: what `--mcpu` says beside LLVM's scheduling model.

    Attributes:
        features: The features it has, in LLVM's spelling; those that the target does not use may be omitted.
        vector_bytes: Bytes of its vector registers, where the target has several lengths; 0 for the target's.
        caches: Its caches; None for the target's.
        core: What its core does in a cycle; None for the target's. Dot products are slower, or faster, as its
            multiply-adds are.
    """

    features: tuple[str, ...]
    vector_bytes: int = 0
    caches: Caches | None = None
    core: CoreModel | None = None
