"""Steps of the tensor intrinsics: `analyse` gives their types, their rows in the table define what they compute.

A token's value is a `TensorValue`: its type, and its logical array (dimension `d` of the array is logical dimension
`d`, data only), in numpy's signed integers, bool for i1.

Run-time extents are read and checked when a step runs. A handle `<vscale x 1 x T>` is the flattened array of all
elements of a tensor. Other values of that type are splats: arrays of one element, which are repeated where they are
combined with a handle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from tlx.diagnostics import EvaluationError
from tlx.evaluate.context import Frame, FunctionScope, Step
from tlx.evaluate.memory import AddressSpace, MemoryRegion
from tlx.evaluate.values import RuntimeValue, element_dtype, signed, smallest_normal
from tlx.intrinsics.numpy_types import Array, dtype_of
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.instructions import Instruction
from tlx.ir.module import is_normal
from tlx.ir.tensors.model import DynamicOp, DynamicTensor, Tensor, TensorOp
from tlx.ir.types import I1, FloatType, IntType, Type, VectorType
from tlx.ir.values import Local


@dataclass(frozen=True, slots=True, eq=False)
class TensorValue:
    """The run-time value of a token."""

    type: TensorType
    array: Array


class FlattenedTensors:
    """Converts tensors of one type from and to flattened vectors."""

    def __init__(self, type_: TensorType) -> None:
        self._type = type_
        self._data = tuple(slice(extent) for extent in type_.data_shape)
        self._order = [type_.position(d) for d in range(type_.rank)]
        self._logical_dtype = dtype_of(type_.element)
        self._vector_dtype = element_dtype(type_.element)

    def tensor(self, flat: Array) -> TensorValue:
        """The tensor in a flattened vector."""
        in_memory_order = flat.view(self._logical_dtype).reshape(self._type.shape)[self._data]
        return TensorValue(self._type, in_memory_order.transpose(self._order))

    def vector(self, logical: Array) -> Array:
        """The flattened vector of a tensor, padding zero."""
        full = np.zeros(self._type.shape, self._logical_dtype)
        full[self._data] = logical.transpose(self._type.layout)
        return full.reshape(-1).view(self._vector_dtype)


class StridedTensors:
    """Tensors of one type in memory with given pitches: `llvm.tensor.load` and `llvm.tensor.store`.

    Only data positions are touched. Elements of i1 take a byte each.

    Args:
        type_: The type.
        pitches: Operand `strides`; empty for dense.
    """

    def __init__(self, type_: TensorType, pitches: Sequence[int]) -> None:
        steps = type_.strides(pitches or None)
        self._type = type_
        self._is_bits = type_.element == I1
        self._dtype = np.dtype(np.uint8) if self._is_bits else dtype_of(type_.element)
        self._shape = type_.data_shape
        self._steps = [step * self._dtype.itemsize for step in steps]
        self._order = [type_.position(d) for d in range(type_.rank)]
        last = sum((extent - 1) * step for extent, step in zip(self._shape, steps, strict=True))
        self._size = (last + 1) * self._dtype.itemsize
        self._access = f"of {type_} (from first to last element {self._size} bytes)"

    def read(self, memory: AddressSpace, address: int) -> TensorValue:
        """The tensor whose first element is at an address."""
        region = memory.region(address, self._size, f"tensor load {self._access}")
        data = self._window(region, address)
        data = (data & 1).astype(np.bool_) if self._is_bits else data.copy()
        return TensorValue(self._type, data.transpose(self._order))

    def write(self, memory: AddressSpace, tensor: TensorValue, address: int) -> None:
        """Write a tensor to an address."""
        region = memory.writable(address, self._size, f"tensor store {self._access}")
        self._window(region, address)[...] = tensor.array.transpose(self._type.layout)

    def _window(self, region: MemoryRegion, address: int) -> Array:
        """A strided view of the data positions, in memory order."""
        return np.ndarray(self._shape, self._dtype, region.data, address - region.base, self._steps)


def scalar_array(type_: Type, value: RuntimeValue) -> Array:
    """A scalar value as an array without dimensions, of the dtype of logical arrays."""
    number = signed(value, type_.bits) if isinstance(type_, IntType) and type_.bits > 1 else value
    return np.array(number, element_dtype(type_) if isinstance(type_, FloatType) else dtype_of(type_))


def tensor_step(scope: FunctionScope, instruction: Instruction) -> Step:
    """The step of a call to a tensor intrinsic.

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
        raise EvaluationError(f"the evaluator does not support {instruction.callee}")
    return _MAKERS[token.kind](scope, token)


# Tokens --------------------------------------------------------------------------------------------------------------


def _from_vector(scope: FunctionScope, token: Tensor) -> Step:
    source, out = scope.slot(token.source), scope.result(token.definition)
    flattened = FlattenedTensors(token.type)

    def step(frame: Frame) -> None:
        frame[out] = flattened.tensor(frame[source])

    return step


def _from_pointer(scope: FunctionScope, token: Tensor) -> Step:
    """Read the flattened vector, like a load."""
    source, out = scope.slot(token.source), scope.result(token.definition)
    flattened = FlattenedTensors(token.type)
    memory, codec = scope.context.memory, scope.context.codecs[token.type.vector]

    def step(frame: Frame) -> None:
        address = frame[source]
        region = memory.region(address, codec.size, f"typeinfo of a pointer: load of {codec.size} bytes")
        frame[out] = flattened.tensor(codec.decode(region.data, address - region.base))

    return step


def _from_load(scope: FunctionScope, token: Tensor) -> Step:
    source, out = scope.slot(token.source), scope.result(token.definition)
    place, memory = StridedTensors(token.type, token.pitches or ()), scope.context.memory

    def step(frame: Frame) -> None:
        frame[out] = place.read(memory, frame[source])

    return step


_MAKERS: Final = {"value": _from_vector, "pointer": _from_pointer, "load": _from_load}

# Operations ----------------------------------------------------------------------------------------------------------


def _token_slots(scope: FunctionScope, operation: TensorOp) -> list[int]:
    return [scope.slot(tensor.definition.value) for tensor in operation.tensors]


def _operation(scope: FunctionScope, operation: TensorOp) -> Step:
    """Logical arrays in, the row's meaning, the flattened vector out."""
    result = operation.result
    if result is None:
        raise EvaluationError(f"the evaluator does not support {operation.intrinsic.full_name}")
    tokens = _token_slots(scope, operation)
    scalars = [(scope.slot(value), value.type) for value in operation.scalars]
    out = scope.result(operation.instruction)
    meaning, dims, dtype = operation.intrinsic.meaning, operation.dims, dtype_of(result.element)
    promises_normal = is_normal(operation.instruction)
    flattened = FlattenedTensors(result)

    def step(frame: Frame) -> None:
        operands: list[TensorValue] = [frame[slot] for slot in tokens]
        numbers = [scalar_array(type_, frame[slot]) for slot, type_ in scalars]
        logical = meaning([operand.array for operand in operands], dims, numbers, dtype)
        if promises_normal:
            logical = _only_normal(logical)
        frame[out] = flattened.vector(logical)

    return step


def _only_normal(results: Array) -> Array:
    """Results that a program promises to be normal: NaN for those that are not, so that none goes unnoticed."""
    is_kept = np.isfinite(results) & (np.abs(results) >= smallest_normal(results.dtype))
    return np.where(is_kept, results, np.asarray(np.nan, results.dtype))


def _store(scope: FunctionScope, operation: TensorOp) -> Step:
    if operation.pointer is None:
        raise EvaluationError("store without a pointer")
    pointer = scope.slot(operation.pointer)
    (token,) = _token_slots(scope, operation)
    place, memory = StridedTensors(operation.tensors[0].type, operation.pitches or ()), scope.context.memory

    def step(frame: Frame) -> None:
        place.write(memory, frame[token], frame[pointer])

    return step


_flattened = lru_cache(256)(FlattenedTensors)
_in_memory = lru_cache(256)(StridedTensors)


def dynamic_step(scope: FunctionScope, instruction: Instruction) -> Step | None:
    """The step of a call whose tensors have extents known only at run time; None for other calls."""
    dynamic = scope.tensors.dynamic
    operation = dynamic.op_of(instruction)
    if operation is not None:
        return (
            _dynamic_store(scope, operation) if operation.pointer is not None else _dynamic_operation(scope, operation)
        )
    token = dynamic.tokens.get(instruction.result or "")
    return None if token is None else _dynamic_token(scope, token)


# Run-time extents ----------------------------------------------------------------------------------------------------


def _numbers(vector: Array) -> tuple[int, ...]:
    return tuple(int(n) for n in np.atleast_1d(np.asarray(vector, np.uint32)).view(np.int32))


def _dynamic_token(scope: FunctionScope, token: DynamicTensor) -> Step:
    shape, padding = scope.slot(token.shape), scope.slot(token.padding)
    pitches = None if token.pitches is None else scope.slot(token.pitches)
    source, out = scope.slot(token.source), scope.result(token.definition)
    memory = scope.context.memory

    def step(frame: Frame) -> None:
        type_ = _dynamic_type(token, frame[shape], frame[padding])
        if token.kind == "value":
            _check_count(type_, len(frame[source]))
            frame[out] = FlattenedTensors(type_).tensor(frame[source])
        elif pitches is None:
            codec = scope.context.codecs[type_.vector]
            what = f"typeinfo of a pointer: load of {codec.size} bytes"
            region = memory.region(frame[source], codec.size, what)
            frame[out] = _flattened(type_).tensor(codec.decode(region.data, frame[source] - region.base))
        else:
            steps = _pitches(frame[pitches])
            frame[out] = _in_memory(type_, steps).read(memory, frame[source])

    return step


def _dynamic_type(token: DynamicTensor, shape: Array, padding: Array) -> TensorType:
    try:
        return TensorType(token.element, _numbers(shape), token.layout, _numbers(padding))
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def _check_count(type_: TensorType, count: int) -> None:
    if type_.count != count:
        raise EvaluationError(f"a value of {count} elements has a typeinfo of {type_}, which describes {type_.count}")


def _pitches(vector: Array) -> tuple[int, ...]:
    pitches = _numbers(vector)
    if any(pitch < 0 for pitch in pitches):
        raise EvaluationError(f"strides {pitches} has a negative entry")
    return pitches


def _dynamic_operation(scope: FunctionScope, operation: DynamicOp) -> Step:
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
        except ValueError as error:
            raise EvaluationError(f"{row.name}: {error}") from None
        frame[out] = _flattened(result).vector(row.meaning([o.array for o in operands], numbers, values, dtype))

    return step


def _dynamic_store(scope: FunctionScope, operation: DynamicOp) -> Step:
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

StepFactory = Callable[[FunctionScope, Instruction], Step | None]


def elementwise_on_handles(maker: StepFactory) -> StepFactory:
    """Extend a step factory to instructions on handles: splats are repeated to the handles' length."""

    def make(scope: FunctionScope, instruction: Instruction) -> Step | None:
        step = maker(scope, instruction)
        type_ = instruction.type
        if step is None or not (isinstance(type_, VectorType) and type_.scalable):
            return step
        handles = scope.tensors.dynamic.handles
        if instruction.result not in handles or scope.tensors.dynamic.op_of(instruction) is not None:
            return step
        return _with_repeated_splats(scope, instruction, step)

    return make


def _with_repeated_splats(scope: FunctionScope, instruction: Instruction, step: Step) -> Step:
    handles = scope.tensors.dynamic.handles
    operands = instruction.args if instruction.is_call else instruction.operands
    vectors = [o for o in operands if isinstance(o.type, VectorType)]
    long = [scope.slot(o) for o in vectors if isinstance(o, Local) and o.name in handles]
    short = sorted({scope.slot(o) for o in vectors} - set(long))

    def run(frame: Frame) -> None:
        counts = {len(frame[slot]) for slot in long}
        if len(counts) != 1:
            sizes = " and ".join(map(str, sorted(counts)))
            raise EvaluationError(f"the operands of {instruction.opcode} have {sizes} elements")
        splats = [frame[slot] for slot in short]
        for slot, splat in zip(short, splats, strict=True):
            frame[slot] = np.repeat(splat, math.prod(counts))
        step(frame)
        for slot, splat in zip(short, splats, strict=True):
            frame[slot] = splat

    return run
