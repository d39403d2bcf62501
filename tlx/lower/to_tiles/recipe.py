"""What is decided for a product before its kernel is made; `choose` decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tlx.ir.types import Type
from tlx.remarks import Unit


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
        share: Predicted part of the unit's peak, 0 to 1.
        ahead: Steps by which B is prefetched into the first cache; 0 where it is not.
        fetch: Locality with which operands of a loop's next round, or B's rows of the next pass, are prefetched; 0
            where they are not.
        rounds: How many rounds ahead that is.
        past_caches: Whether C, where it is aligned, is stored past the caches.
        shared_b: Whether B's panels are those of several products, packed by another kernel.
        b_at: Where B or its panels lie in a block that holds them for several versions, in bytes; None where in none.
        streams: Rows of B that are read side by side, from end to end; 0 where a tile's sums stay in registers.
        order: Registers that columns of streamed rows are dealt out to, and how many stay together; see `streams`.
        dots: Last columns of C that are sums along K, in registers along K; see `last_columns`.
        pairs: Last columns of C that are summed up in even and odd positions of K; see `pairs`.
        whole_a: Whether all rows of A are packed before anything is multiplied, else those of a block.
        asks: Operands, some of "CAB", that tiles prefetch for those behind them; see `next_tile`.
        own_lines: Whether tiles prefetch the lines of C that they are stored to; see `own_lines`.
        passing_b: Whether tiles of B leave the first cache before they are read again; see `passing`.
    """

    operand_a: Type
    operand_b: Type
    accumulator: Type
    mma: str
    width: int
    unit: Unit
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
    share: float = 1.0
    ahead: int = 0
    fetch: int = 0
    rounds: int = 1
    past_caches: bool = False
    shared_b: bool = False
    b_at: int | None = None
    streams: int = 0
    order: tuple[int, int] = (1, 1)
    whole_a: bool = False
    dots: int = 0
    pairs: int = 0
    asks: str = ""
    own_lines: bool = False
    passing_b: bool = False


def up(number: int, step: int) -> int:
    """The number rounded up to a multiple of the step."""
    return -(-number // step) * step
