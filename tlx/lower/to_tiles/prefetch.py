"""Prefetching the rows that an elementwise kernel, or a reduction, reads soon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.evaluate import Place, address_of
from tlx.lower.to_tiles.memory import LINE
from tlx.lower.to_tiles.view import View


@dataclass(frozen=True, slots=True)
class Prefetch:
    """What is read soon.

    Attributes:
        base, view: The matrix that is read.
        distance: Bytes from what is read now to what is prefetched.
    """

    base: Value
    view: View
    distance: int


def prefetch(b: TensorBuilder, prefetches: Sequence[Prefetch], place: Place) -> None:
    """Prefetch the lines of what is read soon, for a tile that is read now."""
    for each in prefetches:
        for row in range(place.rows):
            at = replace(place, row=b.add(place.row or const_int(I64, 0), row))
            start = address_of(b, each.view, each.base, at)
            for line in range(0, place.cols * bytes_of(each.view.element), LINE):
                b.prefetch(start, each.distance + line)
