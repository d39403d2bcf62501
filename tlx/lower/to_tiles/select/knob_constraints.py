"""Knobs as constraints on a recipe: obeyed if they fit, otherwise an error tells what would fit.

A register tile of MxN elements takes `rows * vectors + min(rows, vectors) + 1` registers: the accumulators, the operand
that stays in registers, and one register of the other operand.
"""

from __future__ import annotations

from tlx.diagnostics import UsageError
from tlx.lower.cost import needed_registers
from tlx.lower.knobs import Knobs, value_text
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.select.recipe import Recipe
from tlx.target.matrix_unit import TileKind
from tlx.target.target import Target


def vector_tile(knobs: Knobs, target: Target, lanes: int, *, spare: int) -> tuple[int, int] | None:
    """The requested tile as rows and vectors; None if none is requested.

    Raises:
        UsageError: It does not fit the registers.
    """
    if knobs.tile is None:
        return None
    mr, nr = knobs.tile
    if nr % lanes:
        fit = _near(mr, nr, lanes)
        raise UsageError(f"tile {mr}x{nr}: columns must fill whole registers of {lanes} elements; use {_listed(fit)}")
    needed = needed_registers(mr, nr // lanes, spare=spare)
    if needed > target.registers:
        fit = _fitting(mr, nr // lanes, lanes, target.registers, spare=spare)
        raise UsageError(
            f"tile {mr}x{nr} needs {needed} registers, and {target.name} has {target.registers}; use {_listed(fit)}"
        )
    return mr, nr // lanes


def matrix_grid(knobs: Knobs, kind: TileKind, rows: int) -> tuple[int, int] | None:
    """The requested tile as a matrix unit's accumulators along M and N; None if none is requested.

    Args:
        knobs: What is requested.
        kind: The accumulators.
        rows: Rows that they have for this product; the request may count full ones instead.

    Raises:
        UsageError: It does not consist of whole accumulators, or of too many; or prefetches are requested.
    """
    if knobs.ahead:
        raise UsageError(f"ahead={knobs.ahead}: a matrix unit's kernel does not prefetch")
    if knobs.tile is None:
        return None
    counts = range(1, kind.registers + 1)
    fit = [(p, q) for p in counts for q in counts if kind.fits(p, q)]
    for height in dict.fromkeys((rows, kind.rows)):
        grid = knobs.tile[0] // height, knobs.tile[1] // kind.columns
        if (grid[0] * height, grid[1] * kind.columns) == knobs.tile and grid in fit:
            return grid
    largest = [(p * kind.rows, q * kind.columns) for p, q in fit if not kind.fits(p + 1, q) and not kind.fits(p, q + 1)]
    raise UsageError(
        f"tile {value_text(knobs.tile)}: the matrix unit adds up tiles of {kind.rows}x{kind.columns} side by side; "
        f"the largest are {_listed(largest)}"
    )


def packing(name: str, requested: bool | None, needed: str, default: bool) -> bool:
    """Whether an operand is packed.

    Args:
        name: The operand.
        requested: What the knobs request; None for nothing.
        needed: Why it has to be packed; empty where it need not.
        default: The decision where the knobs request nothing.

    Raises:
        UsageError: It has to be packed, and the knobs forbid it.
    """
    if requested is False and needed:
        raise UsageError(f"pack_{name.lower()}=false: {name} has to be packed, as {needed}")
    return bool(needed) or (default if requested is None else requested)


def k_block(gemm: Gemm, knobs: Knobs, step: int, *, splits: bool, default: int) -> int:
    """Positions of K in a pass.

    Args:
        gemm: The product.
        knobs: What is requested.
        step: Positions of the inner loop's step.
        splits: Whether K can be split into passes.
        default: The decision where nothing is requested.

    Raises:
        UsageError: The request cannot be met.
    """
    if knobs.kc is None or knobs.kc >= gemm.k or len(gemm.term_offsets) > 1:
        return default if knobs.kc is None else gemm.k
    if not splits:
        raise UsageError(f"kc={knobs.kc}: all {gemm.k} of K are added up in registers; leave out kc")
    if knobs.kc % step:
        raise UsageError(f"kc={knobs.kc}: the inner loop has steps of {step}; use {-(-knobs.kc // step) * step}")
    return knobs.kc


def blocks(gemm: Gemm, knobs: Knobs, recipe: Recipe) -> tuple[int, int]:
    """Rows and columns of a cache block.

    Raises:
        UsageError: A block is smaller than a register tile.
    """
    mc, nc = knobs.mc or recipe.blocks.mc, knobs.nc or recipe.blocks.nc
    mr, nr = recipe.tile.mr, recipe.tile.nr
    for name, block, tile, extent in (("mc", mc, mr, gemm.m), ("nc", nc, nr, gemm.n)):
        if block < min(tile, extent):
            raise UsageError(f"{name}={block}: a block holds at least one register tile of {mr}x{nr}")
    return min(mc, gemm.m), min(nc, gemm.n)


def _fitting(mr: int, nv: int, lanes: int, registers: int, *, spare: int) -> list[tuple[int, int]]:
    """The tallest tile of as many columns, and the largest one of one vector more or less."""
    tiles: list[tuple[int, int]] = []
    for vectors in dict.fromkeys((nv, max(1, nv - 1), nv + 1, max(1, nv // 2), 2, 1)):
        rows = next((r for r in range(registers, 0, -1) if needed_registers(r, vectors, spare=spare) <= registers), 0)
        rows = min(rows, mr) if vectors < nv else rows
        if rows:
            tiles.append((rows, vectors * lanes))
    best = sorted(tiles, key=lambda t: -t[0] * t[1])[:2]
    return sorted(best, reverse=True)


def _near(mr: int, nr: int, lanes: int) -> list[tuple[int, int]]:
    below = max(lanes, nr // lanes * lanes)
    return [(mr, columns) for columns in dict.fromkeys((below, nr // lanes * lanes + lanes))]


def _listed(tiles: list[tuple[int, int]]) -> str:
    *first, last = (f"{rows}x{columns}" for rows, columns in tiles)
    return f"{', '.join(first)} or {last}" if first else last
