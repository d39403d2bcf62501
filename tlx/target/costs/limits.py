"""Thresholds between the forms of a vector kernel, calibrated on the benchmark."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PackingLimits:
    """When operands are packed.

    Attributes:
        max_unpacked_rows: Rows of A up to which B is never packed, whichever cache holds it.
        max_unpacked_l2_miss_rows: Rows up to which a B that exceeds the second-level cache is read unpacked.
        min_set_conflict_rows: Rows from which B is packed if its rows share few cache sets, in panels of several lines.
        min_set_conflict_line_rows: The same in panels of one line.
        max_set_conflict_k: Rows of B above which panels of several lines are packed then.
        max_page_pitch_groups: Groups of rows of B up to which a pitch of whole pages does no harm.
        packed_a_l3_divisor: Part of the last-level cache that all of A, packed, may take: one in so many.
        max_a_packings: How often A is packed at most: reading a copy is faster than making one, whichever cache holds
            it.
        max_widening_uses: Uses of an operand up to which one converting instruction for each costs less than packing.
    """

    max_unpacked_rows: int = 19
    max_unpacked_l2_miss_rows: int = 128
    min_set_conflict_rows: int = 128
    min_set_conflict_line_rows: int = 96
    max_set_conflict_k: int = 1024
    max_page_pitch_groups: int = 64
    packed_a_l3_divisor: int = 4
    max_a_packings: int = 2
    max_widening_uses: int = 2


@dataclass(frozen=True, slots=True)
class KLoopLimits:
    """Loops over K.

    Attributes:
        min_pass: Least positions of K in a pass, if a pass prefetches the B of the next one.
        max_pass: Most positions of K in a pass.
        max_paged_pass: Most positions if each row of B is in another page, or L2 does not hold B of two passes.
        unroll: Positions of K in an iteration, if registers allow: 4 were not faster.
        min_unroll: Least positions of K in an iteration, if A and B are read by rows, whatever registers allow.
        min_dot_unroll: The same for dot products, whose positions are groups.
        max_addressed_elements: Elements of A that an iteration may load: where these loads have no displacement, each
            takes an integer register.
        loads_ahead: By how many products operands are loaded before their first use; 0: right before it.
        keeps_order: Whether the order of loads and products is kept in tiles that leave no register free: a label
            before the loads of each row or column keeps LLVM from loading operands ahead and spilling sums.
        spare_registers: Registers that tiles of multiply-adds leave free for these operands.
        spare_dot_registers: The same for tiles of dot products.
    """

    min_pass: int = 32
    max_pass: int = 2048
    max_paged_pass: int = 128
    unroll: int = 2
    min_unroll: int = 1
    min_dot_unroll: int = 1
    max_addressed_elements: int = 1024
    loads_ahead: int = 0
    keeps_order: bool = False
    spare_registers: int = 0
    spare_dot_registers: int = 0


@dataclass(frozen=True, slots=True)
class PrefetchLimits:
    """What tiles prefetch for later ones.

    Attributes:
        b_steps: Steps along K by which B is prefetched into the first-level cache.
        panel_rows: Rows of A that a panel of several blocks prefetches: with 8, 512x4096x4096 bfloat takes 1.1 times as
            long (on a matrix unit).
        min_part_steps: Least steps along K of a part, which prefetches rows.
        min_piece_steps: Least steps along K of a piece of a part, which prefetches a row.
    """

    b_steps: int = 8
    panel_rows: int = 4
    min_part_steps: int = 8
    min_piece_steps: int = 4


@dataclass(frozen=True, slots=True)
class StreamingLimits:
    """Kernels that stream the rows of B past sums in the first-level cache.

    Attributes:
        max_rows: Rows of A up to which B is streamed.
        max_streams: Most rows of B that are streamed together: as many streams as hardware prefetchers follow.
    """

    max_rows: int = 8
    max_streams: int = 16


@dataclass(frozen=True, slots=True)
class ElementwiseLimits:
    """Tiles of elementwise operations and reductions.

    Attributes:
        max_registers_per_value: Most registers of each live value of an elementwise tile.
        min_shared_leaves: Number of leaves equal in all rows from which on elementwise tiles have many rows, as a tile
            loads each of these leaves once.
        max_shared_rows: Most rows of such a tile.
        max_sum_registers: Most registers of sums of a reduction.
        max_masked_sum_registers: Most where each of them needs a mask.
    """

    max_registers_per_value: int = 4
    min_shared_leaves: int = 4
    max_shared_rows: int = 8
    max_sum_registers: int = 8
    max_masked_sum_registers: int = 4


@dataclass(frozen=True, slots=True)
class KernelLimits:
    """Thresholds between the forms of a vector kernel, by subject."""

    packing: PackingLimits = field(default_factory=PackingLimits)
    k_loop: KLoopLimits = field(default_factory=KLoopLimits)
    prefetch: PrefetchLimits = field(default_factory=PrefetchLimits)
    streaming: StreamingLimits = field(default_factory=StreamingLimits)
    elementwise: ElementwiseLimits = field(default_factory=ElementwiseLimits)
