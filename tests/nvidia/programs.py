"""Programs for the tests of the target, written by the builder of graphs, and their arrays."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

import tlx
from tests.nvidia.emulator import EmulatedDevice
from tlx.lower.options import FloatProducts, Fp8Products, Options
from tlx.lower.pipeline import lower_text
from tlx.target.grid_unit import GridUnit
from tlx.target.lookup import find_target
from tlx.target.target import Target

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


def broadcast(name: str, token: str, element: str, shape: Sequence[int], dims: Sequence[int]) -> str:
    """A tensor, broadcast to a shape."""
    count = int(np.prod(shape))
    return (
        f"  %{name} = call <{count} x {element}> @llvm.tensor.broadcast(token %{token}, {_vector(shape)}, "
        f"{_vector(dims)})\n"
    )


def reduction(name: str, operation: str, token: str, element: str, shape: Sequence[int], axis: int) -> str:
    """A tensor, reduced along an axis."""
    window = [extent if number == axis else 1 for number, extent in enumerate(shape)]
    count = int(np.prod(shape)) // shape[axis]
    return (
        f"  %{name} = call <{count} x {element}> @llvm.tensor.reduce.{operation}(token %{token}, {_vector(window)}, "
        f"{_vector([1] * len(shape))})\n"
    )


def _vector(numbers: Sequence[int] | range) -> str:
    return f"<{len(numbers)} x i32> <{', '.join(f'i32 {n}' for n in numbers)}>"


def function(parameters: Sequence[str], body: str) -> str:
    """A function `f` of pointers, which do not overlap, and of numbers, written with their types."""
    spelled = ", ".join(p if " " in p else f"ptr noalias %{p}" for p in parameters)
    return f"define void @f({spelled}) {{\n{body}  ret void\n}}\n"


def lowered(
    text: str,
    processor: str = "sm_80",
    float_products: FloatProducts = "exact",
    fp8_products: Fp8Products = "exact",
    **changes: Any,
) -> str:
    """The program, lowered for a GPU, some facts of whose grid are changed."""
    products = {"float_products": float_products, "fp8_products": fp8_products}
    options = Options(cpu=processor, triple="nvptx64-nvidia-cuda").updated(**products)
    return lower_text(text, "test.ll", with_grids(**changes), options=options)


def with_grids(**changes: Any) -> Target:
    """The target with some facts of its grids changed."""
    target = find_target("nvidia")
    assert target.grid is not None
    cpus = {name: replace(cpu, grid=replace(grid_of(target, name), **changes)) for name, cpu in target.cpus.items()}
    return replace(target, grid=replace(target.grid, **changes), cpus=cpus)


def grid_of(target: Target, processor: str) -> GridUnit:
    """The grid of one of the target's processors."""
    grid = target.cpus[processor].grid
    assert grid is not None
    return grid


def run_emulated(
    text: str,
    *arguments: Any,
    entry: str = "f",
    seed: int = 0,
    processor: str = "sm_80",
    float_products: FloatProducts = "exact",
    fp8_products: Fp8Products = "exact",
    **changes: Any,
) -> list[Any]:
    """The arguments of a program after it has run on the emulator, and its assembly compiled."""
    device = EmulatedDevice(lowered(text, processor, float_products, fp8_products, **changes), processor, seed)
    target = with_grids(find_device=lambda: device, **changes)
    tlx.compile(text, target, float_products=float_products, fp8_products=fp8_products)[entry](*arguments)
    return list(arguments)


def run_on_device(
    text: str,
    *arguments: Any,
    entry: str = "f",
    seed: int = 0,  # noqa: ARG001
    processor: str = "",
    float_products: FloatProducts = "exact",
    fp8_products: Fp8Products = "exact",
    **changes: Any,
) -> list[Any]:
    """The arguments of a program after it has run on this machine's GPU."""
    target = with_grids(**changes)
    code = tlx.compile(text, target, cpu=processor, float_products=float_products, fp8_products=fp8_products)
    code[entry](*arguments)
    return list(arguments)


def integers(shape: Sequence[int], dtype: Any, seed: int = 0, most: int = 4) -> Array:
    """Small whole numbers, whose sums of products are exact in every type of the tests."""
    low = 0 if np.dtype(dtype).kind == "u" else -most
    return np.random.default_rng(seed).integers(low, most + 1, tuple(shape)).astype(dtype)


def normal(shape: Sequence[int], dtype: Any, seed: int = 0) -> Array:
    """Numbers of the normal distribution."""
    return np.random.default_rng(seed).standard_normal(tuple(shape)).astype(dtype)
