"""`tlx.jax.jit` and `tlx.jax.lower`: signatures, pytrees, options, donation, errors."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tlx
from tests.support.tools import require_module
from tlx.frontends.jax.files import translate_file

jax: Any = require_module("jax")
jnp: Any = jax.numpy
X = np.arange(6, dtype="f4").reshape(2, 3)


def double(x: Any) -> Any:
    return x * 2


def test_pytrees() -> None:
    def function(p: Any, *, scale: Any) -> Any:
        return {"sum": p["a"] + p["b"][0], "pair": (p["b"][1] * scale, [scale])}

    result = tlx.jax.jit(function)({"a": X, "b": (X, jnp.ones(3))}, scale=2.0)
    np.testing.assert_array_equal(result["sum"], 2 * X)
    np.testing.assert_array_equal(result["pair"][0], [2, 2, 2])
    assert result["pair"][1][0] == 2
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(result))


def test_a_signature_is_compiled_once() -> None:
    traces: list[Any] = []

    @tlx.jax.jit
    def function(x: Any) -> Any:
        traces.append(x.shape)
        return x + 1

    for _ in range(3):
        assert function(X).dtype == np.float32
        assert function(X[0]).shape == (3,)
        assert function(X.astype("i4")).dtype == np.int32
    assert traces == [(2, 3), (3,), (2, 3)]


def test_double_precision_is_converted_as_jax_does() -> None:
    result = tlx.jax.jit(double)(X.astype("f8"))
    assert result.dtype == np.float32
    with jax.enable_x64(True):
        result = tlx.jax.jit(double)(X.astype("f8"))
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, 2 * X)


def test_the_expansion_of_erfc_is_recognised() -> None:
    """Exact GELU is half a product with erfc, which JAX exports as two quotients and three polynomials."""
    for function in (partial(jax.nn.gelu, approximate=False), jax.scipy.special.erfc):
        text = tlx.jax.jit(function).lower(X)
        assert (text.count(" fdiv "), text.count("= call <6 x float> @llvm.tensor.erfc")) == (0, 1)
    exported = str(jax.export.export(jax.jit(jax.scipy.special.erfc), platforms=["cpu"])(X).mlir_module())
    assert " fdiv " not in translate_file(exported.encode(), "erfc.mlir")
    for old, new in (("-0.582473278", "-0.582473"), ("compare LT", "compare GT")):
        assert old in exported
        assert translate_file(exported.replace(old, new).encode(), "erfc.mlir").count(" fdiv ") == 2


def test_erfc_of_bfloats_is_computed_for_bfloats() -> None:
    """JAX converts to float and back, for which a lower accuracy is enough."""
    x = X.astype(ml_dtypes.bfloat16)
    text = tlx.jax.jit(partial(jax.nn.gelu, approximate=False)).lower(x)
    assert len(re.findall(r"= call <6 x float> @llvm.tensor.erfc\S*\(token \S+\), !tlx.short", text)) == 1


def test_the_maximum_with_minus_infinity_is_the_other_operand() -> None:
    assert "llvm.maximum" not in tlx.jax.jit(jax.nn.softmax).lower(X)

    def bounded(x: Any) -> Any:
        return jnp.maximum(x, -1.0)

    def unbounded(x: Any) -> Any:
        return jnp.maximum(-jnp.inf, x)

    assert "llvm.maximum" in tlx.jax.jit(bounded).lower(X)
    x = np.array([np.nan, -np.inf, 1], np.float32)
    np.testing.assert_array_equal(tlx.jax.jit(unbounded)(x), x)


def test_static_arguments() -> None:
    def function(x: Any, axis: int, keep: bool) -> Any:
        return x.sum(axis, keepdims=keep)

    compiled = tlx.jax.jit(function, static_argnums=1, static_argnames="keep")
    assert compiled(X, 0, keep=False).tolist() == [3, 5, 7]
    assert compiled(X, 1, keep=True).tolist() == [[3], [12]]


def rows(x: Any, count: int = 2) -> Any:
    return x.reshape(count, -1)


def test_static_arguments_that_are_equal_but_of_different_types() -> None:
    def function(x: Any, factor: float) -> Any:
        return x * factor

    compiled = tlx.jax.jit(function, static_argnums=1)
    x = np.arange(3, dtype=np.int32)
    for factor, dtype in ((2, "int32"), (2.0, "float32"), (1, "int32"), (True, "int32"), (1.0, "float32")):
        result = np.asarray(compiled(x, factor))
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, x * factor)


def test_static_arguments_by_position_and_by_name() -> None:
    x = np.ones(12, "f4")
    for settings in ({"static_argnums": 1}, {"static_argnames": "count"}):
        compiled = tlx.jax.jit(rows, **settings)
        shapes = [compiled(x).shape, compiled(x, 3).shape, compiled(x, count=4).shape, compiled(x, 6).shape]
        assert shapes == [(2, 6), (3, 4), (4, 3), (6, 2)]


def test_static_arguments_from_the_end() -> None:
    compiled = tlx.jax.jit(rows, static_argnums=-1)
    assert [compiled(np.ones(12, "f4"), count).shape for count in (3, 4)] == [(3, 4), (4, 3)]


@pytest.mark.parametrize("settings", [{"donate_argnames": "p"}, {"donate_argnums": 1}])
def test_donated_arguments_by_position_and_by_name(settings: dict[str, Any]) -> None:
    compiled = tlx.jax.jit(subtract, **settings)
    for by_name in (False, True):
        g, p = np.ones(4, "f4"), np.ones(4, "f4")
        assert (compiled(g, p=p) if by_name else compiled(g, p)) is p
        assert not p.any()


def subtract(g: Any, p: Any) -> Any:
    return p - g


def test_donated_arguments_from_the_end() -> None:
    p = np.ones(4, "f4")
    assert tlx.jax.jit(subtract, donate_argnums=-1)(np.ones(4, "f4"), p) is p


def test_donated_arguments_that_share_memory() -> None:
    """As when Adam's moments begin with one array of zeros."""

    def moments(m: Any, v: Any, g: Any) -> Any:
        return m + g, v + g * g

    step = tlx.jax.jit(moments, donate_argnums=(0, 1))
    zeros, g = np.zeros(4, "f4"), np.full(4, 3, "f4")
    m, v = step(zeros, zeros, g)
    assert m.tolist() == [3] * 4
    assert v.tolist() == [9] * 4
    assert [x.tolist() for x in step(g, v, g)] == [[6] * 4, [18] * 4]


class Scaled:
    """A class whose methods are compiled for each object."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    @partial(tlx.jax.jit, static_argnums=0)
    def apply(self, x: Any, *, shift: float = 0) -> Any:
        return x * self.factor + shift


def test_methods() -> None:
    twice, thrice = Scaled(2), Scaled(3)
    for _ in range(2):
        assert twice.apply(X[0]).tolist() == [0, 2, 4]
        assert thrice.apply(X[0], shift=1).tolist() == [1, 4, 7]
    assert Scaled.apply(twice, X[0]).tolist() == [0, 2, 4]


def test_arrays_that_are_not_aligned() -> None:
    x = np.ndarray((3,), "f4", bytearray(13), 1)
    x[:] = X[0]
    assert tlx.jax.jit(double)(x).tolist() == [0, 2, 4]


def test_a_compiled_function_in_another() -> None:
    @tlx.jax.jit
    def inner(x: Any) -> Any:
        return jnp.sin(x).sum()

    @tlx.jax.jit
    def outer(x: Any) -> Any:
        return inner(2 * x) + 1

    x = np.arange(3, dtype="f4")
    np.testing.assert_allclose(outer(x), np.sin(2 * x).sum() + 1, rtol=1e-6)
    np.testing.assert_allclose(tlx.jax.jit(jax.grad(inner))(x), np.cos(x), rtol=1e-5)


def test_threads_compile_a_signature_once() -> None:
    traced: list[int] = []

    def function(x: Any) -> Any:
        traced.append(1)
        return x + 1

    compiled = tlx.jax.jit(function)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(compiled, [np.full(5, k, "f4") for k in range(8)]))
    assert [result[0] for result in results] == list(range(1, 9))
    assert len(traced) == 1


def test_unused_arguments() -> None:
    assert tlx.jax.jit(lambda _, y: y + 1)(X, np.float32(1)) == 2  # pyright: ignore[reportUnknownLambdaType]


def test_donated_memory_is_reused() -> None:
    def step(state: Any, x: Any) -> Any:
        return {"w": state["w"] - x, "n": state["n"] + 1}, state["w"].sum()

    compiled = tlx.jax.jit(step, donate_argnums=0)
    state = {"w": X.copy(), "n": np.int32(0)}
    for n in range(3):
        memory = state["w"]
        state, total = compiled(state, X)
        assert state["w"] is memory
        assert state["n"] == n + 1
        assert total == (1 - n) * X.sum()


def test_donated_arrays_of_jax_are_left_alone() -> None:
    x = jnp.ones(3)
    assert tlx.jax.jit(double, donate_argnums=0)(x).tolist() == [2, 2, 2]
    assert x.tolist() == [1, 1, 1]


def test_options_are_those_of_compile(tmp_path: Path) -> None:
    compiled = tlx.jax.jit(double, target="avx2", cache=tmp_path, opt_level=1)
    assert compiled(X).tolist() == (2 * X).tolist()
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(tlx.TlxError, match="unknown target 'z80'"):
        tlx.jax.jit(double, target="z80")(X)


def test_large_constants_are_weights() -> None:
    w = np.arange(40000, dtype="f4").reshape(200, 200)
    function = tlx.jax.jit(lambda x: x @ w)  # pyright: ignore[reportUnknownLambdaType]
    np.testing.assert_allclose(function(w[:2] / 4e4), w[:2] / 4e4 @ w, rtol=1e-5)
    assert len(function.lower(w[:2])) < 10000


def test_small_arrays_are_weights_too() -> None:
    bias = np.arange(512, dtype="f4")
    function = tlx.jax.jit(lambda x, *, y: x + bias + y)  # pyright: ignore[reportUnknownLambdaType]
    text = function.lower(bias, y=np.float32(1))
    assert 'ptr noalias readonly "tlx-constant" %constant, ptr noalias readonly %x, ptr noalias readonly %y' in text
    assert function(bias, y=np.float32(1)).tolist() == (2 * bias + 1).tolist()


def test_constants_that_are_one_number_are_not_passed() -> None:
    ones = np.ones((32, 32), "f4")
    text = tlx.jax.lower(lambda x: x + ones, ones)  # pyright: ignore[reportUnknownLambdaType]
    assert "tlx-constant" not in text


def test_constants_that_differ_in_one_late_element_are_weights() -> None:
    w = np.zeros((100, 100), "f4")
    w[-1, -1] = 1
    text = tlx.jax.lower(lambda x: x @ w, np.ones((2, 100), "f4"))  # pyright: ignore[reportUnknownLambdaType]
    assert '"tlx-constant" %constant' in text


def test_donation_beside_constants() -> None:
    w = np.arange(256, dtype="f4").reshape(16, 16)
    unused = np.ones(3, "f4")
    compiled = tlx.jax.jit(lambda _, x: x + w, donate_argnums=1)  # pyright: ignore[reportUnknownLambdaType]
    memory = np.ones((16, 16), "f4")
    assert compiled(unused, memory) is memory
    assert memory.tolist() == (w + 1).tolist()


def test_constants_are_not_copied() -> None:
    program = """
import resource
import numpy as np
import tlx
w = np.arange(1 << 25, dtype="f4").reshape(1 << 12, 1 << 13)
x = np.ones((1, 1 << 12), "f4")
tlx.jax.lower(lambda x: x[:, :2], x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
tlx.jax.lower(lambda x: x @ w, x)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / w.nbytes)
"""
    growth = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert float(growth) < 0.5


def test_lower_gives_tlx_ir() -> None:
    text = tlx.jax.lower(double, jax.ShapeDtypeStruct((4,), "float32"))
    assert "define void @double(ptr noalias readonly %x, ptr noalias %result)" in text
    function = tlx.compile(text)
    out = np.zeros(4, "f4")
    function.double(np.ones(4, "f4"), out)
    assert out.tolist() == [2, 2, 2, 2]


def test_keys_of_jax() -> None:
    def function(key: Any) -> Any:
        a, b = jax.random.split(key)
        return jax.random.uniform(a, (3,)), b

    expected, actual = (f(function)(jax.random.key(3)) for f in (jax.jit, tlx.jax.jit))
    np.testing.assert_array_equal(expected[0], actual[0])
    np.testing.assert_array_equal(jax.random.key_data(expected[1]), jax.random.key_data(actual[1]))


def solve(x: Any) -> Any:
    return jnp.linalg.qr(x)


def transform(x: Any) -> Any:
    y = x + 1
    return jnp.fft.fft(y).real


def rotate(x: Any) -> Any:
    return (x + 1j).imag


@pytest.mark.parametrize(
    ("function", "name", "message", "line"),
    [
        (
            solve,
            "stablehlo.custom_call",
            "'lapack_sgeqrf_ffi' is .*: call numpy.linalg outside",
            "    return jnp.linalg.qr(x)",
        ),
        (transform, "stablehlo.convert", "complex<f32>> is not supported", "    return jnp.fft.fft(y).real"),
        (rotate, "stablehlo.constant", "complex<f32>> is not supported", "    return (x + 1j).imag"),
    ],
)
def test_errors_have_the_place_in_the_program(function: Any, name: str, message: str, line: str) -> None:
    with pytest.raises(tlx.TlxError, match=message) as caught:
        tlx.jax.jit(function)(np.eye(3, dtype="f4"))
    text = str(caught.value)
    assert Path(__file__).name in text
    assert name in text
    assert line in text


def test_places_are_not_those_of_tlx() -> None:
    with pytest.raises(tlx.TlxError, match=r"^error: stablehlo.custom_call of svd: ") as caught:
        tlx.jax.jit(jnp.linalg.svd)(np.eye(3, dtype="f4"))
    assert caught.value.span is None


def test_operations_are_called_as_in_the_function() -> None:
    with pytest.raises(tlx.TlxError, match=r"stablehlo.convert of jit\(narrow\)/convert_element_type"):
        tlx.jax.jit(narrow)(X)


def narrow(x: Any) -> Any:
    return x.astype(jnp.int4).astype(jnp.int8)


def test_functions_without_results() -> None:
    with pytest.raises(tlx.TlxError, match="does not return an array"):
        tlx.jax.jit(lambda _: None)(X)  # pyright: ignore[reportUnknownLambdaType]


def test_types_without_a_place() -> None:
    with pytest.raises(tlx.TlxError, match=r"parameter x: tensor<1xcomplex<f32>> is not supported"):
        tlx.jax.jit(double)(np.zeros(1, "c8"))


def test_static_arguments_are_hashable() -> None:
    with pytest.raises(tlx.TlxError, match=r"a static argument of .* is not a constant: unhashable type: 'list'"):
        tlx.jax.jit(lambda x, _: x, static_argnums=1)(X, [1])  # pyright: ignore[reportUnknownLambdaType]


def test_callbacks_to_python_are_refused() -> None:
    def called(x: Any) -> Any:
        return jax.pure_callback(np.sin, x, x)

    with pytest.raises(tlx.TlxError, match=r"JAX cannot export called .*: call Python outside of"):
        tlx.jax.jit(called)(X)


@pytest.mark.parametrize("shape", [(3,), (300, 40)], ids=["printed as numbers", "printed as bytes"])
def test_captured_bfloats(shape: tuple[int, ...]) -> None:
    weights = jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.bfloat16)

    def function(x: Any) -> Any:
        return x + weights

    result = tlx.jax.jit(function)(np.zeros(shape, jnp.bfloat16))
    np.testing.assert_array_equal(result, np.asarray(weights))


def test_options_are_checked_at_once() -> None:
    with pytest.raises(tlx.TlxError, match="unknown option 'thread'; did you mean 'threads'"):
        tlx.jax.jit(double, thread="openmp")
