"""Asking for the rows that an elementwise kernel, or a reduction, reads soon."""

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
class Ahead:
    """What is read soon.

    Attributes:
        base, view: Where that is which is read now.
        distance: Bytes from it to the other.
    """

    base: Value
    view: View
    distance: int


def ask(b: TensorBuilder, ahead: Sequence[Ahead], place: Place) -> None:
    """Prefetch the lines of what is read soon, for a tile that is read now."""
    for one in ahead:
        for row in range(place.rows):
            at = replace(place, row=b.add(place.row or const_int(I64, 0), row))
            start = address_of(b, one.view, one.base, at)
            for line in range(0, place.cols * bytes_of(one.view.element), LINE):
                b.prefetch(start, one.distance + line)
