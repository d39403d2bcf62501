"""Costs of 2-D blocks and copies, by which stage 1 chooses, and limits of loops that compute several operations."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LoopFusionLimits:
    """When stage 1 computes operations in one loop over parts of their results.

    Measured with softmax(Q K') V of 8 to 40000 heads, 8 to 4096 rows, float and bfloat (Zen 5, AVX-512 and AVX2).

    Attributes:
        cache_share: Least size of a result between the operations, in second-level caches; inside such a loop, in
            first-level caches.
        part: Least bytes of the part of a result that an iteration computes: 8 x 8 matrices were slower in one loop.
        rows: Least rows, or columns, of products that an iteration computes if it reads an operand as a whole.
        far: Least size of a result in second-level caches for which iterations may read operands as a whole.
        whole: Most bytes of these operands in second-level caches.
        saved: Least bytes of results between the operations for each byte of an operand that is read again.
        seed: Draws the rows that an iteration computes; see `Target.with_decision_seed`.
    """

    cache_share: float = 1
    part: int = 2048
    rows: int = 128
    far: int = 4
    whole: int = 4
    saved: int = 2
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class BlockCosts:
    """Cycles by which stage 1 compares blocks and copies, before recipes are selected.

    Calibrated on the benchmark, for server cores, to rank choices. A figure measured on one machine names it.

    Attributes:
        call: Of a 2-D product, besides its arithmetic.
        term: Between two products of a sum.
        term_register: The same, for each register of the result, as each of its tiles begins a loop.
        far_rows: Rows that take as long as one where the right operand exceeds the first-level cache.
        near: Bytes of operands that stay in the caches between blocks.
        copied_input: Bytes up to which a convolution's input is copied at once, and of its parts otherwise: filters
            share the caches.
        crowded_pixels: Bytes; positions of a convolution's input, whose windows overlap, share cache sets if they are a
            multiple of it apart.
        crowded_row: Of a register's products where rows of the right operand share sets of the first-level cache. With
            it, gradients of 3 x 3 x 32 x 64 weights sum along the columns of images of 16 x 16 instead of their rows,
            and are 1.14 to 1.19 times as fast (AVX-512, Xeon 6/207/2, 2026-11-29).
        register: Bytes of the registers that these costs count.
        line: Of a register's products where the left operand has another cache line for each position of K. Not priced
            by `KernelCosts.copied_column`: float products of 512 with a column-major A were then .97 times as fast, and
            those of bytes 1.02 times (AVX2, Zen 5, 2026-11-24).
        store: Of a register of the result: as it is, and transposed. `KernelCosts.transposed_store` is larger, as it
            knows the register tile; with it a convolution of bytes, 128-128.56.3s2, was .93 times as fast on AVX-512,
            and one of bfloat, 3-64.224.7s2, .97 times on AVX2 (Zen 5, 2026-11-24).
        crowded_store: To store a register transposed, additionally where columns share few sets of the first-level
            cache. With it, 3 to 64 filters of 3 x 3 on images of 64 x 64 take .38 of the time on AVX-512, to 32
            filters .48 on AVX2 (Xeon 6/207/2, 2026-11-29).
        transposed_narrow: Of an element narrower than 32 bits that is transposed for dot products.
        horizontal_reduction: To reduce a vector to one element.
        reduced: To reduce a vector of a temporary: in the caches, and beyond.
        depthwise: Of an elementwise product of registers, loads included; additionally if its rows are columns in
            memory; of a load that crosses a cache line; of the factor of a row.
        copied_row: To copy a row: its loop, and each register.
        transposed_side: Rows and columns of a tile that is transposed.
        transposed_tile: To transpose such a tile: of 32-bit elements, and of narrower ones.
        copied_element: To copy a single element.
        split_byte: To copy a byte of a convolution's input whose channels are contiguous so that its columns are,
            additionally.
        deinterleaved: To deinterleave a register.
        stride2: To copy every second element of a row: its loop, each register; each byte that is read, and written.
        interleaved: Of a register of interleaved rows: to write it, and to load and merge a cache line.
        converted: Factor for copies that widen their elements.
        zeroed_bytes: Bytes that are set to zero in a cycle.
        phase: To interleave an element of the phases of a transposed convolution: 0.6 to 1 (Zen 5, 2 to 8 phases,
            float, bfloat and bytes).
        repeated: Bytes up to which a copy may repeat elements of overlapping windows more than twice.
        slice_rows: The rows of a slice of the left operand are a multiple of it.
        unreduced: Factor for blocks without a reduction, as the estimate leaves out some of the cost of memory.
        temporary_part: Bytes that stay in the caches: larger temporaries of a reduction are computed in parts.
        sparse_tiles: Vectors are considered besides a matrix unit if blocks fill at most one in so many positions of
            a tile along K.
        alternative_share: Share of an estimate that an alternative with other copies must stay below, as both
            estimate the cost of packing operands roughly.
        unrolled_window: Elements of a reduction's window up to which they are one tree.
        loop_fusion: When operations are computed in one loop.
        seed: Draws the cycles of candidates; see `Target.with_decision_seed`.
    """

    call: float = 100
    term: float = 4
    term_register: float = 0.8
    far_rows: int = 2
    near: int = 1 << 20
    copied_input: tuple[int, int] = (1 << 20, 1 << 19)
    crowded_pixels: int = 512
    register: int = 64
    line: float = 0.05
    crowded_row: float = 0.1
    store: tuple[float, float] = (2, 6)
    crowded_store: float = 20
    transposed_narrow: float = 4
    horizontal_reduction: float = 4
    reduced: tuple[float, float] = (3.0, 6.0)
    depthwise: tuple[float, float, float, float] = (2.5, 8, 1.2, 0.5)
    copied_row: tuple[float, float] = (6, 2.5)
    transposed_side: int = 16
    transposed_tile: tuple[float, float] = (128, 200)
    copied_element: float = 1.5
    split_byte: float = 0
    deinterleaved: float = 8
    stride2: tuple[float, float, float, float] = (3, 4, 0.15, 0.05)
    interleaved: tuple[float, float] = (8, 2.5)
    converted: float = 2.5
    zeroed_bytes: float = 32
    phase: float = 1.0
    repeated: int = 16 << 20
    slice_rows: int = 16
    unreduced: float = 1.2
    temporary_part: int = 1 << 18
    sparse_tiles: int = 2
    alternative_share: float = 0.7
    unrolled_window: int = 16
    loop_fusion: LoopFusionLimits = field(default_factory=LoopFusionLimits)
    seed: int | None = None

    @property
    def transposed_element(self) -> float:
        """Cycles to transpose an element of whole tiles."""
        return self.transposed_tile[0] / self.transposed_side**2
