"""Operands of products that are converted from bytes: products of 8-bit floats, where the target multiplies these.

Rewrite, with units for such products::

    %h = convert.from.arbitrary.fp(%x, "Float8E4M3FN")      nothing
    %g = convert.from.arbitrary.fp(%y, "Float8E5M2")    ->  nothing
    %p = matmul(%h, %g)                                     a product that reads %x.buf and %y.buf; the conversions
                                                            are part of its tree

Elsewhere, conversions are operations like others, and products read their results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tlx.intrinsics.small_floats import E4M3, E5M2, FROM_SMALL
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import DOUBLE, scalar_of
from tlx.lower.operations import ElementwiseOp
from tlx.lower.remarks import Remarks
from tlx.lower.to_2d.analysis.tensor_operations import MMA, STAGE
from tlx.lower.to_2d.memory.operand_views import OperandViews, SymbolicStorage

_PRODUCTS = MMA | {"matmul", "contract"}
_FORMATS = (E4M3.short, E5M2.short)


def find_small_float_operands(operands: OperandViews, remarks: Remarks) -> frozenset[str]:
    """Names of the conversions that are only read by products which the target computes on the bytes."""
    grid = operands.facts.target.grid
    pairs = [] if grid is None else [(unit.lhs[1], unit.rhs[1]) for unit in grid.products]
    units = [pair for pair in pairs if pair[0] in _FORMATS]
    if not units:
        return frozenset()
    candidates = {str(op.instruction.result): op for op in operands.facts.tensors.ops if _widens(op)}
    found, size = candidates, -1
    while size != len(found):  # an operand is read as bytes only if the other one is
        size = len(found)
        estimated = replace(operands, storage=SymbolicStorage(), views=operands.views | found.keys())
        found = {
            name: op for name, op in found.items() if all(_suits(estimated, p, units) for p in _uses(estimated, op))
        }
    for name in candidates.keys() - found.keys():
        _explain(operands, candidates[name], remarks)
    return frozenset(found)


def _explain(operands: OperandViews, op: TensorOp, remarks: Remarks) -> None:
    """Say why an operand of a product, or of a convolution, is converted before."""
    readers = [reader.intrinsic.name for reader in _uses(operands, op) if reader is not None]
    if not any(name in _PRODUCTS or name == "convolution" for name in readers):
        return
    is_product = bool(_PRODUCTS.intersection(readers))
    reason = "products take bytes if nothing else reads them" if is_product else "convolutions do not take bytes"
    message = f"8-bit floats are converted before they are multiplied: {reason}"
    remarks.add("missed", STAGE, message, op.instruction.span)


def _widens(op: TensorOp) -> bool:
    """Whether an operation converts bytes to floats."""
    operation = ElementwiseOp.of(op.instruction)
    return operation is not None and operation.callee == FROM_SMALL and scalar_of(op.instruction.type) != DOUBLE


def _uses(operands: OperandViews, op: TensorOp) -> list[TensorOp | None]:
    """The products that read a conversion; None for each use that is not an operand of a product."""
    facts = operands.facts
    found: list[TensorOp | None] = []
    for use in facts.vectors.uses.get(str(op.instruction.result), []):
        token = facts.tensors.tokens.get(use.instruction.result or "")
        if token is None or token.kind != "value":
            return [None]
        readers = facts.vectors.uses.get(str(use.instruction.result), [])
        found += [facts.tensors.op_of(reader.instruction) for reader in readers]
    return found


def _suits(operands: OperandViews, product: TensorOp | None, units: Sequence[tuple[str, str]]) -> bool:
    """Whether both operands of a product, and no accumulator, are converted from formats that a unit multiplies."""
    if product is None or product.intrinsic.name not in _PRODUCTS or product.result is None:
        return False
    *acc, lhs, rhs = product.tensors
    if any(_format(operands, tensor) for tensor in acc) or product.result.element == DOUBLE:
        return False
    return (_format(operands, lhs), _format(operands, rhs)) in units


def _format(operands: OperandViews, tensor: Tensor) -> str:
    """The format of an operand that is read as bytes; empty for others."""
    if operands.view_of(tensor) is None or tensor.type.is_padded:
        return ""
    view = operands.view(tensor)
    return view.small_floats.format.short if view.small_floats is not None and view.shape == tensor.type.shape else ""
