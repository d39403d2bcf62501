"""The graph: parameters, weights and outputs; its text, and functions on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Unpack

import numpy as np

from tlx.api.arguments import ArgumentError, aligned_array, array_address
from tlx.api.call import PreparedFunction
from tlx.api.device.arrays import OwnedArray
from tlx.api.device.functions import DeviceFunction
from tlx.api.device.streams import CallOrder, check_host_order, stream_handle
from tlx.diagnostics import counted
from tlx.graph.algorithms.linear_algebra import LinearAlgebra
from tlx.graph.core import FLOAT32, listed
from tlx.graph.value import Buffer, DType, GraphMemory, Operand, Value
from tlx.graph.view import View
from tlx.ir.functions import Argument
from tlx.ir.module import Module
from tlx.ir.parser.module import needs_lowering, parse
from tlx.ir.prepared import CONSTANT
from tlx.ir.types import PTR
from tlx.lower.memory.buffers import PrivateBuffers

if TYPE_CHECKING:
    from tlx.target.target import Target

Array = np.ndarray[Any, np.dtype[Any]]
_READ: Final = "noalias readonly"
_CONSTANT: Final = f"{_READ} {CONSTANT}"
_WRITTEN: Final = "noalias"


@dataclass(frozen=True, slots=True)
class Input:
    """A parameter of the function, or a weight.

    Attributes:
        name: Its name in the IR.
        shape: Its shape.
        dtype: Its element type.
        array: The weight; None for what the caller passes.
        is_donated: Whether the function may overwrite the caller's array.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    array: Array | None = None
    is_donated: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """A result: its name in the IR, shape and element type; and the parameter whose memory it takes, if it does."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    into: str | None = None


@dataclass(frozen=True, slots=True)
class GraphFunction:
    """A graph as a function of numpy arrays; its weights are packed once.

    Attributes:
        inputs: Parameters and weights, in their order in the IR.
        outputs: The results.
        call: The function of all inputs and results; with `prepared`, not called.
        lowered: The LLVM IR that was compiled; empty for the evaluator.
        prepared: The function of parameters and results, with the weights packed; None if there are no weights.
        weights: On a device, its copies of the weights.
    """

    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    call: Callable[..., Any]
    lowered: str = ""
    prepared: PreparedFunction | None = None
    weights: tuple[OwnedArray, ...] = ()

    def __call__(self, *arrays: Any, **order: Unpack[CallOrder]) -> Any:
        """The results for an array for each parameter, in order of declaration.

        Args:
            *arrays: The arrays.
            **order: On a device, `stream=`, `wait_for=` and `record=`: see `CallOrder`.

        Returns:
            A new array, or a tuple of them if there are several outputs. A result that takes the memory of a parameter
            is the array that was passed, or a new one if that array is read-only or shares memory with another one. If
            any array that is passed is in the memory of the device for which the graph is compiled, new arrays are,
            too.

        Raises:
            ArgumentError: There are too few or too many arrays, one has another shape or element type, one that would
                be overwritten shares memory of a device with another, or a stream or event is passed to code for a CPU.
        """
        passed = [i for i in self.inputs if i.array is None]
        if len(arrays) != len(passed):
            names = ", ".join(i.name for i in passed)
            raise ArgumentError(f"expected {counted(len(passed), 'array')} ({names}), got {len(arrays)}")
        if isinstance(self.call, DeviceFunction):
            given = dict(zip((i.name for i in passed), arrays, strict=True))
            return self._called_on_device(self.call, given, order)
        check_host_order(order)
        by_name = {i.name: _checked(i, array) for i, array in zip(passed, arrays, strict=True)}
        _copy_overlapping(by_name, {i.name for i in passed if i.is_donated})
        results = [aligned_array(o.shape, o.dtype) if o.into is None else by_name[o.into] for o in self.outputs]
        new = [result for result, o in zip(results, self.outputs, strict=True) if o.into is None]
        if self.prepared is not None:
            self.prepared(*by_name.values(), *new)
        else:
            self.call(*(by_name[i.name] if i.array is None else i.array for i in self.inputs), *new)
        return results[0] if len(results) == 1 else tuple(results)

    def is_resident(self, value: object, stream: object = None) -> bool:
        """Whether an object is an array in the memory of the device for which the graph is compiled.

        Args:
            value: The object.
            stream: The stream in which the array is about to be used.
        """
        call = self.call
        return isinstance(call, DeviceFunction) and call.array_of(value, stream_handle(stream)) is not None

    def _called_on_device(self, function: DeviceFunction, given: dict[str, Any], order: CallOrder) -> Any:
        stays, new = False, list[Any]()
        stream = order.get("stream")
        handle = stream_handle(stream)
        on_host: dict[str, Array] = {}
        on_device: list[tuple[int, int, str]] = []
        for declared in self.inputs:
            if declared.array is not None:
                continue
            resident = function.array_of(given[declared.name], handle)
            if resident is None:
                on_host[declared.name] = _checked(declared, given[declared.name])
            elif resident.shape != declared.shape:
                got = listed(resident.shape)
                raise ArgumentError(f"{declared.name}: expected an array of shape {listed(declared.shape)}, got {got}")
            else:
                stays = True
                on_device.append((resident.address, resident.size, declared.name))
        donated = {i.name for i in self.inputs if i.is_donated}
        for name in _overlapping_donations(on_device, donated):
            raise ArgumentError(f"{name}: the call would overwrite an argument with the same memory: pass a copy")
        _copy_overlapping(on_host, donated)
        given |= on_host
        weights = iter(self.weights)
        passed = [given[i.name] if i.array is None else next(weights) for i in self.inputs]
        results: list[Any] = []
        for output in self.outputs:
            if output.into is not None:
                results.append(given[output.into])
                continue
            shape, dtype = output.shape, output.dtype
            new.append(function.empty(shape, dtype, stream) if stays else aligned_array(shape, dtype))
            results.append(new[-1])
        function(*passed, *new, **order)
        return results[0] if len(results) == 1 else tuple(results)

    def prepare(self) -> None:
        """Pack the weights again after their arrays have changed; no call may run at the same time."""
        for owned, array in zip(self.weights, (i.array for i in self.inputs if i.array is not None), strict=False):
            owned.fill(array)
        if self.prepared is not None:
            self.prepared.prepare()


class Graph(LinearAlgebra):
    """A function of tensors under construction: operations are its methods, and values have Python's operators."""

    def __init__(self, name: str = "main") -> None:
        """An empty graph.

        Args:
            name: Name of the function in the IR; characters that would need quotes there become dots.
        """
        super().__init__(name)
        self._name = self._definition.name
        self._inputs: list[Input] = []
        self._parameters: set[str] = set()
        self._outputs: list[Output] = []

    @property
    def name(self) -> str:
        """Name of the function in the IR."""
        return self._name

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Parameters and weights, in their order in the IR."""
        return tuple(self._inputs)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The results; in the IR, pointers to them follow the inputs."""
        return tuple(self._outputs)

    def parameter(
        self, name: str, shape: Sequence[int], dtype: str | type | DType = FLOAT32, *, donated: bool = False
    ) -> Value:
        """Add a parameter: an array that each call passes.

        Args:
            name: Its name in the IR, which no other parameter has.
            shape: Its shape.
            dtype: Its element type.
            donated: Whether the function may overwrite the array: updates of it are in place, and a result can take its
                memory; see `output`.
        """
        extents, known = self._shape("parameter", shape), self._dtype("parameter", dtype)
        if name in self._parameters:
            self._fail("parameter", f"there is already a parameter {name!r}")
        free = self._unused_name("parameter", name)
        self._parameters.add(name)
        return self._declare(Input(free, extents, known, is_donated=donated))

    def weight(self, name: str, array: Any, dtype: str | type | DType | None = None) -> Value:
        """Add a weight, an array that is the same in every call: in the IR, a parameter with `"tlx-constant"`.

        It is packed when the graph is compiled. Changes of the array after that are seen once `prepare()` of the
        compiled graph has packed it again; it is not copied if it is contiguous.
        """
        data = np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array)
        known = self._dtype("weight", data.dtype if dtype is None else dtype)
        if not data.size:
            return self._empty(data.shape, known)
        return self._declare(
            Input(self._unused_name("weight", name), data.shape, known, data.astype(known, copy=False))
        )

    def output(self, x: Operand, name: str = "out", into: Value | None = None) -> None:
        """Make a value the next result.

        Args:
            x: The value.
            name: Its name in the IR.
            into: A donated parameter of the same shape and type, whose memory the result takes.
        """
        value = self._value("output", x)
        if into is not None:
            self._outputs.append(Output(name, value.shape, value.dtype, self._overwrite(value, into)))
            return
        free = self._unused_name("output", name)
        if value.view.count:
            self._store_output(value, Argument(PTR, _WRITTEN, free).value)
        self._outputs.append(Output(free, value.shape, value.dtype))

    def _overwrite(self, value: Value, parameter: Value) -> str:
        """Write a value to the memory of a donated parameter, whose name is returned."""
        pointer = parameter.buffer.operand
        names = [i.name for i in self._inputs if i.is_donated and pointer == Argument(PTR, _WRITTEN, i.name).value]
        if not names or (value.shape, value.dtype) != (parameter.shape, parameter.dtype):
            self._fail("output", f"{parameter!r} is not a donated parameter whose memory {value!r} can take")
        memory = parameter.buffer.memory
        if memory is None or any(o.into == names[0] for o in self._outputs):
            self._fail("output", f"the memory of {parameter!r} already belongs to another result")
        is_there = value.buffer.operand == pointer and not value.buffer.is_overwritten and value.view == parameter.view
        if not is_there:
            token = self._row_major_token(value)
            after = self._preceding()
            self._store(parameter, token)
            self._overwritten(parameter, after)
        return names[0]

    def text(self) -> str:
        """The function as TLX IR."""
        return str(self.module()) if self._buffers.buffers else self._text("text")

    def _text(self, operation: str) -> str:
        """The function as TLX IR, without the allocation of its buffers."""
        if self._unfinished:
            self._fail(operation, f"an earlier {self._unfinished} failed and left the graph unfinished: build it again")
        if not self._outputs:
            self._fail(operation, "the graph has no output: call output(value) first")
        parameters = ", ".join(
            [
                *(f"ptr {_attributes(i)} %{i.name}" for i in self._inputs),
                *(f"ptr {_WRITTEN} %{o.name}" for o in self._outputs if o.into is None),
            ]
        )
        blocks = [b.label + "".join(i.lead + i.text for i in b.instructions) for b in self._definition.blocks]
        function = f"define void @{self._name}({parameters}) {{{''.join(blocks)}\n  ret void\n}}\n"
        others = [str(item).strip() for item in self._module.items if item is not self._definition]
        return (
            "\n".join(
                [
                    *(text for text in others if text.startswith("@")),
                    function,
                    *(text for text in others if not text.startswith("@")),
                ]
            )
            + "\n"
        )

    def module(self) -> Module:
        """The function as a module."""
        # A function without tensors, whose results have no elements, is parsed as well.
        head = f"define void @{self._name}("
        module = self._read(lambda f: f.startswith(head) or needs_lowering(f))
        buffers = self._buffers
        PrivateBuffers(module, module.function(self._name), buffers.buffers, scopes=buffers.scopes).emit()
        return module

    def _read(self, is_parsed: Callable[[str], bool]) -> Module:
        """The function as a module, without the allocation of its buffers; arguments as for `parse`."""
        return parse(self._text("module"), f"<graph {self._name}>", is_parsed)

    def compile(self, target: Target | str = "native", **settings: Any) -> GraphFunction:
        """Lower and compile the graph, and pack its weights: a function on numpy arrays.

        LLVM verifies the lowered module only, since no user writes the IR of a graph, unless `verify_each` says
        otherwise, as a setting or in `options`.

        Args:
            target: The machine to aim at, which must be this one.
            **settings: As for `tlx.compile`: `threads="openmp"`, `options=tlx.Options(...)`, ...
        """
        from tlx.api.compiler import compile as compile_module

        if getattr(settings.get("options"), "verify_each", None) is None:
            settings = {"verify_each": False, **settings}
        # It parses what it is passed: before that, only the allocation of buffers needs instructions.
        module = self.module() if self._buffers.buffers else self._read(lambda _text: False)
        compiled = compile_module(module, target, entry=self._name, **settings)
        entry, weights = compiled.entry, [i.array for i in self._inputs if i.array is not None]
        if isinstance(entry, DeviceFunction):
            copies = tuple(map(entry.on_device, weights))
            return GraphFunction(tuple(self._inputs), tuple(self._outputs), entry, compiled.lowered, weights=copies)
        prepared = entry.prepare(*weights) if weights else None
        return GraphFunction(tuple(self._inputs), tuple(self._outputs), entry, compiled.lowered, prepared)

    def evaluate(self, *arrays: Any) -> Any:
        """Compute the results in the evaluator, without machine code; slow."""
        from tlx.evaluate import Machine

        machine = Machine(self.module())

        def call(*arguments: Any) -> None:
            machine.call(self._name, *arguments)

        return GraphFunction(tuple(self._inputs), tuple(self._outputs), call)(*arrays)

    def _unused_name(self, operation: str, name: str) -> str:
        """A name for a parameter of the function that no other parameter has."""
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            self._fail(operation, f"expected a name, got {name!r}")
        return self._definition.names.fresh(name)

    def _declare(self, declared: Input) -> Value:
        self._inputs.append(declared)
        if not declared.is_donated:
            return self._in_memory(Argument(PTR, _READ, declared.name).value, declared.shape, declared.dtype)
        self._memories.append(GraphMemory(0))
        pointer = Argument(PTR, _WRITTEN, declared.name).value
        return self._make(declared.dtype, View.dense(declared.shape), Buffer(pointer, 0, self._memories[-1]))


def _attributes(declared: Input) -> str:
    """The attributes of a parameter."""
    if declared.array is not None:
        return _CONSTANT
    return _WRITTEN if declared.is_donated else _READ


def _checked(expected: Input, array: Any) -> Array:
    try:
        data = np.asarray(array)
    except (TypeError, ValueError, RuntimeError) as error:  # of PyTorch, for tensors on a GPU
        raise ArgumentError(f"{expected.name}: not an array: {error}") from None
    if not data.dtype.isnative and data.dtype.newbyteorder("=") == expected.dtype:
        data = data.astype(expected.dtype)
    if data.shape != expected.shape or data.dtype != expected.dtype:
        message = (
            f"{expected.name}: expected {expected.dtype.name} array of shape {listed(expected.shape)}, "
            f"got {data.dtype.name} array of shape {listed(data.shape)}"
        )
        raise ArgumentError(message)
    flags = data.flags
    is_usable = flags.c_contiguous and flags.aligned and (flags.writeable or not expected.is_donated)
    return data if is_usable else data.copy(order="C")


def _copy_overlapping(arrays: dict[str, Array], donated: AbstractSet[str]) -> None:
    """Replace donated arrays that share memory with others, which the function would overwrite, by copies."""
    spans = [(array_address(array), array.nbytes, name) for name, array in arrays.items()] if donated else []
    for name in _overlapping_donations(spans, donated):
        arrays[name] = arrays[name].copy()


def _overlapping_donations(spans: Iterable[tuple[int, int, str]], donated: AbstractSet[str]) -> list[str]:
    """Names of donated arrays to copy so that no other donated array shares memory with any array.

    Args:
        spans: The address, the size in bytes and the name of each array.
        donated: Names of donated arrays.
    """
    sharing: list[str] = []
    reach, last = 0, ""  # the end of the array that reaches furthest so far, and its name
    for start, size, name in sorted(span for span in spans if span[1]):
        if start < reach and name in donated:
            sharing.append(name)
            continue
        if start < reach and last in donated:
            sharing.append(last)
            reach = 0
        if start + size > reach:
            reach, last = start + size, name
    return sharing
