"""Programs for the tests of the target, written by the builder of graphs, and their arrays."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.nvidia.emulator import Emulator, aligned
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text

Array = npt.NDArray[Any]


def tensor(name: str, pointer: str, element: str, shape: Sequence[int], layout: Sequence[int] | None = None) -> str:
    """A load of a tensor, of `shape` as stored."""
    rank = len(shape)
    return (
        f"  %{name} = call token @llvm.tensor.load(ptr elementtype({element}) %{pointer}, {_vector(shape)}, "
        f"{_vector(layout or range(rank))}, <{rank} x i32> zeroinitializer, <{rank} x i32> zeroinitializer)\n"
    )


def typed(name: str, value: str, element: str, shape: Sequence[int]) -> str:
    """The tensor type of a flattened value."""
    rank, count = len(shape), int(np.prod(shape))
    return (
        f"  %{name} = call token @llvm.tensor.typeinfo(<{count} x {element}> %{value}, {_vector(shape)}, "
        f"{_vector(range(rank))}, <{rank} x i32> zeroinitializer)\n"
    )


def _vector(numbers: Sequence[int] | range) -> str:
    return f"<{len(numbers)} x i32> <{', '.join(f'i32 {n}' for n in numbers)}>"


def function(parameters: Sequence[str], body: str) -> str:
    """A function `f` of pointers, which do not overlap, and of numbers, written with their types."""
    spelled = ", ".join(p if " " in p else f"ptr noalias %{p}" for p in parameters)
    return f"define void @f({spelled}) {{\n{body}  ret void\n}}\n"


def lowered(text: str, processor: str = "sm_80") -> str:
    """The program, lowered for a GPU."""
    return lower_text(text, "test.ll", "nvidia", options=Options(cpu=processor, triple="nvptx64-nvidia-cuda"))


def run(text: str, *arguments: Any, seed: int = 0) -> list[Any]:
    """The arguments of the program after it has run on the emulator."""
    passed = [aligned(a) if isinstance(a, np.ndarray) else a for a in arguments]
    Emulator(lowered(text)).call("f", *passed, seed=seed)
    return passed


def integers(shape: Sequence[int], dtype: Any, seed: int = 0, most: int = 4) -> Array:
    """Small whole numbers, whose sums of products are exact in every type of the tests."""
    low = 0 if np.dtype(dtype).kind == "u" else -most
    return np.random.default_rng(seed).integers(low, most + 1, tuple(shape)).astype(dtype)


def normal(shape: Sequence[int], dtype: Any, seed: int = 0) -> Array:
    """Numbers of the normal distribution."""
    return np.random.default_rng(seed).standard_normal(tuple(shape)).astype(dtype)


Reference = Callable[..., Array]
