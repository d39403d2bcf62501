"""Grids of tile registers: which flattened vectors are held in them, and in how many along M and N."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tlx.ir.types import VectorType, bits_of
from tlx.ir.values import Local
from tlx.legalize._tile_operands import packed_b, row_bytes
from tlx.legalize._tiles import ROW_BYTES, ROWS
from tlx.lower.signs import MMA_SIGNS

if TYPE_CHECKING:
    from tlx.ir.module import Function, Instruction
    from tlx.ir.tensors import FunctionTensors, TensorOp
    from tlx.types import TensorType

Grid = tuple[int, int]
"""Tiles along M, tiles along N."""

SIDE: Final = 16
"""Columns of a tile of sums."""
MOST_SUMS: Final = 4
"""Tiles of a grid."""
PRODUCTS: Final = {
    ("bfloat", "s", "s"): "tdpbf16ps",
    ("half", "s", "s"): "tdpfp16ps",
    ("i8", "s", "s"): "tdpbssd",
    ("i8", "s", "u"): "tdpbsud",
    ("i8", "u", "s"): "tdpbusd",
    ("i8", "u", "u"): "tdpbuud",
}
"""Instructions, by element type and signs of A and B."""
_WORD_BYTES: Final = 4


def accumulators(function: Function, tensors: FunctionTensors) -> dict[str, Grid]:
    """Grids of the flattened vectors that live in tiles, by name: sums of tile products, and phis of them."""
    found: dict[str, Grid] = {}
    for op in tensors.ops:
        if op.intrinsic.name in MMA_SIGNS and _is_tile_product(op, tensors):
            grid = grid_of(op.tensors[0].type)
            found[op.instruction.result or ""] = grid
            source = op.tensors[0].source
            if isinstance(source, Local):
                found[source.name] = grid
    phis = [i for i in function.instructions() if i.opcode == "phi" and isinstance(i.type, VectorType)]
    return _spread(found, {phi.result or "": phi for phi in phis})


def grid_of(acc: TensorType) -> Grid:
    """The whole tiles of an accumulator."""
    return acc.shape[0] // ROWS, acc.shape[1] // SIDE


def kind_of(op: TensorOp) -> tuple[str, str, str]:
    """Element type and signs of A and B of a product, as `PRODUCTS` lists them."""
    return str(op.tensors[1].type.element), *MMA_SIGNS[op.intrinsic.name]


def _is_tile_product(op: TensorOp, tensors: FunctionTensors) -> bool:
    """Whether a product is one of whole tiles, at most a grid of them, that an instruction multiplies."""
    acc, lhs, rhs = (tensor.type for tensor in op.tensors)
    rows, columns = grid_of(acc)
    depth = row_bytes(op.tensors[1])
    are_whole = acc.shape == (rows * ROWS, columns * SIDE) and lhs.shape[0] == rows * ROWS
    are_words = _WORD_BYTES < depth <= ROW_BYTES and depth % _WORD_BYTES == 0  # a word: a vector's step
    are_alike = lhs.element == rhs.element and bits_of(acc.element) == 32
    fits = are_whole and are_words and are_alike and rows * columns <= MOST_SUMS
    return fits and kind_of(op) in PRODUCTS and packed_b(tensors, op.tensors[2]) is not None


def _spread(found: dict[str, Grid], phis: dict[str, Instruction]) -> dict[str, Grid]:
    """Carry grids from sums through phis, both ways."""
    changed = True
    while changed:
        before = len(found)
        for name, phi in phis.items():
            sources = [value.name for value, _ in phi.incoming if isinstance(value, Local)]
            grid = next((found[n] for n in (name, *sources) if n in found), None)
            if grid is not None:
                found |= {n: grid for n in (name, *sources) if n == name or n in phis}
        changed = len(found) > before
    return found
