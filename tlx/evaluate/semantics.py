"""The meaning of machine instructions: each architecture brings its own.

An architecture's folder in `tlx.legalize` has a module `semantics` with a `SEMANTICS`: intrinsics, register types and
inline assembly. Other packages name theirs under the entry point group `tlx.semantics`. They are imported when a
program first needs one of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, TypeAlias

from tlx.evaluate.context import FunctionTable
from tlx.target.discovery import semantics_modules

ENTRY_POINT_GROUP: Final = "tlx.semantics"

AssemblyTable: TypeAlias = Mapping[str, Callable[[Sequence[int]], Sequence[int]]]
"""By instruction: a function from the inputs of its inline assembly to its output registers."""


@dataclass(frozen=True, slots=True)
class TargetSemantics:
    """The meaning of one architecture's instructions in numpy.

    Attributes:
        intrinsics: Implementations by name, without `llvm.` and the suffix of an overload.
        registers: Register types that only the architecture's own instructions look into, by LLVM's name of the type:
            the shape of the array of bytes that stands for a value.
        assembly: Inline assembly by instruction.
    """

    intrinsics: FunctionTable = field(default_factory=FunctionTable)
    registers: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    assembly: AssemblyTable = field(default_factory=dict[str, Callable[[Sequence[int]], Sequence[int]]])


@cache
def target_semantics() -> TargetSemantics:
    """The instructions of all architectures; LLVM's names of them begin with the architecture."""
    from importlib.metadata import entry_points

    known = [importlib.import_module(name).SEMANTICS for name in semantics_modules()]
    known += [entry.load() for entry in entry_points(group=ENTRY_POINT_GROUP)]
    return TargetSemantics(
        {name: function for one in known for name, function in one.intrinsics.items()},
        {name: shape for one in known for name, shape in one.registers.items()},
        {name: function for one in known for name, function in one.assembly.items()},
    )


def register_shapes() -> Mapping[str, tuple[int, ...]]:
    """The register types of all architectures."""
    return target_semantics().registers
