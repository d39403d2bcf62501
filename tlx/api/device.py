"""Functions whose kernels run on a device: they take arrays in its memory, and numpy arrays, which are copied.

    y = torch.empty(512, 256, device=x.device)
    layer(x, w, bias, y)                            kernels are launched; the call does not wait for them
    layer(x, w, bias, y, stream=torch.cuda.current_stream())
    layer(x, w, bias, y, stream=stream, wait_for=loaded, record=done)          events of PyTorch, CuPy or the driver

A numpy array is copied to the device before the kernels run and, where the function stores to it, back after them.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from math import prod
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from tlx.api.call import ArgumentError, CompiledFunction, array_address, checked_argument
from tlx.api.signatures import Parameter, Prototype
from tlx.api.streams import between_events, stream_handle
from tlx.diagnostics import TlxError
from tlx.intrinsics.numpy_types import Array, type_of
from tlx.ir.types import PointerType, bytes_of
from tlx.llvm.codegen import emit_code
from tlx.target.grid_unit import DeviceArray, Temporaries
from tlx.target.launches import ALIGNMENT, FunctionLaunches, Launch, LaunchArgument, TensorMap, table_of

if TYPE_CHECKING:
    from tlx.target.grid_unit import Device, DeviceCode

_SCALARS: Final[dict[str, Any]] = {
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "i1": ctypes.c_bool,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
}
_MOST_LAYOUTS: Final = 64
_ARRAY: Final = "an array of the device or of numpy"
_REPEATED: Final = 16
"""Calls with the same addresses after which one is recorded, which takes as long as ten of them."""
_MOST_RECORDED: Final = 8
_NO_TEMPORARIES: Final = Temporaries((), 0)
_HOST: Final = (1, 3, 11)  # of dlpack.h: `kDLCPU`, and pinned memory: `kDLCUDAHost`, `kDLROCMHost`
_VECTOR: Final = re.compile(r"<(\d+) x (\w+)>")


class DeviceFunction(CompiledFunction):
    """A function of a module that was compiled for a device.

    Args:
        prototype: Its parameters.
        launches: The kernels that it launches.
        code: The loaded code.
    """

    def __init__(self, prototype: Prototype, launches: FunctionLaunches, code: DeviceCode) -> None:
        self.prototype, self._launches, self._device = prototype, launches, code
        self._count = len(prototype.parameters)
        # Host arrays are copied to where they are aligned, results as well.
        parameters = [replace(parameter, align=1, is_result=False) for parameter in prototype.parameters]
        self._parameters, self._frames = parameters, list[_Frame]()
        self._known: list[set[Hashable]] = [set() for _ in parameters]
        are_pointers = [isinstance(parameter.type, PointerType) for parameter in parameters]
        self._pointers = [(number, self._known[number]) for number, is_one in enumerate(are_pointers) if is_one]
        self._numbers = [(number, parameters[number]) for number, is_one in enumerate(are_pointers) if not is_one]

    def __call__(self, *arguments: Any, stream: object = None, wait_for: object = None, record: object = None) -> None:
        """Launch the function's kernels.

        Args:
            *arguments: Arrays of the device or of numpy, which are C-contiguous, and numbers.
            stream: The stream in whose order kernels run and memory is copied.
            wait_for: An event, or a sequence of events, after which they do.
            record: An event, or a sequence of events, to record behind them.

        Raises:
            ArgumentError: An argument does not fit.
            TlxError: The device refuses a launch.
        """
        if len(arguments) != self._count:
            raise self._count_error(len(arguments))
        handle = 0 if stream is None else stream_handle(stream)
        if wait_for is not None or record is not None:
            with between_events(self._device, handle, wait_for, record):
                self(*arguments, stream=handle)
            return
        device = self._device
        with device.current():
            values, others = self._values(arguments, handle)
            if not others:
                self._launch(values, handle)
                return
            with HostCopies(device, handle) as copies:
                self._complete(values, others, arguments, copies)
                self._launch(values, handle)

    def captured(self, *arguments: Any) -> CapturedCall:
        """The kernels of a call as one piece of work, which is launched as a whole; the call is not made.

        Args:
            *arguments: As for a call; arrays are of the device.

        Raises:
            ArgumentError: An argument does not fit.
            TlxError: The device refuses it.
        """
        if len(arguments) != self._count:
            raise self._count_error(len(arguments))
        for number, _ in self._pointers:
            if self.array_of(arguments[number]) is None:
                raise ArgumentError(f"{self._place(number)}: a captured call takes arrays of the device")
        copies = HostCopies(self._device, 0)
        with self._device.current():
            values, others = self._values(arguments, 0)
            self._complete(values, others, arguments, copies)
            work = self._device.capture(lambda stream: self._launch(values, stream))
        return CapturedCall(self._device, work, [*arguments, *copies.keep])

    def _values(self, arguments: Sequence[Any], stream: int) -> tuple[list[Any], list[int]]:
        """The values of the parameters, numbers and addresses on the device, as far as they are known quickly.

        Returns:
            The values, and the numbers of the other arguments: arrays whose like has not been checked before, or that
            need copies or waiting. Their values are the arguments themselves.
        """
        values, others, quick = list(arguments), list[int](), self._device.quick
        for number, known in self._pointers:
            value = values[number]
            array = value.quick(stream) if type(value) is OwnedArray else quick(value, stream)
            if array is not None and array[1] in known and not array[0] % ALIGNMENT:
                values[number] = array[0]
            else:
                others.append(number)
        for number, parameter in self._numbers:
            values[number] = _scalar(number, parameter, values[number])
        return values, others

    def _complete(self, values: list[Any], others: Iterable[int], arguments: Sequence[Any], copies: HostCopies) -> None:
        """Find the addresses of the arguments that `_values` has left."""
        host: list[tuple[int, Array]] = []
        for number in others:
            parameter, value = self._parameters[number], arguments[number]
            try:
                array = self.array_of(value, copies.stream)
            except (AssertionError, BufferError, RuntimeError, TypeError, ValueError) as error:  # of other libraries
                raise ArgumentError(f"{self._place(number)}: the array cannot be used on the device: {error}") from None
            if array is None:
                if not isinstance(value, np.ndarray):
                    raise ArgumentError(f"{self._place(number)}: expected {_ARRAY}, got {_described(value)}")
                data: Array = checked_argument(number, parameter, value)
                copies.add(data, written=parameter.written)
                host.append((number, data))
                continue
            layout = array[1:5]
            if layout not in self._known[number] or array.address % ALIGNMENT:
                _check(number, parameter, array)
                self._remember(number, layout)
            again = value.quick if isinstance(value, OwnedArray) else partial(self._device.quick, value)
            if (quick := again(copies.stream)) is not None:
                self._remember(number, quick[1])
            copies.take(array)
            values[number] = array.address
        for number, data in host:
            values[number] = address = copies.address_of(data)
            if address % ALIGNMENT:
                raise _alignment_error(self._place(number))

    def _place(self, number: int) -> str:
        return f"argument {number} ({self._parameters[number].name})"

    def _remember(self, number: int, layout: Hashable) -> None:
        """Remember that arrays of some shape, strides and elements fit a parameter."""
        if len(self._known[number]) >= _MOST_LAYOUTS:
            self._known[number].clear()
        self._known[number].add(layout)

    def array_of(self, value: object, stream: int = 0) -> DeviceArray | None:
        """The array of the device that an object is, for use in a stream; None if it is another object."""
        return value.description if isinstance(value, OwnedArray) else self._device.array(value, stream)

    def on_device(self, array: Array, stream: object = None) -> OwnedArray:
        """A copy of an array of numpy in the device's memory."""
        owned = OwnedArray(self._device, array.shape, array.dtype, stream)
        owned.fill(array)
        return owned

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any], stream: object = None) -> OwnedArray:
        """An array in the device's memory whose elements are undefined."""
        return OwnedArray(self._device, shape, dtype, stream)

    @property
    def device(self) -> DeviceCode:
        """The code on the device."""
        return self._device

    def unchecked(self, *passed: Any) -> Any:
        """Launch the kernels with addresses in the device's memory and numbers of ctypes. Nothing is checked."""
        with self._device.current():
            self._launch(passed, 0)

    def launch(self, values: Sequence[Any], stream: int) -> None:
        """As `unchecked`, in the order of a stream, while the device's context is current."""
        self._launch(values, stream)

    def _launch(self, values: Sequence[Any], stream: int) -> None:
        """Launch the kernels with the values of the parameters; temporaries are freed in the stream's order."""
        device, sizes = self._device, self._launches.temporaries
        temporaries = device.reserve(sizes, stream) if sizes else _NO_TEMPORARIES
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = _Frame(self._launches, device)
        try:
            all_values = (*values, *temporaries.addresses)
            if frame.records and not (stream and device.is_capturing(stream)):
                frame.repeat(all_values, stream)
            else:
                frame.launch(all_values, stream)
        except BaseException:
            if sizes:
                with suppress(TlxError):  # the first error is the one to report
                    device.release(temporaries, stream)
            raise
        finally:
            self._frames.append(frame)
        if sizes:
            device.release(temporaries, stream)


class SizedFunction(CompiledFunction):
    """A function of run-time sizes, for which code is generated when it is first called with some sizes.

    Args:
        prototype: Its parameters.
        sizes: The numbers of the parameters that are sizes.
        compiled: Compiles the function for sizes, given by these numbers.
    """

    def __init__(
        self, prototype: Prototype, sizes: Sequence[int], compiled: Callable[[dict[int, int]], DeviceFunction]
    ) -> None:
        self.prototype, self._sizes, self._compiled = prototype, sizes, compiled
        self._count = len(prototype.parameters)
        self._known: dict[tuple[int, ...], _ForSizes] = {}
        self._uses, self._compiling = count(), Lock()

    def __call__(self, *arguments: Any, stream: object = None, wait_for: object = None, record: object = None) -> None:
        """Launch the kernels for the sizes that are passed; see `DeviceFunction`.

        Raises:
            ArgumentError: An argument does not fit.
            TlxError: There is no code for these sizes, or the device refuses a launch.
        """
        self.for_sizes(arguments)(*arguments, stream=stream, wait_for=wait_for, record=record)

    def captured(self, *arguments: Any) -> CapturedCall:
        """As `DeviceFunction.captured`."""
        return self.for_sizes(arguments).captured(*arguments)

    def for_sizes(self, arguments: Sequence[Any]) -> DeviceFunction:
        """The function for the sizes among some arguments.

        Raises:
            ArgumentError: There are too few or too many arguments, or a size is no integer.
            TlxError: There is no code for these sizes.
        """
        if len(arguments) != self._count:
            raise self._count_error(len(arguments))
        parameters = self.prototype.parameters
        sizes = tuple(int(_scalar(n, parameters[n], arguments[n]).value) for n in self._sizes)
        known = self._known.get(sizes) or self._new(sizes)
        known.last_use = next(self._uses)
        return known.function

    def _new(self, sizes: tuple[int, ...]) -> _ForSizes:
        """The function for some sizes, compiled once, whatever threads call it; the least recently used one goes."""
        with self._compiling:
            known = self._known.get(sizes)
            if known is None:
                known = _ForSizes(self._compiled(dict(zip(self._sizes, sizes, strict=True))), next(self._uses))
                if len(self._known) >= _MOST_LAYOUTS:
                    del self._known[min(self._known, key=lambda sizes: self._known[sizes].last_use)]
                self._known[sizes] = known
            return known


@dataclass(slots=True)
class _ForSizes:
    """A function for some sizes, and when it was last called, as the number of a call."""

    function: DeviceFunction
    last_use: int


class OwnedArray:
    """An array in the memory of a device, C-contiguous, which is freed with the object.

    It has `__cuda_array_interface__`; `numpy.asarray` copies it.

    Args:
        code: Code on the device.
        shape: Its extents.
        dtype: Its element type.
        stream: The stream in whose order it is allocated, copied and freed; calls in other streams are ordered by it.
            An object of another library is kept, as many destroy the stream with it.
    """

    def __init__(self, code: DeviceCode, shape: Sequence[int], dtype: np.dtype[Any], stream: object = None) -> None:
        self.shape, self.dtype, self._code, self.address = tuple(shape), dtype, code, 0
        self.nbytes, self.stream, self._stream = prod(self.shape) * dtype.itemsize, stream_handle(stream), stream
        with code.current():
            self.address = code.allocate(self.nbytes, self.stream)

    def __del__(self) -> None:
        if self.address:
            with suppress(TlxError), self._code.current():
                self._code.free(self.address, self.stream)

    def __repr__(self) -> str:
        return f"<{self.dtype.name} array of shape {self.shape} on the device>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """A copy; it waits for what was launched before."""
        array: Array = np.empty(self.shape, self.dtype)
        with self._code.current():
            self._code.download(array_address(array), self.address, self.nbytes, self.stream)
        return array if dtype is None else array.astype(dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the interface; of types that numpy does not know, such as bfloat16, as unsigned integers."""
        is_known = self.dtype.kind in "biuf" and self.dtype.isbuiltin == 1
        typestr = self.dtype.str if is_known else f"<u{self.dtype.itemsize}"
        place = {"data": (self.address, False), "shape": self.shape, "typestr": typestr}
        return {"version": 3, **place, "stream": self.stream or 1}  # 1: the default stream

    def fill(self, source: Array) -> None:
        """Copy an array of numpy of the same shape and type to it."""
        data: Array = np.ascontiguousarray(source)
        with self._code.current():
            self._code.upload(self.address, array_address(data), self.nbytes, self.stream)

    def quick(self, stream: int) -> tuple[int, Hashable] | None:
        """As `DeviceCode.quick`."""
        return (self.address, (self.dtype, self.shape)) if stream == self.stream else None

    @property
    def description(self) -> DeviceArray:
        """What it is for calls."""
        return DeviceArray(
            self.address, self.shape, None, str(type_of(self.dtype)), self.dtype.itemsize, self, self.stream
        )


class CapturedCall:
    """A call whose kernels were recorded, with its arrays; arrays that are changed later are read and written as such.

    Args:
        code: The code.
        work: Does what was recorded, in the order of a stream.
        keep: What must live as long.
    """

    def __init__(self, code: DeviceCode, work: Callable[[int], None], keep: Sequence[object]) -> None:
        self._code, self._work, self._keep = code, work, keep

    def __call__(self, *, stream: object = None, wait_for: object = None, record: object = None) -> None:
        """Make the call again, in the order of a stream, and between events, as `DeviceFunction` does.

        Raises:
            ArgumentError: An argument is no stream or event.
            TlxError: The device refuses it.
        """
        handle = stream_handle(stream)
        with between_events(self._code, handle, wait_for, record), self._code.current():
            self._work(handle)


def _product(values: Sequence[Any], numbers: Sequence[int]) -> int:
    return prod(getattr(values[number], "value", values[number]) for number in numbers)


class _FilledLaunch(NamedTuple):
    """A launch with memory for its arguments, whose values are at places of a list that each call makes.

    Attributes:
        launch: The launch.
        pointers: An array of pointers to the arguments.
        addresses: Memory, place and offset of each address.
        numbers: Memory and place of each number.
        maps: Number of the argument, memory, place and offset of each tensor map.
    """

    launch: Launch
    pointers: Any
    addresses: list[tuple[Any, int, int]]
    numbers: list[tuple[Any, int]]
    maps: list[tuple[int, Any, int, int]]


class _Frame:
    """Memory for the arguments of a function's launches, which one call at a time uses.

    Calls that pass the same addresses again and again are recorded: launching the record takes less time than launching
    several kernels.

    Args:
        function: The launches.
        device: The code.

    Attributes:
        records: Whether calls are recorded: there are several kernels, and all that they are passed is addresses.
    """

    def __init__(self, function: FunctionLaunches, device: DeviceCode) -> None:
        self._device, self._launches = device, list[_FilledLaunch]()
        self._counts: dict[object, int] = {}
        self._least_count = _REPEATED
        self._recorded: dict[object, Callable[[int], None]] = {}
        count = len(function.parameters)
        for launch in function.launches:
            cells = [_memory_of(argument, function, device) for argument in launch.arguments]
            pointers = (ctypes.c_void_p * len(cells))(
                *(None if isinstance(cell, _MapCell) else ctypes.addressof(cell) for cell in cells)
            )
            filled = _FilledLaunch(launch, pointers, [], [], [])
            for number, (argument, cell) in enumerate(zip(launch.arguments, cells, strict=True)):
                place = argument.parameter or 0 if argument.temporary is None else count + argument.temporary
                if argument.offset is None:
                    filled.numbers.append((cell, place))
                elif argument.map is None:
                    filled.addresses.append((cell, place, argument.offset))
                else:
                    filled.maps.append((number, cell, place, argument.offset))
            self._launches.append(filled)
        has_numbers = any(launch.numbers or not isinstance(launch.launch.grid, int) for launch in self._launches)
        places = {place for launch in self._launches for _, place, _ in launch.addresses}
        places |= {place for launch in self._launches for *_, place, _ in launch.maps}
        self.records = device.has_default_stream and len(self._launches) > 1 and bool(places) and not has_numbers
        self._addresses_in: Callable[[Sequence[Any]], object] = itemgetter(*places or (0,))

    def launch(self, values: Sequence[Any], stream: int) -> None:
        """Launch the kernels with the values of parameters and temporaries."""
        for launch, pointers, addresses, numbers, maps in self._launches:
            for cell, place, offset in addresses:
                cell.value = values[place] + offset
            for number, cell, place, offset in maps:
                pointers[number] = cell.encoded_for(values[place] + offset)
            for cell, place in numbers:
                value = values[place]
                if isinstance(cell, ctypes.Array):
                    cell[:] = value
                else:
                    cell.value = getattr(value, "value", value)
            blocks = launch.grid if isinstance(launch.grid, int) else _product(values, launch.grid)
            if blocks:
                self._device.launch(launch, blocks, pointers, stream)

    def repeat(self, values: Sequence[Any], stream: int) -> None:
        """Launch the kernels, as they were recorded if calls with these addresses were."""
        addresses = self._addresses_in(values)
        recorded = self._recorded.get(addresses)
        if recorded is not None:
            recorded(stream)
            return
        self.launch(values, stream)
        count = self._counts.get(addresses, 0) + 1
        if len(self._counts) >= _MOST_LAYOUTS:
            self._counts.clear()
        self._counts[addresses] = count
        if count >= self._least_count:
            self._record(addresses, values)

    def _record(self, addresses: object, values: Sequence[Any]) -> None:
        del self._counts[addresses]
        if len(self._recorded) >= _MOST_RECORDED:
            del self._recorded[next(iter(self._recorded))]
            self._least_count *= 2  # calls with many sets of addresses, in turn, spend little time on records
        try:
            self._recorded[addresses] = self._device.capture(partial(self.launch, values))
        except TlxError:
            self.records = False  # the call itself has been made


class _MapCell:
    """Memory for a tensor map, for each of the addresses that the tensor has had lately.

    Args:
        tensor_map: The map.
        device: The code.
    """

    def __init__(self, tensor_map: TensorMap, device: DeviceCode) -> None:
        self._map, self._device, self._known = tensor_map, device, dict[int, Any]()

    def encoded_for(self, address: int) -> int:
        """Where the map of the tensor at an address is."""
        memory = self._known.get(address)
        if memory is None:
            if len(self._known) >= _MOST_LAYOUTS:
                self._known.clear()
            encoded = self._device.tensor_map(self._map, address)
            memory = self._known[address] = (ctypes.c_char * len(encoded)).from_buffer_copy(encoded)
        return ctypes.addressof(memory)


def _memory_of(argument: LaunchArgument, function: FunctionLaunches, device: DeviceCode) -> Any:
    """Memory for an argument of a launch."""
    if argument.offset is None:
        return _cell(function.parameters[argument.parameter or 0])
    return ctypes.c_void_p() if argument.map is None else _MapCell(argument.map, device)


def _cell(type_: str) -> Any:
    """Memory for a scalar argument of a type."""
    vector = _VECTOR.fullmatch(type_)
    return (_SCALARS[vector[2]] * int(vector[1]))() if vector is not None else _SCALARS[type_]()


class HostCopies:
    """Copies of host memory on a device, for the time of a call; memory that was written is copied back at the end.

    Arrays that overlap share a copy, in which the first of them is aligned. Where an array of the device is used in the
    order of another stream, the call waits for that stream, which waits for the call at the end.

    Args:
        device: The code that is called.
        stream: The stream.

    Attributes:
        stream: The stream.
        keep: Objects that must live until the end.
    """

    def __init__(self, device: DeviceCode, stream: int) -> None:
        self._device, self.stream = device, stream
        self._added: list[_HostSpan] = []
        self._distances: dict[int, int] | None = None  # from an address on the host to that on the device
        self._allocated: list[int] = []
        self._others: list[int] = []
        self.keep: list[object] = []

    def take(self, array: DeviceArray) -> None:
        """Use an array of the device until the end."""
        self.keep.append(array.owner)
        other = array.stream
        if other is not None and other != self.stream and other not in self._others:
            self._device.order(other, self.stream)
            self._others.append(other)

    def add(self, array: Array, *, written: bool, whole: bool = False) -> None:
        """Note an array to be copied, before the first `address_of`.

        Args:
            array: The array.
            written: Whether to copy it back at the end.
            whole: Whether to copy all memory that it is a view of.
        """
        low, high = memory_bounds(array) if whole else _extent(array)
        self._added.append(_HostSpan(low, high, len(self._added), array_address(array), written))
        self.keep.append(array)

    def address_of(self, array: Array) -> int:
        """The address on the device of the first element of an array that was added."""
        if self._distances is None:
            self._distances = self._copied()
        address = array_address(array)
        return address + self._distances[address]

    def table(self, array: Array) -> int:
        """The address of a copy of an array that was not added, and that the kernels only read."""
        self.keep.append(array)
        return array_address(array) + self._copy(array_address(array), array_address(array) + array.nbytes)

    def _copied(self) -> dict[int, int]:
        """Copy what was added."""
        distances: dict[int, int] = {}
        for spans in _sharing(self._added):
            first = min(spans, key=lambda span: span.number)
            distance = self._copy(spans[0].low, max(span.high for span in spans), first.address)
            distances |= {span.address: distance for span in spans}
        return distances

    def _copy(self, low: int, high: int, aligned: int | None = None) -> int:
        """Copy memory to where one of its addresses is aligned; returns the distance to the copy."""
        before = -((low if aligned is None else aligned) - low) % ALIGNMENT
        allocated = self._device.allocate(before + high - low, self.stream)
        self._allocated.append(allocated)
        self._device.upload(allocated + before, low, high - low, self.stream)
        return allocated + before - low

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        failed = True
        try:
            if kind is None:
                distances = self._distances or {}
                for low, high, distance in {(s.low, s.high, distances[s.address]) for s in self._added if s.written}:
                    self._device.download(low, low + distance, high - low, self.stream)
                for other in self._others:
                    self._device.order(self.stream, other)
                failed = False
        finally:
            for address in self._allocated:
                with suppress(TlxError) if failed else nullcontext():  # the first error is the one to report
                    self._device.free(address, self.stream)


class _HostSpan(NamedTuple):
    """Memory of the host.

    Attributes:
        low: Its first byte.
        high: One past its last.
        number: How many were added before.
        address: The first element of the array that is in it.
        written: Whether it is copied back.
    """

    low: int
    high: int
    number: int
    address: int
    written: bool


def _sharing(spans: Iterable[_HostSpan]) -> list[list[_HostSpan]]:
    """Spans that share a copy: they overlap, or follow each other such that both can be aligned."""
    groups: list[list[_HostSpan]] = []
    high = 0
    for span in sorted(spans):
        follows = span.low == high and groups and (span.address - groups[-1][0].address) % ALIGNMENT == 0
        if groups and (span.low < high or follows):
            groups[-1].append(span)
            high = max(high, span.high)
        else:
            groups.append([span])
            high = span.high
    return groups


def is_on_device(value: object) -> bool:
    """Whether an object is an array in the memory of a device, as it says itself."""
    place = getattr(value, "__dlpack_device__", None)  # a tensor that requires gradients has no other answer
    return int(place()[0]) not in _HOST if place is not None else hasattr(value, "__cuda_array_interface__")


def memory_bounds(array: Array) -> tuple[int, int]:
    """First and one past the last byte of the memory that an array is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return _extent(array)


def _extent(array: Array) -> tuple[int, int]:
    """First and one past the last byte of an array's elements."""
    if array.size == 0:
        return array_address(array), array_address(array)
    steps = [(extent - 1) * step for extent, step in zip(array.shape, array.strides, strict=True)]
    low = array_address(array) + sum(step for step in steps if step < 0)
    return low, array_address(array) + sum(step for step in steps if step > 0) + array.itemsize


def _described(value: object) -> str:
    """A value that is no array, and what to do about a tensor of another library."""
    kind = type(value)
    if hasattr(value, "__dlpack__"):
        return f"a {kind.__module__}.{kind.__qualname__} in the host's memory; copy it to the device first"
    return f"{kind.__name__} {value!r}"[:80]


def _scalar(number: int, parameter: Parameter, value: Any) -> Any:
    make = _SCALARS.get(str(parameter.type))
    if make is None:
        raise ArgumentError(f"argument {number} ({parameter.name}): a device takes no {parameter.type}; pass a pointer")
    return make(checked_argument(number, parameter, value))


def _check(number: int, parameter: Parameter, array: DeviceArray) -> None:
    """Check an array of the device."""
    what = f"argument {number} ({parameter.name})"
    element = parameter.stored_type or parameter.element
    if element is not None and array.element != str(element):
        raise ArgumentError(f"{what}: expected elements of {element}, got {array.element or 'another type'}")
    if not array.is_dense:
        raise ArgumentError(f"{what}: the array is not C-contiguous; copy it first")
    if parameter.count is not None and element is not None and array.size < parameter.count * bytes_of(element):
        got = array.size // bytes_of(element)
        raise ArgumentError(f"{what}: expected {parameter.count} elements of {element}, got {got}")
    if array.address % ALIGNMENT:
        raise _alignment_error(what)


def _alignment_error(what: str) -> ArgumentError:
    return ArgumentError(f"{what}: the array is not aligned to {ALIGNMENT} bytes; copy it first")


def assembly_of(lowered: str, device: Device, opt_level: int) -> bytes:
    """The assembly of a lowered module for a device, at LLVM's optimisation level.

    Raises:
        TlxError: LLVM refuses the code.
    """
    return emit_code(lowered, "asm", opt_level, device.processor)


def loaded_functions(
    lowered: str, assembly: bytes, defined: Mapping[str, Prototype], device: Device
) -> dict[str, DeviceFunction]:
    """The functions of a lowered module, loaded on a device.

    Args:
        lowered: The module.
        assembly: Its assembly.
        defined: The functions of the input.
        device: The device.

    Raises:
        TlxError: The device refuses the code.
    """
    table = table_of(lowered)
    code = device.load(assembly.decode(), table)
    return {launches.name: DeviceFunction(defined[launches.name], launches, code) for launches in table}
