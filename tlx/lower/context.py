"""What every stage is given, and the attributes and metadata by which stages mark functions, calls and loops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.llvm.openmp import THREAD_CYCLES, Threads
from tlx.lower.knobs import WEIGHT_BYTES, KnobSource, no_knobs
from tlx.lower.remarks import Remarks
from tlx.target.target import Target


@dataclass(frozen=True, slots=True)
class LoweringContext:
    """The circumstances of a lowering.

    Attributes:
        target: The machine to aim at.
        remarks: Where decisions are noted.
        follow_functions: Whether optional features follow the function they are for (else: the target's).
        amx_permission: Whether a module with AMX code asks the kernel for tile permission in a constructor.
        emulate_matrix: Emit matrix-unit code in the form that LLVM's scalarisation can run on any machine.
        knobs: What is asked of products, in place of what the target's model would choose.
        threads: What runs large kernels on several threads.
        thread_cycles: Cycles of work that are worth a thread.
        weight_bytes: Bytes of panels up to which a constant B is packed at compile time.
    """

    target: Target
    remarks: Remarks = field(default_factory=Remarks)
    follow_functions: bool = True
    amx_permission: bool = True
    emulate_matrix: bool = False
    knobs: KnobSource = no_knobs
    threads: Threads = "none"
    thread_cycles: int = THREAD_CYCLES
    weight_bytes: int = WEIGHT_BYTES

    def target_of(self, module: Module, function: Function) -> Target:
        """The target with the optional features that a function's `"target-features"` tell; a kernel's version."""
        attributes = module.function_attributes(function.signature)
        target = self._version(attributes.get(TARGET_ATTRIBUTE))
        if self.follow_functions or is_kernel(module, function):
            return target.for_features(attributes.get("target-features", ""))
        return target

    def _version(self, name: str | None) -> Target:
        """The version of the target that a kernel is, or the target."""
        found = [version for version in self.target.versions if version.name == name]
        return found[0] if found else self.target


STAGE_ATTRIBUTE: Final = "tlx-stage"
NEST_STAGE: Final = "nest"
TARGET_ATTRIBUTE: Final = "tlx-target"  # the version of the target that a kernel is made for
BUFFER_METADATA: Final = ", !tlx.buffer !{}"  # on a call of malloc: freed at every way out of the function
INDEPENDENT_METADATA: Final = (
    ", !tlx.independent !{}"  # on a loop's branch back: no round reads what another one writes
)
CALL_COUNTER_ATTRIBUTE: Final = (
    "tlx-rounds"  # on a function that is called in a loop: the parameter that counts the calls
)


def is_kernel(module: Module, function: Function) -> bool:
    """Whether a function is a kernel made of tiles: what stage 2 made and stage 3 has not legalised."""
    return module.function_attributes(function.signature).get(STAGE_ATTRIBUTE) == "tiles"


def is_nest(module: Module, function: Function) -> bool:
    """Whether a function is a loop nest around kernels, which stage 3 may inline there."""
    return module.function_attributes(function.signature).get(STAGE_ATTRIBUTE) == NEST_STAGE


def wants_target(module: Module, function: Function) -> bool:
    """Whether a function has asked for the target's features."""
    return module.function_attributes(function.signature).get("tlx-features") == "target"


FEATURES_ATTRIBUTE: Final = '"tlx-features"="target"'
"""Attribute of a function that wants the target's features."""


MOST_INTERLEAVED_SUMS: Final = 12
"""Products of a sum up to which they may take turns: a loop over K has a position of each."""
