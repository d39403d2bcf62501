"""What multiplies the matrices of a contraction, as far as the choice of these matrices has to know.

unit       a product of M x N x K takes cycles                        and what is missing
vectors    M * (N / lanes) * K / 2                                    along N is filled up
matrix     (N / lanes) * (K / step) * (M / rows * tile + packing)     along all three is
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.types import BFLOAT, HALF, Type, bits_of, bytes_of
from tlx.target import Target

_CHAINS: Final = 8
"""Sums that have to be under way at a time for full speed."""
_NEAR: Final = 32 << 10
"""Bytes of a right operand that stay in the first cache."""
_FEW: Final = 2
"""Rows that take as long as one where the right operand comes from farther away: it is read once for several rows."""
_TILE: Final = 25
"""Cycles of a product of tiles, its loads included."""
_PACKED: Final = 128
"""Cycles to pack a tile of the right operand."""
_GROUPED: Final = 16
"""As much where its rows are interleaved already."""
_WORD_BITS: Final = 32
_REGISTER: Final = 64


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit.

    Attributes:
        lanes: Sums that a vector register holds, or a row of a tile.
        rows: Rows of a tile; 0 for vectors.
        step: Positions along K in a tile.
        width: Rows of the right operand that it reads interleaved.
        permutes: Whether the left operand's elements are permuted in registers of 64 bytes by one instruction.
        cache: Bytes of the second cache.
        share: Of the cycles of multiply-adds, those of dot products on vectors; 1 where there are none.
    """

    lanes: int
    rows: int = 0
    step: int = 1
    width: int = 1
    permutes: bool = False
    cache: int = 0
    share: float = 1.0

    @classmethod
    def of(cls, target: Target, lhs: Type, rhs: Type, element: Type) -> Unit:
        """The fastest unit of a target that multiplies elements of two types and adds up those of a third."""
        lanes = target.vector_bytes * 8 // max(32, bits_of(element))
        permutes = target.vector_bytes == _REGISTER and target.can_permute(bits_of(lhs))
        types = str(lhs), str(rhs)
        sums = types[0], types[1], "float" if element in (HALF, BFLOAT) else str(element)
        on_vectors = [d for d in target.usable_dots if (d.lhs[0], d.rhs[0], d.accumulator) == sums]
        share = min((d.cycles / d.width * target.core.products for d in on_vectors), default=1.0)
        dots = [] if target.versions else [d for d in target.usable_matrix_dots if types == (d.lhs[0], d.rhs[0])]
        if target.matrix is None or not dots:
            return cls(lanes, permutes=permutes, cache=target.caches.l2, share=share)
        width = dots[0].width if lhs == rhs and bits_of(element) <= _WORD_BITS else 1
        return cls(lanes, target.matrix.rows, target.matrix.row_bytes // bytes_of(lhs), width, permutes, share=share)

    def has_tiles_for(self, rows: int, columns: int) -> bool:
        """Whether tiles may multiply matrices of so many rows and columns; vectors are better for one."""
        return self.rows > 0 and rows > 1 and columns > 1

    def cycles(self, rows: int, columns: int, depth: int, group: int = 1, packings: float = 1) -> float:
        """About how many cycles a product takes.

        Args:
            rows: Its rows.
            columns: Its columns.
            depth: Positions along K.
            group: How many rows of the right operand lie interleaved.
            packings: How often that is packed: less than once where several products share it.
        """
        vectors = -(-columns // self.lanes)
        is_near = depth * columns * _WORD_BITS // 8 <= _NEAR
        by_vectors = max((rows if is_near else max(rows, _FEW)) * vectors, _CHAINS) * depth / 2
        if not self.rows or (group == 1 and not self.has_tiles_for(rows, columns)):
            return by_vectors
        tiles = vectors * -(-depth // self.step)
        if group > 1:
            return tiles * (-(-rows // self.rows) * _TILE + _GROUPED)
        return min(by_vectors, tiles * (-(-rows // self.rows) * _TILE + _PACKED * packings))
