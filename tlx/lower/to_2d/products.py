"""Matrix products between views, batch by batch, as contractions.

Used by `matmul` and `mma`, which show before and after.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.ir.types import FloatType
from tlx.lower.to_2d.blocks import emit_contraction
from tlx.lower.to_2d.contraction import MMA, Contraction, Epilogue, Memory, Result
from tlx.lower.to_2d.copies import copy
from tlx.lower.to_2d.views import View, matrix
from tlx.types import TensorType

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan

__all__ = ["MMA", "Product", "emit_product"]


@dataclass(frozen=True)
class Product:
    """A product to emit.

    Attributes:
        kind: `matmul`, or umma, smma, usmma, summa.
        lhs: `B... x M x K`.
        rhs: `B... x K x N`.
        target: `B... x M x N`, apart from the operands.
        acc: `B... x M x N`: None for matmul, and for an accumulator of zeros. It is the target itself or apart from it.
    """

    kind: str
    lhs: View
    rhs: View
    target: View
    acc: View | None = None


def emit_product(
    plan: Plan, b: TensorBuilder, op: TensorOp, product: Product, epilogue: Epilogue | None = None
) -> None:
    """Write a product as loops over its batch around a 2-D tree.

    Args:
        plan: The plan of the function; it gives memory for operands that have to be copied first.
        b: Where.
        op: The operation it is.
        product: The operands and the result.
        epilogue: What happens to the product before it is stored.
    """
    product = _with_accumulator(plan, b, product, epilogue)
    emit_contraction(plan, b, op, _contraction(product, epilogue), epilogue)


def _contraction(product: Product, epilogue: Epilogue | None) -> Contraction:
    result = Result(product.target, product.acc, epilogue)
    lhs, rhs = product.lhs.dims, product.rhs.dims
    last = len(lhs) - 1
    batch = tuple(result.free(d, lhs[d].extent, lhs=lhs[d].stride, rhs=rhs[d].stride) for d in range(last - 1))
    return Contraction(
        product.kind,
        Memory.of(product.lhs),
        Memory.of(product.rhs),
        Memory.of(product.target),
        batch,
        (result.free(last - 1, lhs[-2].extent, lhs=lhs[-2].stride),),
        (result.free(last, rhs[-1].extent, rhs=rhs[-1].stride),),
        (result.summed(lhs[-1].extent, lhs[-1].stride, rhs[-2].stride),),
        None if product.acc is None else Memory.of(product.acc),
    )


# Accumulators --------------------------------------------------------------------------------------------------------


def _with_accumulator(plan: Plan, b: TensorBuilder, product: Product, epilogue: Epilogue | None) -> Product:
    """The product with an accumulator that 2-D loads can read as rows: a copy of it where it is not; None is zeros."""
    if product.kind not in MMA or (product.acc is not None and _is_usable(product, product.acc)):
        return product
    if product.acc is None:
        return replace(product, kind="matmul") if _is_matmul(product) else product
    acc = _new_accumulator(plan, product, epilogue)
    copy(b, product.acc, acc)
    return replace(product, acc=acc)


def _is_usable(product: Product, acc: View) -> bool:
    found = matrix(acc)
    return acc.is_same(product.target) or (found is not None and found.type.is_row_major)


def _is_matmul(product: Product) -> bool:
    """Whether a product added to zeros is what `matmul` computes: signs do not matter where nothing is extended."""
    elements = {view.element for view in (product.lhs, product.rhs, product.target)}
    return product.kind == "smma" or len(elements) == 1 or isinstance(product.target.element, FloatType)


def _new_accumulator(plan: Plan, product: Product, epilogue: Epilogue | None) -> View:
    """Memory for the accumulator: the target, unless the epilogue makes something else of it."""
    target = product.target
    if epilogue is None or (epilogue.may_use_target and epilogue.element == target.element):
        return target
    type_ = TensorType.dense(epilogue.element, [dim.extent for dim in target.dims])
    return View.of(plan.new_place(type_.element, type_.count, "acc"), type_)
