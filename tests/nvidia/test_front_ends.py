"""JAX, ONNX and graphs on a device: weights and results stay there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tlx
from tests.nvidia import on_emulator
from tests.nvidia.emulator import COMPILER, EmulatedDevice
from tests.nvidia.programs import normal, with_grids
from tlx.api.call import ArgumentError
from tlx.api.device import DeviceFunction, OwnedArray
from tlx.target.target import Target


@pytest.fixture(params=["emulator", pytest.param("device", marks=pytest.mark.nvidia)])
def new_target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Target]:
    """A target of the emulator or of this machine's GPU."""
    if request.param == "device":
        return with_grids
    if COMPILER is None:
        pytest.skip("the emulator needs a C compiler")
    on_emulator.on_emulator(monkeypatch)
    emulated = EmulatedDevice("")
    return lambda: with_grids(device=lambda: emulated)


def test_weights_and_results_of_a_graph_stay_on_the_device(new_target: Callable[[], Target]) -> None:
    w = normal((32, 16), np.float32)
    graph = tlx.Graph("layer")
    x = graph.parameter("x", (8, 32))
    graph.output(graph.relu(x @ graph.weight("w", w)), "y")
    layer = graph.compile(new_target())
    assert isinstance(layer.call, DeviceFunction)
    data = normal((8, 32), np.float32, 1)
    y = layer(layer.call.on_device(data))
    assert isinstance(y, OwnedArray)
    np.testing.assert_allclose(np.asarray(y), np.maximum(data @ w, 0), rtol=1e-4, atol=1e-4)
    w *= 2
    layer.prepare()
    np.testing.assert_allclose(layer(data), np.maximum(data @ w, 0), rtol=1e-4, atol=1e-4)
    with pytest.raises(ArgumentError, match="x: expected an array of shape"):
        layer(y)


def test_jax(new_target: Callable[[], Target]) -> None:
    jax: Any = pytest.importorskip("jax")
    w, v = normal((32, 16), np.float32), normal((16, 32), np.float32, 1)

    def step(x: Any, w: Any) -> Any:
        return {"y": jax.nn.softmax(jax.nn.relu(x @ w) @ v + 1.0)}

    x = normal((8, 32), np.float32, 2)
    jitted = tlx.jax.jit(step, target=new_target())
    first: Any = jitted(x, w)["y"]
    assert type(first) is np.ndarray
    with jax.default_matmul_precision("highest"):  # JAX rounds the operands on some devices
        expected = step(x, w)["y"]
    np.testing.assert_allclose(first, expected, rtol=1e-4, atol=1e-5)


def test_results_of_jax_are_arguments_of_the_next_call(new_target: Callable[[], Target]) -> None:
    pytest.importorskip("jax")

    def doubled(x: Any) -> Any:
        return x + x

    jitted = tlx.jax.jit(doubled, target=new_target())
    x = normal((8, 32), np.float32)
    graph = tlx.Graph("copy")
    graph.output(graph.parameter("x", (8, 32)) * 1.0, "y")
    copy = graph.compile(new_target())
    assert isinstance(copy.call, DeviceFunction)
    y = jitted(jitted(copy.call.on_device(x)))
    assert isinstance(y, OwnedArray)
    np.testing.assert_array_equal(np.asarray(y), 4 * x)


@pytest.mark.skipif(COMPILER is None, reason="the emulator needs a C compiler")
def test_calls_of_jax_take_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under that name, unless the function has an argument of that name."""
    pytest.importorskip("jax")
    on_emulator.on_emulator(monkeypatch)
    emulated = EmulatedDevice("")
    target, x = with_grids(device=lambda: emulated), normal((8, 32), np.float32)

    def twice(x: Any) -> Any:
        return x + x

    def times(x: Any, stream: Any) -> Any:
        return x * stream

    doubled, scaled = (tlx.jax.jit(function, target=target) for function in (twice, times))
    np.testing.assert_array_equal(doubled(x, stream=5), 2 * x)
    assert emulated.codes[-1].streams == {5}
    y: Any = doubled(OwnedArray(emulated.codes[-1], x.shape, x.dtype, 6), stream=6)
    assert y.stream == 6
    np.testing.assert_array_equal(scaled(x, stream=np.float32(3)), 3 * x)
    assert emulated.codes[-1].streams == {0}


@pytest.mark.skipif(COMPILER is None, reason="the emulator needs a C compiler")
def test_runs_of_onnx_take_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    onnx: Any = pytest.importorskip("onnx")
    on_emulator.on_emulator(monkeypatch)
    emulated, helper = EmulatedDevice(""), onnx.helper
    w = normal((32, 16), np.float32)
    places = [helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", (8, 32)), ("y", (8, 16)))]
    weights = [onnx.numpy_helper.from_array(w, "w")]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", places[:1], places[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()
    session = tlx.onnx.InferenceSession(model, target=with_grids(device=lambda: emulated))
    x = normal((8, 32), np.float32, 1)
    on_device = OwnedArray(emulated.codes[-1], x.shape, x.dtype, 7)
    on_device.fill(x)
    (y,) = session.run(None, {"x": on_device}, stream=7)
    assert isinstance(y, OwnedArray)
    assert y.stream == 7
    assert emulated.codes[-1].streams == {7}
    np.testing.assert_allclose(np.asarray(y), x @ w, rtol=1e-4, atol=1e-4)
