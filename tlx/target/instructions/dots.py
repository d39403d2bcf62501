"""Dot products: instructions that multiply groups of narrow elements and add the products to wider sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.values import Value
    from tlx.target.costs.core import CoreModel

    DotEmitter = Callable[[Builder, Value, Value, Value], Value]

    WideningLoad = Callable[[Builder, Value, int], Value]


Sign = Literal["s", "u", "f", "e4m3", "e5m2"]


@dataclass(frozen=True, slots=True)
class WideningLoads:
    """Instructions that load narrow operands and widen them: (builder, address, lanes) -> a register.

    Attributes:
        lhs: Broadcasts the element at the address.
        rhs: For each position in a VNNI group (even, odd), loads the elements at that position of the groups at the
            address.
        lanes: Lanes of their results.
    """

    lhs: WideningLoad
    rhs: tuple[WideningLoad, ...]
    lanes: tuple[int, ...]


def _no_vector_form(_b: Builder, _acc: Value, _lhs: Value, _rhs: Value) -> Value:
    message = "this product has no vector form: `TileOperations.product` of its matrix unit emits it"
    raise NotImplementedError(message)


def with_swapped_operands(emit: DotEmitter) -> DotEmitter:
    """A dot product with its operands swapped, for signs that an instruction has in the other order only."""
    return partial(_emit_swapped, emit)


def _emit_swapped(emit: DotEmitter, b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    return emit(b, acc, rhs, lhs)


@dataclass(frozen=True, slots=True)
class Dot:
    """A dot-product instruction: `acc[i] += sum_j lhs[i*width + j] * rhs[i*width + j]`.

    Attributes:
        lhs, rhs: Element types of the operands by LLVM name, with their signs: ("i8", "u").
        accumulator: Element type of the accumulator by LLVM name.
        width: Products added to one accumulator element (VNNI factor); 1 for outer products of a matrix unit.
        feature: The subtarget feature that provides it.
        cycles: Reciprocal throughput, in cycles, on a full register.
        slower_with: A feature, and the cycles on processors with that feature, on which the instruction is slower.
        emit: Emits it for one register's worth: (builder, acc, lhs, rhs) -> acc; lhs and rhs are vectors of the
            accumulator's lanes whose elements hold `width` operands each.
        scratch_registers: Registers that it needs besides those of its operands and the accumulator, or that it cannot
            use.
        widening_loads: Loads that widen the operands, if there are any; `emit` then multiplies and adds once for each
            of the `width` positions, on lanes of the accumulator's type.
    """

    lhs: tuple[str, Sign]
    rhs: tuple[str, Sign]
    accumulator: str
    width: int
    feature: str
    emit: DotEmitter = _no_vector_form
    scratch_registers: int = 0
    widening_loads: WideningLoads | None = None
    cycles: float = 0.5
    slower_with: tuple[str, float] | None = None

    def __post_init__(self) -> None:
        if self.width not in (1, 2, 4, 8):
            message = f"dot product of width {self.width}: instructions add 1 (outer products), 2, 4 or 8 products"
            raise ValueError(message)

    def is_profitable(self, core: CoreModel) -> bool:
        """Whether it computes as many products a cycle as multiply-adds of converted operands, and reads less."""
        return self.width / self.cycles >= core.fmas_per_cycle

    def is_profitable_in_place(self, core: CoreModel, rows: int) -> bool:
        """Whether it pays for `rows` rows times a right operand whose rows are interleaved for it.

        Slower dot products do where the right operand would be converted for a few rows only: the conversion of an
        element takes 0.7 cycles, a product 1/16 of a cycle rather than 1/32 (bfloat, Xeon 6/207/2 without AMX,
        November 2026: 8 rows 101 % of the dot products' peak in place, 24 rows converted 96 %, 32 rows 104 %).
        """
        return self.is_profitable(core) or rows <= _FEW_ROWS


_FEW_ROWS: Final = 24
