"""Steps of tensors whose extents are known only at run time: here every extent is known, so they are found and checked.

A handle `<vscale x 1 x T>` is the flattened array, as long as the tensor has elements. Other values of that type are
splats; they are arrays of one element and are stretched where they meet a handle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from tlx.diagnostics import EvaluationError
from tlx.evaluate.scope import Frame, Scope, Step
from tlx.evaluate.tensor_values import Flattened, InMemory, TensorValue, scalar_array
from tlx.evaluate.values import Array
from tlx.ir.dynamic import DynamicOp, DynamicTensor
from tlx.ir.module import Instruction
from tlx.ir.types import VectorType
from tlx.ir.values import Local
from tlx.numpy_types import dtype_of
from tlx.types import TensorType

_flattened = lru_cache(256)(Flattened)
_in_memory = lru_cache(256)(InMemory)


def dynamic_step(scope: Scope, instruction: Instruction) -> Step | None:
    """The step of a call whose tensors have extents known only at run time; None for other calls."""
    dynamic = scope.tensors.dynamic
    operation = dynamic.op_of(instruction)
    if operation is not None:
        return _store(scope, operation) if operation.pointer is not None else _operation(scope, operation)
    token = dynamic.tokens.get(instruction.result or "")
    return None if token is None else _token(scope, token)


# Tokens --------------------------------------------------------------------------------------------------------------


def _numbers(vector: Array) -> tuple[int, ...]:
    return tuple(int(n) for n in np.atleast_1d(np.asarray(vector, np.uint32)).view(np.int32))


def _token(scope: Scope, token: DynamicTensor) -> Step:
    shape, padding = scope.slot(token.shape), scope.slot(token.padding)
    pitches = None if token.pitches is None else scope.slot(token.pitches)
    source, out = scope.slot(token.source), scope.result(token.definition)
    memory = scope.context.memory

    def step(frame: Frame) -> None:
        type_ = _type(token, frame[shape], frame[padding])
        if token.kind == "value":
            _check_count(type_, len(frame[source]))
            frame[out] = Flattened(type_).tensor(frame[source])
        elif pitches is None:
            codec = scope.context.codecs[type_.vector]
            what = f"typeinfo of a pointer: load of {codec.size} bytes"
            region = memory.region(frame[source], codec.size, what)
            frame[out] = _flattened(type_).tensor(codec.decode(region.data, frame[source] - region.base))
        else:
            steps = _pitches(frame[pitches])
            frame[out] = _in_memory(type_, steps).read(memory, frame[source])

    return step


def _type(token: DynamicTensor, shape: Array, padding: Array) -> TensorType:
    try:
        return TensorType(token.element, _numbers(shape), token.layout, _numbers(padding))
    except ValueError as broken:
        raise EvaluationError(str(broken)) from None


def _check_count(type_: TensorType, count: int) -> None:
    if type_.count != count:
        raise EvaluationError(f"a tensor of {count} elements is taken for one of {type_}, which has {type_.count}")


def _pitches(vector: Array) -> tuple[int, ...]:
    pitches = _numbers(vector)
    if any(pitch < 0 for pitch in pitches):
        raise EvaluationError(f"strides {pitches} has a negative entry")
    return pitches


# Operations ----------------------------------------------------------------------------------------------------------


def _operation(scope: Scope, operation: DynamicOp) -> Step:
    like = operation.like
    assert like is not None
    tokens = [scope.slot(tensor.definition.value) for tensor in operation.tensors]
    dims = [scope.slot(value) for value in operation.dims]
    scalars = [(scope.slot(value), value.type) for value in operation.scalars]
    out = scope.result(operation.instruction)
    row, dtype = operation.intrinsic, dtype_of(like.element)

    def step(frame: Frame) -> None:
        operands: list[TensorValue] = [frame[slot] for slot in tokens]
        numbers = [_numbers(frame[slot]) for slot in dims]
        values = [scalar_array(type_, frame[slot]) for slot, type_ in scalars]
        try:
            result = row.infer([operand.type for operand in operands], numbers, like.element)[0]
        except ValueError as broken:
            raise EvaluationError(f"{row.name}: {broken}") from None
        frame[out] = _flattened(result).vector(row.meaning([o.array for o in operands], numbers, values, dtype))

    return step


def _store(scope: Scope, operation: DynamicOp) -> Step:
    assert operation.pointer is not None
    assert operation.pitches is not None
    pointer, pitches = scope.slot(operation.pointer), scope.slot(operation.pitches)
    token = scope.slot(operation.tensors[0].definition.value)
    memory = scope.context.memory

    def step(frame: Frame) -> None:
        tensor: TensorValue = frame[token]
        steps = _pitches(frame[pitches])
        for k, (pitch, extent) in enumerate(zip(steps, tensor.type.data_shape, strict=True)):
            if k and pitch and pitch < extent:
                raise EvaluationError(f"stride {pitch} of dimension {k} is less than its extent {extent}")
        _in_memory(tensor.type, steps).write(memory, tensor, frame[pointer])

    return step


# Elementwise instructions --------------------------------------------------------------------------------------------

Maker = Callable[[Scope, Instruction], Step | None]


def elementwise(maker: Maker) -> Maker:
    """Have a maker of steps also make those of instructions on handles: splats are stretched to the handles' length."""

    def make(scope: Scope, instruction: Instruction) -> Step | None:
        step = maker(scope, instruction)
        type_ = instruction.type
        if step is None or not (isinstance(type_, VectorType) and type_.scalable):
            return step
        handles = scope.tensors.dynamic.handles
        if instruction.result not in handles or scope.tensors.dynamic.op_of(instruction) is not None:
            return step
        return _stretched(scope, instruction, step)

    return make


def _stretched(scope: Scope, instruction: Instruction, step: Step) -> Step:
    handles = scope.tensors.dynamic.handles
    operands = instruction.args if instruction.is_call else instruction.operands
    vectors = [o for o in operands if isinstance(o.type, VectorType)]
    long = [scope.slot(o) for o in vectors if isinstance(o, Local) and o.name in handles]
    short = sorted({scope.slot(o) for o in vectors} - set(long))

    def run(frame: Frame) -> None:
        counts = {len(frame[slot]) for slot in long}
        if len(counts) != 1:
            sizes = " and ".join(map(str, sorted(counts)))
            raise EvaluationError(f"tensors of {sizes} elements in one {instruction.opcode}")
        kept = [frame[slot] for slot in short]
        for slot, splat in zip(short, kept, strict=True):
            frame[slot] = np.repeat(splat, math.prod(counts))
        step(frame)
        for slot, splat in zip(short, kept, strict=True):
            frame[slot] = splat

    return run
