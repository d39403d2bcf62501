"""The part of oneDNN's C interface that is needed: descriptions, memory, primitives."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from tlx.bench.elements import Array, Element
from tlx.bench.native_calls import Repeat, Step, repeated
from tlx.bench.peers.base import address_of

_DATATYPES: Final = {"f16": 1, "bf16": 2, "f32": 3, "s32": 4, "s8": 5, "u8": 6, "f64": 7}
_CPU: Final = 1
_IN_ORDER: Final = 1
_ANY: Final = 1
SOURCE, WEIGHTS, DESTINATION = 1, 33, 17
_IMPLEMENTATION: Final = 8
_QUERIES: Final = {SOURCE: 129, WEIGHTS: 131, DESTINATION: 133}
_ALLOCATE: Final = ctypes.c_void_p(-1)

Handle = ctypes.c_void_p
Memory = ctypes.c_void_p


class _Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int)]


class _Argument(ctypes.Structure):
    _fields_ = [("index", ctypes.c_int), ("memory", ctypes.c_void_p)]


class RefusedError(Exception):
    """What was asked for is nothing that oneDNN does."""


@dataclass(frozen=True)
class Primitive:
    """A primitive and its arguments."""

    handle: Handle
    arguments: list[_Argument]


@dataclass(frozen=True)
class Brought:
    """An array in a primitive's own layout, `inner`, and what brings it there and back; nothing where it lies so."""

    inner: Memory
    entering: list[Primitive]
    leaving: list[Primitive]


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
        source, target = self.memory(description, array), self._own(self._wanted(pd, WEIGHTS))
        self._execute(self._reorder(source, target))
        return target

    def brought(self, pd: Handle, index: int, description: Handle, array: Array) -> Brought:
        """An array as a primitive wants it as its source or destination."""
        outer, wanted = self.memory(description, array), self._wanted(pd, index)
        if self._library.dnnl_memory_desc_equal(description, wanted):
            return Brought(outer, [], [])
        inner = self._own(wanted)
        return Brought(inner, [self._reorder(outer, inner)], [self._reorder(inner, outer)])

    def optimised(self, what: str, *arguments: Any) -> Handle:
        """The description of a primitive that is more than oneDNN's reference, which takes 1000 times as long.

        Raises:
            RefusedError: There is none.
        """
        pd, name = self.made(f"{what}_primitive_desc_create", self.engine, *arguments), ctypes.c_char_p()
        self._library.dnnl_primitive_desc_query(pd, _IMPLEMENTATION, 0, ctypes.byref(name))
        if (name.value or b"").startswith(b"ref"):
            raise RefusedError(what)
        return pd

    def primitive(self, pd: Handle, memories: Mapping[int, Memory]) -> Primitive:
        """A primitive and what it works on."""
        return Primitive(self.made("primitive_create", pd), [_Argument(i, m.value) for i, m in memories.items()])

    def execution(self, primitives: Sequence[Primitive], keep: object) -> Repeat:
        """Executes primitives one after the other, again and again."""
        arguments = [(_Argument * len(one.arguments))(*one.arguments) for one in primitives]
        steps = [self._step(one, given) for one, given in zip(primitives, arguments, strict=True)]
        return repeated(steps, (self, arguments, keep))

    def _step(self, primitive: Primitive, arguments: Any) -> Step:
        given = (
            ("ptr", primitive.handle.value or 0),
            ("ptr", self._stream.value or 0),
            ("i32", len(arguments)),
            ("ptr", ctypes.addressof(arguments)),
        )
        return Step(address_of(self._library.dnnl_primitive_execute), given)

    def _execute(self, primitive: Primitive) -> None:
        self.execution([primitive], None)(1)
        self._library.dnnl_stream_wait(self._stream)

    def _wanted(self, pd: Handle, index: int) -> Handle:
        """The description that a primitive chose for an argument."""
        query = self._library.dnnl_primitive_desc_query_md
        query.restype = ctypes.c_void_p
        return Handle(query(pd, _QUERIES[index], 0))

    def _own(self, description: Handle) -> Memory:
        return self.made("memory_create", description, self.engine, _ALLOCATE)

    def _reorder(self, source: Memory, target: Memory) -> Primitive:
        md = self._library.dnnl_memory_get_memory_desc
        descriptions = [Handle(), Handle()]
        for memory, description in zip((source, target), descriptions, strict=True):
            md(memory, ctypes.byref(description))
        between = (descriptions[0], self.engine, descriptions[1], self.engine)
        pd = self.made("reorder_primitive_desc_create", *between, None)
        return self.primitive(pd, {SOURCE: source, DESTINATION: target})
