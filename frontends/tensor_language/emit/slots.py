"""Values kept in memory, one for each subgroup of a work-group, while other subgroups run.

Each LLVM value that a value of the language consists of has an array with an entry for each subgroup; constants need
none. Truth values take a byte each, as vectors of bits are slow to load and store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.subgroup_loop import subgroup_count
from tlx.frontends.tensor_language.emit.values import Emitted, Matrix, Memref, Number
from tlx.frontends.tensor_language.types import LOCAL_ALIGNMENT
from tlx.ir.types import I1, I8, ArrayType, Type, VectorType
from tlx.ir.values import Constant, Value

_UNALIGNED: Final = 1  # entries of an array may be of any size


class Slot:
    """The value of a name for each subgroup.

    Args:
        e: The emitter.
        like: A value; others of the same form can be kept.
        constants: Whether constants in `like` are the same in all values that will be kept.
    """

    def __init__(self, e: Emitter, like: Emitted, *, constants: bool) -> None:
        self._like = like
        self._arrays = [_array(e, v, constants=constants) for v in _values(like)]

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to keep: all subgroups hold the same constants."""
        return all(array is None for array in self._arrays)

    def store(self, e: Emitter, subgroup: Value, value: Emitted) -> None:
        """Keep a subgroup's value."""
        for array, part in zip(self._arrays, _values(value), strict=True):
            if array is not None:
                bits = e.b.cast("zext", part, _memory_type(part.type))
                e.b.store(bits, e.b.gep(bits.type, array, subgroup), _UNALIGNED)

    def load(self, e: Emitter, subgroup: Value) -> Emitted:
        """A subgroup's value."""
        pairs = zip(self._arrays, _values(self._like), strict=True)
        return _rebuilt(self._like, [_loaded(e, array, part, subgroup) for array, part in pairs])


def _values(value: Emitted) -> tuple[Value, ...]:
    """The LLVM values that a value consists of."""
    match value:
        case Number():
            return value.parts if value.linear is None else (*value.parts, value.linear.base)
        case Matrix():
            return value.parts
        case Memref():
            return value.pointer, *value.shape, *value.stride
        case _:
            raise AssertionError("groups are parameters of the kernel")


def _rebuilt(like: Emitted, values: Sequence[Value]) -> Emitted:
    """A value like another one, of other LLVM values."""
    match like:
        case Number():
            count = len(like.parts)
            linear = None if like.linear is None else replace(like.linear, base=values[count])
            return replace(like, parts=tuple(values[:count]), linear=linear)
        case Matrix():
            return Matrix(like.type, tuple(values))
        case Memref():
            order = len(like.shape)
            shape, stride = tuple(values[1 : order + 1]), tuple(values[order + 1 :])
            return replace(like, pointer=values[0], shape=shape, stride=stride)
        case _:
            raise AssertionError("groups are parameters of the kernel")


def _array(e: Emitter, value: Value, *, constants: bool) -> Value | None:
    if constants and isinstance(value, Constant):
        return None
    type_ = _memory_type(value.type)
    return e.b.alloca(ArrayType(subgroup_count(e), type_), "slots", LOCAL_ALIGNMENT)


def _loaded(e: Emitter, array: Value | None, part: Value, subgroup: Value) -> Value:
    if array is None:
        return part
    type_ = _memory_type(part.type)
    value = e.b.load(type_, e.b.gep(type_, array, subgroup), _UNALIGNED)
    return e.b.cast("trunc", value, part.type)


def _memory_type(type_: Type) -> Type:
    """The type itself, with bytes for bits."""
    if isinstance(type_, VectorType):
        return VectorType(type_.count, _memory_type(type_.element))
    return I8 if type_ == I1 else type_
