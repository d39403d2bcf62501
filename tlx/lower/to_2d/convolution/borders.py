"""Borders: convolutions that copy their input read it without its padding, and write the border into the copy.

So do convolutions in phases with an input that a pad of zeros dilates, whose holes no phase reads.

Rewrite of a convolution whose input is copied with channels innermost::

    %p = pad(%x), 1 on each side of rows and columns          nothing
    %y = convolution(%p, %w)                            ->    %last.buf = border, and %x with channels innermost
                                                              %y = products of %w and windows of %last.buf

A pad that anything else reads, or a convolution that reads its input in place, keeps its buffer.
"""

from __future__ import annotations

from dataclasses import replace

from tlx.intrinsics.convolution import Windows
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.values import ConstFloat, ConstInt
from tlx.lower.to_2d.contraction.problem import ContractionResult
from tlx.lower.to_2d.convolution.dense import copies_input
from tlx.lower.to_2d.convolution.dilated import DilatedInput
from tlx.lower.to_2d.convolution.problem import DenseConvolution
from tlx.lower.to_2d.convolution.transposed import TransposedConvolution
from tlx.lower.to_2d.fusion import has_dilated_input, is_reduction
from tlx.lower.to_2d.memory.operand_views import OperandViews, SymbolicStorage
from tlx.lower.to_2d.memory.padding import PaddedSource, is_crop, padded_dims


def find_borders(operands: OperandViews) -> frozenset[str]:
    """Names of the pads whose border is written by the convolutions that read them."""
    estimated = replace(operands, storage=SymbolicStorage())
    return frozenset(
        str(op.instruction.result)
        for op in operands.facts.tensors.ops
        if op.intrinsic.name == "pad" and (is_border(op) or _dilates(op)) and _is_copied_by_all(estimated, op)
    )


def is_border(pad: TensorOp) -> bool:
    """Whether a pad has no other effect than a border around the spatial dimensions of an input."""
    source, dims = pad.tensors[0].type, padded_dims(pad)
    is_identity = all(
        (dim.first, dim.count, dim.step) == (0, extent, 1) for dim, extent in zip(dims, source.extents, strict=True)
    )
    return is_identity and any(dim.outside for dim in dims) and not source.is_padded


def _dilates(pad: TensorOp) -> bool:
    """Whether a pad writes zeros between the elements of an input."""
    value = pad.scalars[0]
    is_zero = isinstance(value, ConstInt | ConstFloat) and str(value.value) in ("0", "0.0")
    return is_zero and not pad.tensors[0].type.is_padded and any(dim.is_spread for dim in padded_dims(pad))


def padded_source(operands: OperandViews, tensor: Tensor) -> PaddedSource | None:
    """What an operand is copied from if its border is not in memory; None if it is."""
    pad = operands.view_of(tensor)
    if pad is None or pad.intrinsic.name != "pad" or is_crop(pad):
        return None
    return _source_of(operands, pad, tensor.type)


def _source_of(operands: OperandViews, pad: TensorOp, read_as: TensorType) -> PaddedSource:
    """The input of a convolution that takes the result of a pad as a tensor of a type, with dimensions in any order."""
    source = PaddedSource(operands.view(pad.tensors[0]).row_major, tuple(padded_dims(pad)), pad.scalars[0])
    return source.laid_out(read_as)


def _is_copied_by_all(operands: OperandViews, pad: TensorOp) -> bool:
    """Whether only convolutions that copy their input read a pad."""
    facts = operands.facts
    users = [use.instruction for use in facts.vectors.uses.get(str(pad.instruction.result), [])]
    tokens = [facts.tensors.tokens.get(user.result or "") for user in users]
    if not users or not all(t is not None and t.kind == "value" and _has_dims_of(t.type, pad) for t in tokens):
        return False
    readers = [use.instruction for user in users for use in facts.vectors.uses.get(str(user.result), [])]
    return all(_copies(operands, pad, facts.tensors.op_of(reader)) for reader in readers)


def _has_dims_of(type_: TensorType, pad: TensorOp) -> bool:
    """Whether a token has the dimensions of a pad's result, in any order."""
    if pad.result is None or not pad.result.is_row_major or type_.rank != pad.result.rank:
        return False
    return replace(type_, layout=pad.result.layout) == pad.result


def _copies(operands: OperandViews, pad: TensorOp, op: TensorOp | None) -> bool:
    """Whether an operation is a convolution that copies the result of a pad, which is its input."""
    if op is None or op.intrinsic.name != "convolution" or has_dilated_input(op) or op.result is None:
        return False
    x, w = op.tensors
    roots = [operands.facts.vectors.root(tensor.source) for tensor in (x, w)]
    is_input = [root == pad.instruction.value for root in roots] == [True, False]
    if not is_input or is_reduction(operands.groups.root_of(op)):
        return False
    windows = Windows.of(x.type.rank, op.dims)
    source = _source_of(operands, pad, x.type)
    if not all(dim.is_identity for dim in source.dims[: x.type.rank - len(windows.strides)]):
        return False
    result = ContractionResult(operands.product_view(op))
    if source.is_spread:
        dilated = TransposedConvolution.of_padded(source, operands.view(w), windows, result)
        return DilatedInput(source.data, source.dims).faster_phases(operands.facts.target, dilated) is not None
    problem = DenseConvolution(source.view, operands.view(w), windows, result, padding=source)
    return copies_input(operands.facts.target, problem)
