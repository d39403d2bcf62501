"""What a tensor call computes, given its operands: the type of its result, and the rules for stores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from tlx.diagnostics import Note
from tlx.intrinsics import Kind, RuleError, extents_text
from tlx.ir.tensor_calls import ELEMENT_TYPES, Call, bad_element, operand_span, pointer_element
from tlx.ir.tensors import Tensor, TensorOp
from tlx.ir.types import VectorType
from tlx.types import TensorType, vector_text


def checked_operation(call: Call, tensors: tuple[Tensor, ...], dims: tuple[tuple[int, ...], ...]) -> TensorOp:
    """The operation that a call is.

    Args:
        call: The call.
        tensors: What its tokens stand for.
        dims: Values of its operands that are constant vectors.

    Raises:
        VerifyError: Its operands or its result break a rule.
    """
    if call.intrinsic.result == "void":
        return _store(call, tensors, dims)
    scalars = tuple(call.values(Kind.SCALAR))
    result = _result(call, tensors, dims)
    for operand, value in call.arguments:
        if operand.kind is Kind.SCALAR and value.type != result.element:
            message = f"{operand.name} is {value.type} and the tensor's elements are {result.element}"
            raise call.error(message, value, _declared(call, tensors))
    return TensorOp(call.instruction, call.intrinsic, tensors, dims, scalars, result)


def _store(call: Call, tensors: tuple[Tensor, ...], dims: tuple[tuple[int, ...], ...]) -> TensorOp:
    type_ = tensors[0].type
    pointer = call.values(Kind.POINTER)[0]
    pitches = dims[0]
    check_pitches(call, type_.shape, pitches)
    for dimension, (pitch, extent) in enumerate(zip(pitches, type_.data_shape, strict=True)):
        if dimension and pitch and pitch < extent:
            message = f"stride {pitch} of dimension {dimension} is less than its extent {extent}: rows would overlap"
            raise call.error(message, call.named("strides"), _declared(call, tensors))
    element = pointer_element(call, pointer)
    if element not in (None, type_.element):
        raise call.error(
            f"{pointer.typed} takes {element} and the tensor is {type_}", pointer, _declared(call, tensors)
        )
    return TensorOp(call.instruction, call.intrinsic, tensors, dims, (), None, pointer, pitches)


def _result(call: Call, tensors: tuple[Tensor, ...], dims: tuple[tuple[int, ...], ...]) -> TensorType:
    got = call.instruction.type
    if not isinstance(got, VectorType) or got.element not in ELEMENT_TYPES:
        raise call.error(bad_element(got.element if isinstance(got, VectorType) else got))
    try:
        allowed = call.intrinsic.infer([tensor.type for tensor in tensors], dims, got.element)
    except ValueError as broken:
        blamed = call.named(broken.operand, broken.number) if isinstance(broken, RuleError) else None
        raise call.error(str(broken), blamed, _declared(call, tensors)) from None
    fitting = [type_ for type_ in allowed if type_.vector == got]
    if not fitting:
        raise call.error(f"returns {_choices(allowed)}, not {got}", None, _declared(call, tensors))
    if len(fitting) > 1 and fitting[0].is_padded:
        kept = " or ".join(vector_text(type_.padding) for type_ in fitting)
        message = f"{got} may keep padding {kept}: drop or keep all padding of the result"
        raise call.error(message, None, _declared(call, tensors))
    return fitting[0]


def check_pitches(call: Call, shape: Sequence[int], pitches: Sequence[int]) -> None:
    """Pitches of a load or store: one a dimension, none negative, no address beyond 64 bits."""
    if _are_pitches(tuple(shape), tuple(pitches)):
        return
    value = call.named("strides")
    if len(pitches) != len(shape):
        raise call.error(f"strides has {len(pitches)} entries, shape {extents_text(shape)} has {len(shape)}", value)
    for dimension, pitch in enumerate(pitches):
        if pitch < 0:
            raise call.error(f"stride {pitch} of dimension {dimension} is negative", value)
    message = f"strides {vector_text(pitches)} of shape {extents_text(shape)} reach beyond 64 bits"
    raise call.error(message, value)


@lru_cache(maxsize=4096)
def _are_pitches(shape: tuple[int, ...], pitches: tuple[int, ...]) -> bool:
    """Whether `pitches` go with a shape."""
    if len(pitches) != len(shape) or min(pitches) < 0:
        return False
    sizes = [shape[0], *(p or s for p, s in zip(pitches[1:], shape[1:], strict=True))]
    return math.prod(sizes) < 1 << 63


def _choices(allowed: Sequence[TensorType]) -> str:
    """`<9 x float> (3x3 float) or <12 x float> (...)`: what would fit, the preferred first."""
    texts = dict.fromkeys(f"{type_.vector} ({type_})" for type_ in allowed[:2])
    return " or ".join(texts)


def _declared(call: Call, tensors: Sequence[Tensor]) -> list[Note]:
    """Where the tensors of a call come from."""
    operands = [operand for operand in call.form if operand.kind is Kind.TENSOR]
    names = [f"{o.name}[{number}]" if o.repeated else o.name for number, o in enumerate(operands)]
    return [
        Note(f"{name} is {tensor.type}", operand_span(tensor.definition))
        for name, tensor in zip(names, tensors, strict=True)
    ]
