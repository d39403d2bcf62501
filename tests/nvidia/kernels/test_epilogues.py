"""Epilogues of products, which threads compute from the sums that they hold."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tlx
from tests.nvidia.kernels.test_convolutions import convolved
from tests.nvidia.kernels.test_tensor_maps import mapped
from tests.nvidia.programs import integers, lowered
from tlx.graph import Graph
from tlx.ir.builder.blocks import new_function
from tlx.ir.parser.module import parse
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, I8, I32, I64, PTR, Type, bytes_of
from tlx.llvm.codegen import emit_code
from tlx.llvm.triples import with_platform
from tlx.lower.to_blocks.products.epilogue import ResultPart

BF16 = ml_dtypes.bfloat16
Run = Callable[..., list[Any]]
PROCESSORS = ["sm_80", "sm_90a"]


def layer(m: int, n: int, k: int, result: str) -> str:
    """`relu(x @ w + bias) * scale + rows + residual`, rounded to a type."""
    g = Graph("f")
    x, w = g.parameter("x", (m, k), "bfloat16"), g.parameter("w", (k, n), "bfloat16")
    bias, scale = g.parameter("bias", (n,), "float32"), g.parameter("scale", (1,), "float32")
    rows, residual = g.parameter("rows", (m, 1), "float32"), g.parameter("residual", (m, n), "float16")
    y = g.relu(g.matmul(x, w, dtype="float32") + bias) * scale + rows + g.convert(residual, "float32")
    g.output(g.convert(y, result))
    return g.text()


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("result", ["float32", "float16", "bfloat16", "float8_e5m2"])
@pytest.mark.parametrize("size", [(128, 256, 64), (70, 72, 40), (67, 129, 24)], ids=str)
def test_layers(run: Run, processor: str, result: str, size: tuple[int, int, int]) -> None:
    """Whole tiles, edges of tiles, and rows of an odd number of columns."""
    m, n, k = size
    x, w = integers((m, k), BF16, most=1), integers((k, n), BF16, 1, most=1)
    bias, rows = integers((n,), np.float32, 2), integers((m, 1), np.float32, 3)
    residual, scale = integers((m, n), np.float16, 4), np.full(1, 0.5, np.float32)
    dtype: Any = np.dtype(getattr(ml_dtypes, result, result))
    want = np.maximum(x.astype(np.float32) @ w.astype(np.float32) + bias, 0) * scale + rows + residual
    options = mapped(2) if processor == "sm_90a" else {}
    arrays = x, w, bias, scale, rows, residual, np.zeros((m, n), dtype)
    *_, found = run(layer(m, n, k, result), *arrays, **{"processor": processor, **options})
    np.testing.assert_array_equal(found.astype(np.float32), want.astype(dtype).astype(np.float32))


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("size", [(128, 128, 64), (50, 41, 24)], ids=str)
def test_a_transposed_result(run: Run, processor: str, dtype: str, size: tuple[int, int, int]) -> None:
    m, n, k = size
    g = Graph("f")
    g.output(g.transpose(g.matmul(g.parameter("x", (m, k), dtype), g.parameter("w", (k, n), dtype)), (1, 0)))
    numbers: Any = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x, w = integers((m, k), numbers), integers((k, n), numbers, 1)
    *_, found = run(g.text(), x, w, np.zeros((n, m), numbers), processor=processor)
    want = (x.astype(np.float32) @ w.astype(np.float32)).T.astype(numbers)
    np.testing.assert_array_equal(found.astype(np.float32), want.astype(np.float32))


@pytest.mark.parametrize("result", ["float32", "float16", "bfloat16", "float8_e5m2"])
def test_blocks_that_share_a_tile(run: Run, result: str) -> None:
    """The kernel that adds up their sums converts and stores eight columns at once."""
    m, n, k = 16, 64, 2048
    g = Graph("f")
    product = g.matmul(g.parameter("x", (m, k), "bfloat16"), g.parameter("w", (k, n), "bfloat16"), dtype="float32")
    g.output(g.convert(product, result))
    assert lowered(g.text(), "sm_90a").count("define ptx_kernel") == 2
    x, w = integers((m, k), BF16, most=1), integers((k, n), BF16, 1, most=1)
    dtype: Any = np.dtype(getattr(ml_dtypes, result, result))
    *_, found = run(g.text(), x, w, np.zeros((m, n), dtype), processor="sm_90a")
    want = (x.astype(np.float32) @ w.astype(np.float32)).astype(dtype)
    np.testing.assert_array_equal(found.astype(np.float32), want.astype(np.float32))


def test_a_residual_that_is_overwritten(run: Run) -> None:
    """Threads read elements that other threads of the warp overwrite."""
    m, n, k = 200, 264, 72
    g = Graph("f")
    c = g.parameter("c", (m, n), "float32", donated=True)
    product = g.matmul(g.parameter("x", (m, k), "bfloat16"), g.parameter("w", (k, n), "bfloat16"), dtype="float32")
    g.output(g.relu(product) + c, into=c)
    x, w, before = integers((m, k), BF16), integers((k, n), BF16, 1), integers((m, n), np.float32, 2)
    after, *_ = run(g.text(), before.copy(), x, w, **mapped(2))
    np.testing.assert_array_equal(after, np.maximum(x.astype(np.float32) @ w.astype(np.float32), 0) + before)


def test_warps_wait_for_no_others() -> None:
    """The only barrier of a block that copies by maps is that for its mbarriers; a bias is loaded before its use."""
    text = with_platform(lowered(layer(4096, 4096, 1024, "bfloat16"), "sm_90a"), "nvptx64-nvidia-cuda")
    code = emit_code(text, "asm", 3, "sm_90a").decode()
    assert code.count("bar.sync") + code.count("barrier.sync") == 1
    assert code.index("ld.global") < code.index("wgmma.wait_group.sync.aligned 0")
    assert "cvt.rn.bf16x2.f32" in code


def test_places_in_odd_rows_are_computed_once() -> None:
    """An image of 7 x 7 pixels has an odd number of columns: each of a thread's columns is the same in all rows."""
    text = convolved("bfloat", (32, 128, 9, 9), (128, 128, 3, 3), (0, 1, 2, 3))[0]
    code = emit_code(with_platform(lowered(text, "sm_90a"), "nvptx64-nvidia-cuda"), "asm", 3, "sm_90a").decode()
    stores = code[code.rindex("bar.warp.sync") :]
    assert "st.global.b16" in stores
    assert "mul.hi" not in stores[stores.index("ld.shared") :]  # divisions by constants


WARP, BANKS, BANK_BYTES = 32, 32, 4


def addresses(part: ResultPart) -> list[list[int]]:
    """The distance of each element from the first one, in bytes."""
    module = parse("")
    function = new_function(module, "f", [(PTR, "", "row"), (PTR, "", "to")], "", "dso_local")
    b = TensorBuilder(module, function)
    base, to = (argument.value for argument in function.arguments)
    with b.loop(0, part.rows, name="row") as row, b.loop(0, part.cols, name="column") as column:
        address = part.address(b, base, b.cast("trunc", row.index, I32), b.cast("trunc", column.index, I32))
        distance = b.sub(b.cast("ptrtoint", address, I64), b.cast("ptrtoint", base, I64))
        b.store(distance, b.gep(I64, to, b.add(b.mul(row.index, part.cols), column.index)), 8)
    b.ret()
    found = np.zeros((part.rows, part.cols), np.int64)
    tlx.compile(str(module), entry="f")(np.zeros(1, np.float32), found)
    assert found.max() < part.size
    return found.tolist()


def conflicts(starts: list[int], size: int) -> int:
    """How often more than one word of a bank is accessed by threads that access some bytes each at the same time."""
    at_once = min(WARP, WARP * BANK_BYTES // size)
    count = 0
    for first in range(0, WARP, at_once):
        words = {(start + k) // BANK_BYTES for start in starts[first : first + at_once] for k in range(size)}
        count += len(words) - len({word % BANKS for word in words})
    return count


@pytest.mark.parametrize("row_bytes", [128, 256, 512])
@pytest.mark.parametrize("element", [I8, BFLOAT, FLOAT, DOUBLE], ids=str)
def test_threads_use_different_banks(element: Type, row_bytes: int) -> None:
    """Threads store pairs of columns of a fragment's eight rows, and load 16 bytes of adjacent places."""
    size = bytes_of(element)
    columns = row_bytes // size
    at = addresses(ResultPart(element, 16, columns))
    stored = [at[lane // 4][2 * (lane % 4)] for lane in range(WARP)]
    assert conflicts(stored, 2 * size) == 0
    places = [divmod(lane * 16 // size, columns) for lane in range(WARP)]
    loaded = [at[row][column] for row, column in places]
    assert conflicts(loaded, 16) == 0
    assert all(start % 16 == 0 for start in loaded)
