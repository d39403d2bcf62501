"""Remarks about each kernel: how it multiplies, with which tile and blocks, its predicted speed, and why."""

from __future__ import annotations

from typing import Final

from tlx.diagnostics import size_text
from tlx.ir.instructions import Instruction
from tlx.ir.types import bits_of
from tlx.lower.context import LoweringContext
from tlx.lower.knobs import Knobs
from tlx.lower.remarks import Prediction
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import Elementwise, Gemm, Reduction, RowFusion
from tlx.lower.to_tiles.select.blocking import FEW_PAGE_OFFSETS, distinct_page_offsets
from tlx.lower.to_tiles.select.elementwise import fused_block_rows, roofline
from tlx.lower.to_tiles.select.recipe import Recipe, row_ranges
from tlx.lower.to_tiles.select.selection import fits_matrix_unit
from tlx.target.costs.memory import Caches
from tlx.target.target import Target

_UNITS: Final = {"fma": "multiply-add", "dot": "dot product", "matrix": "matrix unit"}


def for_version(target: Target, text: str) -> str:
    """`avx2: text` where the target is one of several, as knobs files name it."""
    return f"{target.name}: {text}" if target.level else text


def describe_kernel(problem: Elementwise | Reduction | RowFusion, target: Target) -> str:
    """What a kernel without a product does, and what bounds it."""
    if isinstance(problem, Elementwise):
        return _describe_map(problem, target)
    return _describe_rows(problem, target) if isinstance(problem, RowFusion) else _describe_reduction(problem, target)


def _describe_map(problem: Elementwise, target: Target) -> str:
    """What an elementwise kernel does, and what bounds it."""
    value = problem.value
    head = f"map {value.rows}x{value.cols} {problem.destination.element}: {value.summary or 'copy'} in one pass"
    return f"{head}; {_bound(problem, target)}"


def _describe_reduction(problem: Reduction, target: Target) -> str:
    """What a reducing kernel does, and what bounds it."""
    value = problem.value
    text = f"reduce.{problem.operation} {value.rows}x{value.cols} {value.element}"
    text += f" of {value.summary}" if value.summary else ""
    details = [f"dot products of {problem.products}"] if problem.products > 1 else []
    details += [f"then {problem.epilogue.summary}"] if problem.epilogue is not None else []
    return f"{', '.join([text, *details])}{',' if details else ''} in one pass; {_bound(problem, target)}"


def _describe_rows(problem: RowFusion, target: Target) -> str:
    """What a kernel of fused rows does, and what bounds it."""
    steps = "; ".join(_step(part.problem) for part in problem.parts)
    last = problem.parts[-1].problem
    count = fused_block_rows(problem, target.caches)
    blocks = f"{count} rows" if count > 1 else "one row"
    head = f"rows {problem.rows}x{last.value.cols} {last.destination.element}: {steps}"
    return f"{head}: one pass, {blocks} at a time; {_bound(problem, target)}"


def _bound(problem: Elementwise | Reduction | RowFusion, target: Target) -> str:
    """`moves 192.0 MiB, beyond the caches: bound by memory; non-temporal stores`, or `bound by instructions`."""
    bound = roofline(problem, target)
    is_far = bound.level == "memory"
    where = "beyond the caches" if is_far else f"in the {bound.level} cache"
    holder = "memory" if is_far else "that cache"
    by = f"bound by {holder}"
    if bound.share < 1:
        by = f"bound by instructions, about {100 * bound.share:.0f} % of the bandwidth of {holder}"
    stores = "; non-temporal stores" if bound.nontemporal else ""
    return f"moves {size_text(bound.bytes_moved)}, {where}: {by}{stores}"


def _step(problem: Elementwise | Reduction) -> str:
    summary = problem.value.summary
    if isinstance(problem, Elementwise):
        return summary or "copy"
    return f"reduce.{problem.operation}{f' of {summary}' if summary else ''}"


def describe_product(gemm: Gemm, recipe: Recipe, knobs: Knobs, target: Target) -> str:
    """How a product is computed and why, the origin of its knobs, and the share of the peak that it should reach."""
    mma, packed = recipe.mma, [name for name, on in (("A", recipe.packing.a), ("B", recipe.packing.b)) if on]
    head = (
        f"{gemm.title}: {_UNITS[mma.unit]} {mma.operand_a} x {mma.operand_b} -> {mma.accumulator}, "
        f"register tile {recipe.tile.mr}x{recipe.tile.nr}, "
        f"{'packed ' + ' and '.join(packed) if packed else 'nothing packed'}, "
        f"blocks M {recipe.blocks.mc}, N {recipe.blocks.nc}, K {recipe.blocks.kc}"
    )
    parts = [head]
    if gemm.epilogue is not None:
        operations = [gemm.epilogue.summary, f"reduce.{gemm.reduction[0]}" if gemm.reduction else ""]
        parts.append(f"epilogue: {', '.join(filter(None, operations))}")
    parts.append(f"about {100 * recipe.efficiency:.0f} % of peak")
    parts += _reasons(gemm, recipe, knobs, target)
    if knobs.origin is not None:
        parts.append(f"{knobs} {knobs.origin.text}")
    return "; ".join(parts)


def remark_product(
    context: LoweringContext, gemm: Gemm, recipe: Recipe, knobs: Knobs, target: Target, at: Instruction
) -> None:
    """Add remarks on how a product is computed and, where the matrix unit cannot compute it, on why."""
    text = describe_product(gemm, recipe, knobs, target)
    prediction = None if gemm.all_pairs else Prediction(recipe.mma.unit, recipe.efficiency)
    context.remarks.add("applied", "to-tiles", for_version(target, text), at.span, prediction)
    if target.matrix is not None and recipe.mma.unit != "matrix" and not fits_matrix_unit(gemm, target):
        missed = f"{gemm.title}: the matrix unit of {target.name} does not multiply these types; vector code is used"
        context.remarks.add("missed", "to-tiles", for_version(target, missed), at.span)


def _reasons(gemm: Gemm, recipe: Recipe, knobs: Knobs, target: Target) -> list[str]:
    reasons: list[str] = []
    if recipe.tile.streamed_rows:
        reasons.append(f"B read once, unpacked, {recipe.tile.streamed_rows} rows at a time")
    elif recipe.mma.unit != "matrix" and target.matrix is not None and fits_matrix_unit(gemm, target):
        reasons.append("too small for the matrix unit")
    if gemm.all_pairs:
        reasons.append("each half is the sum of two bfloat numbers")
    if recipe.packing.a and knobs.pack_a is None:
        reasons.append(f"A packed: {_why_pack_a(gemm, recipe, target.caches)}")
    if recipe.packing.b and knobs.pack_b is None:
        reasons.append(f"B packed: {_why_pack_b(gemm.b, recipe, target.caches)}")
    if recipe.tile.dot_columns:
        columns = "column is" if recipe.tile.dot_columns == 1 else f"{recipe.tile.dot_columns} columns are"
        reasons.append(f"the last {columns} summed along K")
    if recipe.tile.paired_columns:
        columns = "column is" if recipe.tile.paired_columns == 1 else f"{recipe.tile.paired_columns} columns are"
        reasons.append(f"the last {columns} summed by pairs along K")
    if recipe.prefetch.b_steps:
        reasons.append(f"B prefetched {recipe.prefetch.b_steps} steps ahead")
    if recipe.prefetch.locality:
        operands = (
            "the next iteration's operands"
            if recipe.prefetch.distance == 1
            else f"the operands {recipe.prefetch.distance} iterations ahead"
        )
        reasons.append(f"{operands if gemm.batch else 'B of the next pass'} prefetched")
    if recipe.prefetch.operands:
        reasons.append(f"{_joined(recipe.prefetch.operands)} of the next tiles prefetched")
    if not gemm.c.is_row_major:
        reasons.append("C stored column by column")
    if recipe.stores.prefetches_lines:
        reasons.append("C prefetched")
    if recipe.stores.nontemporal:
        reasons.append("C written by non-temporal stores")
    return reasons


def _joined(operands: str) -> str:
    """`C, A and B` for "CAB"."""
    *most, last = operands
    return " and ".join(filter(None, (", ".join(most), last)))


def _why_pack_a(gemm: Gemm, recipe: Recipe, caches: Caches) -> str:
    """The first reason why A is not read in place."""
    if recipe.mma.operand_a != gemm.a.element:
        return f"{gemm.a.element} becomes {recipe.mma.operand_a}"
    if not gemm.a.is_row_major:
        return "it is column-major"
    if recipe.mma.correction != "none":
        return "its bytes change sign" if recipe.mma.correction == "columns" else "its rows are summed"
    if gemm.k % recipe.tile.kstep:
        return f"K {gemm.k} is padded to a multiple of {recipe.tile.kstep}"
    if any(rows.padding for rows in row_ranges(gemm, recipe)):
        return f"M {gemm.m} is padded to a multiple of {recipe.tile.mr}"
    if recipe.mma.unit == "matrix" and gemm.a.row_stride * bits_of(gemm.a.element) // 8 % caches.line_bytes:
        return "its rows cross cache lines"
    return "its panels are read again by every panel of B"


def _why_pack_b(view: MatrixView, recipe: Recipe, caches: Caches) -> str:
    """The first reason why B is not read in place."""
    if recipe.mma.operand_b != view.element:
        return f"{view.element} becomes {recipe.mma.operand_b}"
    if recipe.mma.width > view.interleave:
        return f"the {_UNITS[recipe.mma.unit]} reads groups of {recipe.mma.width} along K"
    if not view.is_row_major and view.interleave == 1:
        return "it is column-major"
    if recipe.mma.correction != "none":
        return "its columns are summed" if recipe.mma.correction == "columns" else "its bytes change sign"
    size, pitch = bits_of(view.element) // 8, view.row_stride * view.interleave * bits_of(view.element) // 8
    if pitch % caches.page_bytes == 0:
        return f"rows {size_text(pitch)} apart share cache sets"
    if view.size * size > caches.l2:
        return f"{size_text(view.size * size)} exceed L2's {size_text(caches.l2)}"
    if distinct_page_offsets(pitch, caches) <= FEW_PAGE_OFFSETS:
        return f"rows {size_text(pitch)} apart share cache sets"
    return "its panels are read again by every row of tiles"
