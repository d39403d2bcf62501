"""A picture of how a kernel cuts its matrices into cache blocks, panels and register tiles."""

from __future__ import annotations

from typing import Final

from tlx.explain.html import Markup, tag
from tlx.explain.svg import picture, text
from tlx.lower.to_tiles.kernels import KernelFacts
from tlx.lower.to_tiles.problem import Elementwise, Gemm, RowFusion
from tlx.lower.to_tiles.select.elementwise import elementwise_tile, fused_block_rows
from tlx.lower.to_tiles.select.recipe import Recipe

_LONG: Final = 200
_SHORT: Final = 34
_MARGIN: Final = 30
_MOST_LINES: Final = 40


def tiles(facts: KernelFacts) -> Markup:
    """The matrices of a kernel, cut into blocks and tiles; empty if there is nothing to show."""
    problem = facts.problem
    if isinstance(problem, Gemm):
        return _product_tiles(problem, facts.recipe) if facts.recipe is not None else Markup()
    if isinstance(problem, Elementwise):
        shape = elementwise_tile(problem, facts.target)
        value = problem.value
        return _one_matrix(value.rows, value.cols, shape.rows, shape.cols, "tile")
    if isinstance(problem, RowFusion):
        cols = max(part.problem.value.cols for part in problem.parts)
        return _one_matrix(
            problem.rows, cols, fused_block_rows(problem, facts.target.caches), cols, "rows of all trees"
        )
    return Markup()


def _length(extent: int, longest: int) -> float:
    return max(_SHORT, _LONG * extent / longest)


def _product_tiles(gemm: Gemm, recipe: Recipe) -> Markup:
    """A to the left of C, and B above it, so that each row of A meets each column of B in an element of C."""
    longest = max(gemm.m, gemm.n, gemm.k)
    m, n, k = (_length(extent, longest) for extent in (gemm.m, gemm.n, gemm.k))
    x, y = _MARGIN + k + 22, _MARGIN + k + 22
    blocks, tile = recipe.blocks, recipe.tile
    mc, nc, kc = (
        min(1.0, block / extent) for block, extent in ((blocks.mc, gemm.m), (blocks.nc, gemm.n), (blocks.kc, gemm.k))
    )
    mr, nr = max(3.0, min(1.0, tile.mr / gemm.m) * m), max(3.0, min(1.0, tile.nr / gemm.n) * n)
    panels = gemm.n / tile.nr if recipe.packing.b else 0
    parts = [
        _matrix("A", _MARGIN, y, k, m, "packed" if recipe.packing.a else ""),
        _matrix("B", x, _MARGIN, n, k, "packed" if recipe.packing.b else ""),
        _matrix("C", x, y, n, m, ""),
        _area(_MARGIN, y, k * kc, m * mc, "block", f"block of A: {min(blocks.mc, gemm.m)}x{min(blocks.kc, gemm.k)}"),
        _area(x, _MARGIN, n * nc, k * kc, "block", f"block of B: {min(blocks.kc, gemm.k)}x{min(blocks.nc, gemm.n)}"),
        _area(x, y, n * nc, m * mc, "block", f"block of C: {min(blocks.mc, gemm.m)}x{min(blocks.nc, gemm.n)}"),
        _area(_MARGIN, y, k * kc, mr, "tile", f"{tile.mr} rows of A"),
        _area(x, _MARGIN, nr, k * kc, "tile", f"panel of B: {tile.nr} columns"),
        _area(x, y, nr, mr, "tile", f"register tile: {tile.mr}x{tile.nr}"),
    ]
    if 1 < panels <= _MOST_LINES:
        step = n * tile.nr / gemm.n
        lines = range(1, int(panels) + (panels != int(panels)))
        parts += [
            tag("line", x1=x + i * step, y1=_MARGIN, x2=x + i * step, y2=_MARGIN + k, class_="panel") for i in lines
        ]
    parts += [
        text(_MARGIN + k / 2, y - 7, f"K {gemm.k}", "extent"),
        text(x + n / 2, _MARGIN - 8, f"N {gemm.n}", "extent"),
        text(x - 7, _MARGIN + k / 2, f"K {gemm.k}", "extent", "end"),
        text(_MARGIN + k / 2, y + m + 17, "A", "name"),
        text(x + n + 10, _MARGIN + k / 2 + 4, "B", "name"),
        text(x + n / 2, y + m + 17, "C", "name"),
        tag(
            "g",
            text(0, 0, f"M {gemm.m}", "extent"),
            transform=f"translate({_MARGIN - 10:.1f} {y + m / 2:.1f}) rotate(-90)",
        ),
    ]
    label = (
        f"Blocks of the product: A is {gemm.m}x{gemm.k}, B {gemm.k}x{gemm.n}, C {gemm.m}x{gemm.n}; "
        f"register tile {tile.mr}x{tile.nr}"
    )
    return picture(x + n + _MARGIN, y + m + 26, label, *parts, class_="tiles")


def _matrix(name: str, x: float, y: float, width: float, height: float, note: str) -> Markup:
    shape = tag("rect", x=x, y=y, width=width, height=height, rx=2, class_=f"matrix {note}".strip())
    title = tag("title", f"{name}{', packed into panels' if note else ''}")
    return tag("g", title, shape)


def _area(x: float, y: float, width: float, height: float, kind: str, label: str) -> Markup:
    return tag("rect", tag("title", label), x=x, y=y, width=width, height=height, rx=1.5, class_=kind)


def _one_matrix(rows: int, cols: int, tile_rows: int, tile_cols: int, what: str) -> Markup:
    longest = max(rows, cols)
    width, height = _length(cols, longest), _length(rows, longest)
    tile_rows, tile_cols = min(tile_rows, rows), min(tile_cols, cols)
    tile = max(3.0, width * tile_cols / cols), max(3.0, height * tile_rows / rows)
    label = f"{rows}x{cols} elements, {tile_rows}x{tile_cols} at a time: {what}"
    parts = [
        _matrix("", _MARGIN, _MARGIN, width, height, ""),
        _area(_MARGIN, _MARGIN, *tile, "tile", f"{what}: {tile_rows}x{tile_cols}"),
        text(_MARGIN + width / 2, _MARGIN - 8, f"{cols} columns", "extent"),
        tag(
            "g",
            text(0, 0, f"{rows} rows", "extent"),
            transform=f"translate({_MARGIN - 10} {_MARGIN + height / 2:.1f}) rotate(-90)",
        ),
    ]
    return picture(max(width + 2 * _MARGIN, 150), height + _MARGIN + 14, label, *parts, class_="tiles")
