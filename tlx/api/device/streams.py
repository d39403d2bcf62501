"""Streams and events of a device, from the objects by which libraries describe them, and the options of calls."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypedDict, cast

from tlx.api.arguments import ArgumentError

if TYPE_CHECKING:
    from tlx.target.grid_unit import DeviceCode


class CallOrder(TypedDict, total=False):
    """Options of a call whose kernels run on a device; None is the same as leaving it out.

    Attributes:
        stream: The stream in whose order kernels run, memory is copied, and new arrays are allocated and freed.
        wait_for: An event, or a sequence of events, after which they do.
        record: An event, or a sequence of events, to record after them.
    """

    stream: object
    wait_for: object
    record: object


def check_host_order(order: CallOrder) -> None:
    """Check the options of a call of code for a CPU.

    Raises:
        ArgumentError: There are some.
    """
    for name, value in order.items():
        if value is not None:
            raise ArgumentError(f"{name}: the code is for a CPU, where calls take no streams or events; leave it out")


def stream_handle(stream: object) -> int:
    """The driver's handle of a stream: an int, or a stream of PyTorch, CuPy, or a library with `__cuda_stream__`.

    None is the default stream.

    Raises:
        ArgumentError: It is not a stream.
    """
    if stream is None:
        return 0
    if isinstance(stream, int):
        return stream
    if (handle := _handle_in(stream, "cuda_stream")) is not None:  # quicker than the protocol
        return handle
    if (protocol := getattr(stream, "__cuda_stream__", None)) is not None:
        return int(protocol()[1])
    expected = "expected the driver's handle, an int, or a stream of PyTorch or CuPy"
    raise ArgumentError(f"stream: {expected}, got {type(stream).__name__} {stream!r}")


def event_handles(events: object, keyword: str) -> list[int]:
    """The driver's handles of an event or a sequence of events: ints, or events of PyTorch, CuPy or `cuda-bindings`.

    None is not an event.

    Args:
        events: The events.
        keyword: The argument that they are passed as.

    Raises:
        ArgumentError: One of them is not an event.
    """
    if events is None:
        return []
    if isinstance(events, list | tuple):
        return [handle for event in cast("Sequence[object]", events) for handle in event_handles(event, keyword)]
    handle = events if isinstance(events, int) else _handle_in(events, "cuda_event")
    if handle is None:
        expected = "expected the driver's handle, an int, or an event of PyTorch or CuPy, or a list of them"
        raise ArgumentError(f"{keyword}: {expected}, got {type(events).__name__} {events!r}")
    return [handle]


def _handle_in(value: object, name: str) -> int | None:
    """The driver's handle in an object of PyTorch, where it is called `name`, of CuPy or `cuda-bindings`."""
    for attribute in (name, "ptr"):
        if isinstance(handle := getattr(value, attribute, None), int):
            return handle
    return int(cast("Any", value)) if hasattr(value, "getPtr") else None


@contextmanager
def between_events(code: DeviceCode, stream: int, wait_for: object, record: object) -> Generator[None]:
    """Launches in the block wait for some events; the others are recorded after them."""
    first, last = event_handles(wait_for, "wait_for"), event_handles(record, "record")
    if 0 in last:
        raise ArgumentError("record: the event has no handle yet; PyTorch creates it when it is first recorded")
    with code.current():
        for event in filter(None, first):  # PyTorch's have no handle, 0, until they are recorded
            code.wait_for_event(event, stream)
    yield
    with code.current():
        for event in last:
            code.record_event(event, stream)
