"""The primitives of the cost model: products on vectors and tiles, column-by-column stores and copies, transfers.

Two estimates are composed of them, both from the target's data:

    of a blocking    `to_2d.contraction.blocking`         a contraction has hundreds of candidates, none with a recipe
    of a recipe      `to_tiles.select.recipe_cost`        one product, its register tile, cache blocks and packing known

The estimate of a blocking assumes full tiles (`ComputeUnit.cycles`): the bound of the ports instead of the sum over
register tiles, and a matrix unit's tiles in the second cache. Selecting a recipe for each candidate would take 0.2 ms
each (Zen 5), 40 ms a convolution. The estimate leaves out what the register tile adds, 2 % to 28 % for the shapes
below, and more for products of a few registers. Only the order of candidates matters: no choice of stage 2 depends on
it.

With `product_cycles` in its place, partial tiles cost more, and copies of all windows win too often. Speed against the
bound of the ports (AMD Zen 5, 2026-11-24):

    AVX2       2048-512.7.1s1 bytes 1.13, 64-64.56.3s1 bfloat 1.07 and float 1.00, 512-1024.28.1s2 bytes .98
    AVX2       64-64.28.3s1 bytes .95
    AVX-512    16-8.32.3s1 float with channels innermost .31

A step of a tile of `h` rows and `v` vectors issues `h*v` multiply-adds and `h + v` loads (a broadcast of A is one):

    ports      (multiplies^3 + loads^3)^(1/3)     nearly full queues slow each other down (measured: a cube fits)
    width      (h*v + h + v) / width              instructions that issue in a cycle
    chain      latency                            each sum is a dependence chain of one multiply-add a step
    front end  0.05 (h + v)                       instructions around the products
    registers  3 %                                no free register: LLVM may spill (4x24 of 16 registers, not 6x16)
    caches     0.1 v                              B from the second cache, prefetched, where a panel exceeds the first
    columns    12 v h / K, or 30                  C is stored column by column: halves of lines, or parts across lines
               3, or 7                            A is copied column by column: halves of lines, or parts across lines

28x16 is 78 % of the peak, 12x32 93 %, 6x64 97 %, 8x48 98 % (Sapphire Rapids, float, panels in L1).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil, isinf
from typing import Final

from tlx.ir.types import BFLOAT, HALF, Type, bits_of, bytes_of
from tlx.target.costs.blocks import BlockCosts
from tlx.target.costs.core import CoreModel
from tlx.target.costs.memory import Caches, MemoryModel
from tlx.target.matrix_unit import MatrixUnitCosts, TileKind
from tlx.target.target import Target

_WORD_BITS: Final = 32
_ALL: Final = 1 << 30
_L2: Final = 1  # index of the second-level cache in `MatrixUnitCosts.load_cycles`


@dataclass(frozen=True, slots=True)
class ComputeUnit:
    """The unit that multiplies the matrices of a contraction: the vector unit or the matrix unit.

    A product of M x N x K takes these cycles, with N padded to registers, and M and K to tiles in the second cache:

        vectors    M * (N / lanes) * K / products
        matrix     (N / lanes) * (K / step) * (M / rows * tile_product_cycles + packed rows)

    Products of a single register tile have the tiles of their recipe: all columns in a row, and steps without padding.

    Attributes:
        target: The machine.
        lanes: Sums that a vector register holds, or a row of a tile.
        rows: Rows of a tile; 0 for vectors.
        kind: The tiles; None for vectors.
        groups: Groups of K in a tile, of as many positions as a product of it adds at once.
        vectors: The vector unit beside a matrix unit; None if this is the vector unit.
        k_step: Positions of K in a tile.
        width: Rows of the right operand that it reads interleaved (VNNI factor).
        permutes: Whether the left operand's elements are permuted in registers of 64 bytes by one instruction.
        dot_share: Cycles of dot products on vectors, as a fraction of those of multiply-adds; 1 where there are none.
    """

    target: Target
    lanes: int
    rows: int = 0
    k_step: int = 1
    width: int = 1
    permutes: bool = False
    dot_share: float = 1.0
    kind: TileKind | None = None
    groups: int = 1
    vectors: ComputeUnit | None = field(default=None, compare=False)

    @classmethod
    def of(cls, target: Target, lhs: Type, rhs: Type, element: Type) -> ComputeUnit:
        """The fastest unit of a target that multiplies elements of two types and accumulates in a third."""
        lanes = sum_lanes(target.vector_bytes, element)
        permutes = permutes_copies(target, lhs)
        types = str(lhs), str(rhs)
        sums = types[0], types[1], "float" if element in (HALF, BFLOAT) else str(element)
        on_vectors = [d for d in target.usable_dots if (d.lhs[0], d.rhs[0], d.accumulator) == sums]
        dot_share = min((d.cycles / d.width * target.core.fmas_per_cycle for d in on_vectors), default=1.0)
        vectors = cls(target, lanes, permutes=permutes, dot_share=dot_share)
        dots = [] if target.versions else [d for d in target.usable_matrix_dots if types == (d.lhs[0], d.rhs[0])]
        if target.matrix is None or not dots:
            return vectors
        width = dots[0].width if lhs == rhs and bits_of(element) <= _WORD_BITS else 1
        kind = target.matrix.kind_of(dots[0])
        k_step = kind.step_bytes // bytes_of(lhs)
        groups = k_step // dots[0].width
        return cls(target, kind.columns, kind.rows, k_step, width, permutes, dot_share, kind, groups, vectors)

    @property
    def costs(self) -> BlockCosts:
        """Cycles of the work around products."""
        return self.target.block_costs

    @property
    def matrix_costs(self) -> MatrixUnitCosts | None:
        """The matrix unit's cycles; None for vectors."""
        return self.target.matrix.costs if self.rows and self.target.matrix is not None else None

    def has_tiles_for(self, rows: int, columns: int) -> bool:
        """Whether tiles may multiply matrices of these extents; vectors are better for a single row or column."""
        return self.rows > 0 and rows > 1 and columns > 1

    def for_product(self, rows: int, columns: int, depth: int, group: int, packings: float) -> ComputeUnit:
        """The vector unit where it takes fewer cycles for a product than this unit, else this unit; see `cycles`.

        On vectors, the right operand is packed, too, if its elements are narrower than the sums.
        """
        if self.vectors is None or group > 1:
            return self
        if not self.has_tiles_for(rows, columns):
            return self.vectors
        width = self.k_step // self.groups
        packed = -(-columns // self.vectors.lanes) * depth / width * packings if width > 1 else 0
        by_vectors = self.vectors.cycles(rows, columns, depth) + packed * self.target.core.costs.packing.register_cycles
        return self if self.cycles(rows, columns, depth, group, packings) < by_vectors else self.vectors

    def cycles(self, rows: int, columns: int, depth: int, group: int = 1, packings: float = 1) -> float:
        """Approximate cycles of a product on this unit.

        Args:
            rows: Its rows.
            columns: Its columns.
            depth: Positions of K.
            group: How many rows of the right operand are interleaved in memory.
            packings: How often a matrix unit's kernel packs it: less than once where several products share it.
        """
        vectors = -(-columns // self.lanes)
        unit_costs, kind = self.matrix_costs, self.kind
        if unit_costs is None or kind is None:
            is_near = depth * columns * _WORD_BITS // 8 <= self.target.caches.l1
            sums = (rows if is_near else max(rows, self.costs.l2_bound_rows)) * vectors
            return port_cycles(self.target.core, sums) * depth
        row_tiles, steps = -(-rows // kind.rows), -(-depth // self.k_step)
        p, q = min(row_tiles, kind.grid[0]), min(vectors, kind.grid[1])
        lines = self.groups
        if row_tiles == 1 and kind.fits(1, vectors):
            q = vectors
            if columns % kind.columns == 0:
                lines = tile_k_step(depth, self.k_step, self.k_step // self.groups) * self.groups // self.k_step
        load, height = unit_costs.load_cycles[_L2], rows / row_tiles
        product = tile_product_cycles((p, q), kind.cycles, load * height / kind.rows, load)
        row_of_b = 1.0  # panels that a kernel packs stay nearer
        if group == 1:
            row_of_b = packings * (
                unit_costs.packed_row_cycles[_L2] + (unit_costs.masked_row_cycles if columns % kind.columns else 0)
            )
        return vectors * steps * (row_tiles * product + lines * row_of_b)


def sum_lanes(vector_bytes: int, element: Type) -> int:
    """Sums of an element type that a vector register holds: those of narrow types are wide."""
    return vector_bytes * 8 // max(_WORD_BITS, bits_of(element))


def permutes_copies(target: Target, element: Type) -> bool:
    """Whether one instruction permutes elements in a register of the size for which copies have their costs."""
    return target.vector_bytes == target.block_costs.register_bytes and target.can_permute(bits_of(element))


def tile_k_step(k: int, most: int, width: int) -> int:
    """Positions of K in a tile: `most`, or fewer where equal steps of whole groups of `width` need no padding.

    K = 96 bytes are two steps of 48. A step of 16 rows of A takes as long with fewer positions, but padded operands
    would be copied first. Tiles of A, B and C then differ in shape: with loops over several register tiles, LLVM runs
    out of tile registers.
    """
    steps = -(-k // most)
    return k // steps if k % (steps * width) == 0 and k > width else most


def tile_product_cycles(grid: tuple[int, int], products: float, load_a: float, load_b: float) -> float:
    """Cycles of a tile product on a matrix unit, in a step that multiplies p tiles of A by q tiles of B.

    Args:
        grid: p and q.
        products: Cycles of multiplying two tiles, while others are loaded.
        load_a: Cycles of loading a tile of A, which is multiplied q times.
        load_b: Of loading a tile of B, which is multiplied p times.
    """
    p, q = grid
    return max(products, load_a / q + load_b / p)


def port_cycles(core: CoreModel, multiplies: float, loads: float = 0) -> float:
    """Cycles of a step along K with these multiply-adds and loads: the bound of the ports and of the sums' chains."""
    return max(multiplies / core.fmas_per_cycle, loads / core.loads_per_cycle, core.fma_latency)


def tile_step_cycles(
    core: CoreModel, height: float, vectors: int, *, streams: bool = False, elements: int = 1
) -> float:
    """Cycles of one step along K of a tile of `height` rows (an average) and `vectors` registers a row.

    Dot products count as multiply-adds. With as few steps in an iteration as their loops have on Power10, 128x128x128
    bytes would have tiles of 10x8 instead of 6x12, in whose loops LLVM copies registers: they reach 42 instead of 62 to
    71 % of what the ports allow (llvm-mca 19, 2026-11-30).

    Args:
        core: The machine's ports.
        height: Rows.
        vectors: Registers of a row.
        streams: Whether B comes from the second cache.
        elements: Elements of a row of A that a load brings.
    """
    multiplies = height * vectors / core.fmas_per_cycle
    loaded = height / elements + vectors
    loads = loaded / core.loads_per_cycle
    costs = core.costs
    others = loaded + costs.register_tile.loop_instructions / least_k_unroll(core, ceil(height), is_dot=False)
    issued = (height * vectors + others) / core.issue_width
    busy = max((multiplies**3 + loads**3) ** (1 / 3), issued, core.fma_latency)
    return (
        busy
        + costs.register_tile.front_end_cycles * others
        + (costs.register_tile.l2_register_cycles * vectors if streams else 0)
    )


def least_k_unroll(core: CoreModel, rows: int, *, is_dot: bool) -> int:
    """Positions of K in an iteration of a loop over K whose tiles have this many rows: at least these."""
    limits = core.limits
    least = limits.k_loop.min_dot_unroll if is_dot else limits.k_loop.min_unroll
    most = limits.k_loop.max_addressed_elements // rows
    return least if most >= least else 1 << max(0, most.bit_length() - 1)


def product_cycles(
    core: CoreModel, m: int, vectors: int, mr: int, nv: int, *, resident: int = _ALL, elements: int = 1
) -> float:
    """Cycles per position of K over all tiles of a result of `m` rows and `vectors` registers a row.

    Rows and vectors are split evenly: tiles differ by at most one row and one vector. A panel of up to `resident`
    vectors stays in the first cache. A load brings `elements` elements of a row of A.
    """
    row_tiles = -(-m // mr)
    panels = -(-vectors // nv)
    narrow, wider = divmod(vectors, panels)
    height = m / row_tiles
    cycles = (panels - wider) * tile_step_cycles(core, height, narrow, streams=narrow > resident, elements=elements)
    if wider:
        cycles += wider * tile_step_cycles(core, height, narrow + 1, streams=narrow >= resident, elements=elements)
    return row_tiles * cycles


def needed_registers(mr: int, nv: int, *, spare: int = 0, elements: int = 1) -> int:
    """Registers of a tile of `mr` rows of `nv` vectors, and `spare` ones for other values.

    Rule (measured): `mr * nv + min(mr, nv) + 1`; the smaller operand set is held, the other streamed. Where a load
    brings several elements of a row of A, A is held.
    """
    return mr * nv + (min(mr, nv) if elements == 1 else mr) + 1 + spare


def fitting_tiles(m: int, vectors: int, registers: int, *, spare: int, elements: int) -> Iterator[tuple[int, int]]:
    """Tiles (rows, vectors) that fit the registers."""
    for mr in range(1, min(m, registers) + 1):
        for nv in range(1, min(vectors, registers) + 1):
            if needed_registers(mr, nv, spare=spare, elements=elements) > registers:
                break
            yield mr, nv


@dataclass(frozen=True, slots=True)
class RegisterTileProblem:
    """What the choice of a register tile depends on.

    Attributes:
        m, n: Rows and columns of the result.
        lanes: Elements of a register.
        resident: Vectors of B that may be side by side in a panel that stays in the first cache.
        transposed_store: Positions of K after which a tile is stored column by column; 0 where it is stored as it is.
        column: Rows of which 32 bytes of a column are.
        copied_a: Rows of which 32 bytes of a column of A are, where A is copied column by column; else 0.
        elements: Elements of a row of A that a load brings.
    """

    m: int
    n: int
    lanes: int
    resident: int = _ALL
    transposed_store: int = 0
    column: int = 1
    copied_a: int = 0
    elements: int = 1

    @property
    def vectors(self) -> int:
        """Registers of a row of the result."""
        return -(-self.n // self.lanes)


def register_tile(shape: RegisterTileProblem, registers: int, core: CoreModel, *, spare: int = 0) -> tuple[int, int]:
    """Rows and vectors of the register tile that needs the fewest cycles and leaves `spare` registers free."""

    def key(tile: tuple[int, int]) -> tuple[float, int, int, int]:
        mr, nv = tile
        cycles = product_cycles(core, shape.m, shape.vectors, mr, nv, resident=shape.resident, elements=shape.elements)
        cycles += _column_access_cycles(shape, core, mr)
        cycles *= 1 + core.costs.register_tile.tile_kind_share * (_kinds_of_tiles(shape, mr, nv) - 1)
        tight = needed_registers(mr, nv, spare=spare, elements=shape.elements) == registers
        cycles = randomized_cycles(
            core.costs.decision_seed, cycles * (core.costs.register_tile.spill_factor if tight else 1), shape, tile
        )
        return cycles, -(mr * nv), abs(mr - 8), nv

    return min(fitting_tiles(shape.m, shape.vectors, registers, spare=spare, elements=shape.elements), key=key)


def _kinds_of_tiles(shape: RegisterTileProblem, mr: int, nv: int) -> int:
    """Number of kinds of tiles, by their rows, their registers a row, and whether the last register is padded."""
    row_tiles, panels = -(-shape.m // mr), -(-shape.vectors // nv)
    wider = shape.vectors % panels
    is_padded = shape.n % shape.lanes > 0 and panels - wider > 1
    return (1 + (shape.m % row_tiles > 0)) * (1 + (wider > 0) + is_padded)


def _column_access_cycles(shape: RegisterTileProblem, core: CoreModel, mr: int) -> float:
    """Cycles per position of K to store C and to copy A column by column, where the problem has such steps."""
    cycles = 0.0
    if shape.transposed_store:
        cycles += transposed_store_cycles(core, shape.m, shape.vectors, mr, shape.column) / shape.transposed_store
    if shape.copied_a:
        cycles += copied_a_cycles(core, shape.m, mr, shape.copied_a)
    return cycles


def copied_a_cycles(core: CoreModel, m: int, mr: int, step: int) -> float:
    """Cycles to copy a column of an A of `m` rows to tiles of up to `mr`, where `step` rows are half of a line."""
    filled, others = _whole_and_ragged_tiles(m, mr, step)
    costs = core.costs.register_tile
    return costs.half_line_copy_cycles * filled + costs.part_line_copy_cycles * others


def transposed_store_cycles(core: CoreModel, m: int, vectors: int, mr: int, column: int) -> float:
    """Cycles to store a result of `m` rows and `vectors` registers a row column by column.

    Args:
        core: The machine's costs.
        m: Rows of the result.
        vectors: Registers of a row.
        mr: Rows of a tile.
        column: Rows of which 32 bytes of a column are.
    """
    filled, others = _whole_and_ragged_tiles(m, mr, column)
    costs = core.costs.register_tile
    each = costs.half_line_store_cycles * filled + costs.part_line_store_cycles * others
    return m * vectors * each / (filled + others)


def _whole_and_ragged_tiles(m: int, mr: int, step: int) -> tuple[int, int]:
    """Row tiles whose rows are a multiple of a step, and others, of `m` rows that are split evenly."""
    tiles = -(-m // mr)
    height, taller = divmod(m, tiles)
    filled = taller * ((height + 1) % step == 0) + (tiles - taller) * (height % step == 0)
    return filled, tiles - filled


def transfer_cycles(size: float, caches: Caches, memory: MemoryModel) -> float:
    """Cycles to load this many bytes from the cache or memory that holds them all; 0 for L1."""
    if size <= caches.l1:
        return 0
    return size / (memory.l2_bytes_per_cycle if size <= caches.l2 else memory.bytes_per_cycle)


def randomized_cycles(seed: int | None, cycles: float, *candidate: object) -> float:
    """The cycles of a candidate; with a seed, the number in (0, 1] that it draws for the candidate instead.

    All candidates of a choice are correct, so a seed reaches code that the cost model never selects. A candidate of
    infinite cost stays one.
    """
    if seed is None or isinf(cycles):
        return cycles
    return (zlib.crc32(repr((seed, *candidate)).encode()) + 1) / (1 << 32)
