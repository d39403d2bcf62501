"""The parts of a target: vector registers, dot products, caches, a core's throughput."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.types import Type
    from tlx.ir.values import Value

    DotEmitter = Callable[[Builder, Value, Value, Value], Value]

    WideningLoad = Callable[[Builder, Value, int], Value]

Sign = Literal["s", "u", "f", "e4m3", "e5m2"]


def randomized_cycles(seed: int | None, cycles: float, *candidate: object) -> float:
    """The cycles of a candidate; with a seed, the number in (0, 1] that it draws for the candidate instead.

    All candidates of a choice are correct, so a seed reaches code that the cost model never selects. A candidate of
    infinite cost stays one.
    """
    if seed is None or math.isinf(cycles):
        return cycles
    return (zlib.crc32(repr((seed, *candidate)).encode()) + 1) / (1 << 32)


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
    msg = "this product has no vector form: `TileOperations.product` of its matrix unit emits it"
    raise NotImplementedError(msg)


def swapped(emit: DotEmitter) -> DotEmitter:
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
        slower: A feature, and the cycles on processors with that feature, on which the instruction is slower.
        emit: Emits it for one register's worth: (builder, acc, lhs, rhs) -> acc; lhs and rhs are vectors of the
            accumulator's lanes whose elements hold `width` operands each.
        temporaries: Registers that it needs besides those of its operands and the accumulator, or that it cannot use.
        widening_loads: Loads that widen the operands, if there are any; `emit` then multiplies and adds once for each
            of the `width` positions, on lanes of the accumulator's type.
    """

    lhs: tuple[str, Sign]
    rhs: tuple[str, Sign]
    accumulator: str
    width: int
    feature: str
    emit: DotEmitter = _no_vector_form
    temporaries: int = 0
    widening_loads: WideningLoads | None = None
    cycles: float = 0.5
    slower: tuple[str, float] | None = None

    def __post_init__(self) -> None:
        if self.width not in (1, 2, 4, 8):
            msg = f"dot product of width {self.width}: instructions add 1 (outer products), 2, 4 or 8 products"
            raise ValueError(msg)

    def is_profitable(self, core: CoreModel) -> bool:
        """Whether it computes as many products a cycle as multiply-adds of converted operands, and reads less."""
        return self.width / self.cycles >= core.products

    def is_profitable_in_place(self, core: CoreModel, rows: int) -> bool:
        """Whether it pays for `rows` rows times a right operand whose rows are interleaved for it.

        Slower dot products do where the right operand would be converted for a few rows only: the conversion of an
        element takes 0.7 cycles, a product 1/16 of a cycle rather than 1/32 (bfloat, Xeon 6/207/2 without AMX,
        November 2026: 8 rows 101 % of the dot products' peak in place, 24 rows converted 96 %, 32 rows 104 %).
        """
        return self.is_profitable(core) or rows <= _FEW_ROWS


_FEW_ROWS: Final = 24


@dataclass(frozen=True, slots=True)
class FloatInstructions:
    """Instructions that shorten mathematical functions, on whole registers of float or double.

    Attributes:
        scale: (builder, x, n) -> x 2^floor(n), rounded once, also to infinity and to denormals.
        reciprocal: (builder, x) -> 1 / x to 2^-14 or better, for x far from the ends of the range.
        fraction: (builder, x) -> x less the integer next to it; 0 for infinity.
        exponent: (builder, x) -> floor(log2 |x|) as a number: of zero -infinity, of infinity infinity.
        mantissa: (builder, x) -> x / 2^n from 3/4 to 3/2; 1 of zero and infinity, NaN of negative numbers.
        significand: (builder, x) -> |x| / 2^n from 1 to 2; 1 of zero and infinity.
        look_up: (builder, table, n) -> for each lane, the entry at the index in the low bits of n of 16 or 32 floats.
        round_to_bits: (builder, x, lanes, y) -> in those lanes, the number whose bits are the integer nearest to x; y
            in the others.
        multiply_add_up: (builder, x, y, z) -> x y + z, rounded once, upward.
    """

    scale: Callable[[Builder, Value, Value], Value]
    reciprocal: Callable[[Builder, Value], Value]
    fraction: Callable[[Builder, Value], Value]
    exponent: Callable[[Builder, Value], Value]
    mantissa: Callable[[Builder, Value], Value]
    significand: Callable[[Builder, Value], Value]
    look_up: Callable[[Builder, Sequence[float], Value], Value]
    round_to_bits: Callable[[Builder, Value, Value, Value], Value]
    multiply_add_up: Callable[[Builder, Value, Value, Value], Value]


@dataclass(frozen=True, slots=True)
class FloatEstimates:
    """Instructions that estimate functions of floats, and one that clamps them to 0 to 1.

    They take registers of any number of floats.

    Attributes:
        power_of_two: (builder, x) -> 2^x with a relative error of 2^-22; zero below the normal numbers.
        reciprocal: (builder, x) -> 1 / x with a relative error of 2^-23, zero of infinity and of numbers near it.
        saturate: (builder, x) -> x, at least 0 and at most 1; 0 of NaN.
    """

    power_of_two: Callable[[Builder, Value], Value]
    reciprocal: Callable[[Builder, Value], Value]
    saturate: Callable[[Builder, Value], Value]


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


@dataclass(frozen=True, slots=True)
class Caches:
    """Bytes of data cache one thread can count on.

    Attributes:
        l1, l2, l3: By level.
        sharers: Processors that share the last-level cache.
        line: Bytes of a cache line.
        l1_way: Bytes of a way of the first-level cache: lines that far apart are in the same set.
        page: Bytes of a page of virtual memory.
        crowded_pitch: Bytes; 16 rows whose pitch is a multiple of it share four sets of the first-level cache.
        far_pitch: Bytes; rows whose pitch is a multiple of it share two sets, and 16 of them are in many pages.
    """

    l1: int = 32 << 10
    l2: int = 1 << 20
    l3: int = 16 << 20
    sharers: int = 1
    line: int = 64
    l1_way: int = 4096
    page: int = 4096
    crowded_pitch: int = 1024
    far_pitch: int = 2048


@dataclass(frozen=True, slots=True)
class Memory:
    """What the caches and memory deliver, beyond the sizes in `Caches`.

    The figures are those of server cores, measured on Xeon with AMX (Sapphire Rapids), 2026-11-22, one thread.

    Attributes:
        l2_bytes_per_cycle: Bandwidth of the second-level cache: half a line.
        bytes_per_cycle: Bandwidth from beyond the second-level cache.
        latency: Latency of loads that miss the second-level cache, in cycles.
        stream_detection_bytes: Bytes that could have arrived before the prefetcher recognizes a sequential stream.
        tlb_bytes: Bytes that the first-level TLB covers: 96 pages of 4 KB.
        prefetch_distance: Bytes by which elementwise kernels prefetch rows; calibrated on the benchmark.
        l3_program_bytes: Most bytes of the last-level cache that one program can count on, as other cores use it too.
        l3_core_bytes: Least bytes of a shared last-level cache that each processor can count on.
        line_for_write: Cycles to fetch a line from the second-level cache before it is written.
        shared_row_cycles: Cycles that each thread loses on a row of C that other threads write parts of: lines move
            between cores. Two threads, interleaved B, 512 cubed (Xeon 6/207/2): 70 for bytes, 140 to 180 for bfloat,
            half of it where only one of them works.
    """

    l2_bytes_per_cycle: int = 32
    bytes_per_cycle: int = 8
    latency: int = 768
    stream_detection_bytes: int = 512
    tlb_bytes: int = 384 << 10
    prefetch_distance: int = 4096
    l3_program_bytes: int = 32 << 20
    l3_core_bytes: int = 16 << 20
    line_for_write: int = 3
    shared_row_cycles: int = 128


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
    seed: int | None = None

    @property
    def transposed_element(self) -> float:
        """Cycles to transpose an element of whole tiles."""
        return self.transposed_tile[0] / self.transposed_side**2


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
        tile_kind: Share of a product's cycles that each further kind of tile adds. Each has code of its own, with its
            epilogue, and estimates hardly tell such tiles apart: 512x784x256 has tiles of 8x3 and 8x2 registers instead
            of 9x3, 8x3, 9x2 and 8x2, which are half the code and take 0.4 % more cycles.
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
    tile_kind: float = 0
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


@dataclass(frozen=True, slots=True)
class KernelLimits:
    """Thresholds between the forms of a kernel on vectors. Calibrated on the benchmark.

    Attributes:
        unpacked_rows: Rows of A up to which B is never packed, whichever cache holds it.
        unpacked_far_rows: Rows up to which a B that exceeds the second-level cache is read unpacked.
        crowded_rows: Rows from which B is packed if its rows share few cache sets: panels of several lines, and of one.
        crowded_k: Rows of B above which panels of several lines are packed then.
        k_pass: Positions of K in a pass: the minimum if a pass prefetches the B of the next one, and the maximum.
        paged_k_pass: The maximum if each row of B is in another page.
        paged_groups: Groups of rows of B up to which a pitch of whole pages does no harm.
        whole_a: Part of the last-level cache that all of A, packed, may take: one in so many.
        a_packings: How often A is packed at most: reading a copy is faster than making one, whichever cache holds it.
        k_unroll: Positions of K in an iteration of a loop, if registers allow: 4 were not faster.
        least_k_unroll: Positions of K in an iteration of a loop, if A and B are read by rows, whatever registers allow.
        least_dot_k_unroll: The same for dot products, whose positions are groups.
        addressed_elements: Elements of A that an iteration of a loop over K may load: where these loads have no
            displacement, each takes an integer register.
        loads_ahead: By how many products of a loop operands are loaded before their first use; 0: right before it.
        registers_ahead: Registers that tiles leave free for these operands: tiles of multiply-adds, of dot products.
        widened_uses: Uses of an operand up to which one converting instruction for each costs less than packing.
        prefetch_steps: Steps along K by which B is prefetched into the first-level cache.
        prefetch_rows: Rows of A that a panel of several blocks prefetches: with 8, 512x4096x4096 bfloat takes 1.1 times
            as long (on a matrix unit).
        prefetch_part, prefetch_piece: Least steps along K of a part and of a piece of it, each of which prefetches a
            row for later tiles.
        streamed_rows: Rows of A up to which B is streamed past sums in the first-level cache.
        streams: Most rows of B that are streamed together: as many streams as hardware prefetchers follow.
        tile_registers: Most registers of each live value of an elementwise tile.
        steady_leaves: Number of leaves equal in all rows from which on elementwise tiles have many rows, as a tile
            loads each of these leaves once.
        chains: Most rows of such a tile.
        reduced_registers: Most registers of sums of a reduction, and most where each of them needs a mask.
    """

    unpacked_rows: int = 19
    unpacked_far_rows: int = 128
    crowded_rows: tuple[int, int] = (128, 96)
    crowded_k: int = 1024
    k_pass: tuple[int, int] = (32, 2048)
    paged_k_pass: int = 128
    paged_groups: int = 64
    whole_a: int = 4
    a_packings: int = 2
    k_unroll: int = 2
    least_k_unroll: int = 1
    least_dot_k_unroll: int = 1
    addressed_elements: int = 1024
    loads_ahead: int = 0
    registers_ahead: tuple[int, int] = (0, 0)
    widened_uses: int = 2
    prefetch_steps: int = 8
    prefetch_rows: int = 4
    prefetch_part: int = 8
    prefetch_piece: int = 4
    streamed_rows: int = 8
    streams: int = 16
    tile_registers: int = 4
    steady_leaves: int = 4
    chains: int = 8
    reduced_registers: tuple[int, int] = (8, 4)


@dataclass(frozen=True, slots=True)
class CoreModel:
    """What a core does in a cycle, on full vector registers.

    Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter 2: two multiply-adds (ports 0 and 1, or 0
    and 5 on 512 bits), two loads, latency 4; Zen has the same (Software Optimization Guide for Family 1Ah, 2.11).

    Attributes:
        products: Multiply-adds.
        loads: Loads, broadcasts of one element included.
        latency: Latency of a multiply-add, in cycles.
        width: Instructions that issue to the ports (Haswell and Skylake; later cores are wider), or complete, if fewer.
        costs: Cycles of work besides multiply-adds.
        limits: Thresholds between forms of kernels.
    """

    products: float = 2.0
    loads: float = 2.0
    latency: float = 4.0
    width: float = 4.0
    costs: KernelCosts = field(default_factory=KernelCosts)
    limits: KernelLimits = field(default_factory=KernelLimits)


@dataclass(frozen=True, slots=True)
class VectorRegisters:
    """Vector registers that machines have with a feature, or of an architecture (as triples call it).

    Attributes:
        size: Bytes of a register.
        registers: How many there are.
        feature: The feature that provides them.
        architectures: Architectures that have them.
        masked_bits: Element widths that masked loads and stores of them have instructions for.
        fused: Whether multiply-add of them is one instruction.
        converts_half: Whether an instruction converts half to and from float.
        rounds: Whether an instruction rounds floats to integers.
        core: What a core does in a cycle.
    """

    size: int
    registers: int
    feature: str = ""
    architectures: tuple[str, ...] = ()
    masked_bits: tuple[int, ...] = ()
    fused: bool = False
    converts_half: bool = False
    rounds: bool = False
    core: CoreModel = CoreModel()


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor of a target: what `--mcpu` says beside LLVM's scheduling model.

    Attributes:
        features: The features it has, in LLVM's spelling; those that the target does not use may be omitted.
        vector_bytes: Bytes of its vector registers, where the target has several widths; 0 for the target's.
        caches: Its caches; None for the target's.
        core: What its core does in a cycle; None for the target's. Dot products are slower, or faster, as its
            multiply-adds are.
    """

    features: tuple[str, ...]
    vector_bytes: int = 0
    caches: Caches | None = None
    core: CoreModel | None = None
