"""JAX, ONNX and graphs on a device: weights and results stay there."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest

import tlx
from tests.nvidia import on_emulator
from tests.nvidia.emulator import COMPILER, EmulatedDevice
from tests.nvidia.programs import Array, integers, normal, with_grids
from tlx.api.arguments import ArgumentError
from tlx.api.device.arrays import OwnedArray
from tlx.api.device.functions import DeviceFunction
from tlx.frontends.tensor_language.runtime import kernels as runtime
from tlx.target.lookup import find_target
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
    return lambda: with_grids(find_device=lambda: emulated)


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


def test_donated_arrays_that_share_memory(new_target: Callable[[], Target]) -> None:
    graph = tlx.Graph("moments")
    m, v = (graph.parameter(name, (8, 16), donated=True) for name in "mv")
    g = graph.parameter("g", (8, 16))
    for old, new in ((m, m + g), (v, v + g * g)):
        graph.output(new, into=old)
    step = graph.compile(new_target())
    zeros, data = np.zeros((8, 16), np.float32), integers((8, 16), np.float32)
    first, second = step(zeros, zeros, data)
    np.testing.assert_array_equal(first, data)
    np.testing.assert_array_equal(second, data * data)
    assert isinstance(step.call, DeviceFunction)
    m, v = (step.call.on_device(array) for array in (zeros, data))
    with pytest.raises(ArgumentError, match="v: the call would overwrite an argument with the same memory"):
        step(m, m, v)
    first, second = step(m, v, data)
    assert (first, second) == (m, v)


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
    target, x = with_grids(find_device=lambda: emulated), normal((8, 32), np.float32)

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
    on_emulator.on_emulator(monkeypatch)
    emulated = EmulatedDevice("")
    w = normal((32, 16), np.float32)
    session = tlx.onnx.InferenceSession(product_model(w), target=with_grids(find_device=lambda: emulated))
    x = normal((8, 32), np.float32, 1)
    on_device = OwnedArray(emulated.codes[-1], x.shape, x.dtype, 7)
    on_device.fill(x)
    (y,) = session.run(None, {"x": on_device}, stream=7)
    assert isinstance(y, OwnedArray)
    assert y.stream == 7
    assert emulated.codes[-1].streams == {7}
    np.testing.assert_allclose(np.asarray(y), x @ w, rtol=1e-4, atol=1e-4)


def product_model(w: Array) -> bytes:
    """A model of ONNX: x, of 8 rows, times a weight."""
    onnx: Any = pytest.importorskip("onnx")
    helper, k, n = onnx.helper, *w.shape
    places = [helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", (8, k)), ("y", (8, n)))]
    weights = [onnx.numpy_helper.from_array(w, "w")]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", places[:1], places[1:], weights)
    model: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()
    return model


def called_by_jax(w: Array, target: Target) -> Callable[..., Any]:
    """A product with a weight: a function of x, a stream and events."""
    pytest.importorskip("jax")

    def times(x: Any) -> Any:
        return x @ w

    return tlx.jax.jit(times, target=target)


def called_by_onnx(w: Array, target: Target) -> Callable[..., Any]:
    """The same."""
    session = tlx.onnx.InferenceSession(product_model(w), target=target)

    def call(x: Any, **order: Any) -> Any:
        return session.run(None, {"x": x}, **order)[0]

    return call


def called_as_a_graph(w: Array, target: Target) -> Callable[..., Any]:
    """The same."""
    graph = tlx.Graph("product")
    graph.output(graph.parameter("x", (8, len(w))) @ graph.weight("w", w), "y")
    return graph.compile(target)


class Stream:
    """A stream of another library."""

    def __init__(self, handle: int) -> None:
        self.ptr = handle


CALLED: Final = [called_by_jax, called_by_onnx, called_as_a_graph]


@pytest.mark.nvidia
@pytest.mark.parametrize("called", CALLED)
def test_calls_in_streams_of_torch(called: Callable[..., Any]) -> None:
    """One stream computes the array, another one runs the kernels, a third one takes the result to another call.

    Results are freed while they may still be used, in the order of their streams.
    """
    torch: Any = pytest.importorskip("torch")
    w = integers((64, 64), np.float32)
    call = called(w, with_grids())
    large = torch.randn(4096, 4096, device="cuda")
    kept = torch.from_numpy(integers((8, 64), np.float32, 1)).cuda()
    x = torch.zeros_like(kept)
    call(x)
    first, second, third = (torch.cuda.Stream() for _ in range(3))
    for _ in range(3):
        x.zero_()
        torch.cuda.synchronize()
        with torch.cuda.stream(first):
            for _ in range(5):
                torch.matmul(large, large)
            x.copy_(kept)
            y = call(x, stream=second)
            x.zero_()  # in the order of this stream, which waits for the call
        z = call(y, stream=third.cuda_stream)
        with torch.cuda.stream(third):
            seen = torch.as_tensor(z, device="cuda").clone()
        del y, z
        call(x, stream=second)
        torch.cuda.synchronize()
        np.testing.assert_array_equal(seen.cpu().numpy(), kept.cpu().numpy() @ w @ w)


@pytest.mark.parametrize("called", CALLED)
def test_code_for_a_cpu_takes_no_streams_or_events(called: Callable[..., Any]) -> None:
    call, x = called(np.eye(16, dtype=np.float32), find_target("native")), normal((8, 16), np.float32)
    np.testing.assert_array_equal(call(x), x)
    for option in ("stream", "wait_for", "record"):
        with pytest.raises(ArgumentError, match=f"{option}: the code is for a CPU, where calls take no streams or"):
            call(x, **{option: 5})


def called_as_a_kernel(w: Array, target: Target) -> Callable[..., Any]:
    """The same, in the tensor language."""
    text = """func @product(%X: memref<f32x8x16>, %W: memref<f32x16x16>, %Y: memref<f32x8x16>) {
        %one = constant 1.0 : f32
        %zero = constant 0.0 : f32
        gemm.n.n %one, %X, %W, %zero, %Y
    }"""
    kernel: Any = runtime.compile(text, target).product

    def call(x: Array, **order: Any) -> Array:
        y = np.zeros((8, 16), np.float32, order="F")
        kernel(np.asfortranarray(x), np.asfortranarray(w), y, **order)
        return y

    return call


@pytest.mark.parametrize("called", [*CALLED, called_as_a_kernel])
def test_calls_run_between_events(monkeypatch: pytest.MonkeyPatch, called: Callable[..., Any]) -> None:
    if COMPILER is None:
        pytest.skip("the emulator needs a C compiler")
    compiled = runtime.compile
    on_emulator.on_emulator(monkeypatch)
    monkeypatch.setattr(runtime, "compile", compiled)
    emulated = EmulatedDevice("")
    call, x = (
        called(np.eye(16, dtype=np.float32), with_grids(find_device=lambda: emulated)),
        integers((8, 16), np.float32),
    )
    np.testing.assert_array_equal(call(x, stream=4, wait_for=[7, 8], record=SimpleNamespace(ptr=9)), x)
    assert emulated.codes[-1].events == ["wait for 7 in 4", "wait for 8 in 4", "record 9 in 4"]
    with pytest.raises(ArgumentError, match=r"record: expected the driver's handle.*, got str 'soon'"):
        call(x, record="soon")


@pytest.mark.parametrize("called", CALLED)
def test_code_for_a_cpu_refuses_arrays_of_a_device(called: Callable[..., Any]) -> None:
    class OnDevice:
        shape, dtype, ndim = (8, 16), np.dtype(np.float32), 2

        def __array__(self, *_: Any, **__: Any) -> None:
            raise TypeError("can't convert cuda:0 device type tensor to numpy")

    call = called(np.eye(16, dtype=np.float32), find_target("native"))
    with pytest.raises(ArgumentError, match="not an array: can't convert cuda:0 device type tensor to numpy"):
        call(OnDevice())


@pytest.mark.skipif(COMPILER is None, reason="the emulator needs a C compiler")
def test_streams_are_handles_or_objects_of_other_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    on_emulator.on_emulator(monkeypatch)
    emulated = EmulatedDevice("")
    call = called_as_a_graph(np.eye(16, dtype=np.float32), with_grids(find_device=lambda: emulated))
    x = normal((8, 16), np.float32)
    for stream in (
        4,
        SimpleNamespace(cuda_stream=4),
        SimpleNamespace(ptr=4),
        SimpleNamespace(__cuda_stream__=lambda: (0, 4)),
    ):
        emulated.codes[-1].streams.clear()
        np.testing.assert_array_equal(call(x, stream=stream), x)
        assert emulated.codes[-1].streams == {4}
    with pytest.raises(ArgumentError, match=r"stream: expected the driver's handle, .*, got str 'fast'"):
        call(x, stream="fast")


@pytest.mark.skipif(COMPILER is None, reason="the emulator needs a C compiler")
def test_results_keep_the_stream_in_which_they_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy, for one, destroys a stream with its object."""
    on_emulator.on_emulator(monkeypatch)
    emulated = EmulatedDevice("")
    call = called_as_a_graph(np.eye(16, dtype=np.float32), with_grids(find_device=lambda: emulated))
    x = OwnedArray(emulated.codes[-1], (8, 16), np.dtype(np.float32))
    x.fill(np.ones((8, 16), np.float32))
    stream = Stream(4)
    alive = weakref.ref(stream)
    result = call(x, stream=stream)
    del stream
    assert alive() is not None
    del result
    assert alive() is None
