"""Loading and launching kernels by NVIDIA's driver, through `cuda-bindings` (the extra `nvidia`).

Code runs in the primary context of device 0, which PyTorch, CuPy and Numba use, too. Arrays of a device come by DLPack
or `__cuda_array_interface__`. Memory is allocated in the order of the stream, from a memory pool of its own.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, cast

from tlx.diagnostics import TlxError, UsageError
from tlx.legalize.nvidia.device_memory import has_default_stream, memory_of
from tlx.target.grid_unit import DeviceArray, Temporaries
from tlx.target.launches import FunctionLaunches, Launch, TensorMap

_LOG_BYTES: Final = 16 << 10
_NAME_BYTES: Final = 128
_OLDEST: Final = (8, 0)
_WITH_ARCHITECTURE_FEATURES: Final = (9, 0)
_PLAIN_SHARED: Final = 48 << 10  # more dynamic shared memory than this has to be requested
_LARGE_SHARED: Final = 163 << 10  # what a block of sm_80 may have; sm_86, sm_89 and sm_120 have less
_MAP_BYTES: Final = 128
_KERNEL_ERRORS: Final = (700, 702, 710, *range(714, 720))
"""Errors of a kernel while it runs, such as an illegal address or instruction."""
_MAPPED: Final = {"bfloat": "BFLOAT16", "half": "FLOAT16", "float": "FLOAT32", "i8": "UINT8"}
"""The driver's names of elements of tensor maps."""
_ON_DEVICES: Final = (2, 13)  # memory of dlpack.h: `kDLCUDA`, and managed memory: `kDLCUDAManaged`
_PINNED: Final = 3  # memory of the host that the device may access: `kDLCUDAHost`
_DEFAULT_STREAM: Final = 1  # in DLPack and `__cuda_array_interface__`, where 0 is not allowed


def first_device() -> NvidiaDevice:
    """Device 0.

    Raises:
        UsageError: The bindings are missing, or no driver or device answers.
    """
    return NvidiaDevice(_driver())


def _driver() -> Any:
    try:
        return import_module("cuda.bindings.driver")
    except ImportError as error:
        message = f"target nvidia runs code through the package cuda-bindings ({error})"
        raise UsageError(f"{message}; install it: pip install 'tlx-ir[nvidia]'") from None


class NvidiaDevice:
    """Device 0 of the driver; see `tlx.target.grid_unit.Device`."""

    library_name = "cuda"

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        try:
            self.call("cuInit", 0)
            self.number = self.call("cuDeviceGet", 0)
        except (TlxError, RuntimeError) as error:
            reason = error.message if isinstance(error, TlxError) else str(error)
            raise UsageError(f"target nvidia: no device of this machine answers: {reason}") from None
        major, minor = (self._attribute(f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR"))
        self._capability = major, minor
        self.capability = f"sm_{major}{minor}"
        if (major, minor) < _OLDEST:
            raise UsageError(f"target nvidia: the device is {self.capability}; code is for sm_80 and later")
        self.shared_bytes = self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        has_large_shared = self.shared_bytes >= _LARGE_SHARED
        self.processor = "sm_80" if has_large_shared else "sm_86"
        if (major, minor) == _WITH_ARCHITECTURE_FEATURES:
            self.processor = "sm_90a"
        self.context = self.call("cuDevicePrimaryCtxRetain", self.number)

    @property
    def name(self) -> str:
        """By `cuDeviceGetName`."""
        return bytes(self.call("cuDeviceGetName", _NAME_BYTES, self.number)).split(b"\0", 1)[0].decode()

    def _attribute(self, name: str) -> int:
        kind = getattr(self.driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.call("cuDeviceGetAttribute", kind, self.number))

    def call(self, name: str, *arguments: Any, about: str = "") -> Any:
        """Call a function of the driver; returns its result, if it has one.

        Raises:
            TlxError: It fails, or the driver or its bindings are too old to have it.
        """
        about = f"{about}: " if about else ""
        function = getattr(self.driver, name, None)
        if function is None:
            raise TlxError(f"{about}{name}: the installed cuda-bindings do not have this function; update them")
        try:
            status, *results = function(*arguments)
        except RuntimeError as error:  # the bindings do not find it in the driver's library
            raise TlxError(f"{about}{name}: {error}; update NVIDIA's driver") from None
        if int(status):
            raise self.error(status, name, about.removesuffix(": "))
        return results[0] if results else None

    def error(self, status: Any, name: str, about: str) -> TlxError:
        """The error that a function of the driver returned."""
        _, text = self.driver.cuGetErrorString(status)
        reason = text.decode() if text else f"error {int(status)}"
        if int(status) in _KERNEL_ERRORS:
            reason += "; kernels run after the calls that launch them, so an earlier one may be the cause"
        return TlxError(f"{f'{about}: ' if about else ''}{name}: {reason}")

    def check_processor(self, processor: str) -> None:
        """Refuse a processor later than the device, or one with features of another architecture (`sm_90a`)."""
        match = re.fullmatch(r"sm_(\d+)(\d)([af]?)", processor)
        if match is None:
            return
        (major, minor), suffix = (int(match[1]), int(match[2])), match[3]
        runs = {"": (major, minor) <= self._capability, "a": (major, minor) == self._capability}
        runs["f"] = runs[""] and major == self._capability[0]
        if not runs[suffix]:
            raise UsageError(
                f"code for {processor} does not run on the device of this machine, which is {self.capability}"
            )

    def about(self, assembly: str) -> str:
        """What PTX is for, and what the driver and the device are."""
        found = (re.search(rf"(?m)^\s*\.{word}\s+([\w.]+)", assembly) for word in ("version", "target"))
        version, target = (match[1] if match else "?" for match in found)
        number = int(self.call("cuDriverGetVersion"))
        driver = f"CUDA {number // 1000}.{number % 1000 // 10}"
        return f"PTX {version} for {target}; the device is {self.capability}, and the driver is for {driver}"

    def load(self, assembly: str, launches: Sequence[FunctionLaunches]) -> NvidiaCode:
        """Load PTX."""
        return NvidiaCode(self, assembly, launches)


class NvidiaCode:
    """A module that the driver has loaded; see `tlx.target.grid_unit.DeviceCode`."""

    def __init__(self, device: NvidiaDevice, assembly: str, launches: Sequence[FunctionLaunches]) -> None:
        self._device, self._call, driver = device, device.call, device.driver
        self._context, self._number = int(device.context), int(device.number)
        self.has_default_stream = has_default_stream()
        with self.current():
            self._memory = memory_of(device)
            self._load(driver, assembly, launches)

    def _load(self, driver: Any, assembly: str, launches: Sequence[FunctionLaunches]) -> None:
        log, option = bytearray(_LOG_BYTES), driver.CUjit_option
        options = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        try:
            arguments = (assembly.encode() + b"\0", len(options), options, [log, _LOG_BYTES])
            self._module = self._call("cuModuleLoadDataEx", *arguments)
        except TlxError as error:
            why = bytes(log).split(b"\0", 1)[0].decode(errors="replace").strip()
            facts = f"{self._device.about(assembly)}: {error.message}{f': {why}' if why else ''}"
            raise TlxError(f"the driver refuses the code, {facts}") from None
        self._launch_kernel = driver.cuLaunchKernel
        self._functions = {launch.kernel: self._function(launch) for f in launches for launch in f.launches}

    def __del__(self) -> None:
        module = getattr(self, "_module", None)  # none if the driver refused the code
        if module is not None:
            with suppress(TlxError), self.current():
                self._call("cuModuleUnload", module)

    def current(self) -> _CurrentContext:
        """Push the primary context, unless it is current; another one that was current is so again afterwards."""
        return _CurrentContext(self._device, self._context)

    def _function(self, launch: Launch) -> Any:
        about, most = f"kernel {launch.kernel}", self._device.shared_bytes
        if launch.shared > most:
            raise TlxError(f"{about} takes {launch.shared} bytes of shared memory; the device has {most} for a block")
        function = self._call("cuModuleGetFunction", self._module, launch.kernel.encode(), about=about)
        if launch.shared > _PLAIN_SHARED:
            kind = self._device.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._call("cuFuncSetAttribute", function, kind, launch.shared, about=about)
        return function

    def array(self, value: object, stream: int) -> DeviceArray | None:
        """A tensor of PyTorch, an array by DLPack, else one by `__cuda_array_interface__`."""
        if getattr(value, "is_cuda", False) and hasattr(value, "data_ptr"):
            self._check_device(cast("Any", value).device.index)
            return _from_torch(value)
        place = getattr(value, "__dlpack_device__", None)
        if place is not None:
            kind, number = place()
            if int(kind) in _ON_DEVICES:
                self._check_device(int(number))
                return _from_dlpack(value, {"stream": stream or _DEFAULT_STREAM})
            if int(kind) == _PINNED:
                return _from_dlpack(value, {})
        interface = getattr(value, "__cuda_array_interface__", None)
        return None if interface is None else _from_interface(interface, value)

    def address_and_layout(self, value: object, stream: int) -> tuple[int, Hashable] | None:
        """A tensor of PyTorch, of a type that `array` has seen, whose current stream is that one."""
        stream_of = _TENSORS.get(type(value))
        if stream_of is None:
            return None
        tensor: Any = value
        number = self._number
        try:
            if tensor.get_device() == number and stream_of(number) == stream:
                return tensor.data_ptr(), (tensor.dtype, tensor.shape, tensor.stride())
        except RuntimeError:  # sparse ones have no address, as `array` finds again
            pass
        return None

    def _check_device(self, number: int) -> None:
        if number != self._number:
            message = f"the array is on device {number}, and code runs on device {self._number}; copy it there first"
            raise TlxError(message)

    def wait_for_stream(self, stream: int, other: int) -> None:
        """Wait for an event that is recorded in the other stream."""
        call, kinds = self._call, self._device.driver
        event = call("cuEventCreate", int(kinds.CUevent_flags.CU_EVENT_DISABLE_TIMING))
        try:
            call("cuEventRecord", event, other)
            call("cuStreamWaitEvent", stream, event, 0)
        finally:
            call("cuEventDestroy", event)

    def wait_for_event(self, event: int, stream: int) -> None:
        """Wait by `cuStreamWaitEvent`."""
        self._call("cuStreamWaitEvent", stream, event, 0, about=f"event {event:#x}")

    def record_event(self, event: int, stream: int) -> None:
        """Record by `cuEventRecord`."""
        self._call("cuEventRecord", event, stream, about=f"event {event:#x}")

    def allocate(self, size: int, stream: int) -> int:
        """Allocate from the pool."""
        return self._memory.allocate(size, stream)

    def free(self, address: int, stream: int) -> None:
        """Free by `cuMemFreeAsync`."""
        self._memory.free(address, stream)

    def reserve(self, sizes: tuple[int, ...], stream: int, *, captured: bool) -> Temporaries:
        """One block of memory, which an earlier call in the stream may have left."""
        return self._memory.reserve(sizes, stream, captured=captured)

    def release(self, temporaries: Temporaries, stream: int) -> None:
        """Leave the block to a later call in the stream, or free it."""
        self._memory.release(temporaries, stream)

    def upload(self, address: int, host: int, size: int, stream: int) -> None:
        """Copy by `cuMemcpyHtoDAsync`, which may read pinned memory after it has returned."""
        self._call("cuMemcpyHtoDAsync", address, host, size, stream)

    def synchronize(self, stream: int) -> None:
        """Wait by `cuStreamSynchronize`."""
        self._call("cuStreamSynchronize", stream)

    def download(self, host: int, address: int, size: int, stream: int) -> None:
        """Copy by `cuMemcpyDtoHAsync`."""
        self._call("cuMemcpyDtoHAsync", host, address, size, stream)

    def copy(self, address: int, source: int, size: int, stream: int) -> None:
        """Copy by `cuMemcpyDtoDAsync`."""
        self._call("cuMemcpyDtoDAsync", address, source, size, stream)

    def time(self, work: Callable[[], object]) -> float:
        """By two events."""
        call = self._call
        events = [call("cuEventCreate", 0) for _ in range(2)]
        try:
            call("cuEventRecord", events[0], 0)
            work()
            call("cuEventRecord", events[1], 0)
            call("cuEventSynchronize", events[1])
            return float(call("cuEventElapsedTime", *events)) * 1e-3
        finally:
            for event in events:
                call("cuEventDestroy", event)

    def tensor_map(self, tensor_map: TensorMap, address: int) -> bytes:
        """Encode by `cuTensorMapEncodeTiled`."""
        kinds, rank = self._device.driver, len(tensor_map.extents)
        data_type = getattr(kinds.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_MAPPED[tensor_map.element]}")
        encoded = self._call(
            "cuTensorMapEncodeTiled",
            data_type,
            rank,
            address,
            [kinds.cuuint64_t(extent) for extent in tensor_map.extents],
            [kinds.cuuint64_t(stride) for stride in tensor_map.strides],
            [kinds.cuuint32_t(extent) for extent in tensor_map.box],
            [kinds.cuuint32_t(1)] * rank,
            kinds.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(kinds.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{tensor_map.swizzle}B"),
            kinds.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            kinds.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            about=f"a map of {tensor_map.extents} elements",
        )
        return ctypes.string_at(encoded.getPtr(), _MAP_BYTES)

    def launch(self, launch: Launch, blocks: int, arguments: Any, stream: int) -> None:
        """Launch by `cuLaunchKernel`."""
        kernel, block, address = self._functions[launch.kernel], launch.block, ctypes.addressof(arguments)
        (status,) = self._launch_kernel(kernel, blocks, 1, 1, block, 1, 1, launch.shared, stream, address, 0)
        if status:
            about = f"kernel {launch.kernel} ({blocks} blocks of {launch.block} threads, stream {stream:#x})"
            raise self._device.error(status, "cuLaunchKernel", about)

    def is_capturing(self, stream: int) -> bool:
        """By `cuStreamIsCapturing`; a stream that is in an unusable state counts as such."""
        status, capturing = self._device.driver.cuStreamIsCapturing(stream)
        return bool(int(status)) or bool(int(capturing))

    def capture(self, work: Callable[[int], None]) -> Callable[[int], None]:
        """A CUDA graph of the work. Meanwhile other threads may capture theirs."""
        call, modes = self._call, self._device.driver.CUstreamCaptureMode
        mode = call("cuThreadExchangeStreamCaptureMode", modes.CU_STREAM_CAPTURE_MODE_RELAXED)
        try:
            return self._captured(work)
        finally:
            call("cuThreadExchangeStreamCaptureMode", mode)

    def _captured(self, work: Callable[[int], None]) -> _CudaGraph:
        call, kinds = self._call, self._device.driver
        stream = call("cuStreamCreate", int(kinds.CUstream_flags.CU_STREAM_NON_BLOCKING))
        try:
            call("cuStreamBeginCapture", stream, kinds.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
            try:
                work(int(stream))
            except BaseException:
                _, graph = kinds.cuStreamEndCapture(stream)  # it may fail because the work did
                if graph is not None and int(graph):
                    kinds.cuGraphDestroy(graph)
                raise
            graph = call("cuStreamEndCapture", stream)
        finally:
            call("cuStreamDestroy", stream)
        try:
            runnable = call("cuGraphInstantiate", graph, 0, about="a graph of kernels")
        finally:
            call("cuGraphDestroy", graph)
        return _CudaGraph(self, call, runnable)


class _CudaGraph:
    """A graph of kernels, which is destroyed with the object."""

    def __init__(self, code: NvidiaCode, call: Callable[..., Any], runnable: Any) -> None:
        self._code, self._call, self._runnable = code, call, runnable

    def __call__(self, stream: int) -> None:
        self._call("cuGraphLaunch", self._runnable, stream)

    def __del__(self) -> None:
        with suppress(TlxError), self._code.current():
            self._call("cuGraphExecDestroy", self._runnable)


class _CurrentContext:
    """While it is entered, a context is the thread's current one."""

    __slots__ = ("_context", "_device", "_is_pushed")

    def __init__(self, device: NvidiaDevice, context: int) -> None:
        self._device, self._context = device, context

    def __enter__(self) -> None:
        status, current = self._device.driver.cuCtxGetCurrent()  # without `call`, which takes longer
        if status:
            raise self._device.error(status, "cuCtxGetCurrent", "")
        self._is_pushed = int(current) != self._context
        if self._is_pushed:
            self._device.call("cuCtxPushCurrent", self._device.context)

    def __exit__(self, *_: object) -> None:
        if self._is_pushed:
            self._device.call("cuCtxPopCurrent")


# Arrays ----------------------------------------------------------------------------------------------------------


_DLTENSOR: Final = struct.Struct("<QiiiBBHQQQ")
"""`DLTensor` of dlpack.h: data, type and number of the device, rank, code, bits and lanes, shape, strides, offset."""
_pointer_of: Final = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_INTEGERS: Final = (0, 1, 6)  # signed, unsigned, bool
_FLOATS: Final = {(2, 16): "half", (2, 32): "float", (2, 64): "double", (4, 16): "bfloat", (10, 8): "i8", (12, 8): "i8"}
"""By code and bits; 10 and 12 are `kDLFloat8_e4m3fn` and `kDLFloat8_e5m2`, which are passed as bytes."""


def _from_dlpack(value: object, stream: dict[str, int]) -> DeviceArray:
    capsule = cast("Any", value).__dlpack__(**stream)  # on the device, the stream waits for the array's
    tensor = ctypes.string_at(cast("int", _pointer_of(capsule, b"dltensor")), _DLTENSOR.size)
    data, _, _, rank, code, bits, _, shape_at, strides_at, offset = _DLTENSOR.unpack(tensor)
    size = bits // 8
    numbers = struct.Struct(f"<{rank}q")
    shape = numbers.unpack(ctypes.string_at(shape_at, numbers.size)) if rank else ()
    strides = None
    if strides_at and rank:
        strides = tuple(step * size for step in numbers.unpack(ctypes.string_at(strides_at, numbers.size)))
    element = _FLOATS.get((code, bits)) or (f"i{bits}" if code in _INTEGERS else "")
    return DeviceArray(data + offset, shape, strides, element, size, capsule)


_TORCH: Final[dict[Any, str]] = {}
"""Elements by the types of PyTorch that have been met."""
_TORCH_BYTES: Final = ("torch.float8_e4m3fn", "torch.float8_e5m2")
_TORCH_FLOATS: Final = {"torch.float16": "half", "torch.bfloat16": "bfloat", "torch.float32": "float"}


_TENSORS: Final[dict[type, Callable[[int], int]]] = {}
"""What returns PyTorch's current stream of a device, by types of tensors of PyTorch that have been met."""


def _from_torch(tensor: Any) -> DeviceArray:
    """A tensor of PyTorch, in a third of the time that DLPack takes."""
    stream_of = _TENSORS.get(tensor.__class__)
    if stream_of is None:
        stream_of = _TENSORS[tensor.__class__] = _streams_of_torch()
    size, kind = tensor.element_size(), tensor.dtype
    element = _TORCH.get(kind)
    if element is None:
        name = str(kind)
        is_integer = name.removeprefix("torch.").startswith(("int", "uint", "bool")) or name in _TORCH_BYTES
        floats = _TORCH_FLOATS | {"torch.float64": "double"}
        element = _TORCH[kind] = floats.get(name, f"i{size * 8}" if is_integer else "")
    strides = None if tensor.is_contiguous() else tuple(step * size for step in tensor.stride())
    return DeviceArray(
        tensor.data_ptr(), tuple(tensor.shape), strides, element, size, tensor, stream_of(tensor.device.index)
    )


def _streams_of_torch() -> Callable[[int], int]:
    """What returns PyTorch's current stream of a device, as the driver's handle."""
    torch: Any = import_module("torch")
    quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # noqa: SLF001 (Triton calls it, too)
    return quick or (lambda number: torch.cuda.current_stream(number).cuda_stream)


def _from_interface(interface: dict[str, Any], owner: object) -> DeviceArray:
    kind, size = interface["typestr"][1], int(interface["typestr"][2:])
    names = {
        "f": {2: "half", 4: "float", 8: "double"}.get(size, ""),
        "i": f"i{size * 8}",
        "u": f"i{size * 8}",
        "b": "i8",
    }
    strides, stream = interface.get("strides"), interface.get("stream")
    return DeviceArray(
        int(interface["data"][0] or 0),
        tuple(interface["shape"]),
        None if strides is None else tuple(strides),
        names.get(kind, ""),
        size,
        owner,
        0 if stream == _DEFAULT_STREAM else stream,
    )
