"""Kernels in Numba's code compute what numpy computes, and wrong arguments are errors that say what to do."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tlx
from tests.support.tools import require_module
from tlx.graph import Graph, Value

Array = np.ndarray[Any, np.dtype[Any]]

numba = require_module("numba")


def normal(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("f4")


def layer_of(g: Graph, x: Value, w: Value, b: Value) -> Value:
    return g.relu(x @ w + b)


layer: Any = tlx.numba.kernel("float32[6,20], float32[20,9], float32[9]")(layer_of)
X, W, B = normal(6, 20), normal(20, 9), normal(9)
EXPECTED = np.maximum(X @ W + B, 0)


@numba.njit
def call(x: Any, w: Any, b: Any) -> Any:
    return layer(x, w, b)


@numba.njit
def call_with_out(x: Any, w: Any, b: Any, out: Any) -> Any:
    return layer(x, w, b, out=out)


def close(got: Any, expected: Any) -> None:
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_python_calls_it() -> None:
    close(layer(X, W, B), EXPECTED)


def test_arguments_by_name() -> None:
    close(layer(b=B, x=X, w=W), EXPECTED)
    out = np.empty_like(EXPECTED)
    assert layer(X, b=B, w=W, out=out) is out
    close(out, EXPECTED)
    with pytest.raises(tlx.ArgumentError, match=r"layer_of takes 3 arguments \(x, w, b\) and out: .*'bias'"):
        layer(X, W, B, bias=B)


def test_nopython_code_calls_it() -> None:
    result = call(X, W, B)
    assert result.dtype == np.float32
    assert result.flags.owndata or result.base is not None
    close(result, EXPECTED)


def test_functions_of_functions_call_it() -> None:
    @numba.njit
    def twice(x: Any, w: Any, b: Any) -> Any:
        return call(x, w, b) + layer(x, w, b)

    close(twice(X, W, B), 2 * EXPECTED)


def test_it_is_an_argument() -> None:
    @numba.njit
    def apply(kernel: Any, x: Any, w: Any, b: Any) -> Any:
        return kernel(x, w, b=b)

    close(apply(layer, X, W, B), EXPECTED)


def test_out_is_written() -> None:
    out = np.full((6, 9), np.nan, np.float32)
    assert call_with_out(X, W, B, out) is not None
    close(out, EXPECTED)
    out[:] = 0
    assert layer(X, W, B, out=out).ctypes.data == out.ctypes.data
    close(out, EXPECTED)


def test_arguments_in_fortran_order_are_not_copied() -> None:
    close(call(X, np.asfortranarray(W), B), EXPECTED)
    close(call(np.asfortranarray(X), np.asfortranarray(W), B), EXPECTED)


def test_read_only_arguments() -> None:
    x = X.copy()
    x.flags.writeable = False
    close(call(x, W, B), EXPECTED)


def test_threads_call_it() -> None:
    batch = normal(40, 6, 20)

    @numba.njit(parallel=True)
    def parallel(x: Any, w: Any, b: Any) -> Any:
        out = np.empty((len(x), 6, 9), np.float32)
        for i in numba.prange(len(x)):
            layer(x[i], w, b, out=out[i])
        return out

    close(parallel(batch, W, B), np.maximum(batch @ W + B, 0))


def test_threads_have_their_own_temporaries() -> None:
    """Each call has memory for its temporaries, which are too large for the stack here."""
    batch = normal(8, 96, 96)

    @tlx.numba.kernel("float32[96,96]")
    def chain(g: Graph, x: Value) -> Value:
        return g.relu(x @ x.T) @ x

    @numba.njit(parallel=True)
    def parallel(x: Any) -> Any:
        out = np.empty_like(x)
        for i in numba.prange(len(x)):
            out[i] = chain(x[i])
        return out

    expected = [np.maximum(x @ x.T, 0) @ x for x in batch.astype("f8")]
    np.testing.assert_allclose(parallel(batch), expected, rtol=1e-4, atol=1e-2)


def test_ufuncs_call_it() -> None:
    @tlx.numba.kernel("float32, float32")
    def scaled(g: Graph, x: Value, y: Value) -> Value:
        return g.exp(x) * y

    @numba.vectorize(["f4(f4, f4)"])
    def ufunc(x: Any, y: Any) -> Any:
        return scaled(x, y)

    @numba.guvectorize(["void(f4[:,:], f4[:,:], f4[:], f4[:,:])"], "(m,k),(k,n),(n)->(m,n)")
    def layers(x: Any, w: Any, b: Any, out: Any) -> None:
        out[:] = layer(np.ascontiguousarray(x), np.ascontiguousarray(w), np.ascontiguousarray(b))

    x, batch = normal(100), normal(3, 6, 20)
    close(ufunc(x, x), np.exp(x) * x)
    close(layers(batch, W, B), np.maximum(batch @ W + B, 0))


def test_signatures_are_chosen_by_shape_and_type() -> None:
    @tlx.numba.kernel(["f4[4], f4[4]", "f4[8], f4[8]", "f8[8], f8[8]"])
    def dot(g: Graph, x: Value, y: Value) -> Value:
        return g.sum(x * y)

    @numba.njit
    def run(x: Any, y: Any) -> Any:
        return dot(x, y)

    for size, dtype in ((4, "f4"), (8, "f4"), (8, "f8")):
        x = np.arange(size, dtype=dtype)
        assert run(x, x) == dot(x, x) == x @ x
    with pytest.raises(tlx.TlxError, match=r"x of shape \(4,\), y of shape \(4,\) or x of shape \(8,\)"):
        run(np.ones(5, "f4"), np.ones(5, "f4"))
    with pytest.raises(numba.TypingError, match="no signature fits"):
        run(np.ones(4, "i4"), np.ones(4, "i4"))


def test_several_results_of_several_types() -> None:
    @tlx.numba.kernel("float32[5,4]")
    def statistics(g: Graph, x: Value) -> tuple[Value, ...]:
        return g.sum(x, 0), x.T, g.argmax(x, 1), x > 0.0

    @numba.njit
    def run(x: Any) -> Any:
        return statistics(x)

    @numba.njit
    def run_with_out(x: Any, a: Any, b: Any, c: Any, d: Any) -> None:
        statistics(x, out=(a, b, c, d))

    x = normal(5, 4)
    expected = (x.sum(0), x.T, x.argmax(1), x > 0)
    for got in (run(x), statistics(x)):
        for one, other in zip(got, expected, strict=True):
            assert one.dtype.kind == other.dtype.kind
            close(one, other)
    outs = [np.zeros_like(result) for result in run(x)]
    run_with_out(x, *outs)
    for one, other in zip(outs, expected, strict=True):
        close(one, other)


def test_numbers_and_weights() -> None:
    weight = normal(20, 3)

    @tlx.numba.kernel("float32[6,20], float32, bool, int32")
    def scaled(g: Graph, x: Value, factor: Value, flag: Value, count: Value) -> Value:
        return g.where(flag, x * factor, x) @ g.weight("w", weight) + count.astype("float32")

    @numba.njit
    def run(x: Any, factor: Any, flag: Any, count: Any) -> Any:
        return scaled(x, factor, flag, count)

    for call_ in (run, scaled):
        close(call_(X, 2.0, True, 3), 2 * X @ weight + 3)
        close(call_(X, 2, False, 3), X @ weight + 3)


def test_low_precision_inside_a_kernel() -> None:
    @tlx.numba.kernel("float32[16,16], float32[16,16]")
    def product(_g: Graph, x: Value, y: Value) -> Value:
        half = x.astype("float16") @ y.astype("float16")
        return (x.astype("bfloat16") @ y.astype("bfloat16")).astype("float32") + half.astype("float32")

    pytest.importorskip("ml_dtypes")
    x = np.random.default_rng(0).integers(-3, 4, (16, 16)).astype("f4")
    np.testing.assert_allclose(product(x, x), 2 * x @ x, rtol=1e-2)


def test_a_result_declared_by_the_signature() -> None:
    kernel: Any = tlx.numba.kernel("float32[6,9](float32[6,20], float32[20,9], float32[9])")(layer_of)
    close(kernel(X, W, B), EXPECTED)
    with pytest.raises(tlx.TlxError, match=r"returns float32\[6,9\], but the signature says float64\[6,9\]"):
        tlx.numba.kernel("float64[6,9](float32[6,20], float32[20,9], float32[9])")(layer_of)


def test_the_result_is_that_of_the_evaluator() -> None:
    g = Graph()
    parameters = [g.parameter(name, a.shape) for name, a in zip("xwb", (X, W, B), strict=True)]
    g.output(g.softmax(layer_of(g, *parameters)))

    @tlx.numba.kernel("f4[6,20], f4[20,9], f4[9]")
    def kernel(g: Graph, x: Value, w: Value, b: Value) -> Value:
        return g.softmax(layer_of(g, x, w, b))

    close(kernel(X, W, B), g.evaluate(X, W, B))


# Errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X[0], W, B), r"argument 0 \(x\): expected a float32 array of shape \(6, 20\), got array\(float32, 1d, C\)"),
        ((X.astype("f8"), W, B), r"got array\(float64, 2d, C\); convert it: x.astype\(np.float32\)"),
        ((X, W[::2, ::2], B), r"argument 1 \(w\): expected a contiguous array: copy it, np.ascontiguousarray\(w\)"),
        ((X, W, 1.0), r"argument 2 \(b\): expected a float32 array of shape \(9,\), got float64"),
    ],
)
def test_wrong_types(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(tlx.ArgumentError, match=message):
        layer(*arguments)
    with pytest.raises(numba.TypingError, match=message) as caught:
        call(*arguments)
    assert "return layer(x, w, b)" in str(caught.value)  # the place in the user's program


def test_wrong_shapes() -> None:
    message = r"layer_of: expected x of shape \(6, 20\), w .*; got x \(5, 20\), w \(20, 9\), b \(9,\)"
    for function in (call, layer):
        with pytest.raises(ValueError, match=message):
            function(X[:5], W, B)
    with pytest.raises(tlx.TlxError, match=r"expected out of shape \(6, 9\), got \(7, 9\)"):
        call_with_out(X, W, B, np.empty((7, 9), "f4"))


def test_wrong_out() -> None:
    for out, message in (
        (np.empty((6, 9)), r"out: expected a float32 array of shape \(6, 9\), got array\(float64, 2d, C\)"),
        (np.empty((6, 18), "f4")[:, ::2], "out: expected a contiguous array, got"),
        ((np.empty((6, 9), "f4"),), "out: expected an array, got"),
        (np.frombuffer(bytes(6 * 9 * 4), "f4").reshape(6, 9), "out: expected a writable array"),
    ):
        with pytest.raises(tlx.ArgumentError, match=message):
            layer(X, W, B, out=out)
        with pytest.raises(numba.TypingError, match=message):
            call_with_out(X, W, B, out)


def test_out_that_overlaps() -> None:
    memory = np.zeros(6 * 20 + 6 * 9, "f4")
    x = memory[: 6 * 20].reshape(6, 20)
    x[:] = X
    with pytest.raises(tlx.TlxError, match="out overlaps x"):
        call_with_out(x, W, B, memory[60 : 60 + 54].reshape(6, 9))
    close(call_with_out(x, W, B, memory[6 * 20 :].reshape(6, 9)), EXPECTED)


def test_wrong_number_of_arguments() -> None:
    with pytest.raises(tlx.ArgumentError, match=r"layer_of takes 3 arguments \(x, w, b\), got 2"):
        layer(X, W)

    @numba.njit
    def run(x: Any) -> Any:
        return layer(x, x)

    with pytest.raises(numba.TypingError, match=r"layer_of takes 3 arguments \(x, w, b\) and out: missing"):
        run(X)


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("float32[:,:]", r"(?s)1:9: error: .*expected an extent, got ':'.*write numbers: \[8,16\]"),
        ("flot32[3]", "got 'flot32'; did you mean 'float32'"),
        ("float32[3", "expected ',' or ']', got the end"),
        ("float32[0]", "expected an extent of 1 or more, got '0'"),
        ("float32[3] float32[3]", "got 'float32'"),
        ("float16[3]", "Numba has no arrays of float16"),
        ("", "expected an element type such as float32, got the end"),
        ("float32[3], float32[3]", r"(?s)test_kernels.py:\d+:.*has 1 parameter after the graph \(x\).*has 2"),
    ],
)
def test_wrong_signatures(signature: str, message: str) -> None:
    with pytest.raises(tlx.TlxError, match=message):

        @tlx.numba.kernel(signature)
        def _kernel(_g: Graph, x: Value) -> Value:
            return x


def nothing(_g: Graph, _x: Value) -> None: ...


def contracting(_g: Graph, x: Value) -> Value:
    return x @ x[:2]


def bfloat(_g: Graph, x: Value) -> Value:
    return x.astype("bfloat16")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (nothing, r"(?s)test_kernels.py:\d+:1: error: .*returned None: return a tlx.graph.Value"),
        (contracting, r"(?s)test_kernels.py:\d+:12: error: .*contracting sizes 3 and 2 differ"),
        (bfloat, r"result 0 is bfloat16.*x.astype\(\"float32\"\)"),
    ],
)
def test_wrong_functions(build: Callable[..., Any], message: str) -> None:
    pytest.importorskip("ml_dtypes")
    with pytest.raises(tlx.TlxError, match=message):
        tlx.numba.kernel("float32[3]")(build)


def test_a_deep_copy_of_a_kernel_is_the_kernel() -> None:
    def build(_: Graph, x: Value) -> Value:
        return x + 1

    plus = tlx.numba.kernel("float32[3]")(build)
    assert copy.deepcopy({"kernel": plus})["kernel"] is plus


def test_wrong_settings() -> None:
    with pytest.raises(tlx.TlxError, match=r"expected a signature such as .*, got 3"):
        tlx.numba.kernel(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(tlx.TlxError, match="shapes are missing"):
        tlx.numba.kernel(layer_of)  # pyright: ignore[reportArgumentType]
    with pytest.raises(tlx.TlxError, match=r"call the kernel in numba\.prange"):
        tlx.numba.kernel("float32[3]", threads="openmp")
    with pytest.raises(tlx.TlxError, match="workspace='argument' needs memory from the caller"):
        tlx.numba.kernel("float32[3]", workspace="argument")
    with pytest.raises(tlx.TlxError, match="unknown target 'none'"):
        tlx.numba.kernel("float32[3]", target="none")
    with pytest.raises(tlx.TlxError, match="unknown option 'nothing'"):
        tlx.numba.kernel("float32[3]", nothing=1)
