"""Memory of a device, allocated in the order of streams from a memory pool of TLX's own.

The driver's default pool returns free memory at every synchronisation, so that the next allocation maps memory again.
This pool keeps some of it. Temporaries are not even freed: each call takes the block that an earlier call in the same
stream has left, whose kernels come before its own. A stream is known by the driver's id, because a new one may have the
handle of a destroyed one. Calls that are captured allocate and free their own memory, because a graph runs later and
anywhere.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from itertools import accumulate
from threading import Lock
from typing import Any, Final, NamedTuple, Protocol
from weakref import WeakValueDictionary

from tlx.diagnostics import TlxError
from tlx.target.grid_unit import Temporaries

_HELD_BYTES: Final = 256 << 20
"""Free memory that the pool keeps beyond a synchronisation."""
_MOST_STREAMS: Final = 32
"""Streams for which blocks are kept. They are not given up for others, as it is not known when one is destroyed."""
_BLOCK_BYTES: Final = 64 << 20
"""Most bytes of a block that is kept for the default stream."""
_OTHER_BLOCK_BYTES: Final = _HELD_BYTES // _MOST_STREAMS
"""Most bytes of a block that is kept for another stream."""
_DEFAULT: Final = -1
"""In place of the id of the default stream."""
_ALIGNMENT: Final = 256
_THREADS_HAVE_STREAMS: Final = "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM"
"""Environment variable by which cuda-bindings gives each thread a default stream of its own."""


def has_default_stream() -> bool:
    """Whether all threads have the same default stream."""
    return os.environ.get(_THREADS_HAVE_STREAMS, "0") in ("", "0")


class _DriverDevice(Protocol):
    """The part of `NvidiaDevice` that is used here."""

    driver: Any
    number: Any
    context: Any

    def call(self, name: str, *arguments: Any, about: str = "") -> Any: ...


class DeviceMemory:
    """The pool of a device, and the blocks that calls have left, by stream.

    Its functions are called while the device's context is current.

    Args:
        device: The device.
    """

    def __init__(self, device: _DriverDevice) -> None:
        self._device, self._call, self._pool = device, device.call, _pool_of(device)
        self._blocks = dict[int, list[_MemoryBlock]]()
        if has_default_stream():
            self._blocks[_DEFAULT] = []
        self._id_of = getattr(device.driver, "cuStreamGetId", None)  # the driver has it since CUDA 12.0

    def allocate(self, size: int, stream: int) -> int:
        """Allocate by `cuMemAllocFromPoolAsync`."""
        arguments = (max(1, size), self._pool, stream)
        return int(self._call("cuMemAllocFromPoolAsync", *arguments, about=f"allocating {size} bytes"))

    def free(self, address: int, stream: int) -> None:
        """Free by `cuMemFreeAsync`."""
        self._call("cuMemFreeAsync", address, stream)

    def reserve(self, sizes: tuple[int, ...], stream: int, *, captured: bool) -> Temporaries:
        """Memory for the temporaries of one call."""
        offsets, size = _layout(sizes)
        keeps = not captured and size <= (_OTHER_BLOCK_BYTES if stream else _BLOCK_BYTES)
        blocks = self._blocks_of(stream) if keeps else None
        block = None if blocks is None else self._take_block(blocks, size, stream)
        if block is None:
            block = _MemoryBlock(self.allocate(size, stream), size)
        base = block.address
        return Temporaries(tuple([base + offset for offset in offsets]), block.size, blocks)

    def release(self, temporaries: Temporaries, stream: int) -> None:
        """Leave the block to the stream's next call, or free it."""
        block = _MemoryBlock(temporaries.addresses[0], temporaries.size)
        if temporaries.free_blocks is not None:
            temporaries.free_blocks.append(block)
        else:
            self.free(block.address, stream)

    def _blocks_of(self, stream: int) -> list[_MemoryBlock] | None:
        """What calls in a stream have left; None if nothing is kept for it."""
        if not stream:
            return self._blocks.get(_DEFAULT)
        if self._id_of is None:
            return None
        try:
            status, number = self._id_of(stream)
        except RuntimeError:  # the bindings do not find it in the driver's library
            self._id_of = None
            return None
        if int(status):
            return None
        blocks = self._blocks.get(int(number))
        if blocks is None and len(self._blocks) <= _MOST_STREAMS:
            blocks = self._blocks.setdefault(int(number), [])
        return blocks

    def _take_block(self, blocks: list[_MemoryBlock], size: int, stream: int) -> _MemoryBlock | None:
        """A block that an earlier call in the stream has left; one that is too small is freed."""
        try:
            block = blocks.pop()
        except IndexError:
            return None
        if block.size >= size:
            return block
        self.free(block.address, stream)
        return None

    def __del__(self) -> None:
        if not hasattr(self, "_blocks"):  # the device has no pools
            return
        with suppress(TlxError):
            self._call("cuCtxPushCurrent", self._device.context)
            with suppress(TlxError):
                self._free_blocks()
            with suppress(TlxError):
                self._call("cuMemPoolDestroy", self._pool)
            self._call("cuCtxPopCurrent")

    def _free_blocks(self) -> None:
        """Free what calls have left, when the streams, some of which may be destroyed, have used it."""
        if any(blocks for number, blocks in self._blocks.items() if number != _DEFAULT):
            self._call("cuCtxSynchronize")
        for block in (block for blocks in self._blocks.values() for block in blocks):
            with suppress(TlxError):
                self.free(block.address, 0)


class _MemoryBlock(NamedTuple):
    """A block of memory."""

    address: int
    size: int


@cache
def _layout(sizes: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """Offsets of temporaries in a block, which are aligned, and its bytes."""
    ends = list(accumulate((max(_ALIGNMENT, size + -size % _ALIGNMENT) for size in sizes), initial=0))
    return tuple(ends[:-1]), ends[-1]


def _pool_of(device: _DriverDevice) -> Any:
    """A new pool of a device's memory, which keeps some of what is freed."""
    kinds, call = device.driver, device.call
    properties = kinds.CUmemPoolProps()
    properties.allocType = kinds.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = kinds.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = int(device.number)
    pool = call("cuMemPoolCreate", properties, about="a pool of memory")
    threshold = kinds.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    call("cuMemPoolSetAttribute", pool, threshold, kinds.cuuint64_t(_HELD_BYTES))
    return pool


_MEMORIES: Final = WeakValueDictionary[tuple[int, int], DeviceMemory]()
"""By the driver and its context, while code is loaded there."""
_MAKING: Final = Lock()


def memory_of(device: _DriverDevice) -> DeviceMemory:
    """The memory that all code on a device shares, while there is some; the device's context is current."""
    with _MAKING:
        key = id(device.driver), int(device.context)
        memory = _MEMORIES.get(key)
        if memory is None:
            memory = _MEMORIES[key] = DeviceMemory(device)
        return memory
