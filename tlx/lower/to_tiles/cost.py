"""Cost model of register tiles: cycles that a step along K takes, from the target's ports, latency and caches.

A step of a tile of `h` rows and `v` vectors issues `h*v` multiply-adds and `h + v` loads (a broadcast of A is one):

    ports      (multiplies^3 + loads^3)^(1/3)     both queues nearly full disturb each other (measured: a cube fits)
    chain      latency                            a sum is added to once a step, at most every `latency` cycles
    front end  0.05 (h + v)                       instructions around the products
    registers  3 %                                none is left over: LLVM may spill (4x24 of 16 registers, not 6x16)
    caches     0.1 v                              B from the second cache, prefetched, where a panel exceeds the first
    columns    12 v h / K, or 30                  C is stored column by column: halves of lines, or what crosses them
               3, or 7                            A is copied column by column: halves of lines, or what crosses them

28x16 is 78 % of the peak, 12x32 93 %, 6x64 97 %, 8x48 98 % (Sapphire Rapids, float, panels in L1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tlx.target import Core

_FRONT_END: Final = 0.05
_STREAMED: Final = 0.1
_TIGHT: Final = 1.03
_TURNED: Final = 12.0
"""Cycles of a register of a tile that is stored column by column: halves of cache lines, or what crosses them."""
_TURNED_IN_PARTS: Final = 30.0
_COPIED: Final = 3.0
"""Cycles to copy one column of a tile's rows of A: equal parts of cache lines, or what crosses them."""
_COPIED_ACROSS: Final = 7.0
_ALL: Final = 1 << 30


def step_cycles(core: Core, height: float, vectors: int, *, streams: bool = False) -> float:
    """Cycles of one step along K of a tile of `height` rows (an average) and `vectors` registers a row.

    Args:
        core: The machine's ports.
        height: Rows.
        vectors: Registers of a row.
        streams: Whether B comes from the second cache.
    """
    multiplies = height * vectors / core.products
    loads = (height + vectors) / core.loads
    busy = max((multiplies**3 + loads**3) ** (1 / 3), core.latency)
    return busy + _FRONT_END * (height + vectors) + (_STREAMED * vectors if streams else 0)


def product_cycles(core: Core, m: int, vectors: int, mr: int, nv: int, *, resident: int = _ALL) -> float:
    """Cycles per position of K over all tiles of a result of `m` rows and `vectors` registers a row.

    Rows and vectors are split evenly: tiles differ by at most one row and one vector. A panel of up to `resident`
    vectors stays in the first cache.
    """
    row_tiles = -(-m // mr)
    panels = -(-vectors // nv)
    narrow, wider = divmod(vectors, panels)
    height = m / row_tiles
    cycles = (panels - wider) * step_cycles(core, height, narrow, streams=narrow > resident)
    if wider:
        cycles += wider * step_cycles(core, height, narrow + 1, streams=narrow >= resident)
    return row_tiles * cycles


def fitting_tiles(m: int, vectors: int, registers: int, *, spare: int) -> Iterator[tuple[int, int]]:
    """Tiles (rows, vectors) that fit the registers.

    Rule (measured): `mr * nv + min(mr, nv) + 1 <= registers`; the smaller operand set is held, the other streamed.
    """
    for mr in range(1, min(m, registers) + 1):
        for nv in range(1, min(vectors, registers) + 1):
            if mr * nv + min(mr, nv) + 1 + spare > registers:
                break
            yield mr, nv


@dataclass(frozen=True, slots=True)
class Shape:
    """What the choice of a register tile depends on.

    Attributes:
        m, n: Rows and columns of the result.
        lanes: Elements of a register.
        resident: Vectors of B that may be side by side in a panel that stays in the first cache.
        turned: Positions of K after which a tile is stored column by column; 0 where it is stored as it is.
        column: Rows of which 32 bytes of a column are.
        copied: Rows of which 32 bytes of a column of A are, where A is copied column by column; else 0.
    """

    m: int
    n: int
    lanes: int
    resident: int = _ALL
    turned: int = 0
    column: int = 1
    copied: int = 0

    @property
    def vectors(self) -> int:
        """Registers of a row of the result."""
        return -(-self.n // self.lanes)


def register_tile(shape: Shape, registers: int, core: Core, *, spare: int = 0) -> tuple[int, int]:
    """Rows and vectors of the register tile that needs the fewest cycles; `spare` are needed for something else."""

    def key(tile: tuple[int, int]) -> tuple[float, int, int, int]:
        mr, nv = tile
        cycles = product_cycles(core, shape.m, shape.vectors, mr, nv, resident=shape.resident)
        cycles += _by_columns(shape, mr)
        tight = mr * nv + min(mr, nv) + 1 + spare == registers
        return cycles * (_TIGHT if tight else 1), -(mr * nv), abs(mr - 8), nv

    return min(fitting_tiles(shape.m, shape.vectors, registers, spare=spare), key=key)


def _by_columns(shape: Shape, mr: int) -> float:
    """Cycles per position of K to store C, and to copy A, column by column, where that is done."""
    cycles = 0.0
    if shape.turned:
        cycles += turned_cycles(shape.m, shape.vectors, mr, shape.column) / shape.turned
    if shape.copied:
        cycles += copied_cycles(shape.m, mr, shape.copied)
    return cycles


def copied_cycles(m: int, mr: int, step: int) -> float:
    """Cycles to copy a column of an A of `m` rows to tiles of up to `mr`, where `step` rows are half of a line."""
    filled, others = _filled(m, mr, step)
    return _COPIED * filled + _COPIED_ACROSS * others


def turned_cycles(m: int, vectors: int, mr: int, column: int) -> float:
    """Cycles to store a result of `m` rows and `vectors` registers a row column by column.

    Args:
        m: Rows of the result.
        vectors: Registers of a row.
        mr: Rows of a tile.
        column: Rows of which 32 bytes of a column are.
    """
    filled, others = _filled(m, mr, column)
    return m * vectors * (_TURNED * filled + _TURNED_IN_PARTS * others) / (filled + others)


def _filled(m: int, mr: int, step: int) -> tuple[int, int]:
    """Row tiles whose rows are a multiple of a step, and others, of `m` rows that are split evenly."""
    tiles = -(-m // mr)
    height, taller = divmod(m, tiles)
    filled = taller * ((height + 1) % step == 0) + (tiles - taller) * (height % step == 0)
    return filled, tiles - filled
