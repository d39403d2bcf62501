"""Values in registers, which are scalars or vectors with a lane each: constants, comparisons, calls, functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import FloatType, IntType, VectorType
from tlx.ir.types import Type as LLVMType
from tlx.ir.values import Keyword, Value, const_float, const_int, const_vector

_TILE_ALIGNMENT: Final = 16


def undefined(type_: LLVMType) -> Value:
    """An undefined value of a type."""
    return Keyword(type_, "undef")


def typed_like(like: Value, type_: LLVMType) -> LLVMType:
    """A scalar type, or a vector of it with as many elements as `like`."""
    return VectorType(like.type.count, type_) if isinstance(like.type, VectorType) else type_


def full_like(like: Value, number: float) -> Value:
    """A constant of the type of another value, in every lane of a vector."""
    return full_of(like.type, number)


def full_of(type_: LLVMType, number: float) -> Value:
    """A constant of a type, in every lane of a vector."""
    scalar = type_.element if isinstance(type_, VectorType) else type_
    value = const_float(scalar, number) if isinstance(scalar, FloatType) else const_int(scalar, int(number))
    return const_vector([value] * type_.count) if isinstance(type_, VectorType) else value


def call(e: Emitter, name: str, args: Sequence[Value], *more: Value) -> Value:
    """A call of an LLVM intrinsic that is overloaded on the type of its first argument and returns that type."""
    type_ = args[0].type
    return e.b.call_intrinsic(name, [type_], type_, [*args, *more])


def negated(e: Emitter, x: Value) -> Value:
    """`fneg`."""
    return e.b.value("fneg", x.type, [x], f"fneg {x.typed}")


def compare(e: Emitter, opcode: str, predicate: str, lhs: Value, rhs: Value) -> Value:
    """`icmp` or `fcmp` of two values of one type."""
    if opcode == "icmp":
        return e.b.icmp(predicate, lhs, rhs)
    return fcmp(e, predicate, lhs, rhs)


def fcmp(e: Emitter, predicate: str, lhs: Value, rhs: Value) -> Value:
    """`fcmp` of two values of one type."""
    type_ = typed_like(lhs, IntType(1))
    instruction = e.b.emit("fcmp", type_, [lhs, rhs], f"fcmp {predicate} {lhs.typed}, {rhs}")
    instruction.predicate = predicate
    return instruction.value


def gathered(e: Emitter, scalars: Sequence[Value]) -> Value:
    """A vector of scalars, without shuffles, which are tile operations in code for a thread."""
    vector: Value = undefined(VectorType(len(scalars), scalars[0].type))
    for number, scalar in enumerate(scalars):
        vector = e.b.insert_element(vector, scalar, number)
    return vector


def scalars_of(e: Emitter, vector: Value) -> list[Value]:
    """The elements of a vector."""
    assert isinstance(vector.type, VectorType)
    return [e.b.extract_element(vector, number) for number in range(vector.type.count)]


def apply_function(e: Emitter, function: str, value: Value) -> Value:
    """A function of a float or double, or of each element of a vector."""
    if not isinstance(value.type, VectorType):
        vector = VectorType(1, value.type)
        return e.b.extract_element(apply_function(e, function, e.b.insert_element(undefined(vector), value, 0)), 0)
    if e.item is not None:
        return _applied_in_memory(e, function, value)
    type_ = TensorType.dense(value.type.element, [value.type.count])
    return e.b.unary(function, e.b.typeinfo(value, type_))


def _applied_in_memory(e: Emitter, function: str, value: Value) -> Value:
    """A function as a tile operation, which is valid in a thread's code as in a kernel; LLVM removes the memory."""
    assert isinstance(value.type, VectorType)
    if value.type.count > 1:
        entries = (e.b.extract_element(value, number) for number in range(value.type.count))
        return gathered(e, [apply_function(e, function, entry) for entry in entries])
    tile = TensorType.dense(value.type.element, [1, 1])
    memory = e.b.alloca(value.type, "tile", _TILE_ALIGNMENT)
    e.b.store(value, memory, _TILE_ALIGNMENT)
    result = e.b.unary(function, e.b.tensor_load(memory, tile))
    e.b.tensor_store(memory, e.b.typeinfo(result, tile))
    return e.b.load(value.type, memory, _TILE_ALIGNMENT)
