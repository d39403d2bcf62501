"""Which unit multiplies: a matrix unit, or vectors where a product is too small for it to pay.

    unit      cycles of a kernel, apart from its products
    matrix    configuration, packing of whole tiles (padding included), sums stored through the cache
    vectors   packing; products of partly filled registers

A tile product is 8 to 16 times as fast as vectors, but 16x16x16 bytes take 425 cycles on the matrix unit and 50 by
vector dot products (Sapphire Rapids, operands in the first cache): of that, 250 are for the configuration, and for tile
loads that wait for what packing stored.
"""

from __future__ import annotations

from typing import Final

from tlx.ir.types import bits_of, bytes_of
from tlx.lower.to_tiles.blocks import column_ranges, row_ranges
from tlx.lower.to_tiles.cost import product_cycles
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe, up
from tlx.target import Dot, Target

_CONFIGURATION: Final = 250  # cycles a call, with the wait for the first tiles that were packed
_STORE: Final = 20  # cycles of a tile of C
_LOAD: Final = 8  # cycles of a tile from the first-level cache, 20 from the second
_FAR_LOAD: Final = 20
_PACKED_ROW: Final = 2.5  # cycles of a row of a packed tile
_MASKED: Final = 2  # times as long takes a row with padding
_FAR_PACKED: Final = 6  # cycles more of a register that comes from beyond the first cache
_FAR_BYTES: Final = 8  # a cycle, from beyond the second cache
_NOTICED: Final = 512  # bytes that could have come until a run is noticed
_CALL: Final = 20  # cycles of a vector kernel's call and loops
_PACKED: Final = 4  # cycles of a register that is packed for vectors
_CORRECTED: Final = 2  # more of one whose columns are added up


def matrix_cycles(gemm: Gemm, recipe: Recipe, target: Target) -> float:
    """Cycles of a product on the matrix unit."""
    matrix, size = target.matrix, bits_of(gemm.a.element) // 8
    assert matrix is not None
    rows, columns, steps = -(-gemm.m // matrix.rows), -(-gemm.n // recipe.lanes), -(-gemm.k // recipe.kstep)
    tiles, terms = rows * columns, len(gemm.sums)
    p, q = min(rows, recipe.mr // matrix.rows), min(columns, recipe.nr // recipe.lanes)
    near = recipe.mr * up(gemm.k, recipe.kstep) * size <= target.caches.l1 // 2
    loads = tiles * steps * terms * ((_LOAD if near else _FAR_LOAD) / q + _FAR_LOAD / p)
    products = tiles * steps * terms * matrix.rows
    deep = _MASKED if gemm.k % recipe.kstep else 1
    packed_a = rows * (_MASKED if any(r.padding for r in row_ranges(gemm, recipe)) else deep)
    packed_b = columns * (_MASKED if any(c.padding for c in column_ranges(gemm, recipe)) else deep)
    packed = (packed_b if recipe.pack_b and not recipe.shared_b else 0) + (packed_a if recipe.pack_a else 0)
    packing = steps * terms * matrix.rows * _PACKED_ROW * packed
    once = _CONFIGURATION if gemm.batch is None else 0  # a loop configures once, and its rounds overlap
    return max(products, loads) + tiles * _STORE + packing + once


def from_afar(cycles: float, gemm: Gemm, recipe: Recipe, target: Target) -> float:
    """Cycles of a kernel by tiles where B comes from beyond the first cache, given those on what lies near.

    Packing waits for it. What is not packed is read in runs as long as a tile is wide, and caches and memory take a
    while to notice each run.
    """
    moves = gemm.b.moves
    if recipe.pack_b and moves > target.caches.l1:
        return cycles + gemm.k * gemm.n * bytes_of(recipe.operand_b) / target.vector_bytes * _FAR_PACKED
    run = min(recipe.nr, gemm.n) * bytes_of(gemm.b.element)
    return max(cycles, moves / _FAR_BYTES * (1 + _NOTICED / run) if moves > target.caches.l2 else 0)


def vector_cycles(gemm: Gemm, recipe: Recipe, target: Target, dot: Dot | None) -> float:
    """Cycles of a product on vector registers, by multiply-adds or a dot product."""
    core, lanes = target.core, recipe.lanes
    terms, steps = len(gemm.sums), -(-gemm.k // recipe.kstep)
    vectors = -(-gemm.n // lanes)
    slower = max(1.0, dot.cycles * core.products) if dot is not None else 1.0
    products = slower * steps * product_cycles(core, gemm.m, vectors, recipe.mr, recipe.nr // lanes)
    corrected = _CORRECTED if recipe.correction != "none" else 0
    row = -(-gemm.k * bits_of(recipe.operand_a) // (8 * target.vector_bytes))
    packed = steps * vectors * (_PACKED + corrected) if recipe.pack_b else 0
    packed += gemm.m * row * _PACKED if recipe.pack_a else 0
    return terms * (products + packed) + _CALL
