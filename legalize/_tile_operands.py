"""Operands of AMX tile products: tiles of A as its rows lie, tiles of B in VNNI order, beside or behind each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tlx.ir.metadata import is_passing
from tlx.ir.types import bits_of
from tlx.legalize._tiles import ROW_BYTES, ROWS, Tiles

if TYPE_CHECKING:
    from tlx.ir.tensors import FunctionTensors, Tensor
    from tlx.ir.values import Value

_BESIDE: Final = (0, 2, 1)  # <K/v, N, v>: tiles side by side
_BEHIND: Final = (1, 3, 0, 2)  # <tiles, 16, 16, v>: tile behind tile
_TILES_APART: Final = 4


def load_a(amx: Tiles, tensor: Tensor, row: int) -> Value:
    """A tile of A, `row` tiles below the first one."""
    stride = tensor.type.strides(tensor.pitches)[0] * (bits_of(tensor.type.element) // 8)
    return amx.load(tensor.source, row * ROWS * stride, stride, (ROWS, row_bytes(tensor)))


def load_b(amx: Tiles, tensors: FunctionTensors, tensor: Tensor, column: int) -> Value:
    """A tile of B, `column` tiles behind the first one (4-D), or beside it in longer rows (3-D)."""
    packed = packed_b(tensors, tensor)
    assert packed is not None
    stride = packed.type.strides(packed.pitches)[0] * (bits_of(packed.type.element) // 8)
    is_apart = packed.type.rank == _TILES_APART
    to_next, pitch = (stride, ROW_BYTES) if is_apart else (ROW_BYTES, stride)
    shape, passing = (packed.type.shape[-3], ROW_BYTES), is_passing(packed.definition)
    return amx.load(packed.source, column * to_next, pitch, shape, passing=passing)


def packed_b(tensors: FunctionTensors, tensor: Tensor) -> Tensor | None:
    """The packed load behind a token, if the token is tiles of B in VNNI order."""
    op = tensors.maker(tensor)
    if op is None or op.intrinsic.name != "reshape.permute" or op.dims[0] not in (_BESIDE, _BEHIND):
        return None
    source = op.tensors[0]
    return source if source.kind != "value" else None


def row_bytes(tensor: Tensor) -> int:
    """Bytes of a row of tiles of A."""
    return tensor.type.shape[1] * bits_of(tensor.type.element) // 8
