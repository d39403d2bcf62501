"""Selects how a product is computed: as it is, transposed, or split, and on each target by a recipe or as row sums.

alternative           is                                          considered
as it is              a recipe: `select`                          always
reduction of rows     a matrix-vector product along K             without knobs
transposed product    C^T = B^T @ A^T                             without knobs, outside of loops, B not constant
split fp16            sums of bf16 products on a matrix unit      without knobs, outside of loops, for one target

The result is data that depends on nothing but the product and the targets, so it is cached. The driver carries it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tlx.lower.knobs import NO_KNOBS, Knobs
from tlx.lower.to_tiles.problem import Gemm, Reduction
from tlx.lower.to_tiles.rewrite.fp16_split import Fp16Split, split_fp16
from tlx.lower.to_tiles.rewrite.products import as_row_reduction, transposed_product
from tlx.lower.to_tiles.select.recipe import Recipe
from tlx.lower.to_tiles.select.recipe_cost import cost
from tlx.lower.to_tiles.select.selection import CACHE_SIZE, select
from tlx.target.target import Target


@dataclass(frozen=True, slots=True)
class Selection:
    """What is computed for a product.

    Attributes:
        problem: The product, or its transpose, whose operands are B and A.
        is_transposed: Whether it is the transpose.
        split: The product as products of bf16 parts.
    """

    problem: Gemm
    is_transposed: bool = False
    split: Fp16Split | None = None


@lru_cache(maxsize=CACHE_SIZE)
def select_product(gemm: Gemm, versions: tuple[Target, ...], *, constant_b: bool) -> Selection:
    """The fastest alternative for a product without knobs outside of loops, on all versions of a target.

    Args:
        gemm: The product.
        versions: The targets; each of them is to gain.
        constant_b: Whether B is packed by the compiler, and so not to become A.
    """
    split = split_fp16(gemm, versions[0]) if len(versions) == 1 else None
    if split is not None:
        return Selection(gemm, split=split)
    other = None if constant_b else transposed_product(gemm)
    if other is not None and all(_cycles(other, version) < _cycles(gemm, version) for version in versions):
        return Selection(other, is_transposed=True)
    return Selection(gemm)


@lru_cache(maxsize=CACHE_SIZE)
def select_kernel(gemm: Gemm, target: Target, knobs: Knobs = NO_KNOBS) -> Recipe | Reduction:
    """How a kernel computes a product on a target: by a recipe or, without knobs, as a reduction of rows.

    Raises:
        UsageError: The knobs do not fit.
    """
    sums = None if knobs else as_row_reduction(gemm, target)
    return select(gemm, target, knobs) if sums is None else sums


def _cycles(gemm: Gemm, target: Target) -> float:
    return cost(gemm, select(gemm, target), target).total
