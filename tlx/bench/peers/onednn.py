"""oneDNN through its C interface: primitives are created once for a shape, then executed.

The weights of layers and convolutions, and B of products that is packed beforehand, are in oneDNN's own layout;
converting them is not timed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from tlx.bench.peers.base import Attempt, LibraryPaths, MissingError
from tlx.intrinsics.numpy_types import Array
from tlx.tuning.timing import NativeCall, Repeat, call_loop, function_address
from tlx.tuning.workload import (
    F32,
    BatchProblem,
    ConvolutionProblem,
    Element,
    GemmProblem,
    LayerProblem,
    PointwiseProblem,
    Workload,
    unpack_vnni,
)

_INFERENCE: Final = 96
_DIRECT: Final = 1
_ACCURATE: Final = 0x30000
_RELU: Final = 0x20
_FUNCTIONS: Final = {"tanh": 0x21, "sigmoid": 0x29, "exp": 0x2A}
_ADD: Final = 0x1FFF0
_REDUCTIONS: Final = {"rowmax": 0x2FFF2, "rowsum": 0x2FFF4}
_SECOND, _BIAS = 2, 41


class Onednn:
    """The library, as a peer."""

    name = "onednn"

    def __init__(self, library: OnednnLibrary) -> None:
        self._library = library
        self.version = ".".join(map(str, library.number))

    def attempts(self, work: Workload, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """One primitive for each supported layout of the operands."""
        problem = work.problem
        try:
            match problem:
                case GemmProblem():
                    yield self._product(problem, arrays, packed=problem.vnni or problem.prepared)
                case LayerProblem(gemm):
                    yield self._product(gemm, arrays, packed=gemm.vnni, bias=arrays["bias"])
                case BatchProblem(count, gemm, False):
                    yield self._batch(count, gemm, arrays)
                case ConvolutionProblem():
                    yield from self._convolution(problem, arrays)
                case PointwiseProblem(function) if function in _REDUCTIONS:
                    yield self._reduction(problem, arrays)
                case PointwiseProblem():
                    yield from self._pointwise(problem, arrays)
                case _:
                    return
        except UnsupportedError:
            return

    def _product(
        self, gemm: GemmProblem, arrays: dict[str, Array], *, packed: bool, bias: Array | None = None
    ) -> Attempt:
        make = self._library
        if gemm.accumulates:
            raise UnsupportedError("sums into the destination")
        a = make.dense((gemm.m, gemm.k), gemm.lhs, transposed="a" in gemm.columns)
        b = make.dense((gemm.k, gemm.n), gemm.rhs, transposed="b" in gemm.columns)
        c = make.dense((gemm.m, gemm.n), gemm.out, transposed="c" in gemm.columns)
        weights = make.any((gemm.k, gemm.n), gemm.rhs) if packed else b
        added = make.dense((1, gemm.n), F32) if bias is not None else None
        extra = make.followed_by(_RELU) if bias is not None else None
        pd = make.optimised("matmul", a, weights, added, c, extra)
        arguments = {SOURCE: make.memory(a, arrays["a"]), DESTINATION: make.memory(c, arrays["c"])}
        flat = unpack_vnni(gemm, arrays["b"])
        arguments[WEIGHTS] = make.reorder_weights(pd, b, flat.copy()) if packed else make.memory(b, flat)
        if bias is not None:
            arguments[_BIAS] = make.memory(added, bias)
        return self._attempt(pd, arguments, arrays, "weights packed beforehand" if packed else "")

    def _batch(self, count: int, gemm: GemmProblem, arrays: dict[str, Array]) -> Attempt:
        make = self._library
        if gemm.accumulates:
            raise UnsupportedError("sums into the destination")
        shapes = {"a": (gemm.m, gemm.k), "b": (gemm.k, gemm.n), "c": (gemm.m, gemm.n)}
        elements = {"a": gemm.lhs, "b": gemm.rhs, "c": gemm.out}
        d = {name: make.dense((count, *shapes[name]), elements[name]) for name in "abc"}
        pd = make.optimised("matmul", d["a"], d["b"], None, d["c"], None)
        places = {"a": SOURCE, "b": WEIGHTS, "c": DESTINATION}
        return self._attempt(pd, {places[n]: make.memory(d[n], arrays[n]) for n in "abc"}, arrays)

    def _convolution(self, conv: ConvolutionProblem, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """On images in the given layout, and in oneDNN's own layouts with the conversions timed."""
        make = self._library
        x = ((conv.images, conv.channels, conv.rows, conv.columns), conv.lhs)
        y = ((conv.images, conv.filters, conv.out_rows, conv.out_columns), conv.out)
        each = (conv.channels // conv.groups, conv.window, conv.window)
        w = ((conv.groups, conv.filters // conv.groups, *each) if conv.groups > 1 else (conv.filters, *each), conv.rhs)
        steps, none = make.dims((conv.stride,) * 2), make.dims((0, 0))
        for layout, note in ((make.dense, ""), (make.any, ", images converted to its layout and back")):
            with suppress(UnsupportedError):
                tensors = (layout(*x), make.any(*w), None, layout(*y))
                arguments = (_INFERENCE, _DIRECT, *tensors, steps, none, none, none, None)
                pd = make.optimised("convolution_forward", *arguments)
                weights = make.reorder_weights(pd, make.dense(*w), arrays["w"])
                source = make.reorder_argument(pd, SOURCE, make.dense(*x), arrays["x"])
                result = make.reorder_argument(pd, DESTINATION, make.dense(*y), arrays["y"])
                memories = {SOURCE: source.inner, WEIGHTS: weights, DESTINATION: result.inner}
                work = [*source.entering, make.primitive(pd, memories), *result.leaving]
                yield Attempt(make.execution(work, arrays), f"weights packed beforehand{note}")

    def _pointwise(self, problem: PointwiseProblem, arrays: dict[str, Array]) -> Iterator[Attempt]:
        make = self._library
        shape = (problem.count // problem.columns, problem.columns) if problem.columns else (problem.count,)
        d = make.dense(shape, problem.element)
        zero = ctypes.c_float(0)
        inputs = {name: make.memory(d, array) for name, array in arrays.items() if name != "y"}
        if problem.function in _FUNCTIONS:
            kinds = (_INFERENCE, _FUNCTIONS[problem.function])
            pd = make.optimised("eltwise_forward", *kinds, d, d, zero, zero, None)
        elif problem.function == "softmax":
            kinds = (_INFERENCE, _ACCURATE)
            pd = make.optimised("softmax_forward", *kinds, d, d, 1, None)
        elif problem.function == "add":
            pd = make.optimised("binary", _ADD, d, d, d, None)
        else:
            return
        sources = dict(zip((SOURCE, _SECOND), inputs.values(), strict=False))
        yield self._attempt(pd, {**sources, DESTINATION: make.memory(d, arrays["y"])}, arrays)

    def _reduction(self, problem: PointwiseProblem, arrays: dict[str, Array]) -> Attempt:
        make, rows, zero = self._library, problem.count // problem.columns, ctypes.c_float(0)
        x, y = make.dense((rows, problem.columns), problem.element), make.dense((rows, 1), problem.element)
        pd = make.optimised("reduction", _REDUCTIONS[problem.function], x, y, zero, zero, None)
        return self._attempt(
            pd, {SOURCE: make.memory(x, arrays["x"]), DESTINATION: make.memory(y, arrays["y"])}, arrays
        )

    def _attempt(self, pd: Any, memories: dict[int, Memory], arrays: dict[str, Array], note: str = "") -> Attempt:
        return Attempt(self._library.execution([self._library.primitive(pd, memories)], arrays), note)


def load(places: LibraryPaths) -> Onednn:
    """Load the newest oneDNN found that has a CPU engine.

    Raises:
        MissingError: It is not installed.
    """
    libraries: list[OnednnLibrary] = []
    for path in dict.fromkeys(path.resolve() for path in places.libraries("libdnnl*.so*")):
        try:
            libraries.append(OnednnLibrary(ctypes.CDLL(str(path))))
        except (OSError, UnsupportedError):
            continue
    if libraries:
        return Onednn(max(libraries, key=lambda one: one.number))
    try:
        return Onednn(OnednnLibrary(places.load([], ["dnnl"])))
    except (MissingError, UnsupportedError):
        raise MissingError("no libdnnl.so with a CPU engine") from None


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


class UnsupportedError(Exception):
    """oneDNN does not support the operation."""


@dataclass(frozen=True)
class Primitive:
    """A primitive and its arguments."""

    handle: Handle
    arguments: list[_Argument]


@dataclass(frozen=True)
class ReorderedArray:
    """An array in a primitive's own layout, `inner`, and the reorders to it and back; None if none is needed."""

    inner: Memory
    entering: list[Primitive]
    leaving: list[Primitive]


class OnednnLibrary:
    """The library, with an engine and a stream.

    Attributes:
        number: Its version.
        engine: The CPU engine.

    Raises:
        RefusedError: It has no CPU engine.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        library.dnnl_version.restype = ctypes.POINTER(_Version)
        version = library.dnnl_version().contents
        self.number = (version.major, version.minor, version.patch)
        self.engine = self.create("engine_create", _CPU, ctypes.c_size_t(0))
        self._stream = self.create("stream_create", self.engine, _IN_ORDER)

    def create(self, what: str, *arguments: Any) -> Handle:
        """Create an object by a function of the library.

        Raises:
            RefusedError: The function fails.
        """
        handle = Handle()
        if getattr(self._library, f"dnnl_{what}")(ctypes.byref(handle), *arguments):
            raise UnsupportedError(what)
        return handle

    def dims(self, numbers: Sequence[int]) -> Any:
        """The numbers as `dnnl_dims_t`."""
        return (ctypes.c_int64 * 12)(*numbers)

    def dense(self, extents: Sequence[int], element: Element, *, transposed: bool = False) -> Handle:
        """A descriptor of a dense tensor; a `transposed` matrix is column-major."""
        strides = [prod(extents[axis + 1 :]) for axis in range(len(extents))]
        if transposed:
            strides = [1, extents[0]]
        shape = (len(extents), self.dims(extents), _DATATYPES[element.name])
        return self.create("memory_desc_create_with_strides", *shape, self.dims(strides))

    def any(self, extents: Sequence[int], element: Element) -> Handle:
        """A descriptor that leaves the layout to the primitive."""
        shape = (len(extents), self.dims(extents), _DATATYPES[element.name])
        return self.create("memory_desc_create_with_tag", *shape, _ANY)

    def followed_by(self, function: int) -> Handle:
        """Attributes that fuse an elementwise function into a primitive."""
        attributes, operations = self.create("primitive_attr_create"), self.create("post_ops_create")
        zero = ctypes.c_float(0)
        self._library.dnnl_post_ops_append_eltwise(operations, function, zero, zero)
        self._library.dnnl_primitive_attr_set_post_ops(attributes, operations)
        return attributes

    def memory(self, description: Handle | None, array: Array) -> Memory:
        """An array as a oneDNN memory object."""
        return self.create("memory_create", description, self.engine, Handle(array.ctypes.data))

    def reorder_weights(self, pd: Handle, description: Handle, array: Array) -> Memory:
        """A copy of the weights in the layout that a primitive prefers."""
        source, target = self.memory(description, array), self._own(self._chosen_descriptor(pd, WEIGHTS))
        self._execute(self._reorder(source, target))
        return target

    def reorder_argument(self, pd: Handle, index: int, description: Handle, array: Array) -> ReorderedArray:
        """A primitive's source or destination in the layout that it prefers."""
        outer, preferred = self.memory(description, array), self._chosen_descriptor(pd, index)
        if self._library.dnnl_memory_desc_equal(description, preferred):
            return ReorderedArray(outer, [], [])
        inner = self._own(preferred)
        return ReorderedArray(inner, [self._reorder(outer, inner)], [self._reorder(inner, outer)])

    def optimised(self, what: str, *arguments: Any) -> Handle:
        """A primitive descriptor, but not that of oneDNN's reference implementation, which is 1000 times slower.

        Raises:
            RefusedError: There is none.
        """
        pd, name = self.create(f"{what}_primitive_desc_create", self.engine, *arguments), ctypes.c_char_p()
        self._library.dnnl_primitive_desc_query(pd, _IMPLEMENTATION, 0, ctypes.byref(name))
        if (name.value or b"").startswith(b"ref"):
            raise UnsupportedError(what)
        return pd

    def primitive(self, pd: Handle, memories: Mapping[int, Memory]) -> Primitive:
        """A primitive with its arguments."""
        return Primitive(self.create("primitive_create", pd), [_Argument(i, m.value) for i, m in memories.items()])

    def execution(self, primitives: Sequence[Primitive], keep: object) -> Repeat:
        """A function that executes the primitives in order, the given number of times."""
        arguments = [(_Argument * len(one.arguments))(*one.arguments) for one in primitives]
        steps = [self._step(one, given) for one, given in zip(primitives, arguments, strict=True)]
        return call_loop(steps, (self, arguments, keep))

    def _step(self, primitive: Primitive, arguments: Any) -> NativeCall:
        call_arguments = (
            ("ptr", primitive.handle.value or 0),
            ("ptr", self._stream.value or 0),
            ("i32", len(arguments)),
            ("ptr", ctypes.addressof(arguments)),
        )
        return NativeCall(function_address(self._library.dnnl_primitive_execute), call_arguments)

    def _execute(self, primitive: Primitive) -> None:
        self.execution([primitive], None)(1)
        self._library.dnnl_stream_wait(self._stream)

    def _chosen_descriptor(self, pd: Handle, index: int) -> Handle:
        """The memory descriptor that a primitive chose for an argument."""
        query = self._library.dnnl_primitive_desc_query_md
        query.restype = ctypes.c_void_p
        return Handle(query(pd, _QUERIES[index], 0))

    def _own(self, description: Handle) -> Memory:
        return self.create("memory_create", description, self.engine, _ALLOCATE)

    def _reorder(self, source: Memory, target: Memory) -> Primitive:
        md = self._library.dnnl_memory_get_memory_desc
        descriptions = [Handle(), Handle()]
        for memory, description in zip((source, target), descriptions, strict=True):
            md(memory, ctypes.byref(description))
        between = (descriptions[0], self.engine, descriptions[1], self.engine)
        pd = self.create("reorder_primitive_desc_create", *between, None)
        return self.primitive(pd, {SOURCE: source, DESTINATION: target})
