"""Copies of numpy arrays on a device, for the time of a call."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from tlx.api.arguments import array_address
from tlx.diagnostics import TlxError
from tlx.intrinsics.numpy_types import Array
from tlx.target.launches import ALIGNMENT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tlx.target.grid_unit import DeviceArray, DeviceCode


class HostCopies:
    """Copies of host memory on a device, for the time of a call; memory that was written is copied back at the end.

    A call with such copies is complete at the end, so that the host's memory may be changed, wherever it is.

    Arrays that overlap share a copy, in which the first of them is aligned. Where an array of the device is used in the
    order of another stream, the call waits for that stream, which waits for the call at the end.

    Args:
        device: The code that is called.
        stream: The stream.

    Attributes:
        stream: The stream.
        references: Objects that must live until the end.
    """

    def __init__(self, device: DeviceCode, stream: int) -> None:
        self._device, self.stream = device, stream
        self._added: list[_HostSpan] = []
        self._distances: dict[int, int] | None = None  # from an address on the host to that on the device
        self._allocated: list[int] = []
        self._other_streams: list[int] = []
        self.references: list[object] = []

    def use(self, array: DeviceArray) -> None:
        """Use an array of the device until the end."""
        self.references.append(array.owner)
        other = array.stream
        if other is not None and other != self.stream and other not in self._other_streams:
            self._device.wait_for_stream(self.stream, other)
            self._other_streams.append(other)

    def add(self, array: Array, *, written: bool, whole: bool = False) -> None:
        """Note an array to be copied, before the first `address_of`.

        Args:
            array: The array.
            written: Whether to copy it back at the end.
            whole: Whether to copy all memory that it is a view of.
        """
        low, high = memory_bounds(array) if whole else _extent(array)
        self._added.append(_HostSpan(low, high, len(self._added), array_address(array), written))
        self.references.append(array)

    def address_of(self, array: Array) -> int:
        """The address on the device of the first element of an array that was added."""
        if self._distances is None:
            self._distances = self._copied()
        address = array_address(array)
        return address + self._distances[address]

    def copy_read_only(self, array: Array) -> int:
        """The address of a copy of an array that was not added, and that the kernels only read."""
        self.references.append(array)
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
                for other in self._other_streams:
                    self._device.wait_for_stream(other, self.stream)
                failed = False
        finally:
            for address in self._allocated:
                with suppress(TlxError) if failed else nullcontext():  # the first error is the one to report
                    self._device.free(address, self.stream)
            if self._allocated:
                with suppress(TlxError) if failed else nullcontext():
                    self._device.synchronize(self.stream)


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
