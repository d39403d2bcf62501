"""Products of 8-bit floats: by tensor cores on request, else of what they are converted to; and conversions."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

from tests.nvidia.kernels.test_tensor_maps import mapped
from tests.nvidia.programs import function, lowered, tensor, typed
from tests.support.small_floats import DTYPES, FORMATS, Array, narrowed, short_names, widened, with_declarations
from tlx.graph import Graph
from tlx.intrinsics.small_floats import E4M3, E5M2, SmallFloat
from tlx.lower.options import Fp8Products, Options
from tlx.lower.pipeline import lower_text
from tlx.target.launches import table_of

Run = Callable[..., list[Any]]
PAIRS: Final = [(x, y) for x in FORMATS for y in FORMATS]
WITHOUT_DOUBLE: Final = [element for element in DTYPES if element != "double"]


def product(
    size: tuple[int, int, int],
    formats: tuple[SmallFloat, SmallFloat],
    *,
    element: str = "half",
    result: str = "float",
    layouts: str = "nn",
    batch: tuple[int, ...] = (),
) -> str:
    """C = x @ y, of bytes."""
    m, n, k = size
    body = ""
    for name, pointer, format_, shape, order in (
        ("a", "x", formats[0], (m, k), layouts[0]),
        ("b", "y", formats[1], (k, n), layouts[1]),
    ):
        count, rank = int(np.prod(shape)) * int(np.prod(batch)), len(batch)
        stored, dims = (*batch, *shape), [*range(rank), rank, rank + 1]
        if order == "t":
            stored, dims = (*batch, *shape[::-1]), [*range(rank), rank + 1, rank]
        layout = f"<{rank + 2} x i32> <{', '.join(f'i32 {d}' for d in dims)}>"
        plain = f"<{rank + 2} x i32> <{', '.join(f'i32 {d}' for d in range(rank + 2))}>"
        body += f"  %{name}.bytes = load <{count} x i8>, ptr %{pointer}\n"
        body += widened(f"{name}.wide", f"{name}.bytes", format_, element, count)
        body += typed(name, f"{name}.wide", element, stored).replace(plain, layout)
    count = m * n * int(np.prod(batch))
    body += f"  %p = call <{count} x {result}> @llvm.tensor.matmul(token %a, token %b)\n"
    return with_declarations(function(["x", "y", "c"], f"{body}  store <{count} x {result}> %p, ptr %c\n"))


def small(format_: SmallFloat, shape: tuple[int, ...], seed: int = 0) -> tuple[Array, Array]:
    """Bytes whose sums of products are exact in float and on tensor cores, and their numbers."""
    whole = np.random.default_rng(seed).integers(-4, 5, shape)
    return format_.encoded(whole.astype(np.float64), saturates=False), whole.astype(np.float64)


def stored(array: Array, order: str) -> Array:
    return np.ascontiguousarray(np.swapaxes(array, -1, -2) if order == "t" else array)


@pytest.mark.parametrize("layouts", ["nt", "nn", "tt", "tn"])
@pytest.mark.parametrize("formats", PAIRS, ids=short_names)
def test_tensor_cores_multiply_bytes(run: Run, formats: tuple[SmallFloat, SmallFloat], layouts: str) -> None:
    m, n, k = (192, 256, 272) if layouts == "nt" else (100, 72, 130)
    (x, left), (y, right) = small(formats[0], (m, k)), small(formats[1], (k, n), 1)
    program = product((m, n, k), formats, layouts=layouts)
    text = lowered(program, "sm_90a", fp8_products="tensor-cores", multiprocessors=4)
    assert f"k32.f32.{formats[0].short}.{formats[1].short}" in text
    assert "half" not in text
    operands = stored(x, layouts[0]), stored(y, layouts[1])
    changes: dict[str, Any] = {"processor": "sm_90a", "fp8_products": "tensor-cores", "multiprocessors": 4}
    *_, c = run(program, *operands, np.full((m, n), 99, np.float32), **changes)
    np.testing.assert_array_equal(c, left @ right)


@pytest.mark.parametrize(
    ("element", "result"), [("float", "float"), ("bfloat", "float"), ("bfloat", "bfloat"), ("half", "half")]
)
def test_operands_and_results_of_other_types(run: Run, element: str, result: str) -> None:
    m, n, k = 70, 64, 64
    (x, left), (y, right) = small(E4M3, (m, k)), small(E5M2, (k, n), 1)
    program = product((m, n, k), (E4M3, E5M2), element=element, result=result, layouts="nt")
    text = lowered(program, "sm_90a", fp8_products="tensor-cores")
    assert "e4m3.e5m2" in text
    arguments = x, stored(y, "t"), np.zeros((m, n), DTYPES[result])
    *_, c = run(program, *arguments, processor="sm_90a", fp8_products="tensor-cores")
    np.testing.assert_array_equal(c.astype(np.float64), (left @ right).astype(DTYPES[result]).astype(np.float64))


@pytest.mark.parametrize(("processor", "fp8_products"), [("sm_80", "tensor-cores"), ("sm_90a", "exact")])
def test_products_of_what_bytes_are_converted_to(run: Run, processor: str, fp8_products: Fp8Products) -> None:
    """The default, and where there are no units for bytes. All numbers are converted exactly."""
    m, n, k = 64, 64, 256
    program = product((m, n, k), (E4M3, E5M2))
    assert "e4m3" not in lowered(program, processor, fp8_products=fp8_products)
    x = np.zeros((m, k), np.uint8)
    x[0] = [code if not np.isnan(E4M3.decoded(np.array([code]))[0]) else 0 for code in range(256)]
    y = np.zeros((k, n), np.uint8)
    y[range(64), range(64)] = y[range(64, 128), range(64)] = E5M2.encoded(np.ones(64), saturates=False)
    *_, c = run(program, x, y, np.zeros((m, n), np.float32), processor=processor, fp8_products=fp8_products)
    np.testing.assert_array_equal(c, E4M3.decoded(x) @ E5M2.decoded(y))


@pytest.mark.parametrize("splits", [False, True], ids=["batches", "split"])
def test_batches_and_shared_sums(run: Run, *, splits: bool) -> None:
    batch, (m, n, k) = ((), (64, 64, 8192)) if splits else ((3,), (64, 64, 96))
    (x, left), (y, right) = small(E4M3, (*batch, m, k)), small(E4M3, (*batch, k, n), 1)
    program = product((m, n, k), (E4M3, E4M3), layouts="nt", batch=batch)
    text = lowered(program, "sm_90a", fp8_products="tensor-cores")
    assert "e4m3" in text
    assert len(table_of(text)[0].launches) == 1 + splits
    result = np.zeros((*batch, m, n), np.float32)
    *_, c = run(program, x, stored(y, "t"), result, processor="sm_90a", fp8_products="tensor-cores")
    np.testing.assert_array_equal(c, left @ right)


@pytest.mark.parametrize("size", [(256, 384, 256), (200, 328, 144)], ids=str)
@pytest.mark.parametrize("layouts", ["nt", "nn"])
def test_bytes_copied_by_maps(run: Run, size: tuple[int, int, int], layouts: str) -> None:
    m, n, k = size
    (x, left), (y, right) = small(E4M3, (m, k)), small(E5M2, (k, n), 1)
    program = product(size, (E4M3, E5M2), layouts=layouts)
    changes: dict[str, Any] = {**mapped(2), "fp8_products": "tensor-cores"}
    assert "cp.async.bulk.tensor" in lowered(program, **changes)
    *_, c = run(program, x, stored(y, layouts[1]), np.zeros((m, n), np.float32), **changes)
    np.testing.assert_array_equal(c, left @ right)


def test_operands_that_others_read_are_converted(run: Run) -> None:
    m, n, k = 64, 64, 64
    body = "  %x.bytes = load <4096 x i8>, ptr %x\n" + widened("x.wide", "x.bytes", E4M3, "half", m * k)
    body += typed("a", "x.wide", "half", (m, k)) + "  store <4096 x half> %x.wide, ptr %w\n"
    body += "  %p = call <4096 x float> @llvm.tensor.matmul(token %a, token %a)\n  store <4096 x float> %p, ptr %c\n"
    program = with_declarations(function(["x", "w", "c"], body))
    assert "wgmma" in lowered(program, "sm_90a", fp8_products="tensor-cores")
    assert "e4m3" not in lowered(program, "sm_90a", fp8_products="tensor-cores")
    x, numbers = small(E4M3, (m, k))
    wide, result = np.zeros((m, k), np.float16), np.zeros((m, n), np.float32)
    _, w, c = run(program, x, wide, result, processor="sm_90a", fp8_products="tensor-cores")
    np.testing.assert_array_equal(w, numbers)
    np.testing.assert_array_equal(c, numbers @ numbers)


def remarks_on(program: str, processor: str) -> list[str]:
    """What the lowering missed."""
    options = Options(cpu=processor, fp8_products="tensor-cores")
    lower_text(program, target="nvidia", options=options)
    return [remark.message for remark in options.remarks if remark.kind == "missed"]


def test_remarks_on_products_that_are_not_computed_on_bytes() -> None:
    program = product((64, 64, 64), (E4M3, E4M3))
    assert remarks_on(program, "sm_90a") == []
    text = remarks_on(program, "sm_80")[0]
    assert text == "sm_80 has no products of 8-bit floats: they are converted first (--fp8-products=exact)"
    g = Graph("f")
    images, filters = (g.parameter(name, (16, 16, 8, 8), "float8_e4m3fn") for name in ("x", "w"))
    g.output(g.convolution(g.convert(images, "float16"), g.convert(filters, "float16"), padding=[(4, 4)] * 2))
    missed = remarks_on(str(g.module()), "sm_90a")
    assert any("convolutions do not take bytes" in text for text in missed)


def test_an_operand_of_bytes_and_one_of_halves(run: Run) -> None:
    m, n, k = 64, 64, 64
    body = "  %x.bytes = load <4096 x i8>, ptr %x\n" + widened("x.wide", "x.bytes", E4M3, "half", m * k)
    body += typed("a", "x.wide", "half", (m, k)) + tensor("b", "y", "half", (k, n))
    body += "  %p = call <4096 x float> @llvm.tensor.matmul(token %a, token %b)\n  store <4096 x float> %p, ptr %c\n"
    program = with_declarations(function(["x", "y", "c"], body))
    assert "e4m3" not in lowered(program, "sm_90a", fp8_products="tensor-cores")
    (x, left), (_, right) = small(E4M3, (m, k)), small(E4M3, (k, n), 1)
    arguments = x, right.astype(np.float16), np.zeros((m, n), np.float32)
    *_, c = run(program, *arguments, processor="sm_90a", fp8_products="tensor-cores")
    np.testing.assert_array_equal(c, left @ right)


def test_bytes_that_change_before_the_product(run: Run) -> None:
    """The product reads the bytes as they were when they were loaded; the other operand is a constant."""
    m, n, k = 64, 64, 64
    (x, left), (y, right) = small(E4M3, (m, k)), small(E5M2, (k, n), 1)
    numbers = ", ".join(f"i8 {code}" for code in y.view(np.int8).ravel())
    body = tensor("t", "x", "i8", (m * k,)) + f"  %x.bytes = call <{m * k} x i8> @llvm.tensor.tovector(token %t)\n"
    body += "  %z = load <4096 x i8>, ptr %zeros\n  store <4096 x i8> %z, ptr %x\n"
    body += widened("x.wide", "x.bytes", E4M3, "half", m * k) + typed("a", "x.wide", "half", (m, k))
    body += tensor("u", "constant", "i8", (k * n,)).replace("%constant", "@constant")
    body += f"  %y.bytes = call <{k * n} x i8> @llvm.tensor.tovector(token %u)\n"
    body += widened("y.wide", "y.bytes", E5M2, "half", k * n) + typed("b", "y.wide", "half", (k, n))
    body += "  %p = call <4096 x float> @llvm.tensor.matmul(token %a, token %b)\n  store <4096 x float> %p, ptr %c\n"
    program = f"@constant = internal constant [{k * n} x i8] [{numbers}], align 64\n"
    program += with_declarations(function(["x", "zeros", "c"], body))
    assert "e4m3.e5m2" in lowered(program, "sm_90a", fp8_products="tensor-cores")
    arguments = x, np.zeros_like(x), np.zeros((m, n), np.float32)
    changed, _, c = run(program, *arguments, processor="sm_90a", fp8_products="tensor-cores")
    np.testing.assert_array_equal(c, left @ right)
    assert not changed.any()


def test_layers_of_rounded_activations(run: Run) -> None:
    """Each layer rounds its result to bytes, which the next one multiplies: two kernels."""
    rows, size = 64, 128
    g = Graph("f")
    x, w = g.parameter("x", (rows, size), "float8_e4m3fn"), g.parameter("w", (size, size), "float8_e4m3fn")
    hidden = g.convert(g.relu(g.dot_general(x, w, ([1], [1]), dtype="float32") * 0.125), "float8_e4m3fn")
    g.output(g.dot_general(hidden, w, ([1], [1]), dtype="float32"))
    program = str(g.module())
    text = lowered(program, "sm_90a", fp8_products="tensor-cores")
    assert len(table_of(text)[0].launches) == 2
    assert text.count("k32.f32.e4m3.e4m3") >= 2
    (x_bytes, left), (w_bytes, right) = small(E4M3, (rows, size)), small(E4M3, (size, size), 1)
    rounded = E4M3.decoded(E4M3.encoded(np.maximum(left @ right.T * 0.125, 0), saturates=False))
    arguments = x_bytes, w_bytes, np.zeros((rows, size), np.float32)
    *_, c = run(program, *arguments, processor="sm_90a", fp8_products="tensor-cores")
    np.testing.assert_allclose(c, rounded @ right.T, rtol=2**-10, atol=0.25)


@pytest.mark.parametrize("element", WITHOUT_DOUBLE)
@pytest.mark.parametrize("format_", FORMATS, ids=short_names)
def test_every_byte(run: Run, format_: SmallFloat, element: str) -> None:
    body = tensor("t", "x", "i8", (256,)) + "  %b = call <256 x i8> @llvm.tensor.tovector(token %t)\n"
    body += widened("w", "b", format_, element, 256) + narrowed("n", "w", format_, element, 256, saturates=False)
    body += f"  store <256 x {element}> %w, ptr %y\n  store <256 x i8> %n, ptr %z\n"
    x = np.arange(256, dtype=np.uint8)
    program = with_declarations(function(["x", "y", "z"], body))
    _, y, z = run(program, x, np.zeros(256, DTYPES[element]), np.zeros(256, np.uint8))
    numbers = format_.decoded(x)
    np.testing.assert_array_equal(y.astype(np.float64), numbers)
    np.testing.assert_array_equal(format_.decoded(z), numbers)
    np.testing.assert_array_equal(z[~np.isnan(numbers)], x[~np.isnan(numbers)])
