"""The part of oneDNN's C interface that is needed: descriptions, memory, primitives."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final

from tlx.bench.elements import Array, Element
from tlx.bench.native_calls import Repeat, Step, repeated
from tlx.bench.peers.base import address_of

_DATATYPES: Final = {"f16": 1, "bf16": 2, "f32": 3, "s32": 4, "s8": 5, "u8": 6, "f64": 7}
_CPU: Final = 1
_IN_ORDER: Final = 1
_ANY: Final = 1
_WEIGHTS_DESCRIPTION: Final = 131
_ALLOCATE: Final = ctypes.c_void_p(-1)
_SOURCE: Final = 1
_DESTINATION: Final = 17

Handle = ctypes.c_void_p
Memory = ctypes.c_void_p


class _Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int)]


class _Argument(ctypes.Structure):
    _fields_ = [("index", ctypes.c_int), ("memory", ctypes.c_void_p)]


class RefusedError(Exception):
    """What was asked for is nothing that oneDNN does."""


class Library:
    """The library, with an engine and a stream.

    Attributes:
        number: Its version.
        engine: For the processor.

    Raises:
        RefusedError: It has no engine for processors.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        library.dnnl_version.restype = ctypes.POINTER(_Version)
        version = library.dnnl_version().contents
        self.number = (version.major, version.minor, version.patch)
        self.engine = self.made("engine_create", _CPU, ctypes.c_size_t(0))
        self._stream = self.made("stream_create", self.engine, _IN_ORDER)

    def made(self, what: str, *arguments: Any) -> Handle:
        """An object that a function of the library makes.

        Raises:
            RefusedError: It does not.
        """
        handle = Handle()
        if getattr(self._library, f"dnnl_{what}")(ctypes.byref(handle), *arguments):
            raise RefusedError(what)
        return handle

    def dims(self, numbers: Sequence[int]) -> Any:
        """Numbers as `dnnl_dims_t`."""
        return (ctypes.c_int64 * 12)(*numbers)

    def dense(self, extents: Sequence[int], element: Element, *, transposed: bool = False) -> Handle:
        """A description of a dense tensor, of a matrix that lies column by column where it is `transposed`."""
        strides = [prod(extents[axis + 1 :]) for axis in range(len(extents))]
        if transposed:
            strides = [1, extents[0]]
        shape = (len(extents), self.dims(extents), _DATATYPES[element.name])
        return self.made("memory_desc_create_with_strides", *shape, self.dims(strides))

    def any(self, extents: Sequence[int], element: Element) -> Handle:
        """A description that leaves the layout to a primitive."""
        shape = (len(extents), self.dims(extents), _DATATYPES[element.name])
        return self.made("memory_desc_create_with_tag", *shape, _ANY)

    def followed_by(self, function: int) -> Handle:
        """Attributes of a primitive whose result goes through a function."""
        attributes, operations = self.made("primitive_attr_create"), self.made("post_ops_create")
        zero = ctypes.c_float(0)
        self._library.dnnl_post_ops_append_eltwise(operations, function, zero, zero)
        self._library.dnnl_primitive_attr_set_post_ops(attributes, operations)
        return attributes

    def memory(self, description: Handle | None, array: Array) -> Memory:
        """An array as oneDNN's memory."""
        return self.made("memory_create", description, self.engine, Handle(array.ctypes.data))

    def packed(self, pd: Handle, description: Handle, array: Array) -> Memory:
        """A copy of the weights, laid out as a primitive likes it."""
        query = self._library.dnnl_primitive_desc_query_md
        query.restype = ctypes.c_void_p
        wanted = Handle(query(pd, _WEIGHTS_DESCRIPTION, 0))
        source = self.memory(description, array)
        target = self.made("memory_create", wanted, self.engine, _ALLOCATE)
        reorder = self.made("reorder_primitive_desc_create", description, self.engine, wanted, self.engine, None)
        primitive = self.made("primitive_create", reorder)
        arguments = (_Argument * 2)((_SOURCE, source.value), (_DESTINATION, target.value))
        self._library.dnnl_primitive_execute(primitive, self._stream, 2, arguments)
        self._library.dnnl_stream_wait(self._stream)
        return target

    def execution(self, pd: Handle, memories: Mapping[int, Memory], keep: object) -> Repeat:
        """Executes a primitive again and again."""
        primitive = self.made("primitive_create", pd)
        arguments = (_Argument * len(memories))(*((i, m.value) for i, m in memories.items()))
        given = (
            ("ptr", primitive.value or 0),
            ("ptr", self._stream.value or 0),
            ("i32", len(memories)),
            ("ptr", ctypes.addressof(arguments)),
        )
        return repeated([Step(address_of(self._library.dnnl_primitive_execute), given)], (self, arguments, keep))
