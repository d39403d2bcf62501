"""Elementwise kernels, copies, reductions and softmax on the emulator."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest

import tlx
from tests.nvidia.programs import broadcast, function, integers, lowered, normal, reduction, tensor, typed
from tlx.target.launches import table_of

ROOT = Path(__file__).parents[3]
Run = Callable[..., list[Any]]
DTYPES: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "half": np.float16,
    "bfloat": ml_dtypes.bfloat16,
    "i8": np.int8,
    "i32": np.int32,
}


@pytest.mark.parametrize("shape", [(64, 64), (33, 17), (5, 1000)], ids=str)
@pytest.mark.parametrize("element", ["float", "bfloat"])
def test_sum(run: Run, shape: tuple[int, int], element: str) -> None:
    count = shape[0] * shape[1]
    body = f"""{tensor("s", "x", element, shape)}{tensor("t", "y", element, shape)}
  %a = call <{count} x {element}> @llvm.tensor.tovector(token %s)
  %b = call <{count} x {element}> @llvm.tensor.tovector(token %t)
  %sum = fadd <{count} x {element}> %a, %b
  store <{count} x {element}> %sum, ptr %z
"""
    x, y = integers(shape, DTYPES[element]), integers(shape, DTYPES[element], 1)
    *_, z = run(function(["x", "y", "z"], body), x, y, np.zeros(shape, DTYPES[element]))
    np.testing.assert_array_equal(z.astype(np.float32), (x + y).astype(np.float32))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


_FUNCTIONS: Final[dict[str, Any]] = {"sigmoid": _sigmoid, "erfc": np.vectorize(math.erfc), "relu": np.abs}


@pytest.mark.parametrize("name", ["tanh", "exp", "sigmoid", "erfc", "relu", "sqrt", "sin"])
def test_functions(run: Run, name: str) -> None:
    shape, count = (20, 36), 720
    body = f"""{tensor("a", "x", "float", shape)}
  %r = call <{count} x float> @llvm.tensor.{name}(token %a)
  store <{count} x float> %r, ptr %y
"""
    x = np.abs(normal(shape, np.float32))
    want: Any = _FUNCTIONS[name](x) if name in _FUNCTIONS else getattr(np, name)(x)
    _, y = run(function(["x", "y"], body), x, np.zeros(shape, np.float32))
    np.testing.assert_allclose(y, want, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "element"),
    [
        ((64, 128), "float"),
        ((33, 17), "float"),
        ((64, 128), "i8"),
        ((81, 512), "bfloat"),
        ((50, 66), "i8"),
        ((10, 9), "double"),
    ],
    ids=str,
)
def test_transpose(run: Run, shape: tuple[int, int], element: str) -> None:
    """Whole matrices of threads and of warps, and others."""
    rows, columns = shape
    count = rows * columns
    body = f"""{tensor("a", "x", element, shape)}
  %r = call <{count} x {element}> @llvm.tensor.transpose(token %a, <2 x i32> <i32 1, i32 0>)
  store <{count} x {element}> %r, ptr %y
"""
    x = integers(shape, DTYPES[element], most=100)
    _, y = run(function(["x", "y"], body), x, np.zeros((columns, rows), DTYPES[element]))
    np.testing.assert_array_equal(y, x.T)


def test_copy(run: Run) -> None:
    body = f"""{tensor("a", "x", "float", (9, 7))}
  %v = call <63 x float> @llvm.tensor.tovector(token %a)
  store <63 x float> %v, ptr %y
"""
    x = normal((9, 7), np.float32)
    _, y = run(function(["x", "y"], body), x, np.zeros((9, 7), np.float32))
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("operation", ["add", "max", "min"])
@pytest.mark.parametrize(
    ("shape", "element"), [((20, 64), "float"), ((37, 130), "bfloat"), ((3, 5000), "float")], ids=str
)
def test_reductions(run: Run, axis: int, operation: str, shape: tuple[int, int], element: str) -> None:
    count = shape[1 - axis]
    body = f"""{tensor("a", "x", element, shape)}
{reduction("r", operation, "a", element, shape, axis)}
  store <{count} x {element}> %r, ptr %y
"""
    x = integers(shape, DTYPES[element], 0, 3)
    _, y = run(function(["x", "y"], body), x, np.zeros(count, DTYPES[element]))
    reduce_ = {"add": np.sum, "max": np.max, "min": np.min}[operation]
    np.testing.assert_array_equal(
        y.astype(np.float32), reduce_(x.astype(np.float32), axis=axis).astype(DTYPES[element]).astype(np.float32)
    )


def test_largest_is_nan_where_there_is_one(run: Run) -> None:
    body = f"""{tensor("a", "x", "float", (8, 40))}
  %r = call <8 x float> @llvm.tensor.reduce.max(token %a, <2 x i32> <i32 1, i32 40>, <2 x i32> <i32 1, i32 1>)
  store <8 x float> %r, ptr %y
"""
    x = normal((8, 40), np.float32)
    x[3, 21] = np.nan
    _, y = run(function(["x", "y"], body), x, np.zeros(8, np.float32))
    np.testing.assert_array_equal(y, np.max(x, axis=1))


def test_softmax(run: Run) -> None:
    text = (ROOT / "examples/ir/softmax.ll").read_text()
    x, y = run(text, normal((512, 1000), np.float32), np.zeros((512, 1000), np.float32), entry="softmax")
    exponentials = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, exponentials / exponentials.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-9)


def softmax_text(rows: int, columns: int) -> str:
    """examples/ir/softmax.ll of other extents."""
    text = (ROOT / "examples/ir/softmax.ll").read_text()
    return text.replace("512000", str(rows * columns)).replace("1000", str(columns)).replace("512", str(rows))


@pytest.mark.parametrize(
    ("rows", "columns", "threads"),
    [(40, 2000, 128), (4, 24000, 1024), (300, 333, 128), (4, 36000, 256)],
    ids=str,
)
def test_rows(run: Run, rows: int, columns: int, threads: int) -> None:
    """Rows of softmax are computed by one kernel; 36,000 numbers are too many for registers and for shared memory."""
    text = softmax_text(rows, columns)
    ((launch,),) = [table.launches for table in table_of(lowered(text))]
    assert launch.block == threads
    x, y = run(text, normal((rows, columns), np.float32), np.zeros((rows, columns), np.float32), entry="softmax")
    exponentials = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, exponentials / exponentials.sum(axis=1, keepdims=True), rtol=2e-5, atol=1e-9)


def test_rows_of_doubles(run: Run) -> None:
    """Threads do not exchange doubles: intermediate rows are in shared memory."""
    text = softmax_text(40, 500).replace("float", "double").replace("f32", "f64")
    x, y = run(text, normal((40, 500), np.float64), np.zeros((40, 500), np.float64), entry="softmax")
    exponentials = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, exponentials / exponentials.sum(axis=1, keepdims=True), rtol=1e-13)


@pytest.mark.parametrize(
    ("dtype", "columns"), [("bfloat16", 768), ("float16", 250), ("float32", 4096), ("float32", 7)], ids=str
)
def test_layer_norm(run: Run, dtype: str, columns: int) -> None:
    """Scale and shift are read by all rows, in one kernel, which converts them; the last block may have fewer rows."""
    g, shape = tlx.Graph("f"), (6000 // columns * 10 + 1, columns)
    x = g.parameter("x", shape, dtype)
    g.output(g.layer_norm(x, g.parameter("scale", (columns,), dtype), g.parameter("shift", (columns,), dtype)))
    assert lowered(g.text()).count("define") == 1
    kind: Any = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    given = [normal(each, kind, seed) for seed, each in enumerate((shape, (columns,), (columns,)))]
    *_, y = run(g.text(), *given, np.zeros(shape, kind))
    wide, scale, shift = (each.astype(np.float64) for each in given)
    centred = wide - wide.mean(axis=1, keepdims=True)
    want = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * scale + shift
    error = {"bfloat16": 2e-2, "float16": 2e-3, "float32": 1e-5}[dtype]
    np.testing.assert_allclose(y.astype(np.float64), want, rtol=error, atol=error)


@pytest.mark.parametrize("name", ["exp", "exp2", "tanh", "sigmoid", "erfc"])
def test_extremes(run: Run, name: str) -> None:
    """Subnormal, infinite and undefined results, both methods of tanh, and signed zeros."""
    body = f"""{tensor("a", "x", "float", (6, 8))}
  %r = call <48 x float> @llvm.tensor.{name}(token %a)
  store <48 x float> %r, ptr %y
"""
    numbers = [0, -0.0, 1e-30, -1e-40, 1, -1, 88, 88.72, 88.722835, 88.7229, 89, 1e30, -87, -87.3, -87.34, -90, -103]
    numbers += [-103.9, -104.5, -110, -1e30, np.inf, -np.inf, np.nan, 0.5, -0.7, 20, -20, 60.5, -60.5, 3, -3]
    numbers += [0.54999, 0.55001, -0.55, 0.1, -0.3, 9, -9, 9.5, 10, 127.9, 128, -126, -127, -148.5, -151, 1e-4]
    x = np.array(numbers, np.float32).reshape(6, 8)
    _, y = run(function(["x", "y"], body), x, np.zeros((6, 8), np.float32))
    wide = x.astype(np.float64)
    with np.errstate(over="ignore"):
        exact: Any = _FUNCTIONS[name](wide) if name in _FUNCTIONS else getattr(np, name)(wide)
        want = exact.astype(np.float32)
    np.testing.assert_allclose(y, want, rtol=4 * 2**-23, atol=2**-148)
    assert (np.signbit(y) == np.signbit(want))[~np.isnan(x)].all()


@pytest.mark.parametrize("columns", [40, 256])
def test_quotients_of_rows(run: Run, columns: int) -> None:
    """Rows are divided by one number each: by products, which are as exact, unless a number is too small or large."""
    shape = (24, columns)
    g = tlx.Graph("f")
    g.output(g.divide(g.parameter("x", shape), g.parameter("d", (24, 1))))
    x = normal(shape, np.float32)
    x[:, ::7], x[:, 1::11] = -0.0, 0.0
    x[1, 3], x[2, 5], x[3, 7], x[4, 9] = 1e-42, np.inf, np.nan, 1e38
    x[5] *= np.float32(1e-30)
    d = normal((24, 1), np.float32, 1)
    d[6:12, 0] = [0.0, np.inf, np.nan, 1e-40, 3e38, -0.0]
    d[12:16, 0] = [1.0, 3.0, 7.0, 16777215.0]
    *_, y = run(g.text(), x, d, np.zeros(shape, np.float32))
    with np.errstate(all="ignore"):
        want = x / d
    np.testing.assert_array_equal(y, want)
    assert (np.signbit(y) == np.signbit(want))[~np.isnan(want)].all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("columns", [44, 256])
def test_rounded_quotients_of_rows(run: Run, dtype: str, columns: int) -> None:
    """Quotients that become bfloat or half are those of the instruction, also in the middle between two numbers."""
    shape, kind = (24, columns), {"bfloat16": np.dtype(ml_dtypes.bfloat16), "float16": np.dtype(np.float16)}[dtype]
    g = tlx.Graph("f")
    quotient = g.divide(g.parameter("x", shape), g.parameter("d", (24, 1)))
    g.output(g.convert(quotient, dtype))
    d = normal((24, 1), np.float32, 1)
    d[6:14, 0] = [0.0, np.inf, np.nan, 1e-40, 3e38, -0.0, -np.inf, 1e-38]
    d[14:18, 0] = [1.0, 3.0, 7.0, 16777215.0]
    below = normal(shape, kind)
    middles = (below.astype(np.float32) + np.nextafter(below, kind.type(8)).astype(np.float32)) / 2
    with np.errstate(all="ignore"):
        x = middles * d
        x = np.nextafter(x, x + np.random.default_rng(2).integers(-1, 2, shape), dtype=np.float32)
    x[6:14] = normal((8, columns), np.float32, 3)
    x[:, ::7], x[:, 1::11] = -0.0, 0.0
    x[1, 3], x[2, 5], x[3, 7], x[4, 9] = 1e-42, np.inf, np.nan, 1e38
    x[5] *= np.float32(1e-39 if dtype == "bfloat16" else 1e-7)
    *_, y = run(g.text(), x, d, np.zeros(shape, kind))
    with np.errstate(all="ignore"):
        want = (x / d).astype(kind)
    np.testing.assert_array_equal(y.astype(np.float32), want.astype(np.float32))
    assert (np.signbit(y) == np.signbit(want))[~np.isnan(want)].all()


def test_layer(run: Run) -> None:
    text = (ROOT / "examples/ir/mlp.ll").read_text()
    bf16 = ml_dtypes.bfloat16
    x, w, bias = integers((512, 256), bf16), integers((256, 256), bf16, 1), integers((256,), np.float32)
    *_, y = run(text, x, w, bias, np.zeros((512, 256), bf16), entry="mlp")
    want = np.maximum(x.astype(np.float32) @ w.astype(np.float32) + bias, 0).astype(bf16)
    np.testing.assert_array_equal(y.astype(np.float32), want.astype(np.float32))


def test_softmax_of_batches(run: Run) -> None:
    """Temporaries of a loop's iterations are several."""
    batch, rows, columns = 3, 10, 24
    shape, count = (batch, rows, columns), batch * rows * columns
    body = f"""{tensor("a", "x", "float", shape)}
  %v = call <{count} x float> @llvm.tensor.tovector(token %a)
{reduction("max", "max", "a", "float", shape, 2)}
{typed("m", "max", "float", (batch, rows, 1))}
{broadcast("maxima", "m", "float", shape, (0, 1, 2))}
  %d = fsub <{count} x float> %v, %maxima
{typed("t", "d", "float", shape)}
  %e = call <{count} x float> @llvm.tensor.exp(token %t)
  store <{count} x float> %e, ptr %y
"""
    x = normal(shape, np.float32)
    _, y = run(function(["x", "y"], body), x, np.zeros(shape, np.float32))
    np.testing.assert_allclose(y, np.exp(x - x.max(axis=2, keepdims=True)), rtol=1e-5)
