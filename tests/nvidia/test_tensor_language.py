"""Kernels of the tensor language on a grid: a block for each work-group, a thread for each work-item."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Final, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from tests.nvidia.emulator import COMPILER, Emulator, OnDevice
from tests.nvidia.kernels.test_target import assembled
from tests.nvidia.on_emulator import on_emulator
from tests.nvidia.programs import with_grids
from tests.semantics.frontends.tensor_language.test_examples import FOLDER
from tlx.api.arguments import ArgumentError
from tlx.api.device.arrays import OwnedArray
from tlx.diagnostics import LoweringError
from tlx.frontends import tensor_language as tl
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text
from tlx.target.grid_unit import DeviceArray
from tlx.target.launches import table_of

Array = npt.NDArray[Any]
Compile = Callable[..., Any]


def whole(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> Array:
    """Small whole numbers, column-major."""
    return np.asfortranarray(np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype))


@pytest.mark.parametrize(("name", "std"), [("fused.tl", "v2"), ("fused_v1.tl", "v1")])
def test_products_of_groups(compile_kernels: Compile, name: str, std: str) -> None:
    a, b, c, d = [whole((16, 8), seed=k) for k in range(3)], whole((8, 8)), whole((8, 16)), whole((16, 16, 3))
    exact = d + 1.5 * np.stack([m @ b.T @ c for m in a], axis=-1)
    compile_kernels(FOLDER / name, std=std).fused(1.5, a, b, c, d, groups=3)
    np.testing.assert_array_equal(d, exact)


def test_local_memory_between_products(compile_kernels: Compile) -> None:
    p, i = [whole((32, 32), seed=k) for k in range(3)], whole((32, 9, 2))
    a, q = whole((9, 9, 3, 2)), whole((32, 9, 2))
    exact = q + sum(np.stack([p[k] @ i[..., g] @ a[:, :, k, g] for g in range(2)], axis=-1) for k in range(3))
    compile_kernels(FOLDER / "ader_dg.tl").volume(*p, i, a, q, groups=2)
    np.testing.assert_array_equal(q, exact)


def test_extents_of_run_time(compile_kernels: Compile) -> None:
    a, b, c = whole((300, 32)), whole((32, 16)), whole((300, 16))
    exact = 2 * (a @ b) + 3 * c
    compile_kernels(FOLDER / "tall_skinny.tl").tall_skinny(2.0, a, b, 3.0, c, groups=2)
    np.testing.assert_array_equal(c, exact)


def test_attention(compile_kernels: Compile) -> None:
    rows = 80
    q, k, v = (
        np.asfortranarray(np.random.default_rng(n).standard_normal((rows, 64)).astype(ml_dtypes.bfloat16))
        for n in range(3)
    )
    o = np.zeros((rows, 64), np.float32, order="F")
    compile_kernels(FOLDER / "attention.tl").attention(q, k, v, o, groups=2)
    scores = np.exp(q.astype(float) @ k.astype(float).T / 8)
    np.testing.assert_allclose(o, scores / scores.sum(1, keepdims=True) @ v.astype(float), atol=0.02)


def test_product(compile_kernels: Compile) -> None:
    """Operands that are copied to local memory in turn, aligned and inside of the matrices or not."""
    kernel = compile_kernels(FOLDER / "product.tl").product
    for m, n, k in ((256, 128, 64), (270, 140, 50)):
        a, b = whole((m, k), ml_dtypes.bfloat16), whole((k, n), ml_dtypes.bfloat16, seed=1)
        c = np.zeros((m, n), np.float32, order="F")
        kernel(a, b, c, groups=(-(-m // 256), -(-n // 128)))
        np.testing.assert_array_equal(c, a.astype(float) @ b.astype(float))


WORK_ITEMS: Final = """func @run(%X: memref<f32x?>, %S: memref<f32x?>, %T: memref<f32x?>, %N: memref<i32x?>)
    attributes {subgroup_size=16, work_group_size=[48,1]} {
  %turned = alloca : memref<f32x48,local>
  %c0 = constant 0 : index
  %c47 = constant 47 : index
  %c48 = constant 48 : index
  %g = group_id.x : index
  %start = mul %g, %c48 : index
  parallel {
    %s32 = subgroup_linear_id : i32
    %n32 = subgroup_size : i32
    %l32 = subgroup_local_id : i32
    %first = mul %s32, %n32 : i32
    %item32 = add %first, %l32 : i32
    %item = cast %item32 : index
    %i = add %start, %item : index
    %x = load %X[%i] : f32
    %sum = subgroup_inclusive_scan_add %x : f32
    store %sum, %S[%i]
    %other = sub %c47, %item : index
    store %x, %turned[%other]
    barrier.local
    %y = load %turned[%item] : f32
    store %y, %T[%i]
    %zero = constant 0.0 : f32
    %positive = greater_than %x, %zero : bool
    if %positive {
      %one = constant 1 : i32
      %old = atomic_add %one, %N[%g] : i32
    }
  }
}"""


def test_work_items(compile_kernels: Compile) -> None:
    x = whole((96,))
    sums, turned, counts = np.zeros_like(x), np.zeros_like(x), np.zeros(2, np.int32)
    compile_kernels(WORK_ITEMS).run(x, sums, turned, counts, groups=2)
    np.testing.assert_array_equal(sums, x.reshape(6, 16).cumsum(1).ravel())
    np.testing.assert_array_equal(turned, x.reshape(2, 48)[:, ::-1].ravel())
    np.testing.assert_array_equal(counts, (x.reshape(2, 48) > 0).sum(1))


@pytest.mark.skipif(COMPILER is None, reason="the emulator needs a C compiler")
def test_arrays_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    on_emulator(monkeypatch)
    x, y = whole((64, 3)), whole((40, 5))
    exact = np.exp2(x)
    kernel = tl.compile(FOREACH).run
    kernel(OnDevice(x))
    np.testing.assert_array_equal(x, exact)
    with pytest.raises(ArgumentError, match="expected elements of float32, got float16 array"):
        kernel(OnDevice(y.astype(np.float16)))


@pytest.mark.skipif(COMPILER is None, reason="the emulator needs a C compiler")
def test_a_layout_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of the same elements, shape and strides are passed as they are afterwards."""
    on_emulator(monkeypatch)
    described, find = list[object](), Emulator.array

    def address_and_layout(self: Emulator, value: OnDevice, stream: int) -> tuple[int, Hashable]:  # noqa: ARG001
        array = value.array
        return int(array.ctypes.data), (array.dtype, array.shape, array.strides)

    def array(self: Emulator, value: object, stream: int) -> DeviceArray | None:
        described.append(value)
        return find(self, value, stream)

    monkeypatch.setattr(Emulator, "address_and_layout", address_and_layout)
    monkeypatch.setattr(Emulator, "array", array)
    kernel = tl.compile(FOREACH).run
    x, y = (np.zeros(shape, np.float32, order="F") for shape in ((64, 3), (40, 5)))
    for value, times in ((x, 1), (x, 1), (y, 2), (y, 2), (x, 2)):
        expected = np.exp2(value)
        kernel(OnDevice(value))
        np.testing.assert_array_equal(value, expected)
        assert len(described) == times


@pytest.mark.skipif(COMPILER is None, reason="the emulator needs a C compiler")
def test_arrays_that_other_code_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their element type is known even where `__cuda_array_interface__` cannot tell it."""
    on_emulator(monkeypatch)
    text = FOREACH.replace("f32", "bf16").replace("x?x?", "x?x1").replace("exp2 %x", "neg %x")
    kernel = tl.compile(text).run
    x = whole((64, 1), ml_dtypes.bfloat16)
    owned = OwnedArray(Emulator(lowered(text)), x.shape, x.dtype)
    owned.fill(x)
    kernel(owned)
    np.testing.assert_array_equal(np.asarray(owned), -x)


FOREACH: Final = """func @run(%X: memref<f32x?x?>) attributes {subgroup_size=8, work_group_size=[32,1]} {
  %c0 = constant 0 : index
  %m = size %X[0] : index
  %n = size %X[1] : index
  foreach (%i,%j)=(%c0,%c0),(%m,%n) {
    %x = load %X[%i,%j] : f32
    %y = exp2 %x : f32
    store %y, %X[%i,%j]
  }
}"""


def test_foreach(compile_kernels: Compile) -> None:
    x = whole((53, 3))
    exact = np.exp2(x)
    compile_kernels(FOREACH).run(x)
    np.testing.assert_array_equal(x, exact)


def lowered(text: str, processor: str = "sm_80", std: Literal["v1", "v2"] = "v2") -> str:
    module = str(tl.translate(text, threads=with_grids().grid or "none", std=std))
    return lower_text(module, target="nvidia", options=Options(cpu=processor, triple="nvptx64-nvidia-cuda"))


@pytest.mark.parametrize("processor", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.tl")))
def test_the_assembler_accepts_the_examples(name: str, processor: str, tmp_path: Path) -> None:
    std = "v1" if name == "fused_v1.tl" else "v2"
    assembled(lowered((FOLDER / name).read_text(), processor, std), processor, tmp_path)


def test_the_launch_table_gives_the_parameters_whose_product_is_the_grid() -> None:
    (table,) = table_of(lowered(WORK_ITEMS))
    (launch,) = table.launches
    assert launch.block == 48
    assert launch.grid == tuple(range(len(table.parameters) - 3, len(table.parameters)))
    assert launch.shared >= 48 * 4


def test_large_subgroups_are_refused() -> None:
    text = FOREACH.replace("subgroup_size=8, work_group_size=[32,1]", "subgroup_size=64, work_group_size=[64,1]")
    with pytest.raises(LoweringError, match="a subgroup of 64 work-items; on a grid it has at most 32"):
        lowered(text)


def test_large_local_memory_is_refused() -> None:
    text = FOREACH.replace("  %c0 =", "  %t = alloca : memref<f32x65536,local>\n  %c0 =", 1)
    with pytest.raises(LoweringError, match="bytes of local memory and matrices; a block has 166912"):
        lowered(text)
