"""Storing sums whose last columns are padding: whole tiles as they are, those at the edge by way of scratch memory.

32 x 28 sums      C00 C01     C00 and C10 go to memory; of C01 and C11, 12 columns of each row, by masked stores
                  C10 C11
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tlx.legalize._tiles import ROW_BYTES, ROWS, Placed, Tiles
from tlx.lower.legalize.memory import load_tile, store_tile
from tlx.types import TensorType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tlx.ir.builder import Builder
    from tlx.ir.tensors import TensorOp
    from tlx.ir.values import Value
    from tlx.target import Target

_SIDE: Final = 16
_MATRIX: Final = 2


def is_edge(type_: TensorType) -> bool:
    """Whether the last tiles of a row of them, and no others, have columns that are padding; no row is."""
    if len(type_.padding) != _MATRIX or not type_.is_row_major:
        return False
    below, beside = type_.padding
    return below == 0 < beside < _SIDE


def store_edge(b: Builder, target: Target, amx: Tiles, op: TensorOp, places: Sequence[Placed], scratch: Value) -> None:
    """Store an accumulator.

    Args:
        b: Where.
        target: The machine.
        amx: Emits the instructions on tiles.
        op: The store.
        places: Its tiles, row by row, and where each would go.
        scratch: Room for all tiles.
    """
    tensor = op.tensors[0]
    rows, cols = tensor.type.shape
    columns = cols // _SIDE
    for index, placed in enumerate(places):
        row, column = divmod(index, columns)
        at_edge = column == columns - 1
        amx.store(Placed(placed.tile, scratch, row * ROWS * ROW_BYTES, ROW_BYTES) if at_edge else placed)
    assert op.pointer is not None
    element, tile = tensor.type.element, TensorType.dense(tensor.type.element, (rows, _SIDE))
    registers = load_tile(b, target, scratch, tile, None, _SIDE)
    edge = b.gep(element, op.pointer, (columns - 1) * _SIDE)
    part = TensorType(element, (rows, _SIDE), (0, 1), (0, tensor.type.padding[1]))
    store_tile(b, target, edge, registers, part, (0, tensor.type.strides(op.pitches)[0]))
