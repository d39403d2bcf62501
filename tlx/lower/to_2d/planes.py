"""Which two dimensions of a tensor a 2-D tree takes at once, and which become loops around it.

extents and strides (source, destination)      plane

    2   (1000, 1000)                           loop
    3   (1, 40)                                rows: the source has neighbours here
    40  (8, 1)                                 columns: the destination has neighbours here
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tlx.lower.to_2d.loops import INDEX_LIMIT, Walk, merged


class Plane(NamedTuple):
    """A choice of dimensions.

    Attributes:
        rows: Of extent 1 where a tree takes a single row.
        cols: Of extent 1 where a tree takes a single column.
        rest: The loops around, outermost first.
    """

    rows: Walk
    cols: Walk
    rest: list[Walk]


def ordered(walks: Sequence[Walk]) -> list[Walk]:
    """Dimensions from the largest stride in the last operand to the smallest, merged where they are one."""
    return merged(sorted(walks, key=lambda w: w[1][::-1], reverse=True))


def without(walks: Sequence[Walk], *taken: Walk | None) -> list[Walk]:
    """The other dimensions."""
    return [w for w in walks if not any(w is t for t in taken)]


def longest(walks: Sequence[Walk]) -> Walk | None:
    """The longest dimension whose strides a pitch can say."""
    return max((w for w in walks if max(w[1]) < INDEX_LIMIT), key=lambda w: w[0], default=None)


def plane(walks: Sequence[Walk]) -> Plane:
    """A plane in which every operand is a leaf of a tree; the destination, which is the last one, is row-major.

    Args:
        walks: The dimensions, `ordered`.
    """
    one: Walk = (1, (0,) * (len(walks[0][1]) if walks else 0))
    usable = [w for w in walks if max(w[1]) < INDEX_LIMIT]
    cols = next((w for w in usable if w[1][-1] == 1), None)
    if cols is not None:
        rows = next((w for w in reversed(usable) if w is not cols and _is_block(w, cols)), None)
        if rows is not None or max(cols[1]) == 1:
            return Plane(rows or one, cols, without(walks, rows, cols))
    column = longest(usable)
    return Plane(column or one, one, without(walks, column))


def _is_block(rows: Walk, cols: Walk) -> bool:
    """Whether each operand is dense along a dimension, or repeats along the columns."""
    pairs = list(zip(rows[1], cols[1], strict=True))
    return pairs[-1][0] >= cols[0] and all(right in (0, 1) or down == 1 for down, right in pairs)
