"""Steps of the tensor intrinsics: `analyse` types them, their rows in the table say what they compute."""

from __future__ import annotations

from typing import Final

from tlx.diagnostics import EvaluationError
from tlx.evaluate.dynamic_steps import dynamic_step
from tlx.evaluate.scope import Frame, Scope, Step
from tlx.evaluate.tensor_values import Flattened, InMemory, TensorValue, scalar_array
from tlx.ir.module import Instruction
from tlx.ir.tensors import Tensor, TensorOp
from tlx.numpy_types import dtype_of


def tensor_step(scope: Scope, instruction: Instruction) -> Step:
    """The step of a call of a tensor intrinsic.

    Raises:
        VerifyError: The function's tensor calls break a rule.
    """
    tensors = scope.tensors
    operation = tensors.op_of(instruction)
    if operation is not None:
        return _store(scope, operation) if operation.pointer is not None else _operation(scope, operation)
    token = tensors.tokens.get(instruction.result or "")
    if token is None:
        step = dynamic_step(scope, instruction)
        if step is not None:
            return step
        raise EvaluationError(f"the evaluator does not know {instruction.callee}")
    return _MAKERS[token.kind](scope, token)


# Tokens --------------------------------------------------------------------------------------------------------------


def _from_vector(scope: Scope, token: Tensor) -> Step:
    source, out = scope.slot(token.source), scope.result(token.definition)
    flattened = Flattened(token.type)

    def step(frame: Frame) -> None:
        frame[out] = flattened.tensor(frame[source])

    return step


def _from_pointer(scope: Scope, token: Tensor) -> Step:
    """The flattened vector is read here, as a load would."""
    source, out = scope.slot(token.source), scope.result(token.definition)
    flattened = Flattened(token.type)
    memory, codec = scope.context.memory, scope.context.codecs[token.type.vector]

    def step(frame: Frame) -> None:
        address = frame[source]
        region = memory.region(address, codec.size, f"typeinfo of a pointer: load of {codec.size} bytes")
        frame[out] = flattened.tensor(codec.decode(region.data, address - region.base))

    return step


def _from_load(scope: Scope, token: Tensor) -> Step:
    source, out = scope.slot(token.source), scope.result(token.definition)
    place, memory = InMemory(token.type, token.pitches or ()), scope.context.memory

    def step(frame: Frame) -> None:
        frame[out] = place.read(memory, frame[source])

    return step


_MAKERS: Final = {"value": _from_vector, "pointer": _from_pointer, "load": _from_load}

# Operations ----------------------------------------------------------------------------------------------------------


def _token_slots(scope: Scope, operation: TensorOp) -> list[int]:
    return [scope.slot(tensor.definition.value) for tensor in operation.tensors]


def _operation(scope: Scope, operation: TensorOp) -> Step:
    """Logical arrays in, the row's meaning, the flattened vector out."""
    result = operation.result
    if result is None:
        raise EvaluationError(f"the evaluator does not know {operation.intrinsic.full_name}")
    tokens = _token_slots(scope, operation)
    scalars = [(scope.slot(value), value.type) for value in operation.scalars]
    out = scope.result(operation.instruction)
    meaning, dims, dtype = operation.intrinsic.meaning, operation.dims, dtype_of(result.element)
    flattened = Flattened(result)

    def step(frame: Frame) -> None:
        operands: list[TensorValue] = [frame[slot] for slot in tokens]
        numbers = [scalar_array(type_, frame[slot]) for slot, type_ in scalars]
        logical = meaning([operand.array for operand in operands], dims, numbers, dtype)
        frame[out] = flattened.vector(logical)

    return step


def _store(scope: Scope, operation: TensorOp) -> Step:
    if operation.pointer is None:
        raise EvaluationError("store without a pointer")
    pointer = scope.slot(operation.pointer)
    (token,) = _token_slots(scope, operation)
    place, memory = InMemory(operation.tensors[0].type, operation.pitches or ()), scope.context.memory

    def step(frame: Frame) -> None:
        place.write(memory, frame[token], frame[pointer])

    return step
