"""Recipes of products of few rows that stream B.

    tiles     sums in registers, all of K; B packed where necessary       fast where B is reused often
    streams   sums in L1; some rows of B at a time, from end to end       fast where B is reused rarely

Cycles of a step, `rows` of B by `v` registers of sums a row, are those of its busiest ports:

    any vector port     products, and instructions that widen, flip and interleave B
    shuffles            one a cycle
    loads, stores       B, an element or group of A a row, the sums once each

Each sum is a dependence chain, which passes through memory once a step. The time to read B from its cache or memory is
added: 8x512x512 takes as long as both together (bfloat, Sapphire Rapids). Where B takes at most half of L2, much of
that time overlaps, and the predicted share of the peak accounts for it. The selection does not, as the alternatives are
faster than estimated, too (Xeon with AMX: 4x512x512 of bfloat 184 G/s on tiles, 155 streamed; AVX2, 6x256x256 of float:
116 by register tiles, 85 streamed).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import hypot, log2
from typing import Final

from tlx.ir.types import BFLOAT, FLOAT, HALF, I8, I16, Type, bits_of, bytes_of
from tlx.lower.cost import randomized_cycles, transfer_cycles
from tlx.lower.operations import MMA_NAMES
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.select.recipe import (
    CacheBlockSizes,
    Correction,
    MultiplyAdd,
    PackedOperands,
    PrefetchChoices,
    Recipe,
    RegisterTileShape,
)
from tlx.lower.to_tiles.select.recipe_cost import ideal_cycles
from tlx.target.instructions.dots import Dot, Sign
from tlx.target.target import Target

_MOST_PRODUCTS: Final = 128  # instructions of a step
_LANE_BITS: Final = 128


@dataclass(frozen=True, slots=True)
class StreamingMethod:
    """How streamed rows are multiplied: by a dot product with these signs, or by multiply-adds (no dot).

    Attributes:
        dot: The instruction.
        signs: Signs of its operands.
        correction: "rows" where the signs of B's bytes are flipped.
        operand_b: Element type that B is multiplied as; multiply-adds widen it themselves.
        accumulator: Element type of the sums.
    """

    dot: Dot | None
    signs: tuple[Sign, Sign]
    correction: Correction
    operand_b: Type
    accumulator: Type

    @property
    def width(self) -> int:
        """Rows of B that an instruction multiplies."""
        return self.dot.width if self.dot else 1

    @property
    def order(self) -> tuple[int, int]:
        """`RegisterTileShape.column_permutation`: over how many registers columns are distributed, in which groups."""
        if self.dot is not None:
            return self.width, _LANE_BITS // (bits_of(self.operand_b) * self.width)
        return (2, 1) if (self.operand_b, self.accumulator) == (BFLOAT, FLOAT) else (1, 1)


@dataclass(frozen=True, slots=True)
class _Step:
    """`rows` of B by `vectors` registers of sums for each of `m` rows of A."""

    m: int
    rows: int
    vectors: int

    def cycles(self, method: StreamingMethod, element: Type, target: Target) -> float:
        """Cycles of the step."""
        core, groups = target.core, self.rows // method.width
        products = groups * self.m * self.vectors * (method.dot.cycles * core.fmas_per_cycle if method.dot else 1)
        shuffles, others = (count * groups * self.vectors for count in _conversions(method, element))
        read_bytes = (
            self.rows * self.vectors * (target.vector_bytes * bytes_of(element) // bytes_of(method.accumulator))
        )
        loads = read_bytes / target.vector_bytes + groups * self.m + self.m * self.vectors
        ports = (products + shuffles + others) / core.fmas_per_cycle
        return (
            max(ports, shuffles, loads / core.loads_per_cycle, self.m * self.vectors) + core.costs.streaming.step_cycles
        )


def _conversions(method: StreamingMethod, element: Type) -> tuple[float, float]:
    """Shuffles, and other instructions, per register of sums and group of rows of B."""
    if method.dot is not None:
        return log2(method.width) + (element != method.operand_b), float(method.correction == "rows")
    if element == method.accumulator:
        return 0, 0
    return (0, 1) if method.order[0] > 1 else (1, float(element == HALF))


def streaming_methods(gemm: Gemm, dots: Sequence[Dot], narrow: Type, accumulator: Type) -> Iterator[StreamingMethod]:
    """The methods that can multiply a product's operands, best first."""
    a, b = gemm.a.element, gemm.b.element
    signs = gemm.lhs_sign, gemm.rhs_sign
    flipped: tuple[Sign, Sign] = (signs[0], "u" if signs[1] == "s" else "s")
    widened = I16 if (a, b) == (I8, I16) else a  # i16 holds bytes of any sign
    candidates: list[tuple[Type, Type, tuple[Sign, Sign], Correction]] = [(widened, b, signs, "none")]
    if a == b == I8:
        candidates.append((I8, I8, flipped, "rows"))
        candidates.append((I16, I16, ("s", "s"), "none"))
    for operand_a, operand_b, dot_signs, correction in candidates:
        signature = (str(operand_a), dot_signs[0]), (str(operand_b), dot_signs[1]), str(narrow)
        for dot in dots:
            if dot.widening_loads is None and (dot.lhs, dot.rhs, dot.accumulator) == signature:
                yield StreamingMethod(dot, dot_signs, correction, operand_b, narrow)
    yield StreamingMethod(None, signs, "none", b, accumulator)


def streaming_recipe(gemm: Gemm, target: Target, methods: Iterator[StreamingMethod]) -> tuple[Recipe, float] | None:
    """The recipe of a product that streams B, and its cycles; None where it cannot be streamed."""
    method = next(methods)
    b = gemm.b
    streamed = b.is_row_major and b.col_stride == 1 and gemm.c.is_row_major
    if (
        gemm.m > target.core.limits.streaming.max_rows
        or len(gemm.term_offsets) > 1
        or gemm.reduction is not None
        or not streamed
    ):
        return None
    lanes = target.vector_bytes * 8 // bits_of(method.accumulator)
    whole = method.order[0] * lanes
    operand_a = method.operand_b if method.dot else method.accumulator
    pack_a = (
        gemm.a.element != operand_a or gemm.a.col_stride != 1 or gemm.k % method.width or method.correction != "none"
    )
    row = -(-gemm.k * bytes_of(operand_a) // target.vector_bytes)
    costs = target.core.costs
    once = costs.streaming.call_cycles + (gemm.m * row * costs.packing.register_cycles if pack_a else 0)

    def cycles(step: _Step) -> float:
        across = -(-gemm.n // (step.vectors * lanes)) * step.vectors
        steps = -(-gemm.k // step.rows)
        ports = steps * (across // step.vectors) * step.cycles(method, b.element, target)
        chain = steps * (step.rows // method.width * target.core.fma_latency + costs.streaming.store_to_load_cycles)
        return max(ports, chain) + costs.streaming.sum_register_cycles * gemm.m * across + once

    def rank(step: _Step) -> float:
        return randomized_cycles(costs.decision_seed, cycles(step), gemm.knob_key, step)

    steps = [s for s in _steps(gemm, method, target) if s.vectors * lanes < gemm.n + whole]
    if not steps:
        return None
    best = min(steps, key=lambda s: (rank(s), s.rows * s.vectors))
    nr = best.vectors * lanes
    strip = max(nr, target.caches.l1 // 2 // (gemm.m * bytes_of(method.accumulator)) // nr * nr)
    moving = transfer_cycles(gemm.b.bytes_moved, target.caches, target.memory)
    total = cycles(best) + moving
    is_near = 2 * gemm.b.bytes_moved <= target.caches.l2
    overlapped = hypot(cycles(best), moving) if is_near else total
    share = min(1.0, ideal_cycles(gemm, method.accumulator, target, method.dot) / overlapped)
    unit, name = ("dot" if method.dot else "fma"), MMA_NAMES[method.signs]
    recipe = Recipe(
        MultiplyAdd(unit, name, operand_a, method.operand_b, method.accumulator, method.width, method.correction),
        RegisterTileShape(gemm.m, nr, method.width, lanes, streamed_rows=best.rows, column_permutation=method.order),
        CacheBlockSizes(gemm.m, min(strip, -(-gemm.n // nr) * nr), gemm.k),
        PackedOperands(a=bool(pack_a), b=False),
        PrefetchChoices("" if is_near else "B"),
        efficiency=share,
    )
    return recipe, randomized_cycles(costs.decision_seed, total, gemm.knob_key, "streamed")


def _steps(gemm: Gemm, method: StreamingMethod, target: Target) -> Iterator[_Step]:
    """Steps whose sums and operands fit the registers."""
    across = method.order[0]
    most = min(target.core.limits.streaming.max_streams, max(method.width, gemm.k // method.width * method.width))
    for vectors in range(across, target.registers, across):
        fits = gemm.m * vectors + min(gemm.m, vectors) + 1 + across <= target.registers
        for groups in range(1, most // method.width + 1):
            if fits and groups * gemm.m * vectors <= _MOST_PRODUCTS:
                yield _Step(gemm.m, groups * method.width, vectors)
