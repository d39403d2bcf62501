"""oneDNN by its C interface: primitives made once for a shape, then executed.

Weights of layers, convolutions and products whose B is packed beforehand are packed in oneDNN's own way, untimed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from tlx.bench.elements import F32, Array
from tlx.bench.peers.base import Attempt, MissingError, Places
from tlx.bench.peers.onednn_api import DESTINATION, SOURCE, WEIGHTS, Library, Memory, RefusedError
from tlx.bench.problems import Batch, Convolution, Gemm, Layer, Pointwise
from tlx.bench.rows.gemm import vnni_flat
from tlx.bench.workload import Workload

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

    def __init__(self, library: Library) -> None:
        self._library = library
        self.version = ".".join(map(str, library.number))

    def attempts(self, work: Workload, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """One primitive, or none."""
        problem = work.problem
        try:
            match problem:
                case Gemm():
                    yield self._product(problem, arrays, packed=problem.vnni)
                case Layer(gemm):
                    yield self._product(gemm, arrays, packed=gemm.vnni, bias=arrays["bias"])
                case Batch(count, gemm, False):
                    yield self._batch(count, gemm, arrays)
                case Convolution():
                    yield from self._convolution(problem, arrays)
                case Pointwise(function) if function in _REDUCTIONS:
                    yield self._reduction(problem, arrays)
                case Pointwise():
                    yield from self._pointwise(problem, arrays)
                case _:
                    return
        except RefusedError:
            return

    def _product(self, gemm: Gemm, arrays: dict[str, Array], *, packed: bool, bias: Array | None = None) -> Attempt:
        make = self._library
        a = make.dense((gemm.m, gemm.k), gemm.lhs, transposed="a" in gemm.columns)
        b = make.dense((gemm.k, gemm.n), gemm.rhs, transposed="b" in gemm.columns)
        c = make.dense((gemm.m, gemm.n), gemm.out, transposed="c" in gemm.columns)
        wanted = make.any((gemm.k, gemm.n), gemm.rhs) if packed else b
        added = make.dense((1, gemm.n), F32) if bias is not None else None
        extra = make.followed_by(_RELU) if bias is not None else None
        pd = make.optimised("matmul", a, wanted, added, c, extra)
        given = {SOURCE: make.memory(a, arrays["a"]), DESTINATION: make.memory(c, arrays["c"])}
        flat = vnni_flat(gemm, arrays["b"])
        given[WEIGHTS] = make.packed(pd, b, flat.copy()) if packed else make.memory(b, flat)
        if bias is not None:
            given[_BIAS] = make.memory(added, bias)
        return self._attempt(pd, given, arrays, "weights packed before" if packed else "")

    def _batch(self, count: int, gemm: Gemm, arrays: dict[str, Array]) -> Attempt:
        make = self._library
        shapes = {"a": (gemm.m, gemm.k), "b": (gemm.k, gemm.n), "c": (gemm.m, gemm.n)}
        elements = {"a": gemm.lhs, "b": gemm.rhs, "c": gemm.out}
        d = {name: make.dense((count, *shapes[name]), elements[name]) for name in "abc"}
        pd = make.optimised("matmul", d["a"], d["b"], None, d["c"], None)
        places = {"a": SOURCE, "b": WEIGHTS, "c": DESTINATION}
        return self._attempt(pd, {places[n]: make.memory(d[n], arrays[n]) for n in "abc"}, arrays)

    def _convolution(self, conv: Convolution, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """On images as they lie; and in oneDNN's own layouts, to and from which they are brought, timed."""
        make = self._library
        x = ((conv.images, conv.channels, conv.rows, conv.columns), conv.lhs)
        y = ((conv.images, conv.filters, conv.out_rows, conv.out_columns), conv.out)
        each = (conv.channels // conv.groups, conv.window, conv.window)
        w = ((conv.groups, conv.filters // conv.groups, *each) if conv.groups > 1 else (conv.filters, *each), conv.rhs)
        steps, none = make.dims((conv.stride,) * 2), make.dims((0, 0))
        for layout, note in ((make.dense, ""), (make.any, ", images brought to its layout and back")):
            with suppress(RefusedError):
                tensors = (layout(*x), make.any(*w), None, layout(*y))
                arguments = (_INFERENCE, _DIRECT, *tensors, steps, none, none, none, None)
                pd = make.optimised("convolution_forward", *arguments)
                weights = make.packed(pd, make.dense(*w), arrays["w"])
                source = make.brought(pd, SOURCE, make.dense(*x), arrays["x"])
                result = make.brought(pd, DESTINATION, make.dense(*y), arrays["y"])
                given = {SOURCE: source.inner, WEIGHTS: weights, DESTINATION: result.inner}
                work = [*source.entering, make.primitive(pd, given), *result.leaving]
                yield Attempt(make.execution(work, arrays), f"weights packed before{note}")

    def _pointwise(self, problem: Pointwise, arrays: dict[str, Array]) -> Iterator[Attempt]:
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
        given = dict(zip((SOURCE, _SECOND), inputs.values(), strict=False))
        yield self._attempt(pd, {**given, DESTINATION: make.memory(d, arrays["y"])}, arrays)

    def _reduction(self, problem: Pointwise, arrays: dict[str, Array]) -> Attempt:
        make, rows, zero = self._library, problem.count // problem.columns, ctypes.c_float(0)
        x, y = make.dense((rows, problem.columns), problem.element), make.dense((rows, 1), problem.element)
        pd = make.optimised("reduction", _REDUCTIONS[problem.function], x, y, zero, zero, None)
        return self._attempt(
            pd, {SOURCE: make.memory(x, arrays["x"]), DESTINATION: make.memory(y, arrays["y"])}, arrays
        )

    def _attempt(self, pd: Any, memories: dict[int, Memory], arrays: dict[str, Array], note: str = "") -> Attempt:
        return Attempt(self._library.execution([self._library.primitive(pd, memories)], arrays), note)


def load(places: Places) -> Onednn:
    """The newest oneDNN of those that are found and have an engine for processors.

    Raises:
        MissingError: It is not installed.
    """
    found: list[Library] = []
    for path in dict.fromkeys(path.resolve() for path in places.libraries("libdnnl*.so*")):
        try:
            found.append(Library(ctypes.CDLL(str(path))))
        except (OSError, RefusedError):
            continue
    if found:
        return Onednn(max(found, key=lambda one: one.number))
    try:
        return Onednn(Library(places.load([], ["dnnl"])))
    except (MissingError, RefusedError):
        raise MissingError("no libdnnl.so with an engine for processors") from None
