"""How a target computes a product: types, instruction, register tile, cache blocks.

kind of product                     operands become        instruction
matrix unit knows the types         as they are            tile product, 2x2 accumulators
vector dot product knows them       as they are, VNNI      u8*s8, bf16*bf16
s8*s8 with only u8*s8 at hand       A xor 128              (A + 128) @ B - 128 * colsum(B)
u8*u8 with only u8*s8 at hand       B xor 128              A @ (B - 128) + 128 * rowsum(A)
anything else                       accumulator's type     fused multiply-add
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from tlx.ir.types import DOUBLE, FLOAT, I32, I64, IntType, Type, bits_of
from tlx.lower.signs import MMA_NAMES
from tlx.lower.to_tiles.problem import Gemm
from tlx.target import Dot, Matrix, Sign, Target

_MAX_KC: Final = 2048
_MAX_PACKED: Final = 4 << 20
_MIN_CHAINS: Final = 10


@dataclass(frozen=True, slots=True)
class Recipe:
    """The decisions for one product on one target.

    Attributes:
        operand_a, operand_b: Element types the multiply instruction reads.
        accumulator: Element type it adds to.
        mma: Name of the mma intrinsic in the inner loop.
        width: VNNI factor, 1 for plain multiply-add.
        unit: Which unit multiplies.
        correction: For the xor trick: whose sums are corrected.
        mr, nr: Register tile.
        kstep: Positions of K per inner step.
        lanes: Accumulator elements per register.
        pack_a, pack_b: Whether the operand is copied into panels first.
        kc, mc, nc: Cache blocks along K, M (in rows) and N (in columns).
    """

    operand_a: Type
    operand_b: Type
    accumulator: Type
    mma: str
    width: int
    unit: Literal["fma", "dot", "matrix"]
    correction: Literal["none", "columns", "rows"]
    mr: int
    nr: int
    kstep: int
    lanes: int
    pack_a: bool
    pack_b: bool
    kc: int
    mc: int
    nc: int


def choose(gemm: Gemm, target: Target) -> Recipe:
    """The recipe for a product."""
    accumulator = accumulator_type(gemm)
    narrow = _narrow_accumulator(gemm, accumulator)
    if target.matrix is not None:
        dot = _find_dot(gemm, narrow, target.usable_matrix_dots, gemm.lhs_sign, gemm.rhs_sign)
        if dot is not None:
            return _matrix_recipe(gemm, target.matrix, narrow, dot)
    for lhs, rhs, correction in _dot_signs(gemm):
        dot = _find_dot(gemm, narrow, target.usable_dots, lhs, rhs)
        if dot is not None:
            return _vector_recipe(gemm, target, narrow, dot, (lhs, rhs), correction)
    return _vector_recipe(gemm, target, accumulator, None, (gemm.lhs_sign, gemm.rhs_sign), "none")


def accumulator_type(gemm: Gemm) -> Type:
    """The type products are added up in: at least as precise as the result's."""
    widest = max(bits_of(element) for element in (gemm.a.element, gemm.b.element, gemm.result))
    if gemm.is_float:
        return DOUBLE if widest > 32 else FLOAT
    return I64 if widest > 32 else I32


def _narrow_accumulator(gemm: Gemm, accumulator: Type) -> Type:
    """i32 in place of i64 where 8-bit products cannot overflow it and nothing wider is added."""
    if accumulator != I64 or gemm.acc is not None or gemm.a.element.__class__ is not IntType:
        return accumulator
    bytes_only = bits_of(gemm.a.element) == 8 and bits_of(gemm.b.element) == 8
    return I32 if bytes_only and gemm.k * 255 * 255 < 1 << 31 else accumulator


def _dot_signs(gemm: Gemm) -> list[tuple[Sign, Sign, Literal["none", "columns", "rows"]]]:
    """Signs a dot product may have for this product, best first, with the correction each needs."""
    direct = (gemm.lhs_sign, gemm.rhs_sign, "none")
    if direct[:2] == ("s", "s"):
        return [direct, ("u", "s", "columns")]
    if direct[:2] == ("u", "u"):
        return [direct, ("u", "s", "rows")]
    return [direct]


def _find_dot(gemm: Gemm, accumulator: Type, dots: tuple[Dot, ...], lhs: Sign, rhs: Sign) -> Dot | None:
    wanted = ((str(gemm.a.element), lhs), (str(gemm.b.element), rhs), str(accumulator))
    return next((d for d in dots if (d.lhs, d.rhs, d.accumulator) == wanted), None)


def _matrix_recipe(gemm: Gemm, matrix: Matrix, accumulator: Type, dot: Dot) -> Recipe:
    size = bits_of(gemm.a.element) // 8
    kstep = matrix.row_bytes // size
    lanes = matrix.row_bytes * 8 // bits_of(accumulator)
    mr, nr = matrix.rows * matrix.grid[0], lanes * matrix.grid[1]
    whole = gemm.a.is_row_major and gemm.k % kstep == 0 and gemm.m % mr == 0
    nc = max(4 * nr, _MAX_PACKED // 4 // (_up(gemm.k, kstep) * size) // nr * nr)
    return Recipe(
        gemm.a.element, gemm.b.element, accumulator, MMA_NAMES[gemm.lhs_sign, gemm.rhs_sign], dot.width, "matrix",
        "none", mr, nr, kstep, lanes, not whole, True, gemm.k, min(mr, gemm.m), min(nc, gemm.n),
    )  # fmt: skip


def _vector_recipe(
    gemm: Gemm,
    target: Target,
    accumulator: Type,
    dot: Dot | None,
    signs: tuple[Sign, Sign],
    correction: Literal["none", "columns", "rows"],
) -> Recipe:
    lanes = target.vector_bytes * 8 // bits_of(accumulator)
    width = dot.width if dot else 1
    mr, nv = register_tile(gemm.m, gemm.n, lanes, target.registers, spare=correction == "columns")
    nr = nv * lanes
    operand_a = gemm.a.element if dot else accumulator
    operand_b = gemm.b.element if dot else accumulator
    size = bits_of(operand_b) // 8
    pack_a = gemm.a.element != operand_a or _dot_needs_packed_a(gemm, width, correction)
    pack_b = dot is not None or gemm.b.element != operand_b or not _b_fits_unpacked(gemm, target, size)
    kc = _k_block(gemm, accumulator, width)
    mc = max(mr, target.caches.l2 // 2 // (kc * bits_of(operand_a) // 8) // mr * mr)
    nc = max(nr, min(_MAX_PACKED, target.caches.l3 // 4) // (_up(kc, width) * size) // nr * nr)
    return Recipe(
        operand_a, operand_b, accumulator, MMA_NAMES[signs], width, "dot" if dot else "fma", correction,
        mr, nr, width, lanes, pack_a, pack_b, kc, min(mc, gemm.m), min(nc, gemm.n),
    )  # fmt: skip


def _dot_needs_packed_a(gemm: Gemm, width: int, correction: str) -> bool:
    """A dot product reads `width` neighbours along K at once, and nothing behind the end of a row."""
    return width > 1 and (correction != "none" or gemm.k % width != 0 or not gemm.a.is_row_major)


def _b_fits_unpacked(gemm: Gemm, target: Target, size: int) -> bool:
    """Reading B as it lies is best where it stays in the caches and its rows do not share cache sets."""
    if not gemm.b.is_row_major:
        return False
    if gemm.m < 2 * _MIN_CHAINS:
        return True
    aliasing = gemm.b.row_stride * size % 4096 == 0 and gemm.k > 64
    return gemm.b.size * size <= 2 * target.caches.l2 and not aliasing


def _k_block(gemm: Gemm, accumulator: Type, width: int) -> int:
    """All of K, or equal parts of at most 2048 where C holds the sums between passes exactly."""
    if gemm.k <= _MAX_KC or gemm.c.element != accumulator or gemm.epilogue is not None:
        return gemm.k
    passes = -(-gemm.k // _MAX_KC)
    return _up(-(-gemm.k // passes), width)


def register_tile(m: int, n: int, lanes: int, registers: int, *, spare: bool = False) -> tuple[int, int]:
    """Rows and vectors of the register tile that needs the fewest cycles for an MxN result.

    Rule (measured): `mr * nv + min(mr, nv) + 1 <= registers`; the smaller operand set is held, the other streamed.
    """
    best: tuple[float, int, int, int] | None = None
    for mr in range(1, registers):
        for nv in range(1, registers):
            if mr * nv + min(mr, nv) + 1 + spare > registers or (mr > m and mr > 1):
                break
            cost = _tile_cost(m, n, lanes, mr, nv)
            key = (cost, -(mr * nv), abs(mr - 8), nv)
            if best is None or key < best:
                best = key[0], key[1], key[2], key[3]
                chosen = mr, nv
    return chosen  # pyright: ignore[reportPossiblyUnboundVariable]  (mr = nv = 1 always fits)


def _tile_cost(m: int, n: int, lanes: int, mr: int, nv: int) -> float:
    """Cycles per K step over all tiles: two multiply-adds or two loads a cycle, four cycles of latency."""
    row_tiles = -(-m // mr)
    vectors = -(-n // lanes)
    full, rest = divmod(vectors, nv)
    height = m / row_tiles

    def tile(columns: int) -> float:
        return max(height * columns / 2, (height + columns) / 2, 4.0) + 0.05 * (height + columns)

    return row_tiles * (full * tile(nv) + (tile(rest) if rest else 0))


def _up(number: int, step: int) -> int:
    return -(-number // step) * step
