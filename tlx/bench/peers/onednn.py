"""oneDNN by its C interface: primitives made once for a shape, then executed.

Where a workload's operands are packed beforehand (`vnni B`), oneDNN packs the weights its own way, untimed as well.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tlx.bench.elements import Array, Element
from tlx.bench.native_calls import Step, repeated
from tlx.bench.peers.base import Attempt, MissingError, Places, address_of
from tlx.bench.problems import Gemm
from tlx.bench.workload import Workload

_DATATYPES: Final = {"f16": 1, "bf16": 2, "f32": 3, "s32": 4, "s8": 5, "u8": 6, "f64": 7}
_CPU: Final = 1
_IN_ORDER: Final = 1
_ANY: Final = 1
_WEIGHTS_DESCRIPTION: Final = 131
_ALLOCATE: Final = ctypes.c_void_p(-1)
_SOURCE: Final = 1
_DESTINATION: Final = 17
_WEIGHTS: Final = 33

Handle = ctypes.c_void_p


class _Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int)]


class _Argument(ctypes.Structure):
    _fields_ = [("index", ctypes.c_int), ("memory", ctypes.c_void_p)]


class RefusedError(Exception):
    """oneDNN does not do that."""


class Onednn:
    """The library, with an engine and a stream."""

    name = "onednn"

    def __init__(self, library: Any) -> None:
        self._library = library
        library.dnnl_version.restype = ctypes.POINTER(_Version)
        version = library.dnnl_version().contents
        self.version = f"{version.major}.{version.minor}.{version.patch}"
        self.number = (version.major, version.minor, version.patch)
        self._engine = self._made("engine_create", _CPU, ctypes.c_size_t(0))
        self._stream = self._made("stream_create", self._engine, _IN_ORDER)

    def attempts(self, work: Workload, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """A matmul primitive."""
        gemm = work.problem
        if not isinstance(gemm, Gemm):
            return
        try:
            yield self._product(gemm, arrays)
        except RefusedError:
            return

    def _product(self, gemm: Gemm, arrays: dict[str, Array]) -> Attempt:
        a = self._described((gemm.m, gemm.k), gemm.lhs, transposed="a" in gemm.columns)
        c = self._described((gemm.m, gemm.n), gemm.out, transposed="c" in gemm.columns)
        b = self._described((gemm.k, gemm.n), gemm.rhs, transposed="b" in gemm.columns)
        memories = [self._memory(a, arrays["a"]), self._memory(c, arrays["c"])]
        if gemm.vnni:
            wanted = self._made("memory_desc_create_with_tag", 2, _dims((gemm.k, gemm.n)), _type(gemm.rhs), _ANY)
        else:
            wanted = b
        pd = self._made("matmul_primitive_desc_create", self._engine, a, wanted, None, c, None)
        if gemm.vnni:
            flat = arrays["b"].transpose(0, 2, 1).reshape(gemm.k, gemm.n).copy()
            memories.append(self._packed(pd, b, flat))
        else:
            memories.append(self._memory(b, arrays["b"]))
        primitive = self._made("primitive_create", pd)
        return self._executed(primitive, dict(zip((_SOURCE, _DESTINATION, _WEIGHTS), memories, strict=True)), arrays)

    def _executed(self, primitive: Handle, memories: dict[int, Handle], arrays: dict[str, Array]) -> Attempt:
        arguments = (_Argument * len(memories))(*((i, m.value) for i, m in memories.items()))
        execute = address_of(self._library.dnnl_primitive_execute)
        given = (
            ("ptr", primitive.value or 0),
            ("ptr", self._stream.value or 0),
            ("i32", len(memories)),
            ("ptr", ctypes.addressof(arguments)),
        )
        return Attempt(repeated([Step(execute, given)], (self, arguments, arrays)))

    def _packed(self, pd: Handle, description: Handle, array: Array) -> Handle:
        """A copy of the weights, laid out as a primitive likes it."""
        query = self._library.dnnl_primitive_desc_query_md
        query.restype = ctypes.c_void_p
        wanted = Handle(query(pd, _WEIGHTS_DESCRIPTION, 0))
        source = self._memory(description, array)
        target = self._made("memory_create", wanted, self._engine, _ALLOCATE)
        reorder = self._made("reorder_primitive_desc_create", description, self._engine, wanted, self._engine, None)
        primitive = self._made("primitive_create", reorder)
        arguments = (_Argument * 2)((_SOURCE, source.value), (_DESTINATION, target.value))
        self._library.dnnl_primitive_execute(primitive, self._stream, 2, arguments)
        self._library.dnnl_stream_wait(self._stream)
        return target

    def _described(self, extents: tuple[int, int], element: Element, *, transposed: bool) -> Handle:
        strides = (1, extents[0]) if transposed else (extents[1], 1)
        return self._made("memory_desc_create_with_strides", 2, _dims(extents), _type(element), _dims(strides))

    def _memory(self, description: Handle, array: Array) -> Handle:
        return self._made("memory_create", description, self._engine, Handle(array.ctypes.data))

    def _made(self, what: str, *arguments: Any) -> Handle:
        """An object that a function of the library makes.

        Raises:
            RefusedError: It does not.
        """
        made = Handle()
        if getattr(self._library, f"dnnl_{what}")(ctypes.byref(made), *arguments):
            raise RefusedError(what)
        return made


def load(places: Places) -> Onednn:
    """oneDNN, the newest of those that are found and have an engine for processors.

    Raises:
        MissingError: It is not installed.
    """
    found: list[Onednn] = []
    for path in [*dict.fromkeys(path.resolve() for path in places.libraries("libdnnl*.so*"))]:
        try:
            found.append(Onednn(ctypes.CDLL(str(path))))
        except (OSError, RefusedError):
            continue
    if found:
        return max(found, key=lambda one: one.number)
    try:
        return Onednn(places.load([], ["dnnl"]))
    except (MissingError, RefusedError):
        raise MissingError("no libdnnl.so with an engine for processors") from None


def _dims(numbers: Sequence[int]) -> Any:
    return (ctypes.c_int64 * 12)(*numbers)


def _type(element: Element) -> int:
    return _DATATYPES[element.name]
