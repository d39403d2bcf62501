"""Functions of a module that was compiled for a device, and calls of them that are recorded."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Unpack

import numpy as np

from tlx.api.arguments import ArgumentError, checked_argument
from tlx.api.call import CompiledFunction
from tlx.api.device.arrays import OwnedArray
from tlx.api.device.frames import SCALARS, LaunchFrame
from tlx.api.device.host_copies import HostCopies
from tlx.api.device.streams import CallOrder, between_events, stream_handle
from tlx.api.signatures import CallParameter, Prototype
from tlx.diagnostics import TlxError
from tlx.intrinsics.numpy_types import Array
from tlx.ir.types import PointerType, bytes_of
from tlx.target.grid_unit import DeviceArray
from tlx.target.launches import ALIGNMENT, FunctionLaunches

if TYPE_CHECKING:
    from tlx.target.grid_unit import DeviceCode

_MOST_LAYOUTS: Final = 64
_ARRAY: Final = "an array of the device or of numpy"


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
        self._is_sequence = len(launches.launches) > 1 or bool(launches.temporaries)
        # Host arrays are copied to where they are aligned, results as well.
        parameters = [replace(parameter, align=1, is_result=False) for parameter in prototype.parameters]
        self._parameters, self._frames = parameters, list[LaunchFrame]()
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
            record: An event, or a sequence of events, to record after them.

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
        """Record the kernels of a call, to be launched as a whole; none of them runs yet.

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
        return CapturedCall(self._device, work, [*arguments, *copies.references])

    def _values(self, arguments: Sequence[Any], stream: int) -> tuple[list[Any], list[int]]:
        """The values of the parameters, numbers and addresses on the device, as far as they are known quickly.

        Returns:
            The values, and the numbers of the other arguments: arrays whose like has not been checked before, or that
            need copies or waiting. Their values are the arguments themselves.
        """
        values, others = list(arguments), list[int]()
        for number, known in self._pointers:
            array = self.address_and_layout(values[number], stream)
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
            if (found := self.address_and_layout(value, copies.stream)) is not None:
                self._remember(number, found[1])
            copies.use(array)
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
        """The device array that an object describes, for use in a stream; None for other objects."""
        return value.description if isinstance(value, OwnedArray) else self._device.array(value, stream)

    def address_and_layout(self, value: Any, stream: int) -> tuple[int, Hashable] | None:
        """As `DeviceCode.address_and_layout`, also for arrays that calls have returned."""
        return (
            value.address_and_layout(stream)
            if type(value) is OwnedArray
            else self._device.address_and_layout(value, stream)
        )

    def on_device(self, array: Array, stream: object = None) -> OwnedArray:
        """A copy of a numpy array in device memory."""
        owned = OwnedArray(self._device, array.shape, array.dtype, stream)
        owned.fill(array)
        return owned

    def empty(self, shape: Sequence[int], dtype: np.dtype[Any], stream: object = None) -> OwnedArray:
        """An array in device memory with undefined elements."""
        return OwnedArray(self._device, shape, dtype, stream)

    @property
    def device(self) -> DeviceCode:
        """The code on the device."""
        return self._device

    def unchecked(self, *passed: Any) -> Any:
        """Launch the kernels with device addresses and ctypes numbers, without checks."""
        with self._device.current():
            self._launch(passed, 0)

    def launch(self, values: Sequence[Any], stream: int) -> None:
        """As `unchecked`, in the order of a stream, while the device's context is current."""
        self._launch(values, stream)

    def _launch(self, values: Sequence[Any], stream: int) -> None:
        """Launch the kernels with the values of the parameters; temporaries are given back in the stream's order."""
        device, sizes = self._device, self._launches.temporaries
        captured = bool(stream) and self._is_sequence and device.is_capturing(stream)
        if not sizes:
            self._launch_with(values, stream, captured=captured)
            return
        temporaries = device.reserve(sizes, stream, captured=captured)
        try:
            self._launch_with((*values, *temporaries.addresses), stream, captured=captured)
        except BaseException:
            with suppress(TlxError):  # the first error is the one to report
                device.release(temporaries, stream)
            raise
        device.release(temporaries, stream)

    def _launch_with(self, values: Sequence[Any], stream: int, *, captured: bool) -> None:
        """Launch the kernels with the values of the parameters and the addresses of temporaries."""
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = LaunchFrame(self._launches, self._device)
        try:
            if frame.records_calls and not captured:
                frame.launch_recorded(values, stream)
            else:
                frame.launch(values, stream)
        finally:
            self._frames.append(frame)


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
        self._known: dict[tuple[int, ...], _Specialization] = {}
        self._uses, self._compiling = count(), Lock()

    def __call__(self, *arguments: Any, **order: Unpack[CallOrder]) -> None:
        """Launch the kernels for the sizes that are passed; see `DeviceFunction`.

        Raises:
            ArgumentError: An argument does not fit.
            TlxError: There is no code for these sizes, or the device refuses a launch.
        """
        self.for_sizes(arguments)(*arguments, **order)

    def captured(self, *arguments: Any) -> CapturedCall:
        """As `DeviceFunction.captured`."""
        return self.for_sizes(arguments).captured(*arguments)

    def for_sizes(self, arguments: Sequence[Any]) -> DeviceFunction:
        """The function for the sizes among some arguments.

        Raises:
            ArgumentError: There are too few or too many arguments, or a size is not an integer.
            TlxError: There is no code for these sizes.
        """
        if len(arguments) != self._count:
            raise self._count_error(len(arguments))
        parameters = self.prototype.parameters
        sizes = tuple(int(_scalar(n, parameters[n], arguments[n]).value) for n in self._sizes)
        known = self._known.get(sizes) or self._new(sizes)
        known.last_use = next(self._uses)
        return known.function

    def _new(self, sizes: tuple[int, ...]) -> _Specialization:
        """The function for some sizes, compiled by one of the calling threads; evicts the least recently used one."""
        with self._compiling:
            known = self._known.get(sizes)
            if known is None:
                known = _Specialization(self._compiled(dict(zip(self._sizes, sizes, strict=True))), next(self._uses))
                if len(self._known) >= _MOST_LAYOUTS:
                    del self._known[min(self._known, key=lambda sizes: self._known[sizes].last_use)]
                self._known[sizes] = known
            return known


@dataclass(slots=True)
class _Specialization:
    """A function for some sizes, and when it was last called, as the number of a call."""

    function: DeviceFunction
    last_use: int


class CapturedCall:
    """A call whose kernels were recorded, with its arrays, whose current contents each replay reads and writes.

    Args:
        code: The code.
        work: Replays what was recorded, in the order of a stream.
        keep: Objects that must live as long.
    """

    def __init__(self, code: DeviceCode, work: Callable[[int], None], keep: Sequence[object]) -> None:
        self._code, self._work, self._keep = code, work, keep

    def __call__(self, *, stream: object = None, wait_for: object = None, record: object = None) -> None:
        """Make the call again, in the order of a stream, and between events, as `DeviceFunction` does.

        Raises:
            ArgumentError: An argument is not a stream or an event.
            TlxError: The device refuses it.
        """
        handle = stream_handle(stream)
        with between_events(self._code, handle, wait_for, record), self._code.current():
            self._work(handle)


def _described(value: object) -> str:
    """A value that is not an array, and what to do about a tensor of another library."""
    kind = type(value)
    if hasattr(value, "__dlpack__"):
        return f"a {kind.__module__}.{kind.__qualname__} in the host's memory; copy it to the device first"
    return f"{kind.__name__} {value!r}"[:80]


def _scalar(number: int, parameter: CallParameter, value: Any) -> Any:
    make = SCALARS.get(str(parameter.type))
    if make is None:
        raise ArgumentError(
            f"argument {number} ({parameter.name}): a {parameter.type} cannot be passed to a device; pass a pointer"
        )
    return make(checked_argument(number, parameter, value))


def _check(number: int, parameter: CallParameter, array: DeviceArray) -> None:
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
