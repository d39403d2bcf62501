"""Instructions of a vector unit besides dot products: conversions and permutations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.types import Type
    from tlx.ir.values import Value


@dataclass(frozen=True, slots=True)
class Permutes:
    """Instructions that permute the elements of one register, or of two.

    Attributes:
        register_bytes: Bytes of a register.
        features: The feature that provides them, by the width of elements.
        one: (builder, register, order, name) -> the register's elements in that order, a vector of indices as wide as
            the elements.
        two: (builder, first, second, order, name) -> elements of both registers.
        pairs: Element types that `two` takes.
        constraint: Constraint of inline assembly for such a register.
        opaque: Widths of integers whose permutations are hidden from LLVM, which would split the instruction.
    """

    register_bytes: int
    features: Mapping[int, str]
    one: Callable[[Builder, Value, Value, str], Value]
    two: Callable[[Builder, Value, Value, Value, str], Value]
    pairs: tuple[Type, ...]
    constraint: str
    opaque: tuple[int, ...] = ()

    def permutes(self, bits: int, features: Collection[str]) -> bool:
        """Whether a machine with these features, spelled with their plus, permutes elements of this width in bits."""
        return f"+{self.features.get(bits, '')}" in features


@dataclass(frozen=True, slots=True)
class HalfConversions:
    """Instructions that some machines of a target have to convert half to and from float.

    Attributes:
        feature: The subtarget feature that provides them.
        widen: (builder, halves as i16) -> as many floats; None for LLVM's `fpext`.
        narrow: (builder, floats) -> as many halves as i16, rounded to nearest even; None for LLVM's `fptrunc`.
    """

    feature: str
    widen: Callable[[Builder, Value], Value] | None = None
    narrow: Callable[[Builder, Value], Value] | None = None


@dataclass(frozen=True, slots=True)
class PairRounding:
    """An instruction that rounds two registers of floats to one of bfloats, and flushes subnormal floats to zero.

    Attributes:
        feature: The subtarget feature that provides it.
        emit: (builder, first, second) -> the elements of both, as i16.
    """

    feature: str
    emit: Callable[[Builder, Value, Value], Value]
