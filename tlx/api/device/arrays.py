"""Arrays in the memory of a device."""

from __future__ import annotations

from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tlx.api.arguments import array_address
from tlx.api.device.streams import stream_handle
from tlx.diagnostics import TlxError
from tlx.intrinsics.numpy_types import Array, type_of
from tlx.target.grid_unit import DeviceArray

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tlx.target.grid_unit import DeviceCode

_HOST: Final = (1, 3, 11)  # of dlpack.h: `kDLCPU`, and pinned memory: `kDLCUDAHost`, `kDLROCMHost`


class OwnedArray:
    """A C-contiguous array in device memory, which is freed with this object.

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
            self._code.synchronize(self.stream)
        return array if dtype is None else array.astype(dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the interface; of types that numpy does not know, such as bfloat16, as unsigned integers."""
        is_known = self.dtype.kind in "biuf" and self.dtype.isbuiltin != 2  # a type of another package
        typestr = self.dtype.str if is_known else f"<u{self.dtype.itemsize}"
        place = {"data": (self.address, False), "shape": self.shape, "typestr": typestr}
        return {"version": 3, **place, "stream": self.stream or 1}  # 1: the default stream

    def fill(self, source: Array) -> None:
        """Copy a numpy array of the same shape and type to this one."""
        data: Array = np.ascontiguousarray(source)
        with self._code.current():
            self._code.upload(self.address, array_address(data), self.nbytes, self.stream)
            self._code.synchronize(self.stream)

    def address_and_layout(self, stream: int) -> tuple[int, Hashable] | None:
        """As `DeviceCode.address_and_layout`."""
        return (self.address, (self.dtype, self.shape)) if stream == self.stream else None

    @property
    def description(self) -> DeviceArray:
        """What it is for calls."""
        return DeviceArray(
            self.address, self.shape, None, str(type_of(self.dtype)), self.dtype.itemsize, self, self.stream
        )


def is_on_device(value: object) -> bool:
    """Whether an object declares that it is an array in device memory."""
    place = getattr(value, "__dlpack_device__", None)  # a tensor that requires gradients has no other answer
    return int(place()[0]) not in _HOST if place is not None else hasattr(value, "__cuda_array_interface__")
