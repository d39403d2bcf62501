"""About how many cycles a copy takes, by what `copy` makes of it.

next to each other in source and copy       are copied as        cycles
neighbours along the same dimension         rows                 6 a row, 2.5 for each register of it
along one dimension, and along another      transposed tiles     128 for each tile, however much of it is filled; 200
                                                                 of elements of less than 32 bits
 the same, an odd number up to 15 apart     merged registers     8 for each register, where one instruction permutes it
in the copy alone, every second one         lines, shuffled      3 a row, 4 for each register of it, 0.15 for each
                                                                 byte that is read, once where windows overlap, and
                                                                 0.05 for each that is written outside the caches;
                                                                 where one instruction permutes a register of words
in the copy alone                           single elements      1.5 for each

Measured on a Xeon with AMX: float, in the caches. What does not stay there takes longer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tlx.ir.types import Type, bytes_of
from tlx.lower.combs import is_comb
from tlx.lower.to_2d.copies import is_every_second
from tlx.lower.to_2d.loops import Walk
from tlx.lower.to_2d.planes import ordered

NEAR_BYTES: Final = 1 << 20
"""What stays in the caches."""
FAR_BYTE: Final = 0.25
"""Cycles to read a byte from outside of the near caches."""
LINE_BYTES: Final = 64
_REGISTER: Final = 64
_SIDE: Final = 16
_START: Final = 6
_ROW: Final = 2.5
_TILE: Final = 128
TURNED: Final = _TILE / _SIDE**2
"""Cycles to turn an element of whole tiles."""
_NARROW_TILE: Final = 200
_ELEMENT: Final = 1.5
_COMBED: Final = 8
_SECOND_START: Final = 3
_SECOND: Final = 4
_SECOND_BYTE: Final = 0.15
_WRITTEN_BYTE: Final = 0.05
_WIDE: Final = 4


def copy_cycles(dims: Sequence[tuple[int, int]], element: Type, *, permutes: bool = False) -> float:
    """Cycles of a copy.

    Args:
        dims: Extent of each dimension, and elements from a position to the next in the source; the copy is dense, the
            last one innermost.
        element: Type of the elements.
        permutes: Whether one instruction permutes them in a register.
    """
    walks: list[Walk] = []
    count = 1
    for extent, stride in reversed(dims):
        walks.append((extent, (stride, count)))
        count *= extent
    size = count * bytes_of(element)
    far = 0 if size <= NEAR_BYTES else size * FAR_BYTE
    found = ordered(walks)
    second = next((walk[0] for walk in found if is_every_second(walk)), None)
    if permutes and second is not None and bytes_of(element) >= _WIDE:
        lines = math.ceil(second * bytes_of(element) / _REGISTER)
        read = min(2 * count, 1 + sum((extent - 1) * stride for extent, stride in dims)) * bytes_of(element)
        moved = read * _SECOND_BYTE + (size * _WRITTEN_BYTE if size > NEAR_BYTES else 0)
        return moved + count / second * (_SECOND_START + lines * _SECOND)
    if permutes and any(_is_combed(walk, found) for walk in found):
        return far + size / _REGISTER * _COMBED
    return far + _near_cycles(found, count, bytes_of(element))


def _is_combed(walk: Walk, walks: Sequence[Walk]) -> bool:
    """Whether a dimension, dense in the copy, is that of the columns of a comb in the source."""
    _, (apart, here) = walk
    return here == 1 and any(is_comb(apart, extent) for extent, (there, pitch) in walks if there == 1 < pitch)


def _near_cycles(walks: Sequence[Walk], count: int, size: int) -> float:
    """Cycles of a copy of `count` elements of so many bytes in the caches."""
    row = next((extent for extent, strides in walks if strides in {(0, 1), (1, 1)}), None)
    if row is not None:
        return count / row * (_START + math.ceil(row * size / _REGISTER) * _ROW)
    source = next((extent for extent, strides in walks if strides[0] == 1), None)
    target = next((extent for extent, strides in walks if strides[1] == 1), None)
    if source is None or target is None:
        return count * _ELEMENT
    tiles = math.ceil(source / _SIDE) * math.ceil(target / _SIDE)
    return count / (source * target) * tiles * (_TILE if size >= _WIDE else _NARROW_TILE)
