"""Streams, and what a device frees: calls of a driver that only records what it is asked for."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest

from tests.nvidia.kernels.test_target import driver_with_contexts, recorded
from tlx.api.arguments import ArgumentError
from tlx.api.device.arrays import is_on_device
from tlx.api.device.functions import DeviceFunction
from tlx.api.signatures import CallParameter, Prototype
from tlx.ir.types import FLOAT, PTR, VOID
from tlx.legalize.nvidia.driver import NvidiaDevice
from tlx.target.launches import FunctionLaunches, Launch, LaunchArgument


def driver_with_events() -> tuple[SimpleNamespace, list[str]]:
    """A driver with contexts, and the names and streams of the functions that order streams."""
    driver, _ = driver_with_contexts(7)
    calls: list[str] = []
    driver.CUevent_flags = SimpleNamespace(CU_EVENT_DISABLE_TIMING=2)
    driver.cuEventCreate, driver.cuEventDestroy = recorded([], "", 5), recorded([], "")

    def record(_: int, stream: int) -> tuple[int]:
        calls.append(f"{stream} records")
        return (0,)

    def wait(stream: int, _: int, __: int) -> tuple[int]:
        calls.append(f"{stream} waits")
        return (0,)

    def launch(_: Any, *sizes: int) -> tuple[int]:
        calls.append(f"launch in {sizes[7]}")
        return (0,)

    driver.cuEventRecord, driver.cuStreamWaitEvent, driver.cuLaunchKernel = record, wait, launch
    driver.cuModuleGetFunction = recorded([], "", 9)
    return driver, calls


@dataclass(frozen=True)
class InStream:
    """An array of the device whose owner uses it in a stream."""

    stream: int

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "data": (256, False), "shape": (4,), "typestr": "<f4", "stream": self.stream}


ONE_POINTER: Final = FunctionLaunches(
    "f", ("ptr",), (), (Launch("k", 1, 32, 0, (LaunchArgument(parameter=0, offset=0),)),)
)


def takes_an_array(code: Any) -> DeviceFunction:
    """A function that launches a kernel with an array."""
    parameter = CallParameter("x", PTR, element=FLOAT, count=4)
    return DeviceFunction(Prototype("f", VOID, (parameter,)), ONE_POINTER, code)


@pytest.mark.parametrize(
    ("producer", "stream", "calls"),
    [
        (6, 0, ["6 records", "0 waits", "launch in 0", "0 records", "6 waits"]),
        (1, 0, ["launch in 0"]),
        (6, 6, ["launch in 6"]),
        (1, 6, ["0 records", "6 waits", "launch in 6", "6 records", "0 waits"]),
    ],
    ids=["default-stream", "producer-in-the-default-stream", "same-stream", "stream"],
)
def test_a_call_and_the_streams_of_its_arrays_wait_for_each_other(producer: int, stream: int, calls: list[str]) -> None:
    driver, called = driver_with_events()
    function = takes_an_array(NvidiaDevice(driver).load("", [ONE_POINTER]))
    function(InStream(producer), stream=stream)
    assert called == calls


@pytest.mark.parametrize(("stream", "passed"), [(0, 1), (6, 6)])
def test_dlpack_is_passed_the_stream_of_the_call(stream: int, passed: int) -> None:
    class ExportedError(Exception):
        """The producer was asked."""

    class Array:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

        def __dlpack__(self, stream: int) -> object:
            raise ExportedError(stream)

    driver, _ = driver_with_events()
    with pytest.raises(ExportedError, match=f"^{passed}$"):
        takes_an_array(NvidiaDevice(driver).load("", [ONE_POINTER]))(Array(), stream=stream)


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2"])
def test_small_floats_are_passed_as_bytes(kind: str) -> None:
    numpy: Any = pytest.importorskip("jax.numpy")
    array = numpy.ones((4,), kind)

    class OnDevice:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

        def __dlpack__(self, **_: int) -> object:
            return array.__dlpack__()

    driver, _ = driver_with_events()
    found = NvidiaDevice(driver).load("", [ONE_POINTER]).array(OnDevice(), 0)
    assert found is not None
    assert (found.shape, found.element) == ((4,), "i8")


def test_arrays_are_ordered_by_their_own_stream() -> None:
    driver, called = driver_with_events()

    def allocate(_: int, __: Any, stream: int) -> tuple[int, int]:
        called.append(f"allocate in {stream}")
        return 0, 256

    def free(_: int, stream: int) -> tuple[int]:
        called.append(f"free in {stream}")
        return (0,)

    driver.cuMemAllocFromPoolAsync, driver.cuMemFreeAsync = allocate, free
    function = takes_an_array(NvidiaDevice(driver).load("", [ONE_POINTER]))
    array = function.empty((4,), np.dtype(np.float32), 6)
    function(array)
    assert array.__cuda_array_interface__["stream"] == 6
    del array
    order = ["6 records", "0 waits", "launch in 0", "0 records", "6 waits"]
    assert called == ["allocate in 6", *order, "free in 6"]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.dtype(np.float32), "<f4"),
        (np.dtype(np.float32).newbyteorder("="), "<f4"),
        (np.dtype(np.bool_), "|b1"),
        (np.dtype(ml_dtypes.bfloat16), "<u2"),
        (np.dtype(ml_dtypes.float8_e5m2), "<u1"),
    ],
)
def test_arrays_tell_their_element_type(dtype: np.dtype[Any], expected: str) -> None:
    driver, _ = driver_with_events()
    driver.cuMemAllocFromPoolAsync, driver.cuMemFreeAsync = recorded([], "", 256), recorded([], "")
    array = takes_an_array(NvidiaDevice(driver).load("", [ONE_POINTER])).empty((4,), dtype)
    assert array.__cuda_array_interface__["typestr"] == expected


def test_arrays_that_are_known_are_launched_at_once() -> None:
    """Again in the same stream, they need neither checks nor events; others are checked."""
    driver, called = driver_with_events()
    driver.cuMemAllocFromPoolAsync, driver.cuMemFreeAsync = recorded([], "", 256), recorded([], "")
    function = takes_an_array(NvidiaDevice(driver).load("", [ONE_POINTER]))
    array = function.empty((4,), np.dtype(np.float32), 6)
    for _ in range(2):
        function(array, stream=6)
    assert called == ["launch in 6"] * 2
    with pytest.raises(ArgumentError, match="expected 4 elements of float, got 3"):
        function(function.empty((3,), np.dtype(np.float32), 6), stream=6)
    function(array)
    assert called[2:] == ["6 records", "0 waits", "launch in 0", "0 records", "6 waits"]


def test_code_is_unloaded_with_the_last_function() -> None:
    driver, called = driver_with_contexts(7)
    function = takes_an_array(NvidiaDevice(driver).load("", []))
    assert "unload" not in called
    del function
    assert "unload" in called


def test_tensors_that_require_gradients_are_on_the_device() -> None:
    class Tensor:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise RuntimeError("this tensor requires gradients")

    assert is_on_device(Tensor())
    assert is_on_device(InStream(1))
    assert not is_on_device(np.zeros(4))


def test_arrays_that_another_library_cannot_export_are_refused() -> None:
    class Meta:
        def __dlpack_device__(self) -> tuple[int, int]:
            raise ValueError("Unknown device type meta for Dlpack")

    class OnHost:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

        def __dlpack__(self) -> None: ...

    driver, _ = driver_with_events()
    function = takes_an_array(NvidiaDevice(driver).load("", [ONE_POINTER]))
    with pytest.raises(
        ArgumentError, match=r"argument 0 \(x\): the array cannot be used on the device: Unknown device"
    ):
        function(Meta())
    with pytest.raises(ArgumentError, match="OnHost in the host's memory; copy it to the device first"):
        function(OnHost())
    with pytest.raises(ArgumentError, match="expected an array of the device or of numpy, got int 256"):
        function(256)
