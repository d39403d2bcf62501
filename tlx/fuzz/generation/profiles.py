"""Profiles: the types, extents and forms that random programs may contain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I8, I16, I32, I64, Type

Family = tuple[Type, Type, Type]
FAMILIES: Final[tuple[Family, ...]] = (
    (FLOAT, FLOAT, FLOAT),
    (I8, I8, I8),
    (I8, I8, I16),
    (I8, I8, I32),
    (I8, I8, I32),
    (I8, I8, I64),
    (I16, I16, I16),
    (I16, I16, I32),
    (I16, I16, I64),
    (I32, I32, I32),
    (I32, I32, I64),
    (I64, I64, I64),
    (HALF, HALF, HALF),
    (HALF, HALF, FLOAT),
    (HALF, HALF, DOUBLE),
    (BFLOAT, BFLOAT, BFLOAT),
    (BFLOAT, BFLOAT, FLOAT),
    (BFLOAT, BFLOAT, FLOAT),
    (BFLOAT, BFLOAT, DOUBLE),
    (FLOAT, FLOAT, FLOAT),
    (FLOAT, FLOAT, DOUBLE),
    (DOUBLE, DOUBLE, DOUBLE),
)
"""Element types of lhs, rhs and result."""
MIXED: Final[tuple[Family, ...]] = (
    (I8, I16, I32),
    (I16, I8, I16),
    (I8, I32, I64),
    (I64, I8, I64),
    (HALF, BFLOAT, FLOAT),
    (BFLOAT, FLOAT, FLOAT),
    (FLOAT, HALF, DOUBLE),
)
TILED: Final[tuple[Family, ...]] = (
    (I8, I8, I32),
    (I8, I8, I32),
    (I8, I8, I8),
    (I8, I8, I16),
    (I8, I8, I64),
    (BFLOAT, BFLOAT, FLOAT),
    (BFLOAT, BFLOAT, FLOAT),
    (BFLOAT, BFLOAT, BFLOAT),
    (BFLOAT, BFLOAT, DOUBLE),
    (HALF, HALF, FLOAT),
    (HALF, HALF, HALF),
)
"""Families that AMX multiplies, by their weight."""


@dataclass(frozen=True)
class Profile:
    """The types, extents and forms that programs may contain.

    Attributes:
        extents: Rows, columns and inner extents of products.
        work: Maximum number of multiplications of a product.
        room: Maximum number of elements of an array.
        families: Element types of products, repeated by weight.
        forms: Names of the forms, repeated by weight.
        unit: Number that pitches and padding are multiples of.
        functions: Number of functions of a module.
        shapes: (M, N, K) of products; empty for any combination of `extents`.
        operations: Names of the operations that `dataflow` may use; empty for all.
    """

    extents: tuple[int, ...]
    work: int
    room: int
    families: tuple[Family, ...]
    forms: tuple[str, ...]
    unit: int = 1
    functions: int = 6
    shapes: tuple[tuple[int, int, int], ...] = ()
    operations: tuple[str, ...] = ()


_MOVES: Final = ("transpose", "transpose", "copy")
_FORMS: Final = (*("product",) * 5, "sums", "sums", "update", "chain", "batch", *_MOVES, "elements")
_PRODUCTS: Final = ("product",) * 4 + ("sums", "update", "chain")
_SMALL: Final = (1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 16, 17, 23, 31, 32, 32, 33, 47, 48, 64, 64, 65, 97, 100)
_EXTENTS: Final = (1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 32, 33, 64, 65)
_TINY: Final = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17)
_SHAPES: Final = (
    (1, 4096, 64),
    (4096, 1, 31),
    (1, 700, 4097),
    (9, 7, 4097),
    (100, 333, 700),
    (513, 129, 511),
    (1, 1, 1),
)
_LINES: Final = tuple(
    extents
    for few in (1, 1, 2, 3, 4, 7, 8)
    for n, k in ((33, 20), (200, 37), (130, 64), (48, 9))
    for extents in ((few, n, k), (n, few, k))
)
_LARGE: Final = (1, 16, 31, 64, 100, 127, 128, 129, 200, 211, 255, 256, 257, 320, 333, 400, 511, 512, 513, 600, 700)
_TILES: Final = (1, 3, 16, 17, 31, 32, 32, 33, 48, 63, 64, 64, 65, 96, 100, 128, 128, 130, 192, 256)

_ELEMENTS: Final = ("insert", "insert-loop", "insert-loop", "relu", "fadd", "add", "select", "transpose", "loop")

_RUN_TIME: Final = ("run_time", "run_time_dataflow")
_CONVOLUTIONS: Final = ("convolution", "relu", "fadd", "add", "pad", "reduce.max", "reduce.add")
_MIXTURE: Final = (*_FORMS, "overlaps", *_RUN_TIME, *("dataflow",) * 6)

PROFILES: Final = {
    "small": Profile(_SMALL, 120_000, 8_000, (*FAMILIES * 3, *MIXED), _FORMS),
    "tiny": Profile(_TINY, 4_000, 400, (*FAMILIES * 3, *MIXED), _MIXTURE, functions=1),
    "large": Profile((*_LARGE, 4096, 4097), 40_000_000, 2_000_000, (*FAMILIES * 3, *MIXED), _PRODUCTS, functions=3),
    "shapes": Profile((1, 2, 33), 0, 0, FAMILIES, ("product", "product", "update"), functions=4, shapes=_SHAPES),
    "lines": Profile((1,), 0, 0, (*FAMILIES * 3, *MIXED), _PRODUCTS, functions=3, shapes=_LINES),
    "loops": Profile(_SMALL, 60_000, 8_000, FAMILIES, ("sums", "sums", "batch", "product", "chain", "transpose")),
    "overlaps": Profile(_SMALL, 20_000, 2_000, FAMILIES, ("overlaps",)),
    "run-time": Profile(_SMALL, 40_000, 3_000, FAMILIES, _RUN_TIME, functions=2),
    "run-time-tiles": Profile(_TILES, 400_000, 20_000, TILED, _RUN_TIME, unit=4, functions=2),
    "moves": Profile((*_SMALL, *_LARGE), 0, 400_000, FAMILIES, _MOVES),
    "any": Profile(_EXTENTS, 60_000, 3_000, FAMILIES, ("dataflow",), functions=3),
    "elements": Profile(_EXTENTS, 20_000, 3_000, FAMILIES, ("dataflow",), functions=3, operations=_ELEMENTS),
    "convolutions": Profile(_EXTENTS, 600_000, 20_000, FAMILIES, ("dataflow",), functions=1, operations=_CONVOLUTIONS),
    "any-large": Profile(_LARGE, 4_000_000, 300_000, FAMILIES, ("dataflow",), functions=2),
    "any-tiles": Profile(_TILES, 400_000, 20_000, TILED, ("dataflow", "product"), unit=4, functions=2),
    "tiles": Profile(_TILES, 600_000, 40_000, TILED, _PRODUCTS, unit=4),
    "tiles-any": Profile(_TILES, 2_000_000, 80_000, TILED, _PRODUCTS),
    "tiles-large": Profile((*_LARGE, *_TILES, 4096, 4097), 60_000_000, 2_000_000, TILED, _PRODUCTS, functions=3),
}
"""Profiles by name. `shapes` are the extreme ones; `tiny` is one function of any form, for campaigns of many programs.

In `tiles`, rows from which tiles are loaded in place are a multiple of 4 bytes apart: LLVM's scalarisation of tile
loads counts in 32-bit words.
"""
