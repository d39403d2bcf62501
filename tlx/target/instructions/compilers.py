"""The versions of LLVM that read TLX's output and compile a target's code."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

OLDEST_LLVM: Final = 14
"""The oldest version of LLVM that reads the output."""


LAST_WITH_TYPED_POINTERS: Final = 16
"""The last version of LLVM that reads pointers written as `float*`."""


@dataclass(frozen=True, slots=True)
class CompilerVersions:
    """The first versions of LLVM that compile a target's code; older ones fail, or call functions that do not exist.

    Attributes:
        first: For all code.
        features: For code with a feature, where that is a later one.
    """

    first: int = OLDEST_LLVM
    features: Mapping[str, int] = field(default_factory=dict[str, int])

    def __str__(self) -> str:
        later = ", ".join(f"{name} {version}" for name, version in self.features.items())
        return f"{self.first} ({later})" if later else str(self.first)

    def needed_by(self, features: Collection[str]) -> list[tuple[int, str]]:
        """The versions for features that are on (`+amx-fp16`), with the features."""
        return [(version, name) for name, version in self.features.items() if f"+{name}" in features]


@dataclass(frozen=True, slots=True)
class LlvmBackend:
    """What LLVM's backend for a target compiles right; TLX emits other code in place of what it does not.

    Attributes:
        keeps_selected_nan: Whether LLVM keeps a NaN that a comparison selects; else `relu` compares bits, and minima
            and maxima select a constant NaN.
        has_funnel_shifts: Whether LLVM's `fshl` and `fshr` of i64 are right; else single shifts are used.
        has_vector_shuffles: Whether LLVM compiles all shuffles of vectors, and vectors of i1, of a program's own
            functions right; else such functions are compiled without vectors.
        has_saturating_conversions: Whether LLVM compiles saturating conversions of floats to integers, and as
            vectors; else they are comparisons and plain conversions.
        whole_register_bytes: Sizes of vectors for which LLVM accesses a whole register, even beyond the end of an
            array.
    """

    keeps_selected_nan: bool = True
    has_funnel_shifts: bool = True
    has_vector_shuffles: bool = True
    has_saturating_conversions: bool = True
    whole_register_bytes: tuple[int, ...] = ()
