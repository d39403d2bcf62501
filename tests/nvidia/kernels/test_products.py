"""Products on the emulator: element types, edges, layouts, batches, accumulation and epilogues."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.nvidia.programs import broadcast, function, integers, lowered, normal, tensor, typed
from tlx.legalize.nvidia import operations
from tlx.legalize.nvidia.warpgroups import BF16_GROUP
from tlx.target.grid_unit import FragmentProduct, GroupProduct
from tlx.target.launches import table_of

BF16 = ml_dtypes.bfloat16
Run = Callable[..., list[Any]]
DTYPES: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "half": np.float16,
    "bfloat": BF16,
    "i8": np.int8,
    "i32": np.int32,
}


def matmul(m: int, n: int, k: int, element: str, result: str, layouts: str = "nn") -> str:
    a = tensor("a", "x", element, (m, k) if layouts[0] == "n" else (k, m), (0, 1) if layouts[0] == "n" else (1, 0))
    b = tensor("b", "y", element, (k, n) if layouts[1] == "n" else (n, k), (0, 1) if layouts[1] == "n" else (1, 0))
    product = f"  %p = call <{m * n} x {result}> @llvm.tensor.matmul(token %a, token %b)\n"
    return function(["x", "y", "c"], f"{a}{b}{product}  store <{m * n} x {result}> %p, ptr %c\n")


@pytest.mark.parametrize(
    ("element", "result"),
    [
        ("bfloat", "float"),
        ("bfloat", "bfloat"),
        ("half", "float"),
        ("half", "half"),
        ("float", "float"),
        ("double", "double"),
    ],
)
@pytest.mark.parametrize("size", [(64, 64, 64), (100, 72, 80), (33, 17, 50)], ids=str)
def test_elements_and_edges(run: Run, element: str, result: str, size: tuple[int, int, int]) -> None:
    m, n, k = size
    x, y = integers((m, k), DTYPES[element]), integers((k, n), DTYPES[element], 1)
    want = (x.astype(np.float64) @ y.astype(np.float64)).astype(DTYPES[result])
    *_, c = run(matmul(m, n, k, element, result), x, y, np.full((m, n), 99, DTYPES[result]), seed=m)
    np.testing.assert_array_equal(c.astype(np.float64), want.astype(np.float64))


@pytest.mark.parametrize("element", ["bfloat", "float"])
@pytest.mark.parametrize("layouts", ["tn", "nt", "tt"])
def test_transposed_operands(run: Run, element: str, layouts: str) -> None:
    m, n, k = 72, 88, 104
    x, y = integers((m, k), DTYPES[element]), integers((k, n), DTYPES[element], 1)
    want = x.astype(np.float32) @ y.astype(np.float32)
    stored = [np.ascontiguousarray(a.T if o == "t" else a) for a, o in zip((x, y), layouts, strict=True)]
    *_, c = run(matmul(m, n, k, element, "float", layouts), *stored, np.full((m, n), 99, np.float32))
    np.testing.assert_array_equal(c, want)


def with_stages(product: FragmentProduct | GroupProduct, stages: int) -> dict[str, Any]:
    """Options of a machine with this product only, in tiles of some stages, and without tensor maps."""
    shapes = tuple(replace(shape, stages=stages) for shape in product.shapes)
    return {"products": (replace(product, shapes=shapes),), "tensor_copies": None}


@pytest.mark.parametrize(("product", "least"), [(operations.BF16, 2), (BF16_GROUP, 3)], ids=["fragments", "groups"])
def test_few_stages(run: Run, product: FragmentProduct | GroupProduct, least: int) -> None:
    """A stage is not copied over while it may be read; shapes with fewer stages are mistakes of the target."""
    m, n, k = 64, 64, 640
    program, changes = matmul(m, n, k, "bfloat", "float"), with_stages(product, least)
    x, y = integers((m, k), DTYPES["bfloat"]), integers((k, n), DTYPES["bfloat"], 1)
    *_, c = run(program, x, y, np.full((m, n), 99, np.float32), processor="sm_90a", **changes)
    np.testing.assert_array_equal(c, x.astype(np.float32) @ y.astype(np.float32))
    with pytest.raises(AssertionError, match="stages are too few"):
        lowered(program, "sm_90a", **with_stages(product, least - 1))


@pytest.mark.parametrize("layouts", ["nn", "tn", "nt", "tt"])
@pytest.mark.parametrize(("element", "size"), [("bfloat", (192, 256, 200)), ("half", (190, 250, 72))], ids=str)
def test_products_of_groups(run: Run, element: str, size: tuple[int, int, int], layouts: str) -> None:
    """Matrices of whole tiles, and others."""
    m, n, k = size
    x, y = integers((m, k), DTYPES[element]), integers((k, n), DTYPES[element], 1)
    stored = [np.ascontiguousarray(a.T if o == "t" else a) for a, o in zip((x, y), layouts, strict=True)]
    program = matmul(m, n, k, element, "float", layouts)
    assert "wgmma" in lowered(program, "sm_90a", multiprocessors=4)
    *_, c = run(program, *stored, np.full((m, n), 99, np.float32), processor="sm_90a", multiprocessors=4)
    np.testing.assert_array_equal(c, x.astype(np.float32) @ y.astype(np.float32))


def test_largest_tile_of_floats(run: Run) -> None:
    m, n, k = 140, 150, 50
    x, y = integers((m, k), np.float32), integers((k, n), np.float32, 1)
    *_, c = run(matmul(m, n, k, "float", "float"), x, y, np.full((m, n), 99, np.float32), multiprocessors=1)
    np.testing.assert_array_equal(c, x @ y)


@pytest.mark.parametrize("processor", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("layouts", ["nn", "tt"])
def test_largest_tiles(run: Run, processor: str, layouts: str) -> None:
    m, n, k = 250, 520, 328
    x, y = integers((m, k), BF16), integers((k, n), BF16, 1)
    stored = [np.ascontiguousarray(a.T if o == "t" else a) for a, o in zip((x, y), layouts, strict=True)]
    program = matmul(m, n, k, "bfloat", "float", layouts)
    *_, c = run(program, *stored, np.full((m, n), 99, np.float32), processor=processor, multiprocessors=1)
    np.testing.assert_array_equal(c, x.astype(np.float32) @ y.astype(np.float32))


@pytest.mark.parametrize("shape", [(256, 256, 64), (130, 264, 136)], ids=str)
def test_several_blocks(run: Run, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    x, y = normal((m, k), BF16), normal((k, n), BF16, 1)
    *_, c = run(matmul(m, n, k, "bfloat", "float"), x, y, np.zeros((m, n), np.float32))
    np.testing.assert_allclose(c, x.astype(np.float32) @ y.astype(np.float32), rtol=1e-5, atol=1e-4)


def bytes_product(name: str, m: int, n: int, k: int, layouts: str) -> str:
    a = tensor("a", "x", "i8", (m, k) if layouts[0] == "n" else (k, m), (0, 1) if layouts[0] == "n" else (1, 0))
    b = tensor("b", "y", "i8", (k, n) if layouts[1] == "n" else (n, k), (0, 1) if layouts[1] == "n" else (1, 0))
    body = f"""{typed("z", "zero", "i32", (m, n)).replace("%zero", "zeroinitializer")}{a}{b}
  %p = call <{m * n} x i32> @llvm.tensor.{name}(token %z, token %a, token %b)
  store <{m * n} x i32> %p, ptr %c
"""
    return function(["x", "y", "c"], body)


@pytest.mark.parametrize(
    ("name", "types", "size", "layouts"),
    [
        ("smma", (np.int8, np.int8), (40, 24, 72), "nn"),
        ("umma", (np.uint8, np.uint8), (64, 64, 256), "nt"),
        ("usmma", (np.uint8, np.int8), (33, 50, 100), "tn"),
        ("summa", (np.int8, np.uint8), (130, 70, 96), "tt"),
        ("smma", (np.int8, np.int8), (40, 1, 72), "nn"),
        ("smma", (np.int8, np.int8), (1, 40, 72), "tn"),
    ],
    ids=["signed", "unsigned", "unsigned-signed", "signed-unsigned", "column", "row"],
)
def test_bytes(run: Run, name: str, types: tuple[Any, Any], size: tuple[int, int, int], layouts: str) -> None:
    m, n, k = size
    x, y = integers((m, k), types[0], 0, 127), integers((k, n), types[1], 1, 127)
    stored = [np.ascontiguousarray(a.T if o == "t" else a) for a, o in zip((x, y), layouts, strict=True)]
    *_, c = run(bytes_product(name, *size, layouts), *stored, np.zeros((m, n), np.int32))
    np.testing.assert_array_equal(c, x.astype(np.int32) @ y.astype(np.int32))


@pytest.mark.parametrize(
    ("name", "types", "size", "layouts"),
    [
        ("smma", (np.int8, np.int8), (200, 140, 400), "nt"),
        ("umma", (np.uint8, np.uint8), (130, 130, 210), "nn"),
        ("smma", (np.int8, np.int8), (100, 260, 264), "tt"),
    ],
    ids=["signed", "unsigned", "transposed"],
)
def test_bytes_of_groups(run: Run, name: str, types: tuple[Any, Any], size: tuple[int, int, int], layouts: str) -> None:
    m, n, k = size
    x, y = integers((m, k), types[0], 0, 127), integers((k, n), types[1], 1, 127)
    stored = [np.ascontiguousarray(a.T if o == "t" else a) for a, o in zip((x, y), layouts, strict=True)]
    program = bytes_product(name, *size, layouts)
    assert "wgmma" in lowered(program, "sm_90a", multiprocessors=4)
    *_, c = run(program, *stored, np.zeros((m, n), np.int32), processor="sm_90a", multiprocessors=4)
    np.testing.assert_array_equal(c, x.astype(np.int32) @ y.astype(np.int32))


@pytest.mark.parametrize(("processor", "layouts"), [("sm_80", "nn"), ("sm_90a", "nt"), ("sm_90a", "tt")])
def test_floats_without_their_last_bits(run: Run, processor: str, layouts: str) -> None:
    m, n, k = 140, 130, 74
    x, y = normal((m, k), np.float32), normal((k, n), np.float32, 1)
    stored = [np.ascontiguousarray(a.T if o == "t" else a) for a, o in zip((x, y), layouts, strict=True)]
    text = matmul(m, n, k, "float", "float", layouts)
    program = lowered(text, processor, "tf32", multiprocessors=4)
    assert ("wgmma" if processor == "sm_90a" else "mma.m16n8k8.row.col.tf32") in program
    assert "tf32" not in lowered(text, processor)
    kept = [(a.view(np.uint32) & ~np.uint32(0x1FFF)).view(np.float32).astype(np.float64) for a in (x, y)]
    result = np.zeros((m, n), np.float32)
    *_, c = run(text, *stored, result, processor=processor, float_products="tf32", multiprocessors=4)
    np.testing.assert_allclose(c, kept[0] @ kept[1], rtol=1e-4, atol=1e-4)


def test_batches_of_transposed_operands(run: Run) -> None:
    """Rows of second operands follow each other along K: a kernel transposes them before."""
    outer, inner, m, n, k = 3, 2, 40, 48, 70
    count = outer * inner * m * n
    body = f"""{tensor("a", "x", "float", (outer, inner, m, k))}{tensor("b", "y", "float", (outer, inner, k, n))}
  %p = call <{count} x float> @llvm.tensor.matmul(token %a, token %b)
  store <{count} x float> %p, ptr %c
"""
    x, y = integers((outer, inner, m, k), np.float32), integers((outer, inner, k, n), np.float32, 1)
    text = function(["x", "y", "c"], body)
    launches = table_of(lowered(text, float_products="tf32"))[0].launches
    assert [launch.kernel for launch in launches] == ["f_0_matmul_b", "f_0_matmul"]
    *_, c = run(text, x, y, np.zeros((outer, inner, m, n), np.float32), float_products="tf32")
    np.testing.assert_array_equal(c, x @ y)


@pytest.mark.parametrize("processor", ["sm_80", "sm_90a"])
def test_doubles_of_either_order(run: Run, processor: str) -> None:
    m, n, k = 70, 90, 40
    x, y = integers((m, k), np.float64), integers((k, n), np.float64, 1)
    for layouts in ("tn", "nt") if processor == "sm_80" else ("nn", "tt"):
        stored = [np.ascontiguousarray(a.T if o == "t" else a) for a, o in zip((x, y), layouts, strict=True)]
        program = matmul(m, n, k, "double", "double", layouts)
        *_, c = run(program, *stored, np.zeros((m, n)), processor=processor, multiprocessors=1)
        np.testing.assert_array_equal(c, x @ y)


@pytest.mark.parametrize("element", ["bfloat", "float"])
def test_batch(run: Run, element: str) -> None:
    batch, m, n, k = 3, 40, 48, 32
    body = f"""{tensor("a", "x", element, (batch, m, k))}{tensor("b", "y", element, (batch, k, n))}
  %p = call <{batch * m * n} x float> @llvm.tensor.matmul(token %a, token %b)
  store <{batch * m * n} x float> %p, ptr %c
"""
    x, y = integers((batch, m, k), DTYPES[element]), integers((batch, k, n), DTYPES[element], 1)
    *_, c = run(function(["x", "y", "c"], body), x, y, np.zeros((batch, m, n), np.float32))
    np.testing.assert_array_equal(c, x.astype(np.float32) @ y.astype(np.float32))


@pytest.mark.parametrize("element", ["bfloat", "float"])
def test_accumulate(run: Run, element: str) -> None:
    m, n, k = 70, 66, 40
    operands = tensor("a", "x", element, (m, k)) + tensor("b", "y", element, (k, n))
    body = f"""{operands}{tensor("old", "c", "float", (m, n))}
  %p = call <{m * n} x float> @llvm.tensor.smma(token %old, token %a, token %b)
  store <{m * n} x float> %p, ptr %c
"""
    x, y = integers((m, k), DTYPES[element]), integers((k, n), DTYPES[element], 1)
    old = integers((m, n), np.float32, 2)
    *_, c = run(function(["x", "y", "c"], body), x, y, old.copy())
    np.testing.assert_array_equal(c, old + x.astype(np.float32) @ y.astype(np.float32))


def test_bias_scale_and_activation(run: Run) -> None:
    m, n, k = 90, 56, 64
    operands = tensor("a", "x", "bfloat", (m, k)) + tensor("b", "y", "bfloat", (k, n))
    body = f"""{operands}{tensor("row", "bias", "float", (n,))}
  %p = call <{m * n} x float> @llvm.tensor.matmul(token %a, token %b)
{broadcast("rows", "row", "float", (m, n), (1,))}
  %one = insertelement <{m * n} x float> poison, float %scale, i32 0
  %scales = shufflevector <{m * n} x float> %one, <{m * n} x float> poison, <{m * n} x i32> zeroinitializer
  %scaled = fmul <{m * n} x float> %p, %scales
  %sum = fadd <{m * n} x float> %scaled, %rows
{typed("s", "sum", "float", (m, n))}
  %relu = call <{m * n} x float> @llvm.tensor.relu(token %s)
  %narrow = fptrunc <{m * n} x float> %relu to <{m * n} x bfloat>
  store <{m * n} x bfloat> %narrow, ptr %c
"""
    x, y, bias = integers((m, k), BF16), integers((k, n), BF16, 1), integers((n,), np.float32, 2)
    program = function(["x", "y", "bias", "c", "float %scale"], body)
    *_, c, _ = run(program, x, y, bias, np.zeros((m, n), BF16), 0.5)
    want = np.maximum(0.5 * (x.astype(np.float32) @ y.astype(np.float32)) + bias, 0).astype(BF16)
    np.testing.assert_array_equal(c.astype(np.float32), want.astype(np.float32))


def test_chain(run: Run) -> None:
    """A product of a product: the first is a temporary."""
    m, n, k = 48, 40, 56
    body = f"""{tensor("a", "x", "float", (m, k))}{tensor("b", "y", "float", (k, n))}{tensor("d", "z", "float", (n, k))}
  %p = call <{m * n} x float> @llvm.tensor.matmul(token %a, token %b)
{typed("t", "p", "float", (m, n))}
  %q = call <{m * k} x float> @llvm.tensor.matmul(token %t, token %d)
  store <{m * k} x float> %q, ptr %c
"""
    x, y, z = integers((m, k), np.float32), integers((k, n), np.float32, 1), integers((n, k), np.float32, 2)
    *_, c = run(function(["x", "y", "z", "c"], body), x, y, z, np.zeros((m, k), np.float32))
    np.testing.assert_array_equal(c, x @ y @ z)


@pytest.mark.parametrize("element", ["bfloat", "float"])
@pytest.mark.parametrize(("batch", "size"), [(1, (33, 20, 4096)), (2, (40, 64, 2048))], ids=str)
def test_blocks_share_the_positions_of_k(run: Run, batch: int, size: tuple[int, int, int], element: str) -> None:
    """relu(x @ y + bias), whose few tiles have many positions of K."""
    m, n, k = size
    count = batch * m * n
    body = f"""{tensor("a", "x", element, (batch, m, k))}{tensor("b", "y", element, (batch, k, n))}
{tensor("row", "bias", "float", (n,))}
  %p = call <{count} x float> @llvm.tensor.matmul(token %a, token %b)
{broadcast("rows", "row", "float", (batch, m, n), (2,))}
  %sum = fadd <{count} x float> %p, %rows
{typed("s", "sum", "float", (batch, m, n))}
  %r = call <{count} x float> @llvm.tensor.relu(token %s)
  store <{count} x float> %r, ptr %c
"""
    text = function(["x", "y", "bias", "c"], body)
    kernels = [launch.kernel for launch in table_of(lowered(text))[0].launches]
    assert kernels == ["f_0_matmul_parts", "f_0_matmul"]
    x, y = integers((batch, m, k), DTYPES[element], most=1), integers((batch, k, n), DTYPES[element], 1, most=1)
    bias = integers((n,), np.float32, 2)
    *_, c = run(text, x, y, bias, np.full((batch, m, n), np.nan, np.float32))
    np.testing.assert_array_equal(c, np.maximum(x.astype(np.float32) @ y.astype(np.float32) + bias, 0))


def test_groups_share_the_positions_of_k(run: Run) -> None:
    m, n, k = 60, 120, 2048
    x, y = integers((m, k), BF16, most=1), integers((k, n), BF16, 1, most=1)
    program = matmul(m, n, k, "bfloat", "float")
    assert "wgmma" in lowered(program, "sm_90a", multiprocessors=4)
    *_, c = run(program, x, y, np.full((m, n), np.nan, np.float32), processor="sm_90a", multiprocessors=4)
    np.testing.assert_array_equal(c, x.astype(np.float32) @ y.astype(np.float32))
