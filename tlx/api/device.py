"""Functions whose kernels run on a device: they take arrays in its memory, and numpy arrays, which are copied.

    y = torch.empty(512, 256, device=x.device)
    layer(x, w, bias, y)                            kernels are launched; the call does not wait for them
    layer(x, w, bias, y, stream=stream.cuda_stream)

A numpy array is copied to the device before the kernels run and, where the function stores to it, back after them.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from math import prod
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from tlx.api.call import ArgumentError, CompiledFunction, array_address, checked_argument
from tlx.api.signatures import Parameter, Prototype
from tlx.diagnostics import TlxError
from tlx.intrinsics.numpy_types import Array, type_of
from tlx.ir.types import PointerType, bytes_of
from tlx.llvm.codegen import emit_code
from tlx.target.grid_unit import DeviceArray
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
        self._parameters = [(p, isinstance(p.type, PointerType)) for p in parameters]
        self._frames: list[_Frame] = []
        self._known: list[set[Hashable]] = [set() for _ in prototype.parameters]

    def __call__(self, *arguments: Any, stream: int = 0) -> None:
        """Launch the function's kernels.

        Args:
            *arguments: Arrays of the device or of numpy, which are C-contiguous, and numbers.
            stream: The stream in whose order kernels run and memory is copied, as the driver's handle.

        Raises:
            ArgumentError: An argument does not fit.
            TlxError: The device refuses a launch.
        """
        if len(arguments) != self._count:
            raise self._count_error(len(arguments))
        with self._device.current():
            values = self._quick_values(arguments, stream)
            if values is not None:
                self._launch(values, stream)
                return
            with HostCopies(self._device, stream) as copies:
                self._launch(self._values(arguments, copies), stream)

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
        copies = HostCopies(self._device, 0)
        for number, (parameter, is_pointer) in enumerate(self._parameters):
            if is_pointer and self.array_of(arguments[number]) is None:
                raise ArgumentError(f"argument {number} ({parameter.name}): a captured call takes arrays of the device")
        with self._device.current():
            values = self._values(arguments, copies)
            work = self._device.capture(lambda stream: self._launch(values, stream))
        return CapturedCall(self._device, work, copies.keep)

    def _quick_values(self, arguments: Sequence[Any], stream: int) -> list[Any] | None:
        """As `_values`, if arrays like these have been checked before, and need neither copies nor waiting."""
        values: list[Any] = []
        for number, (parameter, is_pointer) in enumerate(self._parameters):
            value = arguments[number]
            if not is_pointer:
                values.append(_scalar(number, parameter, value))
                continue
            array = value.quick(stream) if isinstance(value, OwnedArray) else self._device.quick(value, stream)
            if array is None or array[1] not in self._known[number] or array[0] % ALIGNMENT:
                return None
            values.append(array[0])
        return values

    def _values(self, arguments: Sequence[Any], copies: HostCopies) -> list[Any]:
        """The values of the parameters: addresses on the device, and numbers."""
        values: list[Any] = []
        for number, (parameter, is_pointer) in enumerate(self._parameters):
            value = arguments[number]
            if not is_pointer:
                values.append(_scalar(number, parameter, value))
                continue
            array = self.array_of(value, copies.stream)
            if array is not None:
                layout = array[1:5]
                if layout not in self._known[number] or array.address % ALIGNMENT:
                    _check(number, parameter, array)
                    self._remember(number, layout)
                again = value.quick if isinstance(value, OwnedArray) else partial(self._device.quick, value)
                if (quick := again(copies.stream)) is not None:
                    self._remember(number, quick[1])
                copies.take(array)
                values.append(array.address)
                continue
            data: Array = checked_argument(number, parameter, value)
            address = copies.address_of(data, written=parameter.written)
            if address % ALIGNMENT:
                raise _alignment_error(f"argument {number} ({parameter.name})")
            values.append(address)
        return values

    def _remember(self, number: int, layout: Hashable) -> None:
        """Remember that arrays of some shape, strides and elements fit a parameter."""
        if len(self._known[number]) >= _MOST_LAYOUTS:
            self._known[number].clear()
        self._known[number].add(layout)

    def array_of(self, value: object, stream: int = 0) -> DeviceArray | None:
        """The array of the device that an object is, for use in a stream; None if it is another object."""
        return value.description if isinstance(value, OwnedArray) else self._device.array(value, stream)

    def on_device(self, array: Array, stream: int = 0) -> OwnedArray:
        """A copy of an array of numpy in the device's memory."""
        owned = OwnedArray(self._device, array.shape, array.dtype, stream)
        owned.fill(array)
        return owned

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any], stream: int = 0) -> OwnedArray:
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
        device, temporaries = self._device, list[int]()
        frame = self._frames.pop() if self._frames else _Frame(self._launches, self._device)
        failed = True
        try:
            for size in self._launches.temporaries:
                temporaries.append(device.allocate(size, stream))
            for launch, pointers in frame.filled(values, temporaries):
                blocks = launch.grid if isinstance(launch.grid, int) else _product(values, launch.grid)
                if blocks:
                    device.launch(launch, blocks, pointers, stream)
            failed = False
        finally:
            self._frames.append(frame)
            if temporaries:
                _free(device, temporaries, stream, failed=failed)


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
        self._known: dict[tuple[int, ...], DeviceFunction] = {}
        self._compiling = Lock()

    def __call__(self, *arguments: Any, stream: int = 0) -> None:
        """Launch the kernels for the sizes that are passed; see `DeviceFunction`.

        Raises:
            ArgumentError: An argument does not fit.
            TlxError: There is no code for these sizes, or the device refuses a launch.
        """
        self.for_sizes(arguments)(*arguments, stream=stream)

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
        known = self._known.get(sizes)
        return known if known is not None else self._new(sizes)

    def _new(self, sizes: tuple[int, ...]) -> DeviceFunction:
        """The function for some sizes, compiled once, whatever threads call it."""
        with self._compiling:
            known = self._known.get(sizes)
            if known is None:
                known = self._compiled(dict(zip(self._sizes, sizes, strict=True)))
                if len(self._known) >= _MOST_LAYOUTS:
                    del self._known[next(iter(self._known))]
                self._known[sizes] = known
            return known


class OwnedArray:
    """An array in the memory of a device, C-contiguous, which is freed with the object.

    It has `__cuda_array_interface__`; `numpy.asarray` copies it.

    Args:
        code: Code on the device.
        shape: Its extents.
        dtype: Its element type.
        stream: The stream in whose order it is allocated, copied and freed; calls in other streams are ordered by it.
    """

    def __init__(self, code: DeviceCode, shape: Sequence[int], dtype: np.dtype[Any], stream: int = 0) -> None:
        self.shape, self.dtype, self._code, self.address = tuple(shape), dtype, code, 0
        self.nbytes, self.stream = prod(self.shape) * dtype.itemsize, stream
        with code.current():
            self.address = code.allocate(self.nbytes, stream)

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

    def __call__(self, *, stream: int = 0) -> None:
        """Make the call again, in the order of a stream.

        Raises:
            TlxError: The device refuses it.
        """
        with self._code.current():
            self._work(stream)


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

    Args:
        function: The launches.
        device: The code.
    """

    def __init__(self, function: FunctionLaunches, device: DeviceCode) -> None:
        self._launches: list[_FilledLaunch] = []
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

    def filled(self, values: Sequence[Any], temporaries: Sequence[int]) -> Iterator[tuple[Launch, Any]]:
        """Each launch with an array of pointers to its arguments."""
        places: list[Any] = [*values, *temporaries]
        for launch, pointers, addresses, numbers, maps in self._launches:
            for cell, place, offset in addresses:
                cell.value = places[place] + offset
            for number, cell, place, offset in maps:
                pointers[number] = cell.encoded_for(places[place] + offset)
            for cell, place in numbers:
                value = places[place]
                if isinstance(cell, ctypes.Array):
                    cell[:] = value
                else:
                    cell.value = getattr(value, "value", value)
            yield launch, pointers


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

    Arrays that are views of the same memory share a copy, in which the first of them is aligned. Where an array of the
    device is used in the order of another stream, the call waits for that stream, which waits for the call at the end.

    Args:
        device: The code that is called.
        stream: The stream.

    Attributes:
        stream: The stream.
        keep: Objects that must live until the end.
    """

    def __init__(self, device: DeviceCode, stream: int) -> None:
        self._device, self.stream = device, stream
        self._copies: dict[tuple[int, int], tuple[int, int]] = {}  # what is allocated, and where the copy begins
        self._written: list[tuple[int, int]] = []
        self._others: list[int] = []
        self.keep: list[object] = []

    def take(self, array: DeviceArray) -> None:
        """Use an array of the device until the end."""
        self.keep.append(array.owner)
        other = array.stream
        if other is not None and other != self.stream and other not in self._others:
            self._device.order(other, self.stream)
            self._others.append(other)

    def address_of(self, array: Array, *, written: bool) -> int:
        """The address on the device of an array's first element."""
        low, high = bounds = memory_bounds(array)
        distance = array_address(array) - low
        if bounds not in self._copies:
            before = -distance % ALIGNMENT
            allocated = self._device.allocate(before + high - low, self.stream)
            self._copies[bounds] = allocated, allocated + before
            self._device.upload(allocated + before, low, high - low, self.stream)
            self.keep.append(array)
        if written and bounds not in self._written:
            self._written.append(bounds)
        return self._copies[bounds][1] + distance

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        failed = True
        try:
            if kind is None:
                for low, high in self._written:
                    self._device.download(low, self._copies[low, high][1], high - low, self.stream)
                for other in self._others:
                    self._device.order(self.stream, other)
                failed = False
        finally:
            allocated = [allocated for allocated, _ in self._copies.values()]
            _free(self._device, allocated, self.stream, failed=failed)


def _free(device: DeviceCode, addresses: Iterable[int], stream: int, *, failed: bool) -> None:
    """Free memory; after a failure without errors, which would hide the first one."""
    for address in addresses:
        with suppress(TlxError) if failed else nullcontext():
            device.free(address, stream)


def is_on_device(value: object) -> bool:
    """Whether an object is an array in the memory of a device, as it says itself."""
    place = getattr(value, "__dlpack_device__", None)  # a tensor that requires gradients has no other answer
    return int(place()[0]) not in _HOST if place is not None else hasattr(value, "__cuda_array_interface__")


def memory_bounds(array: Array) -> tuple[int, int]:
    """First and one past the last byte of the memory that an array is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    if array.size == 0:
        return array_address(array), array_address(array)
    steps = [(extent - 1) * step for extent, step in zip(array.shape, array.strides, strict=True)]
    low = array_address(array) + sum(step for step in steps if step < 0)
    return low, array_address(array) + sum(step for step in steps if step > 0) + array.itemsize


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
