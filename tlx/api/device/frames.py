"""Memory for the arguments of launches, and records of repeated calls."""

from __future__ import annotations

import ctypes
import re
from functools import partial
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tlx.diagnostics import TlxError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tlx.target.grid_unit import DeviceCode
    from tlx.target.launches import FunctionLaunches, Launch, LaunchArgument, TensorMap

SCALARS: Final[dict[str, Any]] = {
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "i1": ctypes.c_bool,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
}
"""Scalar arguments of kernels, by their types."""
_VECTOR: Final = re.compile(r"<(\d+) x (\w+)>")
_REPEATED: Final = 16
"""Calls with the same addresses after which one is recorded, which takes as long as ten of them."""
_MOST_RECORDED: Final = 8
_MOST_ADDRESSES: Final = 64
"""Sets of addresses that are counted, and tensor maps that are kept."""


class LaunchFrame:
    """Memory for the arguments of a function's launches, which one call at a time uses.

    Repeated calls that pass the same addresses are recorded: launching the record takes less time than launching
    several kernels.

    Args:
        function: The launches.
        device: The code.

    Attributes:
        records_calls: Whether calls are recorded: there are several kernels, and all that they are passed is addresses.
    """

    def __init__(self, function: FunctionLaunches, device: DeviceCode) -> None:
        self._device, self._launches = device, list[_BoundLaunch]()
        self._counts: dict[object, int] = {}
        self._least_count = _REPEATED
        self._recorded: dict[object, Callable[[int], None]] = {}
        count = len(function.parameters)
        for launch in function.launches:
            cells = [_memory_of(argument, function, device) for argument in launch.arguments]
            pointers = (ctypes.c_void_p * len(cells))(
                *(None if isinstance(cell, _MapCell) else ctypes.addressof(cell) for cell in cells)
            )
            bound = _BoundLaunch(launch, pointers, [], [], [])
            for number, (argument, cell) in enumerate(zip(launch.arguments, cells, strict=True)):
                place = argument.parameter or 0 if argument.temporary is None else count + argument.temporary
                if argument.offset is None:
                    bound.numbers.append((cell, place))
                elif argument.map is None:
                    bound.addresses.append((cell, place, argument.offset))
                else:
                    bound.maps.append((number, cell, place, argument.offset))
            self._launches.append(bound)
        has_numbers = any(launch.numbers or not isinstance(launch.launch.grid, int) for launch in self._launches)
        places = {place for launch in self._launches for _, place, _ in launch.addresses}
        places |= {place for launch in self._launches for *_, place, _ in launch.maps}
        self.records_calls = device.has_default_stream and len(self._launches) > 1 and bool(places) and not has_numbers
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

    def launch_recorded(self, values: Sequence[Any], stream: int) -> None:
        """Launch the kernels; a recording is replayed if there is one for these addresses."""
        addresses = self._addresses_in(values)
        recorded = self._recorded.get(addresses)
        if recorded is not None:
            recorded(stream)
            return
        self.launch(values, stream)
        count = self._counts.get(addresses, 0) + 1
        if len(self._counts) >= _MOST_ADDRESSES:
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
            self.records_calls = False  # the call itself has been made


class _BoundLaunch(NamedTuple):
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


class _MapCell:
    """Memory for a tensor map, for each of the addresses that the tensor has had lately.

    Args:
        tensor_map: The map.
        device: The code.
    """

    def __init__(self, tensor_map: TensorMap, device: DeviceCode) -> None:
        self._map, self._device, self._known = tensor_map, device, dict[int, Any]()

    def encoded_for(self, address: int) -> int:
        """The address of the tensor map for the tensor at an address."""
        memory = self._known.get(address)
        if memory is None:
            if len(self._known) >= _MOST_ADDRESSES:
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
    return (SCALARS[vector[2]] * int(vector[1]))() if vector is not None else SCALARS[type_]()


def _product(values: Sequence[Any], numbers: Sequence[int]) -> int:
    return prod(getattr(values[number], "value", values[number]) for number in numbers)
