"""Steps on the elements of vectors, arrays and structs."""

from __future__ import annotations

from typing import cast

import numpy as np

from tlx.diagnostics import EvaluationError
from tlx.evaluate.context import FunctionScope, Step
from tlx.evaluate.values import RuntimeValue, undefined
from tlx.intrinsics.numpy_types import Array
from tlx.ir.instructions import Instruction
from tlx.ir.types import FloatType, Type, VectorType
from tlx.ir.values import Aggregate, ConstInt, Keyword, Splat
from tlx.ir.values import Value as Operand


def vector_type(type_: Type) -> VectorType:
    """The type as a vector with a known number of elements; `<vscale x 1 x T>` holds one (see `dynamic_steps`).

    Raises:
        EvaluationError: It is another type, or another scalable vector.
    """
    if isinstance(type_, VectorType) and (not type_.scalable or type_.count == 1):
        return type_
    raise EvaluationError(f"expected a vector of known length, got {type_}")


def extract_element(scope: FunctionScope, instruction: Instruction) -> Step:
    """`extractelement`; an index outside the vector gives undefined bits."""
    type_ = vector_type(instruction.operands[0].type)
    source, index = scope.slots(instruction)
    out = scope.result(instruction)
    count = type_.count
    outside = undefined(type_.element, scope.context.layout)
    is_float = isinstance(type_.element, FloatType)

    def step(frame: list[RuntimeValue]) -> None:
        at = frame[index]
        if at >= count:
            frame[out] = outside
        else:
            frame[out] = frame[source][at] if is_float else int(frame[source][at])

    return step


def insert_element(scope: FunctionScope, instruction: Instruction) -> Step:
    """`insertelement`; an index outside the vector makes all of it undefined."""
    type_ = vector_type(instruction.type)
    source, element, index = scope.slots(instruction)
    out = scope.result(instruction)
    outside = undefined(type_, scope.context.layout)

    def step(frame: list[RuntimeValue]) -> None:
        at = frame[index]
        changed: Array = frame[source].copy()
        if at >= len(changed):
            changed = outside
        else:
            changed[at] = frame[element]
        frame[out] = changed

    return step


def mask_lanes(mask: Operand) -> list[int]:
    """Lanes of a constant shuffle mask; -1 where it does not care.

    Raises:
        EvaluationError: The mask is no constant vector.
    """
    count = vector_type(mask.type).count
    match mask:
        case Keyword(word="zeroinitializer"):
            return [0] * count
        case Keyword():
            return [-1] * count
        case Splat(element=ConstInt(value=lane)):
            return [lane] * count
        case Aggregate():
            return [e.value if isinstance(e, ConstInt) else -1 for e in mask.elements]
        case _:
            raise EvaluationError(f"shuffle mask {mask} is no constant")


def shuffle(scope: FunctionScope, instruction: Instruction) -> Step:
    """`shufflevector`; a lane that the mask leaves open is undefined."""
    left, right, mask = instruction.operands
    lanes = np.array(mask_lanes(mask), np.intp)
    count = vector_type(left.type).count
    out = scope.result(instruction)
    a, b = scope.slot(left), scope.slot(right)
    is_open = lanes < 0
    filler = undefined(instruction.type, scope.context.layout) if is_open.any() else None
    one_sided = bool((lanes < count).all())
    picked = np.where(is_open, 0, lanes)

    def step(frame: list[RuntimeValue]) -> None:
        both = frame[a] if one_sided else np.concatenate((frame[a], frame[b]))
        result = both[picked]
        frame[out] = result if filler is None else np.where(is_open, filler, result)

    return step


def extract_value(scope: FunctionScope, instruction: Instruction) -> Step:
    """`extractvalue`."""
    source = scope.slot(instruction.operands[0])
    out = scope.result(instruction)
    path = instruction.indices

    def step(frame: list[RuntimeValue]) -> None:
        value = frame[source]
        for index in path:
            value = value[index]
        frame[out] = value

    return step


def insert_value(scope: FunctionScope, instruction: Instruction) -> Step:
    """`insertvalue`."""
    source, element = scope.slots(instruction)
    out = scope.result(instruction)
    path = instruction.indices

    def step(frame: list[RuntimeValue]) -> None:
        frame[out] = _replaced(frame[source], path, frame[element])

    return step


def _replaced(aggregate: tuple[RuntimeValue, ...], path: tuple[int, ...], element: RuntimeValue) -> RuntimeValue:
    if not path:
        return element
    first, *rest = path
    inner = _replaced(cast("tuple[RuntimeValue, ...]", aggregate[first]), tuple(rest), element)
    return (*aggregate[:first], inner, *aggregate[first + 1 :])
