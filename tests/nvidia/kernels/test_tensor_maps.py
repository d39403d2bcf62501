"""Products whose operands are copied by tensor maps, by blocks that compute several tiles."""

import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tlx
from tests.nvidia.emulator import COMPILER, EmulatedDevice, OnDevice
from tests.nvidia.kernels.test_convolutions import convolved, exact
from tests.nvidia.kernels.test_products import bytes_product, matmul
from tests.nvidia.kernels.test_target import driver_with_contexts
from tests.nvidia.programs import broadcast, function, grid_of, integers, lowered, tensor, typed, with_grids
from tlx.legalize.nvidia.driver import NvidiaDevice
from tlx.target.launches import LaunchArgument, TensorMap, from_json, table_of, to_json

BF16 = ml_dtypes.bfloat16
Run = Callable[..., list[Any]]
COPY = "cp.async.bulk.tensor"


def product(x: Any, y: Any) -> Any:
    return (x.astype(np.float32) @ y.astype(np.float32)).astype(BF16)


def mapped(multiprocessors: int) -> dict[str, Any]:
    """Options of a machine whose copies by tensor maps are always faster."""
    grid = grid_of(with_grids(), "sm_90a")
    costs = replace(grid.costs, tensor_map_cycles=-(10**6))
    return {"processor": "sm_90a", "multiprocessors": multiprocessors, "costs": costs}


def test_the_table_says_which_maps_a_kernel_is_passed() -> None:
    (table,) = table_of(lowered(matmul(2048, 1024, 1024, "bfloat", "bfloat"), "sm_90a"))
    (launch,) = table.launches
    a = TensorMap("bfloat", extents=(1024, 2048), strides=(2048,), box=(64, 128), swizzle=128)
    b = TensorMap("bfloat", extents=(1024, 1024), strides=(2048,), box=(64, 64), swizzle=128)
    assert launch.arguments[3:] == (LaunchArgument(0, offset=0, map=a), LaunchArgument(1, offset=0, map=b))
    assert from_json(to_json([table])) == [table]


def test_maps_of_copies_are_of_the_temporary() -> None:
    """A row-major B of bytes is transposed before."""
    (table,) = table_of(lowered(bytes_product("smma", 2048, 1024, 2048, "nn"), "sm_90a"))
    of_b = table.launches[-1].arguments[-1]
    assert of_b.temporary == 0
    assert of_b.map == TensorMap("i8", extents=(2048, 1024), strides=(2048,), box=(128, 128), swizzle=128)


def test_as_many_blocks_as_multiprocessors() -> None:
    text = matmul(4096, 4096, 512, "bfloat", "bfloat")
    assert [table_of(lowered(text, "sm_90a", multiprocessors=n))[0].launches[0].grid for n in (132, 8)] == [132, 8]


WHOLE, EDGES = (256, 384, 256), (200, 328, 136)


@pytest.mark.parametrize(
    ("layouts", "size"), [("nn", WHOLE), ("nn", EDGES), ("nt", EDGES), ("tn", EDGES), ("tt", EDGES)], ids=str
)
def test_several_tiles_of_a_block(run: Run, size: tuple[int, int, int], layouts: str) -> None:
    m, n, k = size
    x, y = integers((m, k), BF16), integers((k, n), BF16, 1)
    stored = [np.ascontiguousarray(a.T if o == "t" else a) for a, o in zip((x, y), layouts, strict=True)]
    text = matmul(*size, "bfloat", "bfloat", layouts)
    options = mapped(1)
    code = lowered(text, **options)
    (launch,) = table_of(code)[0].launches
    assert COPY in code
    assert launch.grid in (1, 2)  # of six tiles or more
    *_, c = run(text, *stored, np.full((m, n), 99, BF16), seed=m, **options)
    np.testing.assert_array_equal(c, product(x, y))


@pytest.mark.parametrize("batch", [(3,), (2, 3)], ids=str)
def test_batches(run: Run, batch: tuple[int, ...]) -> None:
    """Loops around the product are dimensions of the maps."""
    m, n, k = 80, 72, 136
    count = int(np.prod(batch)) * m * n
    operands = tensor("a", "x", "bfloat", (*batch, m, k)) + tensor("b", "y", "bfloat", (*batch, k, n))
    body = f"""{operands}
  %p = call <{count} x bfloat> @llvm.tensor.matmul(token %a, token %b)
  store <{count} x bfloat> %p, ptr %c
"""
    text = function(["x", "y", "c"], body)
    options = mapped(2)
    assert COPY in lowered(text, **options)
    x, y = integers((*batch, m, k), BF16), integers((*batch, k, n), BF16, 1)
    *_, c = run(text, x, y, np.zeros((*batch, m, n), BF16), **options)
    np.testing.assert_array_equal(c, product(x, y))


@pytest.mark.parametrize(
    ("shape", "axes", "rank"),
    [((2, 40, 3, 136), (0, 2, 1, 3), 4), ((2, 40, 2, 3, 136), (0, 3, 2, 1, 4), 5)],
    ids=["two-loops", "three-loops"],
)
def test_matrices_whose_rows_are_interleaved(
    run: Run, shape: tuple[int, ...], axes: tuple[int, ...], rank: int
) -> None:
    """Heads that lie beside each other: steps of loops are shorter than those of rows, and in any order."""
    g, stored = tlx.Graph("f"), tuple(shape[axis] for axis in axes)
    y_shape = (*stored[:-2], shape[-1], 72)
    g.output(g.parameter("x", shape, "bfloat16").transpose(*axes) @ g.parameter("y", y_shape, "bfloat16"))
    options = mapped(2)
    assert f"{COPY}.{rank}d" in lowered(g.text(), **options)
    x, y = integers(shape, BF16), integers(y_shape, BF16, 1)
    want = product(x.transpose(axes), y)
    *_, c = run(g.text(), x, y, np.zeros(want.shape, BF16), **options)
    np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize(("window", "is_mapped"), [(1, True), (3, False)], ids=["1x1", "3x3"])
def test_convolutions(run: Run, window: int, is_mapped: bool) -> None:
    """Pixels of all images are rows of one matrix, if windows do not overlap."""
    x_shape, w_shape = (3, 72, 9, 10), (40, 72, window, window)
    text, shape = convolved("bfloat", x_shape, w_shape, (0, 2, 3, 1))
    options = mapped(1)
    assert (COPY in lowered(text, **options)) == is_mapped
    x, w = integers(x_shape, BF16, most=2), integers(w_shape, BF16, 1, most=2)
    stored = [np.ascontiguousarray(a.transpose(0, 2, 3, 1)) for a in (x, w)]
    *_, found = run(text, *stored, np.zeros([shape[axis] for axis in (0, 2, 3, 1)], BF16), **options)
    np.testing.assert_array_equal(found.transpose(0, 3, 1, 2), exact(x, w, shape, 1).astype(BF16))


def test_parts_of_a_tile_that_pass_through_shared_memory(run: Run) -> None:
    """relu(x @ y + bias) + residual, at the edges of tiles."""
    m, n, k = 150, 264, 72
    operands = tensor("a", "x", "bfloat", (m, k)) + tensor("b", "y", "bfloat", (k, n))
    body = f"""{operands}{tensor("row", "bias", "float", (n,))}{tensor("other", "z", "float", (m, n))}
  %p = call <{m * n} x float> @llvm.tensor.matmul(token %a, token %b)
{broadcast("rows", "row", "float", (m, n), (1,))}
  %sum = fadd <{m * n} x float> %p, %rows
{typed("s", "sum", "float", (m, n))}
  %relu = call <{m * n} x float> @llvm.tensor.relu(token %s)
  %residual = call <{m * n} x float> @llvm.tensor.tovector(token %other)
  %total = fadd <{m * n} x float> %relu, %residual
  store <{m * n} x float> %total, ptr %c
"""
    x, y, bias = integers((m, k), BF16), integers((k, n), BF16, 1), integers((n,), np.float32, 2)
    z = integers((m, n), np.float32, 3)
    text = function(["x", "y", "bias", "z", "c"], body)
    options = mapped(1)
    assert COPY in lowered(text, **options)
    *_, c = run(text, x, y, bias, z, np.zeros((m, n), np.float32), **options)
    np.testing.assert_array_equal(c, np.maximum(x.astype(np.float32) @ y.astype(np.float32) + bias, 0) + z)


@pytest.mark.parametrize("layouts", ["nn", "nt"])
def test_bytes(run: Run, layouts: str) -> None:
    m, n, k = 72, 136, 144
    x, y = integers((m, k), np.int8, 0, 127), integers((k, n), np.int8, 1, 127)
    stored = [x, np.ascontiguousarray(y.T) if layouts == "nt" else y]
    options = mapped(1)
    text = bytes_product("smma", m, n, k, layouts)
    assert COPY in lowered(text, **options)
    *_, c = run(text, *stored, np.zeros((m, n), np.int32), **options)
    np.testing.assert_array_equal(c, x.astype(np.int32) @ y.astype(np.int32))


def test_operands_that_maps_cannot_describe(run: Run) -> None:
    """Lines of 74 elements are not aligned to 16 bytes."""
    m, n, k = 130, 66, 74
    text = matmul(m, n, k, "bfloat", "bfloat", "nt")
    options = mapped(1)
    assert COPY not in lowered(text, **options)
    x, y = integers((m, k), BF16), integers((k, n), BF16, 1)
    *_, c = run(text, x, np.ascontiguousarray(y.T), np.zeros((m, n), BF16), **options)
    np.testing.assert_array_equal(c, product(x, y))


emulated = pytest.mark.skipif(COMPILER is None, reason="the emulator needs a C compiler")


@emulated
def test_a_call_with_other_arrays_has_other_maps() -> None:
    text = matmul(64, 64, 64, "bfloat", "float")
    options = mapped(1)
    device = EmulatedDevice(lowered(text, **options), options.pop("processor"))
    f: Any = tlx.compile(text, with_grids(find_device=lambda: device, **options)).f
    arrays = [integers((64, 64), BF16, seed) for seed in range(3)]
    for first, second in ((0, 1), (1, 2), (0, 1)):
        x, y, c = arrays[first], arrays[second], np.zeros((64, 64), np.float32)
        f(OnDevice(x), OnDevice(y), OnDevice(c))
        np.testing.assert_array_equal(c, x.astype(np.float32) @ y.astype(np.float32))


def run_changed(pattern: str, replacement: str) -> None:
    """Run a product of two tiles with six stages of K each, whose code was changed."""
    text = matmul(64, 128, 384, "bfloat", "bfloat")
    options: dict[str, Any] = mapped(1) | {"max_shared_bytes": 80 << 10}
    code = lowered(text, **options)
    changed = re.sub(pattern, replacement, code)
    assert changed != code
    device = EmulatedDevice(changed, options.pop("processor"))
    x, y = integers((64, 384), BF16), integers((384, 128), BF16, 1)
    tlx.compile(text, with_grids(find_device=lambda: device, **options)).f(x, y, np.zeros((64, 128), BF16))


WAIT = r'  call void asm sideeffect "\{ [^"]*try_wait[^"]*", "[^"]*"\(ptr addrspace\(3\) %\S+, i32 %\S+\) convergent\n'


@emulated
@pytest.mark.parametrize(
    ("pattern", "replacement", "error"),
    [
        (
            WAIT + r"(?=(?:  %[^\n]*\n)*  call void asm sideeffect \"mbarrier.arrive.expect)",
            "",
            "in use|not told so|too many threads",
        ),
        (r"wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;", "in use"),
        (r"mbarrier.init([^\n]*), i32 1\)", r"mbarrier.init\1, i32 2)", "wait for each other forever"),
        (r"(expect_tx[^\n]*), i32 \d+\)", r"\1, i32 8)", "wait for each other forever"),
        (r"  call void @llvm\.nvvm\.bar\.warp\.sync\(i32 -1\)\n", "", "since the last barrier"),
        (r"  call void @llvm\.nvvm\.barrier0\(\)\n", "", "may not be made yet|no mbarrier"),
    ],
    ids=["free", "products", "arrivals", "bytes", "sums", "made"],
)
def test_the_emulator_finds_what_is_missing(pattern: str, replacement: str, error: str) -> None:
    with pytest.raises(AssertionError, match=error):
        run_changed(pattern, replacement)


def test_the_driver_encodes_a_map() -> None:
    given: list[Any] = []

    def encode(*arguments: Any) -> tuple[int, Any]:
        given.extend(arguments)
        return 0, SimpleNamespace(getPtr=lambda: memory.ctypes.data)

    memory = np.arange(128, dtype=np.uint8)
    driver, _ = driver_with_contexts(7)
    driver.cuTensorMapEncodeTiled, driver.cuuint64_t, driver.cuuint32_t = encode, int, int
    driver.CUtensorMapDataType = SimpleNamespace(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16=9)
    driver.CUtensorMapInterleave = SimpleNamespace(CU_TENSOR_MAP_INTERLEAVE_NONE=0)
    driver.CUtensorMapSwizzle = SimpleNamespace(CU_TENSOR_MAP_SWIZZLE_128B=3)
    driver.CUtensorMapL2promotion = SimpleNamespace(CU_TENSOR_MAP_L2_PROMOTION_L2_128B=2)
    driver.CUtensorMapFloatOOBfill = SimpleNamespace(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE=0)
    code = NvidiaDevice(driver).load("", [])
    encoded = code.tensor_map(TensorMap("bfloat", (512, 2048, 3), (1024, 1 << 21), (64, 128, 1), 128), 4096)
    assert encoded == memory.tobytes()
    assert given == [9, 3, 4096, [512, 2048, 3], [1024, 1 << 21], [64, 128, 1], [1, 1, 1], 0, 3, 2, 0]
