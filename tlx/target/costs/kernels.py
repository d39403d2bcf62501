"""Costs of a vector kernel's work besides its multiply-adds, by which stage 2 chooses recipes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelCosts:
    """Cycles of a vector kernel's work besides its multiply-adds.

    Fitted to kernels of 8 to 512 rows and columns, float, on Sapphire Rapids (AVX-512) and Zen 5 (AVX2); see
    `tlx.lower.to_tiles.select.recipe_cost`.

    Attributes:
        front_end: Of the instructions around a step's products, for each row and each register of a row.
        loop_instructions: Instructions of an iteration of a loop over K besides products and loads, if they count.
        l2_vector: Of a register of B that a step prefetches from the second-level cache.
        full_registers: Factor for tiles that leave no register free: LLVM may spill.
        transposed_store: To store a register of a tile column by column: in halves of cache lines, and in parts that
            cross them.
        copied_column: To copy a column of a tile's rows of A: in equal parts of cache lines, and across them.
        transposed_a: Of an element of a column-major A that is packed for dot products: 0.7 to 1.3 (bytes and bfloat,
            AVX-512, Xeon 6/167/1, 2026-11-30).
        call: Of the kernel's call and loops.
        packed: To pack a register.
        packed_from_far: Additional cycles if it misses the first-level cache.
        packed_column: To transpose a register, for each column, if columns miss the second-level cache.
        corrected: Additional cycles of a packed register whose columns are summed.
        exposed: Average share of packing and similar work during which no product runs: 0.3 to 0.6 for most products of
            8 to 100 (float, half, bfloat, bytes; Xeon 6/207/2, called in a loop).
        prefetched: Share of the latency of prefetched data for which tiles wait nevertheless.
        dot_column: Of a dot product along K: to sum the lanes of an accumulator and store the result; to copy an
            element of B.
        paired_column: Of columns summed by pairs: to interleave two rows of B in registers; to store them as well; to
            add the sums of a row.
        streamed_step: Of a step of streamed rows: its loop.
        streamed_sums: Of a register of sums before the first step and after the last.
        streamed_call: Of a call, and the loops of a strip.
        store_to_load: From a store of sums to the load of them.
        seed: Draws the cycles of candidates; see `Target.with_decision_seed`.
    """

    front_end: float = 0.05
    loop_instructions: float = 0
    l2_vector: float = 0.1
    full_registers: float = 1.03
    transposed_store: tuple[float, float] = (12.0, 30.0)
    copied_column: tuple[float, float] = (3.0, 7.0)
    transposed_a: float = 0.9
    call: float = 20
    packed: float = 4
    packed_from_far: float = 6
    packed_column: float = 1.25
    corrected: float = 2
    exposed: float = 0.5
    prefetched: float = 0.125
    dot_column: tuple[float, float] = (3, 2)
    paired_column: tuple[float, float, float] = (1.0, 2.5, 0.75)
    streamed_step: float = 1.0
    streamed_sums: float = 4.0
    streamed_call: float = 60.0
    store_to_load: float = 5.0
    seed: int | None = None
