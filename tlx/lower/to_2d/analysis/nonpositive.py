"""Arguments of `exp` that are not above 0: a tensor less the maxima of its rows, as in a softmax.

    %m = reduce.max(typeinfo(%x, <12, 512, 512>), <1, 1, 512>)
    %b = broadcast(typeinfo(%m, <12, 512>), <12, 512, 512>, <0, 1>)
    %d = fsub %x, %b
    %e = exp(typeinfo(%d)), !tlx.nonpositive !{}

The largest element of a row is in it, so that no difference is positive, rounded or not; those with NaN, or of equal
infinities, are NaN. A product that is fused into the difference (`contract`) is not rounded, so the difference may be
above 0 by the rounding error of the maximum. The code for marked calls is right there, too, up to e^81.
"""

from __future__ import annotations

import math

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.functions import Function
from tlx.ir.module import NONPOSITIVE, Module, is_nonpositive
from tlx.ir.rewrite import definitions
from tlx.ir.tensors.calls import is_tensor_call
from tlx.ir.tensors.inference import analyse
from tlx.ir.tensors.model import FunctionTensors, Tensor
from tlx.ir.values import Local, Value


def mark_nonpositive_exponents(module: Module, function: Function) -> None:
    """Mark the calls of `exp` in a function whose arguments are differences from maxima."""
    if not any(is_tensor_call(i) and ".exp." in f"{i.callee}." for i in function.instructions()):
        return
    tensors, defined = analyse(module, function), definitions(function)
    for op in tensors.ops:
        if op.intrinsic.name != "exp" or is_nonpositive(op.instruction) or op.tensors[0].kind != "value":
            continue
        source = op.tensors[0].source
        difference = defined.get(source.name) if isinstance(source, Local) else None
        if difference is not None and difference.opcode == "fsub" and _is_maximum(tensors, *difference.operands[:2]):
            op.instruction.text += NONPOSITIVE
            op.instruction.trailer += NONPOSITIVE


def _is_maximum(tensors: FunctionTensors, x: Value, maxima: Value) -> bool:
    """Whether each element of a vector is the maximum of a row of `x`, which contains the same element of that."""
    broadcast = tensors.definition_of(maxima)
    if broadcast is None or broadcast.intrinsic.name != "broadcast" or broadcast.scalars:
        return False
    maximum = tensors.definition(broadcast.tensors[0])
    if maximum is None or maximum.intrinsic.name != "reduce.max":
        return False
    operand, repeated = maximum.tensors[0], broadcast.tensors[0].type
    if not (_is_of(tensors, operand, x) and all(t.is_row_major and not t.is_padded for t in (operand.type, repeated))):
        return False
    columns = _reduced_columns(operand.type, maximum.dims[0])
    return columns is not None and columns == _repeated_columns(repeated, *broadcast.dims)


def _is_of(tensors: FunctionTensors, tensor: Tensor, x: Value) -> bool:
    """Whether a flattened vector is that of a tensor."""
    if tensor.kind == "value":
        return str(tensor.source) == str(x)
    vector = tensors.definition_of(x)
    return vector is not None and vector.intrinsic.name == "tovector" and vector.tensors[0] is tensor


def _reduced_columns(type_: TensorType, window: tuple[int, ...]) -> int | None:
    """The length of the rows that a reduction reduces to a number each, as a window of ones and whole dimensions."""
    ones = next((i for i, size in enumerate(window) if size != 1), len(window))
    extents = type_.extents
    return math.prod(window) if tuple(window[ones:]) == tuple(extents[ones:]) else None


def _repeated_columns(type_: TensorType, extents: tuple[int, ...], dims: tuple[int, ...]) -> int | None:
    """How often a broadcast repeats each element; None if it repeats anything else."""
    own = list(type_.extents)
    while own and own[-1] == 1:
        own.pop()
    is_outer = list(dims[: len(own)]) == list(range(len(own))) and list(extents[: len(own)]) == own
    return math.prod(extents[len(own) :]) if is_outer else None
