"""The context that every stage takes, and the attributes with which stages mark functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
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
    """Target and options, which every stage takes.

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

        The target of a kernel for one of several versions is that version. Features in the options apply to all
        functions of the program, whatever their attributes say. Other functions with floats that the target's vectors
        do not hold are for the machine without vectors.
        """
        attributes = module.function_attributes(function.signature)
        target = self._version(attributes.get(TARGET_ATTRIBUTE))
        generated = is_kernel(module, function)
        if generated or not (self.options.cpu or self.options.features):
            target = _for_features(target, attributes.get("target-features", ""))
        return target if generated else without_unsuitable_vectors(target, function)

    def _version(self, name: str | None) -> Target:
        """The version of the target with that name, else the target."""
        return next((version for version in self.target.versions if version.name == name), self.target)


@lru_cache(maxsize=64)
def _for_features(target: Target, features: str) -> Target:
    """The target for a function with these features, which many functions have."""
    return target.for_features(features)


def without_unsuitable_vectors(target: Target, function: Function) -> Target:
    """A target without its vectors if they do not hold the floats of a function: LLVM takes minutes for those."""
    if not target.scalar_floats or target.scalar_floats.isdisjoint(re.findall(r"\w+", str(function))):
        return target
    return target.without_vectors


@dataclass(frozen=True, slots=True)
class PipelineStep(Step):
    """A step of the pipeline with the function that runs it.

    Attributes:
        run: Changes the module in place, or returns the module to continue with.
    """

    run: Callable[[Module, LoweringContext], Module | None]


STAGE_ATTRIBUTE: Final = "tlx-stage"
NEST_STAGE: Final = "nest"
TARGET_ATTRIBUTE: Final = "tlx-target"  # the version of the target that a kernel is for
CALL_COUNTER_ATTRIBUTE: Final = "tlx-rounds"  # the parameter that counts the calls to a function called in a loop


def is_kernel(module: Module, function: Function) -> bool:
    """Whether a function is a kernel of stage 2 that stage 3 has not legalised yet."""
    return module.function_attributes(function.signature).get(STAGE_ATTRIBUTE) == "tiles"


def is_kernel_nest(module: Module, function: Function) -> bool:
    """Whether a function is a loop nest around kernels, into which stage 3 may inline them."""
    return module.function_attributes(function.signature).get(STAGE_ATTRIBUTE) == NEST_STAGE


def requests_features(module: Module, function: Function) -> bool:
    """Whether a function requests the target's features."""
    return module.function_attributes(function.signature).get("tlx-features") == "target"


FEATURES_ATTRIBUTE: Final = '"tlx-features"="target"'
"""Attribute of a function that requests the target's features."""


MOST_INTERLEAVED_SUMS: Final = 12
"""Most products of a sum that may be interleaved: one loop over K steps through all of them."""
