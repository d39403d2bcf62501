"""Costs of a vector kernel's work besides its multiply-adds, in cycles, by which stage 2 chooses recipes.

Fitted to kernels of 8 to 512 rows and columns, float, on Sapphire Rapids (AVX-512) and Zen 5 (AVX2); see
`tlx.lower.to_tiles.select.recipe_cost`.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RegisterTileCosts:
    """A step along K of a register tile, and copies and stores of its columns.

    Attributes:
        front_end_cycles: Of the instructions around a step's products, for each row and each register of a row.
        loop_instructions: Instructions of an iteration of a loop over K besides products and loads, if they count.
        l2_register_cycles: Of a register of B that a step prefetches from the second-level cache.
        spill_factor: For tiles that leave no register free: LLVM may spill.
        tile_kind_share: Share of a product's cycles that each further kind of tile adds: each has code of its own, with
            its epilogue. Estimates hardly tell such tiles apart: 512x784x256 has tiles of 8x3 and 8x2 registers instead
            of 9x3, 8x3, 9x2 and 8x2, which are half the code and take 0.4 % more cycles.
        half_line_store_cycles: To store a register of a tile column by column, in halves of cache lines.
        part_line_store_cycles: The same in parts that cross them.
        half_line_copy_cycles: To copy a column of a tile's rows of A, in equal parts of cache lines.
        part_line_copy_cycles: The same across them.
    """

    front_end_cycles: float = 0.05
    loop_instructions: float = 0
    l2_register_cycles: float = 0.1
    spill_factor: float = 1.03
    tile_kind_share: float = 0
    half_line_store_cycles: float = 12.0
    part_line_store_cycles: float = 30.0
    half_line_copy_cycles: float = 3.0
    part_line_copy_cycles: float = 7.0


@dataclass(frozen=True, slots=True)
class PackingCosts:
    """Packing of operands.

    Attributes:
        register_cycles: To pack a register.
        l1_miss_cycles: The same, additionally, if it misses the first-level cache.
        column_cycles: To transpose a register, for each column, if columns miss the second-level cache.
        column_sum_cycles: Of a packed register whose columns are summed, additionally.
        transposed_element_cycles: Of an element of a column-major A that is packed for dot products: 0.7 to 1.3 (bytes
            and bfloat, AVX-512, Xeon 6/167/1, 2026-11-30).
    """

    register_cycles: float = 4
    l1_miss_cycles: float = 6
    column_cycles: float = 1.25
    column_sum_cycles: float = 2
    transposed_element_cycles: float = 0.9


@dataclass(frozen=True, slots=True)
class ColumnTailCosts:
    """The columns of a product that fill no register: dot products along K, or sums of pairs.

    Attributes:
        dot_sum_cycles: To sum the lanes of a dot product's accumulator and store the result.
        dot_copy_cycles: To copy an element of B for it.
        pair_interleave_cycles: To interleave two rows of B in registers.
        pair_store_cycles: To interleave and store them.
        pair_sum_cycles: To add the sums of a row.
    """

    dot_sum_cycles: float = 3
    dot_copy_cycles: float = 2
    pair_interleave_cycles: float = 1.0
    pair_store_cycles: float = 2.5
    pair_sum_cycles: float = 0.75


@dataclass(frozen=True, slots=True)
class StreamingCosts:
    """Kernels that stream the rows of B past sums in the first-level cache.

    Attributes:
        call_cycles: Of a call, and the loops of a strip.
        step_cycles: Of a step of streamed rows: its loop.
        sum_register_cycles: Of a register of sums before the first step and after the last.
        store_to_load_cycles: From a store of sums to the load of them.
    """

    call_cycles: float = 60.0
    step_cycles: float = 1.0
    sum_register_cycles: float = 4.0
    store_to_load_cycles: float = 5.0


@dataclass(frozen=True, slots=True)
class KernelCosts:
    """A vector kernel.

    Attributes:
        call_cycles: Of the kernel's call and loops.
        unoverlapped_packing_share: Average share of packing and similar work during which no product runs: 0.3 to 0.6
            for most products of 8 to 100 (float, half, bfloat, bytes; Xeon 6/207/2, called in a loop).
        prefetched_stall_share: Share of the latency of prefetched data for which tiles wait nevertheless.
        register_tile, packing, column_tail, streaming: Costs of these.
        decision_seed: Draws the cycles of candidates; see `Target.with_decision_seed`.
    """

    call_cycles: float = 20
    unoverlapped_packing_share: float = 0.5
    prefetched_stall_share: float = 0.125
    register_tile: RegisterTileCosts = field(default_factory=RegisterTileCosts)
    packing: PackingCosts = field(default_factory=PackingCosts)
    column_tail: ColumnTailCosts = field(default_factory=ColumnTailCosts)
    streaming: StreamingCosts = field(default_factory=StreamingCosts)
    decision_seed: int | None = None
