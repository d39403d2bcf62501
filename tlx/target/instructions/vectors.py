"""Instructions of a vector unit besides dot products: conversions and permutations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tlx.target.instructions.functions import FloatEstimates, FloatInstructions

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.types import Type
    from tlx.ir.values import Value


@dataclass(frozen=True, slots=True)
class PermuteInstructions:
    """Instructions that permute the elements of one register, or of two.

    Attributes:
        register_bytes: Bytes of a register.
        features: The feature that provides them, by the width of elements.
        permute: (builder, register, order, name) -> the register's elements in that order, a vector of indices as wide
            as the elements.
        permute_two: (builder, first, second, order, name) -> elements of both registers.
        permute_two_types: Element types that `permute_two` takes.
        opaque_constraint: Constraint of inline assembly for such a register.
        opaque_bits: Widths of integers whose permutations are hidden from LLVM, which would split the instruction.
    """

    register_bytes: int
    features: Mapping[int, str]
    permute: Callable[[Builder, Value, Value, str], Value]
    permute_two: Callable[[Builder, Value, Value, Value, str], Value]
    permute_two_types: tuple[Type, ...]
    opaque_constraint: str
    opaque_bits: tuple[int, ...] = ()

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


@dataclass(frozen=True, slots=True)
class VectorInstructions:
    """Instructions of a vector unit besides dot products.

    Attributes:
        has_fma: Whether multiply-add is one instruction; else `llvm.fmuladd` leaves it to the backend.
        fma_broadcasts: Whether a multiply-add can broadcast an element from memory; with an indexed address it takes
            two micro-operations instead of one.
        fma_takes_lane: Whether multiply-adds and dot products multiply a register by one lane of another, which is as
            wide as a sum: one load then brings several elements of a row of A.
        has_rounding: Whether floats are rounded to integers (floor, ceil, ...) by an instruction; else by arithmetic.
        has_minimum: Whether `llvm.minimum` and `llvm.maximum` of floats are instructions; else comparisons and
            selections.
        masked_bits: Element widths, in bits, that masked loads and stores have instructions for.
        permutes: Instructions that permute elements of registers, if there are any.
        functions: Instructions for mathematical functions, if there are any.
        estimates: Instructions that estimate functions of floats, if there are any.
        opaque_constraint: The constraint of a vector register in inline assembly, which hides vectors from LLVM; empty
            where nothing is hidden.
    """

    has_fma: bool = False
    fma_broadcasts: bool = False
    fma_takes_lane: bool = False
    has_rounding: bool = False
    has_minimum: bool = False
    masked_bits: tuple[int, ...] = ()
    permutes: PermuteInstructions | None = None
    functions: FloatInstructions | None = None
    estimates: FloatEstimates | None = None
    opaque_constraint: str = ""

    @property
    def has_mask_registers(self) -> bool:
        """Whether masks have registers of their own, which a load or store of any elements takes at no cost."""
        return 8 in self.masked_bits


@dataclass(frozen=True, slots=True)
class NarrowFloats:
    """What a vector unit does with half and bfloat, besides dot products.

    Attributes:
        converts_half: Whether half is converted by an instruction; else by integer arithmetic.
        converts_bfloat: Whether floats are rounded to bfloat by an instruction that LLVM selects; else by integer
            arithmetic.
        half_conversions: Conversions of half where only some machines have them, or LLVM does not select them.
        half_arithmetic: The feature that provides arithmetic on registers of half: sums, products, quotients, square
            roots, comparisons, fused multiply-adds, and rounding to integers; without it, half is computed as float.
        pair_rounding: An instruction that rounds sums of products, which are never subnormal, to bfloat, if there is
            one.
    """

    converts_half: bool = False
    converts_bfloat: bool = False
    half_conversions: HalfConversions | None = None
    half_arithmetic: str = ""
    pair_rounding: PairRounding | None = None
