"""Target: a machine's capabilities, as frozen, self-checking data."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from tlx.diagnostics import UsageError
from tlx.llvm.triples import architecture, has_full_nan, is_big_endian, native_triple
from tlx.target.costs.blocks import BlockCosts, LoopFusionLimits
from tlx.target.costs.core import CoreModel
from tlx.target.costs.memory import Caches, MemoryModel
from tlx.target.grid_unit import GridUnit
from tlx.target.instructions.compilers import CompilerVersions, LlvmBackend
from tlx.target.instructions.dots import Dot
from tlx.target.instructions.vectors import NarrowFloats, VectorInstructions
from tlx.target.machines import OptionalVectors, Processor, VectorLengths, VectorRegisterFile
from tlx.target.matrix_unit import MatrixUnit

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.module import Module
    from tlx.ir.values import Value

    class Detector(Protocol):
        """See `Detection.emit`."""

        def __call__(self, b: Builder, versions: Sequence[Target], *, request_permission: bool) -> Value:
            """Emit code that queries the processor; returns the number of the best version that it supports."""
            ...

    class Finisher(Protocol):
        """See `Target.finish`."""

        def __call__(self, module: Module, *, emulate_matrix: bool, request_permission: bool) -> None:
            """Finish a lowered module: add code that it needs once, such as constructors."""
            ...


_VECTOR_BYTES: Final = (16, 32, 64, 128)
_FEWEST_REGISTERS: Final = 4  # sums, and the operands of a product
_COMMON_BITS: Final = 128
"""Width of vectors that every backend keeps whole."""
_DRAWN_CACHES: Final = ((64, 32), (1 << 20, 512), (4 << 10, 32))
"""Values of `cached_operand_bytes` and `set_conflict_pitch_bytes` in `BlockCosts` from which a decision seed draws."""


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
        on_linux_only: Whether that code asks Linux.
    """

    linux_names: Mapping[str, str] = field(default_factory=dict[str, str])
    host_features: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    features_in_cpuinfo: Callable[[str], frozenset[str]] | None = None
    find_features: Callable[[], frozenset[str]] | None = None
    emit: Detector | None = None
    on_linux_only: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A machine to lower for.

    Attributes:
        name: What `--target=` calls it.
        title: One line for `tlx targets`.
        triples: Triples of the machines that it is for, the usual one first; empty for any machine.
        big_endian: Whether the machine that code is generated for is: the first of two elements is then the upper half
            of the word that they fill. `for_triple` sets it.
        full_nan: Whether arithmetic makes NaN with bits in the lower half of a float: see `has_full_nan`.

    Code:
        features: Subtarget features of its kernels, in LLVM's spelling with the plus; empty for any backend.
        attributes: Further attributes of its kernels.
        compilers: The first versions of LLVM that compile its code.
        backend: What LLVM's backend compiles right.
        finish: Called once at the end, for module-wide code such as constructors: (module, emulate_matrix,
            request_permission). The last is whether the program may request the system's permission to use a unit.

    Vector registers:
        vector_bytes: Bytes of a vector register.
        registers: Vector registers, without those that LLVM needs for itself.
        lengths: The lengths of vectors of its machines, where they differ: `--vector-bits`, the processor, or a feature
            selects one of them.
        register_files: Vector registers by feature or architecture, best first, where the target itself leaves them
            open.
        optional_vectors: For machines that may lack vectors, or vectors of floats.
        derive: Derives what follows from the length of vectors and the rate of the core, such as a matrix unit of
            vector registers, after either has changed.

    Instructions:
        instructions: Instructions of the vector unit besides dot products.
        narrow_floats: Conversions of half and bfloat, and arithmetic on half.
        dots: Dot-product instructions of the vector unit.
        matrix: Matrix unit, if there is one.
        grid: The grid of blocks of threads, for machines that run kernels as such.

    Cost model:
        caches: Cache sizes.
        memory: Bandwidths and latency.
        core: Ports, latency and costs of kernels.
        block_costs: Costs of blocks and copies, for stage 1.

    Processors, and detection, before lowering and when a program runs:
        cpus: Its processors, by LLVM's names.
        default_cpu: The processor that code is generated for where none is named, by LLVM's name; empty for any.
        unsupported_cpus: Processors that LLVM knows, and that lack instructions of the target.
        requires: Flags of /proc/cpuinfo a machine must have for its code to run.
        detection: How a machine's features are found.

    Several versions in a program, of which it runs the best that its machine supports; see `tlx.target.lookup`:
        tiers: Sets of optional features that processors introduced together, smallest first: a version for each.
        level: As one of several versions, its number.
        versions: The targets combined in this one, weakest first.
    """

    name: str
    title: str
    triples: tuple[str, ...] = ()
    big_endian: bool = False
    full_nan: bool = False

    features: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    compilers: CompilerVersions = field(default_factory=CompilerVersions)
    backend: LlvmBackend = field(default_factory=LlvmBackend)
    finish: Finisher | None = None

    vector_bytes: int = 16
    registers: int = 16
    lengths: VectorLengths = field(default_factory=VectorLengths)
    register_files: tuple[VectorRegisterFile, ...] = ()
    optional_vectors: OptionalVectors | None = None
    derive: Callable[[Target], Target] | None = None

    instructions: VectorInstructions = field(default_factory=VectorInstructions)
    narrow_floats: NarrowFloats = field(default_factory=NarrowFloats)
    dots: tuple[Dot, ...] = ()
    matrix: MatrixUnit | None = None
    grid: GridUnit | None = None

    caches: Caches = field(default_factory=Caches)
    memory: MemoryModel = field(default_factory=MemoryModel)
    core: CoreModel = field(default_factory=CoreModel)
    block_costs: BlockCosts = field(default_factory=BlockCosts)

    cpus: Mapping[str, Processor] = field(default_factory=dict[str, Processor])
    default_cpu: str = ""
    unsupported_cpus: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    detection: Detection = field(default_factory=Detection)

    tiers: tuple[tuple[str, ...], ...] = ()
    level: int = 0
    versions: tuple[Target, ...] = ()

    def __hash__(self) -> int:
        """The hash of the fields that distinguish targets; mappings cannot be hashed."""
        return hash((self.name, self.features, self.vector_bytes, self.caches))

    def __post_init__(self) -> None:
        if self.vector_bytes not in _VECTOR_BYTES:
            message = (
                f"target {self.name}: vector registers of {self.vector_bytes} bytes; 16, 32, 64, 128 are supported"
            )
            raise ValueError(message)
        if self.registers < _FEWEST_REGISTERS:
            message = (
                f"target {self.name}: {self.registers} vector registers; at least {_FEWEST_REGISTERS} are supported"
            )
            raise ValueError(message)
        for feature in self.features:
            if feature[:1] not in ("+", "-"):
                message = f"target {self.name}: feature '{feature}' needs a '+' or '-' in front"
                raise ValueError(message)

    def with_features(self, extra: tuple[str, ...]) -> Target:
        """The target with more (or, by `-`, fewer) features; dot products follow the features.

        Of several versions, those with the features among their optional ones get them, if there is any.
        """
        if self.versions:
            versions = tuple(v.with_features(_features_for(v, self.versions, extra)) for v in self.versions)
            return replace(self, features=versions[0].features, versions=versions)
        off = {f[1:] for f in extra if f.startswith("-")}
        remaining = tuple(f for f in self.features if f[1:] not in off)
        more = replace(self, features=remaining + tuple(f for f in extra if f[0] == "+" and f not in remaining))
        return _following_features(_sized(more, [f[1:] for f in more.features if f[0] == "+"]), extra)

    def with_attributes(self, attrs: tuple[str, ...]) -> Target:
        """The target with features that a user adds or removes.

        Raises:
            UsageError: A feature cannot be removed: others imply it, or all code of the target uses it. Or one means
                vectors of another width.
        """
        for version in self.versions:
            version.with_attributes(attrs)
        for feature, size in self.lengths.features:
            if f"+{feature}" in attrs and size not in self._sizes:
                raise UsageError(f"feature '+{feature}': {self._has_lengths}")
        for feature in attrs:
            if feature[0] == "-" and self.needs_feature(feature[1:]):
                message = f"feature '{feature}': target {self.name} is for machines with {feature[1:]}"
                raise UsageError(f"{message}; 'tlx targets' lists others")
        return self.with_features(attrs)

    def on_cpu(self, cpu: str) -> Target:
        """The target with what is known of a processor; unchanged where the processor is not known.

        Optional features, caches, and the core's throughput become the processor's.

        A target of several versions is unchanged: its program detects the processor at run time.

        Raises:
            UsageError: The processor is too old.
        """
        if self.versions:
            return self
        if cpu in self.unsupported_cpus:
            raise UsageError(f"processor '{cpu}' is too old for target {self.name} ({self.title})")
        processor = self.cpus.get(cpu)
        if processor is None:
            return self
        if processor.grid is not None:
            return replace(self, grid=processor.grid)
        if self.register_files:
            return self.with_features(tuple(f"+{feature}" for feature in processor.features))
        target = self._with_optional(processor.features).with_dot_costs(processor.features)
        core = processor.core or target.core
        slower = target.core.fmas_per_cycle / core.fmas_per_cycle
        length = processor.vector_bytes if processor.vector_bytes in target.lengths.sizes else target.vector_bytes
        target = replace(
            target,
            dots=tuple(replace(dot, cycles=dot.cycles * slower) for dot in target.dots),
            vector_bytes=length,
            caches=processor.caches or target.caches,
            core=core,
        )
        return _derived(target)

    def with_decision_seed(self, seed: int) -> Target:
        """The target with a seed that decides on blocks, copies, tiles and the unit in place of the cost model.

        The seed also draws how many bytes stay in the caches between blocks, so that operands are copied slice by
        slice. Odd seeds have operations computed in one loop wherever possible. Costs on which other choices depend are
        zero.
        """
        near, pixels = _DRAWN_CACHES[seed % len(_DRAWN_CACHES)]
        everywhere = LoopFusionLimits(
            min_intermediate_caches=0,
            min_part_bytes=1,
            min_rows=1,
            min_whole_operand_result_l2s=0,
            max_whole_operand_l2s=1 << 20,
            min_saved_per_reread_byte=0,
            decision_seed=seed,
        )
        blocks = replace(
            self.block_costs,
            call_cycles=0,
            reductions=replace(self.block_costs.reductions, vector_cycles=0, cache_miss_vector_cycles=0),
            horizontal_reduction_cycles=0,
            convolutions=replace(
                self.block_costs.convolutions,
                phase_element_cycles=0,
                max_whole_copy_bytes=near,
                max_partial_copy_bytes=near,
                set_conflict_pitch_bytes=pixels,
            ),
            cached_operand_bytes=near,
            loop_fusion=everywhere if seed % 2 else self.block_costs.loop_fusion,
            decision_seed=seed,
        )
        core = replace(self.core, costs=replace(self.core.costs, decision_seed=seed))
        versions = tuple(version.with_decision_seed(seed) for version in self.versions)
        return replace(self, block_costs=blocks, core=core, versions=versions)

    def is_for(self, triple: str) -> bool:
        """Whether machines of a triple, or of an architecture as the system spells it, may run its code."""
        return not self.triples or architecture(triple) in map(architecture, self.triples)

    def for_triple(self, triple: str) -> Target:
        """The target with the vector registers of a triple's architecture, its byte order and its NaN."""
        sized = _sized(self, [], architecture(triple))
        sized = replace(sized, full_nan=True) if has_full_nan(triple) else sized
        if not is_big_endian(triple or native_triple()):
            return sized
        return replace(sized, big_endian=True, versions=tuple(v.for_triple(triple) for v in sized.versions))

    def with_vector_bits(self, bits: int) -> Target:
        """The target with vectors of `bits` bits, and as many registers as machines with such vectors have.

        The features of a function or a kernel do not change the width.

        Raises:
            UsageError: The target's vectors have another, fixed width.
        """
        if bits // 8 in self.lengths.sizes:
            return _derived(replace(self, vector_bytes=bits // 8))
        if not self.register_files and bits != self.vector_bytes * 8:
            raise UsageError(f"vectors of {bits} bits: {self._has_lengths}")
        size, registers = bits // 8, self.registers
        if size != self.vector_bytes:
            registers = next(
                (v.registers for v in self.register_files if v.register_bytes == size and not v.architectures),
                registers,
            )
        resized = tuple(replace(file, register_bytes=size, registers=registers) for file in self.register_files)
        return replace(self, vector_bytes=size, registers=registers, register_files=resized)

    def for_features(self, features: str) -> Target:
        """The target for a function with these `"target-features"`.

        If the function is compiled for the target's kind of machine (it has the target's first feature), the target's
        optional features are the function's; else the function does not describe the machine, and they stay. A target
        that leaves its vectors open takes all features of a function that determine them. A target of several versions
        is unchanged: its program detects the machine at run time.
        """
        if self.optional_vectors is not None and f"-{self.optional_vectors.feature}" in features.split(","):
            return self.without_vectors
        have = {f[1:] for f in features.split(",") if f.startswith("+")}
        if any(file.feature in have for file in self.register_files):
            return self.with_features(tuple(f for f in features.split(",") if f[:1] in ("+", "-")))
        if self.versions or not self.features or self.features[0][1:] not in have:
            return self
        return self._with_optional(tuple(have)).with_dot_costs(have)

    def with_dot_costs(self, have: Collection[str]) -> Target:
        """The target with dot products as fast as on processors with these features."""
        slow = {
            dot: dot.slower_with[1] for dot in self.dots if dot.slower_with is not None and dot.slower_with[0] in have
        }
        return replace(self, dots=tuple(replace(d, cycles=slow.get(d, d.cycles)) for d in self.dots)) if slow else self

    def _with_optional(self, have: tuple[str, ...]) -> Target:
        optional = dict.fromkeys(feature for feature in self.used_features if feature in self.optional)
        return self.with_features(tuple(f"{'+' if f in have else '-'}{f}" for f in optional))

    def at_other_lengths(self) -> list[Target]:
        """A target for each of the other lengths of vectors, with the length in its name."""
        fixed = replace(self.lengths, sizes=())
        return [
            replace(
                self.with_vector_bits(8 * size),
                name=f"{self.name}{8 * size}",
                title=f"{self.title}, {8 * size} bits",
                lengths=fixed,
            )
            for size in self.lengths.sizes[1:]
        ]

    @property
    def _sizes(self) -> tuple[int, ...]:
        """Bytes of a vector register, of all machines of the target."""
        return self.lengths.sizes or (self.vector_bytes,)

    @property
    def _has_lengths(self) -> str:
        return f"target {self.name} has vectors of {', '.join(str(size * 8) for size in self._sizes)} bits"

    @property
    def scalar_floats(self) -> frozenset[str]:
        """Floating-point types that only its scalar registers hold."""
        if self.optional_vectors is None or self.optional_vectors.float_features is None:
            return frozenset()
        held = {
            name
            for name, need in self.optional_vectors.float_features.items()
            if any(f"+{feature}" in self.features for feature in need)
        }
        return frozenset({"bfloat", "half", "float", "double"} - held)

    @property
    def without_vectors(self) -> Target:
        """The machine without its vector registers: LLVM computes the elements of vectors of 16 bytes one by one."""
        vectors = self.optional_vectors
        assert vectors is not None
        others = tuple(f for f in self.features if not f[1:].startswith(vectors.feature))
        features = (*others, f"-{vectors.feature}")
        without = replace(vectors, float_features=None)
        return replace(self, features=features, vector_bytes=16, registers=16, optional_vectors=without)

    @property
    def compiler(self) -> tuple[int, tuple[str, ...]]:
        """The first version of LLVM that compiles its code, and the names of what needs it: targets or features."""
        needs = [
            need
            for version in self.versions or (self,)
            for need in ((version.compilers.first, version.name), *version.compilers.needed_by(version.features))
        ]
        first = max(version for version, _ in needs)
        return first, tuple(dict.fromkeys(name for version, name in needs if version == first))

    def can_permute(self, bits: int) -> bool:
        """Whether one instruction permutes the elements of a register, each of `bits` bits."""
        permutes = self.instructions.permutes
        if permutes is None or permutes.register_bytes != self.vector_bytes:
            return False
        return permutes.permutes(bits, self.features)

    @property
    def can_round_pairs(self) -> bool:
        """Whether the target has `NarrowFloats.pair_rounding` and its feature is on."""
        rounding = self.narrow_floats.pair_rounding
        return rounding is not None and f"+{rounding.feature}" in self.features

    @property
    def computes_half(self) -> bool:
        """Whether the target has `NarrowFloats.half_arithmetic`: its feature is on."""
        feature = self.narrow_floats.half_arithmetic
        return bool(feature) and f"+{feature}" in self.features

    @property
    def function_attributes(self) -> tuple[str, ...]:
        """Attributes of functions that only run on the target, whose vectors backends would otherwise split."""
        width = self.vector_bytes * 8
        features = (f'"target-features"="{",".join(self.features)}"',) if self.features else ()
        features = (*features, *self.attributes)
        if not features and width <= _COMMON_BITS:
            return ()
        return (*features, f'"min-legal-vector-width"="{width}" "prefer-vector-width"="{width}"')

    @property
    def rank(self) -> tuple[bool, int, int, int]:
        """A key that orders targets by capability: by matrix units, then vectors, then requirements."""
        return self.matrix is not None, self.vector_bytes, len(self.requires), self.registers

    @property
    def optional(self) -> frozenset[str]:
        """Features that it uses if they are present."""
        required = {normalized_feature(flag) for flag in self.requires}
        return frozenset(feature for feature in self.used_features if normalized_feature(feature) not in required)

    def needs_feature(self, name: str) -> bool:
        """Whether all of its code needs a feature: the kind of machine, and what cannot be removed of `requires`.

        A target with `register_files` needs none: its features are those of a processor.
        """
        kind = {normalized_feature(feature[1:]) for feature in self.features[:1] if not self.register_files}
        permutes = self.instructions.permutes
        permuting = permutes.features.values() if permutes is not None else ()
        names = self.optional.union((dot.feature for dot in self._all_dots), permuting)
        removable = {normalized_feature(feature) for feature in names}
        return normalized_feature(name) in kind | {normalized_feature(flag) for flag in self.requires} - removable

    @property
    def needed_features(self) -> tuple[str, ...]:
        """Features that all of its code needs: those that are on and not optional."""
        return tuple(f[1:] for f in self.features if f[0] == "+" and f[1:] not in self.optional)

    @property
    def used_features(self) -> tuple[str, ...]:
        """Features of its dot products, and of its conversions of and arithmetic on half."""
        floats = self.narrow_floats
        conversions = (floats.half_conversions.feature,) if floats.half_conversions is not None else ()
        arithmetic = (floats.half_arithmetic,) if floats.half_arithmetic else ()
        return (*(dot.feature for dot in self._all_dots), *conversions, *arithmetic)

    @property
    def _all_dots(self) -> tuple[Dot, ...]:
        return (*self.dots, *(self.matrix.dots if self.matrix else ()))

    @property
    def usable_dots(self) -> tuple[Dot, ...]:
        """The dot products whose feature is on."""
        return self._usable(self.dots)

    @property
    def usable_matrix_dots(self) -> tuple[Dot, ...]:
        """The matrix unit's products whose feature is on."""
        return self._usable(self.matrix.dots) if self.matrix is not None else ()

    def _usable(self, dots: tuple[Dot, ...]) -> tuple[Dot, ...]:
        have = {f[1:] for f in self.features}
        return tuple(d for d in dots if d.feature in have)


def _derived(target: Target) -> Target:
    return target.derive(target) if target.derive is not None else target


def normalized_feature(feature: str) -> str:
    """`avx512_bf16`, `avx512bf16` and `amx-bf16` without punctuation."""
    return re.sub(r"[-_.]", "", feature)


def _sized(target: Target, features: Collection[str], architecture: str = "") -> Target:
    """The target with the vectors of these features or that architecture, if it leaves its vectors open."""
    for file in target.register_files:
        if file.feature in features or architecture in file.architectures:
            return replace(
                target,
                vector_bytes=file.register_bytes,
                registers=file.registers,
                instructions=file.instructions,
                narrow_floats=file.narrow_floats,
                core=file.core,
            )
    return target


def _following_features(target: Target, changed: Collection[str]) -> Target:
    """The target with the conversions of half that its features provide, and the length that changed ones mean."""
    floats = target.narrow_floats
    if floats.half_conversions is not None:
        converts = f"+{floats.half_conversions.feature}" in target.features
        target = replace(target, narrow_floats=replace(floats, converts_half=converts))
    for feature, size in target.lengths.features:
        if f"+{feature}" in changed and size in target.lengths.sizes:
            target = _derived(replace(target, vector_bytes=size))
    return target


def _features_for(version: Target, versions: Sequence[Target], extra: Sequence[str]) -> tuple[str, ...]:
    """The features to add to and to remove from one of several versions."""
    optional = frozenset[str]().union(*(v.optional for v in versions))
    return tuple(f for f in extra if f[0] == "-" or f[1:] not in optional or f[1:] in version.optional)
