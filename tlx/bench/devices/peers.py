"""Other libraries on a device."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

from tlx.bench.devices.workloads import DeviceProblem
from tlx.bench.peers.base import MissingError, installed_peers

if TYPE_CHECKING:
    from tlx.api.device.arrays import OwnedArray
    from tlx.target.grid_unit import Device
    from tlx.tuning.workload import Workload, WorkloadBuffer

Call = Callable[[], Any]
_DEVIATION: Final = 2**-6  # of the largest element


class DevicePeer(Protocol):
    """A library that computes some of the workloads on a device."""

    name: str
    version: str

    def attempts(self, work: Workload, arrays: Mapping[str, OwnedArray]) -> Sequence[Call]:
        """Functions of no arguments that launch the work in the default stream, and return the result."""
        ...

    def mistakes(self, work: Workload, arrays: Mapping[str, OwnedArray], ours: Call, theirs: Call) -> str:
        """How the result of our code differs from that of an attempt; empty if it does not."""
        ...


class TorchPeer:
    """PyTorch, with cuBLASLt, cuDNN and its own kernels."""

    name = "torch"

    def __init__(self, library_name: str) -> None:
        try:
            self.torch: Any = import_module("torch")
        except ImportError as reason:
            raise MissingError(str(reason)) from None
        if not getattr(self.torch, library_name).is_available():
            raise MissingError(f"it finds no {library_name} device")
        self.version, self._device = str(self.torch.__version__), library_name
        self.torch.backends.cuda.matmul.allow_tf32 = False

    def attempts(self, work: Workload, arrays: Mapping[str, OwnedArray]) -> Sequence[Call]:
        """A call of a function or two."""
        problem = work.problem
        if not isinstance(problem, DeviceProblem):
            return []
        *inputs, result = (self.tensor(buffer, arrays[buffer.name]) for buffer in work.buffers)
        return problem.torch(self.torch, inputs, result)

    def mistakes(self, work: Workload, arrays: Mapping[str, OwnedArray], ours: Call, theirs: Call) -> str:
        """Compare on the device: integers exactly, floats by the largest difference."""
        want, out = theirs().clone(), work.output
        got = self.tensor(out, arrays[out.name])
        got.fill_(math.nan if out.element.is_float else -1)
        ours()
        if not out.element.is_float:
            wrong = int((got != want).sum())
            return f"{wrong} elements differ from those of {self.name}" if wrong else ""
        largest = float(want.float().abs().max())
        error = float((got.float() - want.float()).abs().max())
        if error <= _DEVIATION * largest:
            return ""
        return f"an element differs from that of {self.name} by {error:.3g}; the largest is {largest:.3g}"

    def tensor(self, buffer: WorkloadBuffer, array: OwnedArray) -> Any:
        """A tensor in the memory of an array."""
        tensor = self.torch.as_tensor(array, device=self._device)
        if buffer.element.llvm == "bfloat":
            return tensor.view(self.torch.bfloat16)
        small = buffer.element.small
        return tensor if small is None else tensor.view(getattr(self.torch, small.dtype))


class TritonPeer(TorchPeer):
    """The kernels of Triton's tutorials, on PyTorch's tensors."""

    name = "triton"

    def __init__(self, library_name: str) -> None:
        super().__init__(library_name)
        try:
            self._triton: Any = import_module("triton")
            self._kernels: Any = import_module("tlx.bench.devices.triton_kernels")
        except Exception as reason:  # noqa: BLE001 (it may find no compiler)
            raise MissingError(str(reason)) from None
        self.version = str(self._triton.__version__)

    def attempts(self, work: Workload, arrays: Mapping[str, OwnedArray]) -> Sequence[Call]:
        """Products with blocks of several sizes, and softmax."""
        *inputs, result = (self.tensor(buffer, arrays[buffer.name]) for buffer in work.buffers)
        if work.row == "softmax":
            return [partial(self._softmax, *inputs, result)]
        if work.row == "gemm" and work.buffers[0].element.precision <= _LARGEST_PRECISION:
            a, b = inputs[0], inputs[1].t() if work.variant else inputs[1]
            return [partial(self._product, a, b, result, *blocks) for blocks in _BLOCKS]
        return []

    def _product(self, a: Any, b: Any, c: Any, blocks: tuple[int, int, int], warps: int, stages: int) -> Any:
        (m, k), n, language = a.shape, b.shape[1], self._triton.language
        sums = language.float32 if a.dtype.is_floating_point else language.int32
        grid = (self._triton.cdiv(m, blocks[0]) * self._triton.cdiv(n, blocks[1]),)
        strides = (*a.stride(), *b.stride())
        self._kernels.product[grid](
            *(a, b, c, m, n, k, *strides, sums, *blocks, _ROWS_OF_BLOCKS), num_warps=warps, num_stages=stages
        )
        return c

    def _softmax(self, x: Any, y: Any) -> Any:
        rows, columns = x.shape
        block = self._triton.next_power_of_2(columns)
        self._kernels.softmax[(rows,)](x, y, columns, block, num_warps=min(16, max(4, block // 512)))
        return y


_BLOCKS: Final = (((128, 256, 64), 8, 3), ((128, 128, 64), 4, 4), ((64, 64, 64), 4, 4))
_ROWS_OF_BLOCKS: Final = 8
_LARGEST_PRECISION: Final = 11  # bfloat, half and bytes
_PEERS: Final[dict[str, Callable[[str], DevicePeer]]] = {"torch": TorchPeer, "triton": TritonPeer}
PEER_NAMES: Final = tuple(_PEERS)


def find_peers(names: Sequence[str], device: Device) -> tuple[list[DevicePeer], dict[str, str]]:
    """The peers that are installed, as for `installed_peers`."""
    return installed_peers(names, {name: partial(make, device.library_name) for name, make in _PEERS.items()})
