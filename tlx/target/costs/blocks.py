"""Costs of 2-D blocks and copies, by which stage 1 chooses before recipes are selected.

Cycles, unless a name says otherwise. Calibrated on the benchmark, for server cores, to rank choices. A figure measured
on one machine names it.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LoopFusionLimits:
    """When stage 1 computes operations in one loop over parts of their results.

    Measured with softmax(Q K') V of 8 to 40000 heads, 8 to 4096 rows, float and bfloat (Zen 5, AVX-512 and AVX2).

    Attributes:
        min_intermediate_caches: Least size of a result between the operations, in second-level caches; inside such a
            loop, in first-level caches.
        min_part_bytes: Least bytes of the part of a result that an iteration computes: 8 x 8 matrices were slower in
            one loop.
        min_rows: Least rows, or columns, of products that an iteration computes if it reads an operand as a whole.
        min_whole_operand_result_l2s: Least size of a result, in second-level caches, for which iterations may read
            operands as a whole.
        max_whole_operand_l2s: Most size of these operands, in second-level caches.
        min_saved_per_reread_byte: Least bytes of results between the operations for each byte of an operand that is
            read again.
        decision_seed: Draws the rows that an iteration computes; see `Target.with_decision_seed`.
    """

    min_intermediate_caches: float = 1
    min_part_bytes: int = 2048
    min_rows: int = 128
    min_whole_operand_result_l2s: int = 4
    max_whole_operand_l2s: int = 4
    min_saved_per_reread_byte: int = 2
    decision_seed: int | None = None


@dataclass(frozen=True, slots=True)
class DepthwiseCosts:
    """Elementwise products of registers, which sum along no dimension of both operands.

    Attributes:
        product_cycles: Of a product of registers, loads included.
        transposed_product_cycles: The same, additionally, if its rows are columns in memory.
        line_crossing_load_cycles: Of a load that crosses a cache line.
        factor_cycles: Of the factor of a row.
    """

    product_cycles: float = 2.5
    transposed_product_cycles: float = 8
    line_crossing_load_cycles: float = 1.2
    factor_cycles: float = 0.5


@dataclass(frozen=True, slots=True)
class CopyCosts:
    """Copies that change the order of elements.

    Attributes:
        row_cycles: Of the loop that copies a row.
        row_register_cycles: Of a register of a row.
        element_cycles: To copy a single element.
        tile_side: Rows and columns of a tile that is transposed.
        tile_cycles: To transpose a tile of 32-bit elements.
        narrow_tile_cycles: To transpose a tile of narrower ones.
        deinterleaved_register_cycles: To deinterleave a register.
        stride2_row_cycles: Of the loop that copies every second element of a row.
        stride2_register_cycles: Of a register of such a row.
        stride2_read_byte_cycles: Of a byte that is read for it.
        stride2_written_byte_cycles: Of a byte that is written, beyond the caches.
        interleaved_store_cycles: To write a register of interleaved rows.
        interleaved_line_cycles: To load and merge a cache line of interleaved rows.
    """

    row_cycles: float = 6
    row_register_cycles: float = 2.5
    element_cycles: float = 1.5
    tile_side: int = 16
    tile_cycles: float = 128
    narrow_tile_cycles: float = 200
    deinterleaved_register_cycles: float = 8
    stride2_row_cycles: float = 3
    stride2_register_cycles: float = 4
    stride2_read_byte_cycles: float = 0.15
    stride2_written_byte_cycles: float = 0.05
    interleaved_store_cycles: float = 8
    interleaved_line_cycles: float = 2.5

    @property
    def transposed_element_cycles(self) -> float:
        """Cycles to transpose an element of whole tiles."""
        return self.tile_cycles / self.tile_side**2


@dataclass(frozen=True, slots=True)
class ConvolutionCosts:
    """Copies of a convolution's input, and choices between them.

    Attributes:
        max_whole_copy_bytes: Bytes up to which an input is copied at once.
        max_partial_copy_bytes: Bytes of the parts that are copied otherwise: filters share the caches.
        set_conflict_pitch_bytes: Positions of an input, whose windows overlap, share cache sets if they are a multiple
            of it apart.
        channels_first_byte_cycles: To copy a byte of an input whose channels are contiguous so that its columns are,
            additionally.
        zeroed_bytes_per_cycle: Bytes that are set to zero in a cycle.
        phase_element_cycles: To interleave an element of the phases of a transposed convolution: 0.6 to 1 (Zen 5, 2 to
            8 phases, float, bfloat and bytes).
        widening_factor: For copies that widen their elements.
        sparse_tile_divisor: Vectors are considered besides a matrix unit if blocks fill at most one in so many
            positions of a tile along K.
        max_alternative_share: Share of an estimate that an alternative with other copies must stay below, as both
            estimate the cost of packing operands roughly.
    """

    max_whole_copy_bytes: int = 1 << 20
    max_partial_copy_bytes: int = 1 << 19
    set_conflict_pitch_bytes: int = 512
    channels_first_byte_cycles: float = 0
    zeroed_bytes_per_cycle: float = 32
    phase_element_cycles: float = 1.0
    widening_factor: float = 2.5
    sparse_tile_divisor: int = 2
    max_alternative_share: float = 0.7


@dataclass(frozen=True, slots=True)
class ReductionCosts:
    """Reductions of a temporary, and of windows.

    Attributes:
        vector_cycles: To reduce a vector of a temporary in the caches.
        cache_miss_vector_cycles: The same beyond the caches.
        max_temporary_bytes: Bytes that stay in the caches: larger temporaries are computed in parts.
        max_unrolled_window: Elements of a window up to which they are one tree.
    """

    vector_cycles: float = 3.0
    cache_miss_vector_cycles: float = 6.0
    max_temporary_bytes: int = 1 << 18
    max_unrolled_window: int = 16


@dataclass(frozen=True, slots=True)
class BlockCosts:
    """The work of 2-D blocks besides their products, and what is around them.

    Attributes:
        call_cycles: Of a 2-D product, besides its arithmetic.
        term_cycles: Between two products of a sum.
        term_register_cycles: The same, for each register of the result, as each of its tiles begins a loop.
        l2_bound_rows: Rows that take as long as one where the right operand exceeds the first-level cache.
        store_cycles: To store a register of the result as it is.
        transposed_store_cycles: To store it transposed. `RegisterTileCosts.half_line_store_cycles` is larger, as it
            knows the register tile; with it a convolution of bytes, 128-128.56.3s2, was .93 times as fast on AVX-512,
            and one of bfloat, 3-64.224.7s2, .97 times on AVX2 (Zen 5, 2026-11-24).
        set_conflict_store_cycles: To store a register transposed, additionally where columns share few sets of the
            first-level cache. With it, 3 to 64 filters of 3 x 3 on images of 64 x 64 take .38 of the time on AVX-512,
            to 32 filters .48 on AVX2 (Xeon 6/207/2, 2026-11-29).
        strided_lhs_cycles: Of a register's products where the left operand has another cache line for each position of
            K. Not priced by `RegisterTileCosts.half_line_copy_cycles`: float products of 512 with a column-major A were
            then .97 times as fast, and those of bytes 1.02 times (AVX2, Zen 5, 2026-11-24).
        set_conflict_product_cycles: Of a register's products where rows of the right operand share sets of the
            first-level cache. With it, gradients of 3 x 3 x 32 x 64 weights sum along the columns of images of 16 x 16
            instead of their rows, and are 1.14 to 1.19 times as fast (AVX-512, Xeon 6/207/2, 2026-11-29).
        narrow_transpose_cycles: Of an element narrower than 32 bits that is transposed for dot products.
        horizontal_reduction_cycles: To reduce a vector to one element.
        unreduced_factor: For blocks without a reduction, as the estimate leaves out some of the cost of memory.
        slice_row_multiple: The rows of a slice of the left operand are a multiple of it.
        cached_operand_bytes: Bytes of operands that stay in the caches between blocks.
        register_bytes: Bytes of the registers that these costs count.
        max_overlapping_copy_bytes: Bytes up to which a copy may repeat elements of overlapping windows more than twice.
        depthwise, copies, convolutions, reductions: Costs of these.
        loop_fusion: When operations are computed in one loop.
        decision_seed: Draws the cycles of candidates; see `Target.with_decision_seed`.
    """

    call_cycles: float = 100
    term_cycles: float = 4
    term_register_cycles: float = 0.8
    l2_bound_rows: int = 2
    store_cycles: float = 2
    transposed_store_cycles: float = 6
    set_conflict_store_cycles: float = 20
    strided_lhs_cycles: float = 0.05
    set_conflict_product_cycles: float = 0.1
    narrow_transpose_cycles: float = 4
    horizontal_reduction_cycles: float = 4
    unreduced_factor: float = 1.2
    slice_row_multiple: int = 16
    cached_operand_bytes: int = 1 << 20
    register_bytes: int = 64
    max_overlapping_copy_bytes: int = 16 << 20
    depthwise: DepthwiseCosts = field(default_factory=DepthwiseCosts)
    copies: CopyCosts = field(default_factory=CopyCosts)
    convolutions: ConvolutionCosts = field(default_factory=ConvolutionCosts)
    reductions: ReductionCosts = field(default_factory=ReductionCosts)
    loop_fusion: LoopFusionLimits = field(default_factory=LoopFusionLimits)
    decision_seed: int | None = None
