"""Memory: what calls in different streams and threads allocate, keep and free, and what they copy."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pytest

from tests.nvidia.kernels.test_target import driver_that_captures, recorded
from tests.nvidia.runtime.test_streams import driver_with_events
from tlx.api.device.functions import DeviceFunction
from tlx.api.device.host_copies import HostCopies
from tlx.api.signatures import CallParameter, Prototype
from tlx.ir.types import PTR, VOID
from tlx.legalize.nvidia.driver import NvidiaDevice
from tlx.target.launches import FunctionLaunches, Launch, LaunchArgument

MEBIBYTE = 1 << 20


class RecordingDriver:
    """A driver, and what it is asked for; memory is at multiples of a mebibyte."""

    def __init__(self) -> None:
        self.driver, self.calls = driver_with_events()
        self.driver.cuMemAllocFromPoolAsync, self.driver.cuMemFreeAsync = self._allocate, self._free
        self.driver.cuMemPoolDestroy = self._destroy
        self._count = 0
        self.capturing: set[int] = set()
        captures, self.graphs = driver_that_captures()
        for name, function in vars(captures).items():
            if name.startswith(("cuStream", "cuGraph", "CUstream", "cuThread")):
                setattr(self.driver, name, function)
        self.driver.cuStreamIsCapturing, self.driver.cuStreamGetId = self._is_capturing, self._stream_id
        self.driver.cuCtxSynchronize = self._synchronize
        self.ids: dict[int, int] = {}

    def _allocate(self, size: int, _: Any, stream: int) -> tuple[int, int]:
        self._count += 1
        self.calls.append(f"allocate {size} in {stream}")
        return 0, self._count * MEBIBYTE

    def _free(self, address: int, stream: int) -> tuple[int]:
        self.calls.append(f"free {address // MEBIBYTE} in {stream}")
        return (0,)

    def _is_capturing(self, stream: int) -> tuple[int, int]:
        return 0, int(stream in self.capturing)

    def _stream_id(self, stream: int) -> tuple[int, int]:
        return 0, self.ids.get(stream, stream)

    def _synchronize(self) -> tuple[int]:
        self.calls.append("synchronize")
        return (0,)

    def _destroy(self, _: Any) -> tuple[int]:
        self.calls.append("destroy the pool")
        return (0,)

    def functions(self, *temporaries: tuple[int, ...], kernels: int = 1) -> list[DeviceFunction]:
        """Functions of one module that launch kernels with temporaries of so many bytes."""
        arguments = [tuple(LaunchArgument(temporary=k, offset=0) for k in range(len(sizes))) for sizes in temporaries]
        launches = [
            FunctionLaunches("f", (), sizes, (Launch("k", 1, 32, 0, passed),) * kernels)
            for sizes, passed in zip(temporaries, arguments, strict=True)
        ]
        code = NvidiaDevice(self.driver).load("", launches)
        return [DeviceFunction(Prototype("f", VOID, ()), launch, code) for launch in launches]


@pytest.fixture
def recording() -> RecordingDriver:
    return RecordingDriver()


def test_calls_in_the_default_stream_share_a_block(recording: RecordingDriver) -> None:
    """Calls of different functions, too; it is freed with the code."""
    first, second = recording.functions((100, 300), (600,))
    for function in (first, second, first):
        function()
    assert recording.calls == ["allocate 768 in 0", *["launch in 0"] * 3]
    recording.calls.clear()
    del first, second, function
    assert recording.calls == ["free 1 in 0", "destroy the pool"]


def test_memory_that_cannot_be_freed(recording: RecordingDriver) -> None:
    """The pool is destroyed, and the context that was current before is so again."""
    (function,) = recording.functions((256,))
    function()
    contexts: list[str] = []
    recording.driver.cuCtxPushCurrent = recorded(contexts, "push")
    recording.driver.cuCtxPopCurrent = recorded(contexts, "pop", 7)
    recording.driver.cuGetErrorString = recorded([], "", b"an illegal memory access was encountered")
    recording.driver.cuMemFreeAsync = failed
    recording.calls.clear()
    del function
    assert recording.calls == ["destroy the pool"]
    assert contexts.count("push") == contexts.count("pop") > 0


def failed(*_: Any) -> tuple[int, None]:
    """A function of the driver after a kernel has failed."""
    return 700, None


def test_temporaries_of_a_block_are_apart_and_aligned(recording: RecordingDriver) -> None:
    """Empty ones as well."""
    (function,) = recording.functions((100, 0, 300))
    reserved = function.device.reserve((100, 0, 300), 0, captured=False)
    assert [address - MEBIBYTE for address in reserved.addresses] == [0, 256, 512]
    assert reserved.size == 1024


def test_a_block_that_is_too_small_is_replaced(recording: RecordingDriver) -> None:
    small, large = recording.functions((256,), (512,))
    for function in (small, large, small, large):
        function()
    launched = "launch in 0"
    assert recording.calls == ["allocate 256 in 0", launched, "free 1 in 0", "allocate 512 in 0", *[launched] * 3]


def test_large_blocks_are_freed(recording: RecordingDriver) -> None:
    (function,) = recording.functions((65 * MEBIBYTE,))
    function()
    assert recording.calls == [f"allocate {65 * MEBIBYTE} in 0", "launch in 0", "free 1 in 0"]


def test_each_stream_has_a_block(recording: RecordingDriver) -> None:
    """It is freed with the code, when no stream uses it any more; some may be destroyed by then."""
    (function,) = recording.functions((256,))
    for stream in (5, 6, 5, 6):
        function(stream=stream)
    first = [call.format(n) for n in (5, 6) for call in ("allocate 256 in {}", "launch in {}")]
    assert recording.calls == [*first, "launch in 5", "launch in 6"]
    recording.calls.clear()
    del function
    assert recording.calls == ["synchronize", "free 1 in 0", "free 2 in 0", "destroy the pool"]


def test_a_new_stream_with_the_handle_of_a_destroyed_one_has_its_own_block(recording: RecordingDriver) -> None:
    (function,) = recording.functions((256,))
    for number in (70, 71, 71):
        recording.ids[5] = number
        function(stream=5)
    assert recording.calls == [*["allocate 256 in 5", "launch in 5"] * 2, "launch in 5"]


FREED: Final = ["allocate 256 in 5", "launch in 5", "free 1 in 5", "allocate 256 in 5", "launch in 5", "free 2 in 5"]


def test_calls_that_are_captured_keep_nothing(recording: RecordingDriver) -> None:
    """They run later, beside calls that take what others have left."""
    (function,) = recording.functions((256,))
    recording.capturing = {5}
    for _ in range(2):
        function(stream=5)
    assert recording.calls == FREED


@pytest.mark.parametrize("error", [RuntimeError("not found"), None])
def test_drivers_that_cannot_tell_streams_apart_keep_nothing(
    recording: RecordingDriver, error: RuntimeError | None
) -> None:
    """Before CUDA 12.0; the bindings may have the function and not find the driver's."""
    if error is None:
        del recording.driver.cuStreamGetId
    else:
        recording.driver.cuStreamGetId = raising(error)
    (function,) = recording.functions((256,))
    for _ in range(2):
        function(stream=5)
    assert recording.calls == FREED


def raising(error: Exception) -> Callable[..., Any]:
    """A function that raises an error."""

    def function(*_: Any) -> Any:
        raise error

    return function


def test_few_of_many_streams_have_a_block(recording: RecordingDriver) -> None:
    """When one is destroyed is not known, so that others do not take its place; large blocks are freed, too."""
    (function,) = recording.functions((256,))
    for stream in (*range(3, 40), *range(3, 40)):
        function(stream=stream)
    assert sum(call.startswith("allocate") for call in recording.calls) == 32 + 2 * 5
    assert sum(call.startswith("free") for call in recording.calls) == 2 * 5
    recording.calls.clear()
    (large,) = recording.functions((9 * MEBIBYTE,))
    large(stream=3)
    assert recording.calls[-1].startswith("free")


def test_default_streams_of_threads_keep_nothing(recording: RecordingDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """There, the default stream of each thread is another one."""
    monkeypatch.setenv("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", "1")
    (function,) = recording.functions((256,))
    function()
    assert recording.calls == ["allocate 256 in 0", "launch in 0", "free 1 in 0"]


def during_the_first_launch(driver: SimpleNamespace, work: Callable[[], None]) -> None:
    """Do some work then, as another thread might."""
    launch, waiting = driver.cuLaunchKernel, [work]

    def launched(*passed: Any) -> Any:
        if waiting:
            waiting.pop()()
        return launch(*passed)

    driver.cuLaunchKernel = launched


def test_calls_at_the_same_time_have_different_blocks(recording: RecordingDriver) -> None:
    functions: list[DeviceFunction] = []

    def call() -> None:
        functions[0]()

    during_the_first_launch(recording.driver, call)
    functions += recording.functions((256,))
    call()
    assert recording.calls == [*["allocate 256 in 0"] * 2, *["launch in 0"] * 2]
    for _ in range(3):
        functions[0]()
    assert recording.calls[4:] == ["launch in 0"] * 3


RECORD = ["create", "begin", "end", "destroy stream", "instantiate", "destroy graph"]


def test_repeated_sequences_are_recorded(recording: RecordingDriver) -> None:
    """After 16 calls with the same addresses; the record is destroyed with the function."""
    (function,) = recording.functions((256,), kernels=2)
    for _ in range(15):
        function()
    assert not recording.graphs
    function()
    assert recording.graphs == RECORD
    recording.calls.clear()
    function()
    assert recording.graphs[6:] == ["launch"]
    assert not recording.calls
    for _ in range(16):
        function(stream=5)
    assert recording.calls == ["allocate 256 in 5", *["launch in 5"] * 32, *["launch in 3"] * 2]
    assert recording.graphs[7:] == RECORD
    function(stream=5)
    del function
    assert recording.graphs[13:] == ["launch", "destroy", "destroy"]


def test_calls_that_are_captured_are_not_recorded(recording: RecordingDriver) -> None:
    """Nor are the records launched, as another library may keep its graph longer than the function."""
    kernel = Launch("k", 1, 32, 0, (LaunchArgument(parameter=0, offset=0),))
    launches = FunctionLaunches("f", ("ptr",), (), (kernel, kernel))
    code = NvidiaDevice(recording.driver).load("", [launches])
    function = DeviceFunction(Prototype("f", VOID, (CallParameter("x", PTR),)), launches, code)
    recording.capturing = {5}
    for _ in range(20):
        function.launch([256], 5)
    assert not recording.graphs
    for _ in range(17):
        function.launch([256], 6)
    assert recording.graphs == [*RECORD, "launch"]
    recording.calls.clear()
    function.launch([256], 5)
    assert recording.calls == ["launch in 5"] * 2


def test_a_record_is_for_its_addresses(recording: RecordingDriver) -> None:
    """Here those of the temporaries, whose block is replaced by a larger one."""
    function, other = recording.functions((256,), (512,), kernels=2)
    for _ in range(16):
        function()
    other()
    recording.calls.clear()
    function()
    assert recording.calls == ["launch in 0"] * 2
    assert recording.graphs == RECORD


def test_few_of_many_sets_of_addresses_are_recorded(recording: RecordingDriver) -> None:
    """Nine sets in turn, of which eight are kept: each record in place of another takes twice as many calls."""
    kernel = Launch("k", 1, 32, 0, (LaunchArgument(parameter=0, offset=0),))
    launches = FunctionLaunches("f", ("ptr",), (), (kernel, kernel))
    code = NvidiaDevice(recording.driver).load("", [launches])
    function = DeviceFunction(Prototype("f", VOID, (CallParameter("x", PTR),)), launches, code)
    for _ in range(300):
        for address in range(9):
            function.unchecked(256 * address)
    assert recording.graphs.count("instantiate") == 8 + 4
    assert recording.graphs.count("destroy") == 4
    assert recording.graphs.count("launch") > 2000


def test_single_kernels_are_not_recorded(recording: RecordingDriver) -> None:
    (function,) = recording.functions((256,))
    for _ in range(40):
        function()
    assert not recording.graphs


def test_calls_go_on_where_nothing_can_be_recorded(recording: RecordingDriver) -> None:
    recording.driver.cuStreamCreate = lambda _: (801, None)  # pyright: ignore[reportUnknownLambdaType]
    recording.driver.cuGetErrorString = lambda _: (0, b"operation not supported")  # pyright: ignore[reportUnknownLambdaType]
    (function,) = recording.functions((256,), kernels=2)
    for _ in range(40):
        function()
    assert recording.calls == ["allocate 256 in 0", *["launch in 0"] * 80]


def test_calls_with_arrays_of_numpy_are_waited_for(recording: RecordingDriver) -> None:
    """The driver may read pinned memory after it has returned from a copy, and the array may be a view of such."""
    driver = recording.driver
    driver.cuMemcpyHtoDAsync, driver.cuMemcpyDtoHAsync, driver.cuStreamSynchronize = (
        recorded(recording.calls, name) for name in ("copy", "copy back", "wait")
    )
    kernel = Launch("k", 1, 32, 0, (LaunchArgument(parameter=0, offset=0),))
    launches = FunctionLaunches("f", ("ptr",), (), (kernel,))
    code = NvidiaDevice(driver).load("", [launches])
    for written, back in ((False, []), (True, ["copy back"])):
        recording.calls.clear()
        parameter = CallParameter("x", PTR, written=written)
        DeviceFunction(Prototype("f", VOID, (parameter,)), launches, code)(np.zeros(4, np.float32))
        assert [call.split(" in ")[0].rstrip(" 0123456789") for call in recording.calls] == [
            "allocate", "copy", "launch", *back, "free", "wait",
        ]  # fmt: skip


class CopyRecorder:
    """A device that records which bytes are copied to it and back."""

    def __init__(self, memory: npt.NDArray[np.uint8]) -> None:
        self.begin, self.uploads, self.downloads = memory.ctypes.data, list[range](), list[range]()
        self.allocated: list[int] = []

    def allocate(self, size: int, stream: int) -> int:  # noqa: ARG002
        self.allocated.append(size)
        return len(self.allocated) * MEBIBYTE

    def free(self, address: int, stream: int) -> None: ...

    def upload(self, address: int, host: int, size: int, stream: int) -> None:  # noqa: ARG002
        self.uploads.append(range(host - self.begin, host - self.begin + size))

    def download(self, host: int, address: int, size: int, stream: int) -> None:  # noqa: ARG002
        self.downloads.append(range(host - self.begin, host - self.begin + size))

    def synchronize(self, stream: int) -> None: ...


def copies_of(
    memory: npt.NDArray[np.uint8], *views: tuple[slice, bool], whole: bool = False
) -> tuple[CopyRecorder, list[int]]:
    """Pass views of some bytes, of which some are written; the addresses on the device, too."""
    recorder = CopyRecorder(memory)
    with HostCopies(cast("Any", recorder), 0) as copies:
        for part, written in views:
            copies.add(memory[part], written=written, whole=whole)
        addresses = [copies.address_of(memory[part]) for part, _ in views]
    return recorder, addresses


def test_only_what_a_view_spans_is_copied() -> None:
    memory = np.zeros(4096, np.uint8)
    recorder, (address,) = copies_of(memory, (slice(100, 200), True))
    assert recorder.uploads == recorder.downloads == [range(100, 200)]
    assert address == MEBIBYTE
    recorder, _ = copies_of(memory, (slice(400, 100, -3), False))
    assert recorder.uploads == [range(103, 401)]
    recorder, _ = copies_of(memory, (slice(100, 200), False), whole=True)
    assert recorder.uploads == [range(4096)]


def test_views_that_overlap_share_a_copy() -> None:
    """The first one that is passed is aligned; what is written is copied back."""
    memory = np.zeros(4096, np.uint8)
    recorder, (first, second, third) = copies_of(
        memory, (slice(150, 300), True), (slice(103, 200), False), (slice(900, 950), False)
    )
    assert recorder.uploads == [range(103, 300), range(900, 950)]
    assert recorder.downloads == [range(150, 300)]
    assert first % 16 == 0
    assert first - second == 150 - 103
    assert third == 2 * MEBIBYTE


def test_views_one_after_the_other_share_a_copy_if_they_are_aligned() -> None:
    memory = np.zeros(4096, np.uint8)
    rows = [(slice(k, k + 64), False) for k in range(0, 1024, 64)]
    assert copies_of(memory, *rows)[0].uploads == [range(1024)]
    unaligned, addresses = copies_of(memory, (slice(0, 50), False), (slice(50, 100), False))
    assert unaligned.uploads == [range(50), range(50, 100)]
    assert addresses == [MEBIBYTE, 2 * MEBIBYTE]
