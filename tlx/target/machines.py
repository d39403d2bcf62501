"""The machines of a target: their vector registers, their processors, and how their features are detected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tlx.target.costs.core import CoreModel
from tlx.target.costs.memory import Caches
from tlx.target.grid_unit import GridUnit
from tlx.target.instructions.vectors import NarrowFloats, VectorInstructions

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.values import Value
    from tlx.target.target import Target

    class Detector(Protocol):
        """See `Detection.emit`."""

        def __call__(self, b: Builder, versions: Sequence[Target], *, request_permission: bool) -> Value:
            """Emit code that queries the processor; returns the number of the best version that it supports."""
            ...


@dataclass(frozen=True, slots=True)
class VectorRegisters:
    """Vector registers that machines have with a feature, or of an architecture (as triples call it).

    Attributes:
        size: Bytes of a register.
        registers: How many there are.
        feature: The feature that provides them.
        architectures: Architectures that have them.
        instructions: Instructions on them.
        narrow_floats: Conversions of half and bfloat to and from them.
        core: What a core does in a cycle.
    """

    size: int
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
        floats: Floating-point types that vector registers hold, each with features of which it needs one; None for all
            types. Functions with other floats are lowered as `Target.without_vectors`.
    """

    feature: str
    floats: Mapping[str, tuple[str, ...]] | None = None


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


@dataclass(frozen=True, slots=True)
class Detection:
    """How the features of a machine are found, before lowering and when a program runs.

    Attributes:
        linux_names: Names in /proc/cpuinfo of features that differ from LLVM's in more than punctuation; both without
            punctuation.
        host_features: Features that LLVM uses, by architecture as the system calls it: `native` adds those that this
            machine has.
        features_in_cpuinfo: Finds features, by either name, in a text of /proc/cpuinfo that has no list of them.
        find_features: Finds features of this machine, by LLVM's names, that /proc/cpuinfo does not list.
        emit: Emits the code that finds the strongest of some targets, numbered from 1, that the machine supports:
            (builder, targets, request_permission) -> number; `request_permission` as for `Target.finish`. None if a
            program cannot find out.
    """

    linux_names: Mapping[str, str] = field(default_factory=dict[str, str])
    host_features: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    features_in_cpuinfo: Callable[[str], frozenset[str]] | None = None
    find_features: Callable[[], frozenset[str]] | None = None
    emit: Detector | None = None
