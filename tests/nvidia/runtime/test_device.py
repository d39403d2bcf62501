"""Arrays of a GPU: PyTorch's by DLPack, streams, numpy's by copies, and errors. Run by `-m nvidia`."""

from threading import Thread
from typing import Any

import numpy as np
import pytest

import tlx
from tests.nvidia.kernels.test_products import matmul
from tests.nvidia.programs import broadcast, function, normal, reduction, tensor, typed
from tlx.api.arguments import ArgumentError

pytestmark = pytest.mark.nvidia
M, N, K = 300, 200, 136


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32"])
def test_torch(torch: Any, name: str) -> None:
    dtype, element = getattr(torch, name), {"bfloat16": "bfloat", "float16": "half", "float32": "float"}[name]
    module: Any = tlx.compile(matmul(M, N, K, element, "float"), "nvidia")
    x, y = torch.randn(M, K, device="cuda").to(dtype), torch.randn(K, N, device="cuda").to(dtype)
    c = torch.full((M, N), torch.nan, device="cuda")
    module.f(x, y, c)
    torch.testing.assert_close(c.cpu(), x.cpu().float() @ y.cpu().float(), rtol=1e-4, atol=1e-4)


def test_stream(torch: Any) -> None:
    module: Any = tlx.compile(matmul(M, N, K, "bfloat", "float"), "nvidia")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x, y = (torch.randn(s, device="cuda").bfloat16() for s in ((M, K), (K, N)))
        c = torch.full((M, N), torch.nan, device="cuda")
        module.f(x, y, c, stream=stream.cuda_stream)
    stream.synchronize()
    torch.testing.assert_close(c.cpu(), x.cpu().float() @ y.cpu().float(), rtol=1e-4, atol=1e-4)


def test_cupy() -> None:
    cupy = pytest.importorskip("cupy")
    module: Any = tlx.compile(matmul(M, N, K, "float", "float"), "nvidia")
    x, y, c = (
        cupy.asarray(normal((M, K), np.float32)),
        cupy.asarray(normal((K, N), np.float32)),
        cupy.zeros((M, N), np.float32),
    )
    module.f(x, y, c)
    np.testing.assert_allclose(cupy.asnumpy(c), cupy.asnumpy(x) @ cupy.asnumpy(y), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("own", [False, True], ids=["default-stream", "own-stream"])
def test_a_call_waits_for_the_stream_that_computes_its_arrays(torch: Any, own: bool) -> None:
    """The arrays are ready, and the result is read, in a stream that nobody orders but the call."""
    module: Any = tlx.compile(matmul(M, N, K, "bfloat", "float"), "nvidia")
    large = torch.randn(4096, 4096, device="cuda")
    kept = [torch.randn(s, device="cuda").bfloat16() for s in ((M, K), (K, N))]
    c, seen = (torch.full((M, N), torch.nan, device="cuda") for _ in range(2))
    x, y = map(torch.zeros_like, kept)
    torch.cuda.synchronize()
    producer, consumer = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(producer):
        for _ in range(5):
            torch.matmul(large, large)
        for array, source in zip((x, y), kept, strict=True):
            array.copy_(source)
        module.f(x, y, c, stream=consumer.cuda_stream if own else 0)
        seen.copy_(c)
    torch.cuda.synchronize()
    torch.testing.assert_close(seen.cpu(), kept[0].cpu().float() @ kept[1].cpu().float(), rtol=1e-4, atol=1e-4)


def test_tensors_that_require_gradients(torch: Any) -> None:
    module: Any = tlx.compile(matmul(M, N, K, "float", "float"), "nvidia")
    x, y = (torch.randn(s, device="cuda", requires_grad=True) for s in ((M, K), (K, N)))
    c = torch.full((M, N), torch.nan, device="cuda")
    module.f(x, y, c)
    torch.testing.assert_close(c.cpu(), (x @ y).detach().cpu(), rtol=1e-4, atol=1e-4)


def test_numpy_arrays_in_pinned_memory_may_be_changed_after_a_call(torch: Any) -> None:
    """Their copies would otherwise wait for what the stream does before, and read what is there by then."""
    module: Any = tlx.compile(matmul(M, N, K, "float", "float"), "nvidia")
    x, y = (torch.randn(s).pin_memory() for s in ((M, K), (K, N)))
    exact, c = x @ y, torch.full((M, N), torch.nan, device="cuda")
    large = torch.randn(8192, 8192, device="cuda")
    module.f(x.numpy(), y.numpy(), c)
    torch.cuda.synchronize()
    for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
        c.fill_(torch.nan)
        torch.cuda.synchronize()
        x.copy_(exact[:, :K])
        with torch.cuda.stream(stream):
            torch.matmul(large, large)
            module.f(x.numpy(), y.numpy(), c, stream=stream)
        x.zero_()
        torch.cuda.synchronize()
        torch.testing.assert_close(c.cpu(), exact[:, :K] @ y, rtol=1e-3, atol=1e-3)


def test_streams_have_their_own_temporaries(torch: Any) -> None:
    """Also one that is made when another one, which has called the function, is destroyed."""
    cupy = pytest.importorskip("cupy")
    m, k = 64, 4096
    module: Any = tlx.compile(matmul(m, m, k, "bfloat", "float"), "nvidia")
    y = torch.ones(k, m, device="cuda", dtype=torch.bfloat16)
    xs = [torch.full((m, k), float(number), device="cuda", dtype=torch.bfloat16) for number in range(50)]
    results = [torch.zeros(m, m, device="cuda") for _ in xs]
    torch.cuda.synchronize()
    for x, result in zip(xs, results, strict=True):
        stream = cupy.cuda.Stream(non_blocking=True)
        with torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)):
            for _ in range(20):
                module.f(x, y, result, stream=stream)
    torch.cuda.synchronize()
    for number, result in enumerate(results):
        assert bool((result == number * k).all()), number


def test_numba() -> None:
    cuda = pytest.importorskip("numba.cuda")
    if not cuda.is_available():
        pytest.skip("Numba finds no CUDA toolkit")
    module: Any = tlx.compile(matmul(M, N, K, "float", "float"), "nvidia")
    x, y = normal((M, K), np.float32), normal((K, N), np.float32)
    stream = cuda.stream()
    c = cuda.device_array((M, N), np.float32, stream=stream)
    module.f(cuda.to_device(x, stream), cuda.to_device(y, stream), c)
    np.testing.assert_allclose(c.copy_to_host(stream=stream), x @ y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("own", [False, True], ids=["default-stream", "own-streams"])
def test_threads_do_not_share_temporaries(torch: Any, own: bool) -> None:
    """A product whose parts of K are added up by a second kernel, called by four threads at once."""
    m, k = 64, 4096
    module: Any = tlx.compile(matmul(m, m, k, "bfloat", "float"), "nvidia")
    y = torch.ones(k, m, device="cuda", dtype=torch.bfloat16)
    wrong: list[int] = []

    def calls(number: int) -> None:
        stream = torch.cuda.Stream() if own else torch.cuda.default_stream()
        with torch.cuda.stream(stream):
            x = torch.full((m, k), float(number), device="cuda", dtype=torch.bfloat16)
            results = [torch.zeros(m, m, device="cuda") for _ in range(100)]
            for result in results:
                module.f(x, y, result, stream=stream)
            if not all(bool((result == number * k).all()) for result in results):
                wrong.append(number)

    threads = [Thread(target=calls, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_repeated_calls(torch: Any) -> None:
    """Calls of two kernels with the same arrays are recorded, and read what the arrays hold by then."""
    m, k = 64, 4096
    module: Any = tlx.compile(matmul(m, m, k, "bfloat", "float"), "nvidia")
    x, y = (torch.ones(s, device="cuda", dtype=torch.bfloat16) for s in ((m, k), (k, m)))
    others = [torch.zeros(m, m, device="cuda") for _ in range(2)]
    for number in range(100):
        x.fill_(number)
        for c in others[: 1 + number % 3]:
            c.zero_()
            module.f(x, y, c)
            assert bool((c == number * k).all()), number
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x.fill_(3)
        module.f(x, y, others[0], stream=stream)
        assert bool((others[0] == 3 * k).all())


def test_graphs_and_calls_do_not_share_temporaries(torch: Any) -> None:
    """A captured call is launched in one stream while calls run in the default stream."""
    m, k = 64, 4096
    module: Any = tlx.compile(matmul(m, m, k, "bfloat", "float"), "nvidia")
    x, y = (torch.ones(s, device="cuda", dtype=torch.bfloat16) for s in ((m, k), (k, m)))
    twos, c, d = 2 * x, *(torch.zeros(m, m, device="cuda") for _ in range(2))
    module.f(x, y, c)
    step, stream = module.f.captured(twos, y, d), torch.cuda.Stream()
    torch.cuda.synchronize()
    for _ in range(50):
        step(stream=stream)
        module.f(x, y, c)
    torch.cuda.synchronize()
    assert bool((c == k).all())
    assert bool((d == 2 * k).all())


def test_captured(torch: Any) -> None:
    """A sequence with temporaries becomes a graph, which reads what the arrays hold when it is launched."""
    module: Any = tlx.compile(centred(), "nvidia")
    x, y = torch.randn(64, 100, device="cuda"), torch.zeros(64, 100, device="cuda")
    step = module.f.captured(x, y)
    assert not y.any()
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        x.copy_(torch.randn(64, 100, device="cuda"))
        torch.cuda.synchronize()
        step(stream=stream.cuda_stream)
        torch.cuda.synchronize()
        torch.testing.assert_close(y, x - x.max(dim=1, keepdim=True).values)
    del step
    torch.cuda.synchronize()


def test_code_is_unloaded(torch: Any) -> None:
    """Functions that are dropped free the device's memory for their code, while their kernels may still run."""
    x, y = torch.randn(64, 100, device="cuda"), torch.zeros(64, 100, device="cuda")
    for _ in range(20):
        y.zero_()
        module: Any = tlx.compile(centred(), "nvidia")
        module.f(x, y)
        del module
        torch.testing.assert_close(y, x - x.max(dim=1, keepdim=True).values)


def centred() -> str:
    """Rows minus their maxima: two kernels with a temporary between them."""
    body = f"""{tensor("a", "x", "float", (64, 100))}
  %v = call <6400 x float> @llvm.tensor.tovector(token %a)
{reduction("max", "max", "a", "float", (64, 100), 1)}
{typed("m", "max", "float", (64, 1))}{broadcast("b", "m", "float", (64, 100), (0, 1))}
  %d = fsub <6400 x float> %v, %b
  store <6400 x float> %d, ptr %y
"""
    return function(["x", "y"], body)


def test_graph_of_launches(torch: Any) -> None:
    """A sequence with temporaries can be captured and replayed."""
    module: Any = tlx.compile(centred(), "nvidia")
    x, y = torch.randn(64, 100, device="cuda"), torch.zeros(64, 100, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        module.f(x, y, stream=torch.cuda.current_stream().cuda_stream)
    x.copy_(torch.randn(64, 100, device="cuda"))
    graph.replay()
    torch.testing.assert_close(y, x - x.max(dim=1, keepdim=True).values)


def test_wrong_arrays(torch: Any) -> None:
    module: Any = tlx.compile(matmul(M, N, K, "bfloat", "float"), "nvidia")
    x, y = (torch.zeros(s, device="cuda", dtype=torch.bfloat16) for s in ((M, K), (K, N)))
    c = torch.zeros(M, N, device="cuda")
    for _ in range(2):  # what is known about arrays that fit does not apply to others
        module.f(x, y, c)
    with pytest.raises(ArgumentError, match="expected elements of bfloat, got float"):
        module.f(x.float(), y, c)
    with pytest.raises(ArgumentError, match="not C-contiguous"):
        module.f(x.t(), y, c)
    with pytest.raises(ArgumentError, match="expected 40800 elements"):
        module.f(x[:2], y, c)
    with pytest.raises(ArgumentError, match="aligned"):
        module.f(torch.zeros(M * K + 1, device="cuda", dtype=torch.bfloat16)[1:].view(M, K), y, c)
    with pytest.raises(
        ArgumentError, match=r"argument 0 \(%x\): expected an array of the device or of numpy, got list"
    ):
        module.f([1], y, c)
    with pytest.raises(ArgumentError, match=r"got a torch\.Tensor in the host's memory; copy it to the device first"):
        module.f(x.cpu(), y, c)
    with pytest.raises(ArgumentError, match=r"argument 0 \(%x\): the array cannot be used on the device"):
        module.f(x.to_sparse(), y, c)


def test_pinned_tensors(torch: Any) -> None:
    """The device reads and writes memory of the host that is pinned."""
    module: Any = tlx.compile(matmul(M, N, K, "float", "float"), "nvidia")
    x, y = (torch.randn(s).pin_memory() for s in ((M, K), (K, N)))
    c = torch.full((M, N), torch.nan).pin_memory()
    module.f(x, y, c)
    torch.cuda.synchronize()
    torch.testing.assert_close(c, x @ y, rtol=1e-4, atol=1e-4)
