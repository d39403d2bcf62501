"""What every stage is given, and the attributes and metadata with which stages mark functions and calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.lower.options import Options, Step
from tlx.lower.remarks import Remarks
from tlx.target.target import Target

KernelRunner = Callable[[Module, str, bytes, int, int], bytes]
"""Runs a kernel at compile time: (module of tile code, name of the kernel, constant, offset, size) -> result.

The kernel takes a pointer to a result of `size` zero bytes, and one to `offset` bytes after the start of the constant.
"""


@dataclass(frozen=True, slots=True)
class LoweringContext:
    """What every stage is given.

    Attributes:
        target: The machine to lower for.
        options: How to lower.
        run_kernel: Runs the kernel that packs a constant B; without it, B is packed when the program runs.
    """

    target: Target
    options: Options = field(default_factory=Options)
    run_kernel: KernelRunner | None = None

    @property
    def remarks(self) -> Remarks:
        """Collects what the stages decide."""
        return self.options.remarks

    def with_options(self, **changes: Any) -> LoweringContext:
        """The context with other options, by their names."""
        return replace(self, options=self.options.updated(**changes))

    def target_of(self, module: Module, function: Function) -> Target:
        """The target of a function, with the optional features that its `"target-features"` name.

        A kernel that is one version of several gets that version. Features that the options name hold for all functions
        of the program, whatever their attributes say.
        """
        attributes = module.function_attributes(function.signature)
        target = self._version(attributes.get(TARGET_ATTRIBUTE))
        if is_kernel(module, function) or not (self.options.cpu or self.options.features):
            return target.for_features(attributes.get("target-features", ""))
        return target

    def _version(self, name: str | None) -> Target:
        """The version of the target that a kernel is, or the target."""
        found = [version for version in self.target.versions if version.name == name]
        return found[0] if found else self.target


@dataclass(frozen=True, slots=True)
class PipelineStep(Step):
    """A step of the pipeline with the function that runs it.

    Attributes:
        run: Changes the module in place, or returns the module to continue with.
    """

    run: Callable[[Module, LoweringContext], Module | None]


STAGE_ATTRIBUTE: Final = "tlx-stage"
NEST_STAGE: Final = "nest"
TARGET_ATTRIBUTE: Final = "tlx-target"  # the version of the target that a kernel is made for
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
"""Largest number of products of a sum that may be interleaved: one loop over K steps through all of them."""
