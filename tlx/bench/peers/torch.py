"""PyTorch on the CPU, with the oneDNN and MKL that it contains.

Each call costs a few microseconds in Python, so small workloads are left to the other peers.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from tlx.bench.peers.base import Attempt, LibraryPaths, MissingError
from tlx.intrinsics.numpy_types import Array
from tlx.tuning.workload import ConvolutionProblem, GemmProblem, LayerProblem, PointwiseProblem, Workload, unpack_vnni

_TYPES: Final = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "s8": "int8", "s32": "int32"}
_SMALLEST: Final = 200_000  # operations, or bytes


class Torch:
    """The package, as a peer."""

    name = "torch"

    def __init__(self, package: Any) -> None:
        self._torch = package
        package.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        self.version = str(package.__version__)

    def attempts(self, work: Workload, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """A call of a single function."""
        if work.operations < _SMALLEST or any(b.element.name not in _TYPES for b in work.buffers):
            return
        tensors = {
            buffer.name: self._torch.frombuffer(
                arrays[buffer.name].data.cast("B"), dtype=getattr(self._torch, _TYPES[buffer.element.name])
            ).reshape(buffer.shape)
            for buffer in work.buffers
        }
        with suppress(RuntimeError, TypeError, AttributeError):
            function = self._function(work, tensors, arrays)
            if function is not None:
                yield Attempt(_repeated(self._torch, function, arrays))

    def _function(self, work: Workload, t: dict[str, Any], arrays: dict[str, Array]) -> Callable[[], object] | None:
        torch = self._torch
        match work.problem:
            case GemmProblem(vnni=False, columns="", accumulates=True) as gemm if gemm.lhs is gemm.out:
                return lambda: t["c"].addmm_(t["a"], t["b"])
            case GemmProblem(accumulates=True):
                return None
            case GemmProblem(vnni=False, columns="") as gemm if gemm.lhs is gemm.out:
                return lambda: torch.mm(t["a"], t["b"], out=t["c"])
            case GemmProblem(vnni=False, columns="") as gemm if gemm.lhs.name == "s8":
                return lambda: torch._int_mm(t["a"], t["b"], out=t["c"])  # noqa: SLF001 (its only product of 8-bit integers)
            case LayerProblem(gemm) if gemm.vnni:
                flat = unpack_vnni(gemm, arrays["b"]).copy()
                weights = torch.frombuffer(flat.data.cast("B"), dtype=t["b"].dtype).reshape(gemm.k, gemm.n)
                linear = torch.nn.Linear(gemm.k, gemm.n, dtype=t["b"].dtype)
                linear.weight.data, linear.bias.data = weights.t().contiguous(), t["bias"].to(t["b"].dtype)
                return lambda: t["c"].copy_(torch.relu_(linear(t["a"])))
            case ConvolutionProblem() as conv if conv.lhs is conv.out:
                convolve = torch.nn.functional.conv2d
                return lambda: t["y"].copy_(convolve(t["x"], t["w"], stride=conv.stride, groups=conv.groups))
            case PointwiseProblem() as problem:
                return self._pointwise(problem.function, t)
            case _:
                return None

    def _pointwise(self, function: str, t: dict[str, Any]) -> Callable[[], object] | None:
        torch = self._torch
        match function:
            case "add":
                return lambda: torch.add(t["x0"], t["x1"], out=t["y"])
            case "muladd":
                return lambda: torch.addcmul(t["x2"], t["x0"], t["x1"], out=t["y"])
            case "tanh" | "exp" | "sigmoid":
                return lambda: getattr(torch, function)(t["x0"], out=t["y"])
            case "softmax":
                return lambda: torch.softmax(t["x"], 1, out=t["y"])
            case "rowsum":
                return lambda: torch.sum(t["x"], 1, keepdim=True, out=t["y"])
            case "rowmax":
                return lambda: torch.amax(t["x"], 1, keepdim=True, out=t["y"])
            case _:
                return None


def load(places: LibraryPaths) -> Torch:
    """PyTorch, from this Python or from the given folders.

    Raises:
        MissingError: It is not installed, or is built for another Python.
    """
    for folder in places.folders:
        for module in sorted(folder.glob("**/torch/__init__.py"))[:1]:
            sys.path.append(str(module.parent.parent))
    try:
        return Torch(importlib.import_module("torch"))
    except Exception as error:  # noqa: BLE001 (its libraries may raise anything)
        raise MissingError(f"no package torch: {error}"[:60]) from None


def _repeated(torch: Any, function: Callable[[], object], keep: object) -> Callable[[int], object]:
    def repeat(count: int, _keep: object = keep) -> None:
        with torch.inference_mode():
            for _ in range(count):
                function()

    return repeat
