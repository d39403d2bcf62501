"""Functions whose kernels run on a device: they take arrays in its memory, and numpy arrays, which are copied.

    y = torch.empty(512, 256, device=x.device)
    layer(x, w, bias, y)                            kernels are launched; the call does not wait for them
    layer(x, w, bias, y, stream=stream.cuda_stream)

A numpy array is copied to the device before the kernels run and, where the function stores to it, back after them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tlx.api.call import ArgumentError, CompiledFunction, array_address, checked_argument
from tlx.api.signatures import Parameter, Prototype
from tlx.intrinsics.numpy_types import Array
from tlx.ir.types import PointerType, bytes_of
from tlx.llvm.codegen import emit_code
from tlx.target.launches import ALIGNMENT, FunctionLaunches, LaunchArgument, table_of

if TYPE_CHECKING:
    from tlx.target.grid_unit import Device, DeviceArray, DeviceCode

_SCALARS: Final[dict[str, Any]] = {
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "i1": ctypes.c_bool,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
}


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
        device, owned, alive, written = self._device, list[int](), list[object](), list[tuple[Array, int]]()
        values: list[Any] = []
        try:
            for number, (parameter, value) in enumerate(zip(self.prototype.parameters, arguments, strict=True)):
                if not isinstance(parameter.type, PointerType):
                    values.append(_scalar(number, parameter, value))
                    continue
                array = device.array(value)
                if array is not None:
                    _check(number, parameter, array)
                    alive.append(array.owner)
                    values.append(array.address)
                    continue
                data: Array = checked_argument(number, parameter, value)
                values.append(device.allocate(data.nbytes, stream))
                owned.append(values[-1])
                device.upload(values[-1], array_address(data), data.nbytes, stream)
                alive.append(data)
                if parameter.written:
                    written.append((data, values[-1]))
            self._launch(values, stream)
            for data, address in written:
                device.download(array_address(data), address, data.nbytes, stream)
        finally:
            for address in owned:
                device.free(address, stream)

    def unchecked(self, *passed: Any) -> Any:
        """Launch the kernels with addresses in the device's memory and numbers of ctypes. Nothing is checked."""
        self._launch(passed, 0)

    def _launch(self, values: Sequence[Any], stream: int) -> None:
        """Launch the kernels with the values of the parameters; temporaries are freed in the stream's order."""
        device, temporaries = self._device, list[int]()
        try:
            for size in self._launches.temporaries:
                temporaries.append(device.allocate(size, stream))
            for launch in self._launches.launches:
                device.launch(launch, [_passed(a, values, temporaries) for a in launch.arguments], stream)
        finally:
            for address in temporaries:
                device.free(address, stream)


def _passed(argument: LaunchArgument, values: Sequence[Any], temporaries: Sequence[int]) -> Any:
    """The ctypes argument of a kernel: an address, or a number of the call."""
    if argument.temporary is not None:
        return ctypes.c_void_p(temporaries[argument.temporary] + (argument.offset or 0))
    assert argument.parameter is not None
    value = values[argument.parameter]
    return value if argument.offset is None else ctypes.c_void_p(value + argument.offset)


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
        raise ArgumentError(f"{what}: the array is not aligned to {ALIGNMENT} bytes; copy it first")


def compiled_for_device(
    lowered: str, defined: Mapping[str, Prototype], device: Device, opt_level: int
) -> dict[str, DeviceFunction]:
    """The functions of a lowered module, loaded on a device.

    Args:
        lowered: The module.
        defined: The functions of the input.
        device: The device.
        opt_level: LLVM's optimisation level.

    Raises:
        TlxError: LLVM or the device refuses the code.
    """
    table = table_of(lowered)
    assembly = emit_code(lowered, "asm", opt_level, device.processor).decode()
    code = device.load(assembly, table)
    return {launches.name: DeviceFunction(defined[launches.name], launches, code) for launches in table}
