"""Times of kernels on this machine's GPU beside PyTorch's: `python -m tests.nvidia.speed [--quick]`.

Each line is one program: the median of 7 measurements, by events, of as many calls as take 10 ms.
"""

import statistics
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import tlx
from tests.nvidia.programs import broadcast, function, tensor, typed
from tests.nvidia.test_attention import attention
from tests.nvidia.test_convolutions import convolved
from tests.nvidia.test_products import bytes_product, matmul

ROOT = Path(__file__).parents[2]
_INTEGER_PRODUCT = "_int_mm"  # PyTorch has no other name for it


def main() -> None:
    """Print the table."""
    torch: Any = import_module("torch")
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, llvm {_llvm()}")  # noqa: T201
    product(torch, 1024, "bfloat")
    if "--quick" in sys.argv:
        convolution(torch, (32, 64, 58, 58), (64, 64, 3, 3), (0, 2, 3, 1), 1)
        return
    for size in (512, 2048, 4096, 8192):
        product(torch, size, "bfloat")
    product(torch, 4096, "half")
    for size in (1024, 4096):
        product(torch, size, "float")
    product(torch, 4096, "double")
    rounded_product(torch, 4096)
    for layouts in ("nt", "nn"):
        of_bytes(torch, 4096, layouts)
    for channels, side, filters, window, stride in CONVOLUTIONS:
        for order in ((0, 2, 3, 1), (0, 1, 2, 3)):
            convolution(torch, (32, channels, side, side), (filters, channels, window, window), order, stride)
    for batch, size in ((512, 64), (256, 128)):
        batched(torch, batch, size)
    layer(torch, 4096, 4096, 4096)
    for columns in (64, 128):
        for rows in (512, 1024, 2048, 4096, 8192):
            softmax_of_products(torch, rows, columns)
    softmax_of_products(torch, 2048, 128, reassociated=False)
    for rows, columns in ((4096, 4096), (32768, 1024)):
        softmax(torch, rows, columns)
        layer_norm(torch, rows, columns)
        addition(torch, rows, columns)


def _llvm() -> str:
    """Version of the LLVM that generates code."""
    binding: Any = import_module("llvmlite.binding")
    return ".".join(map(str, binding.llvm_version_info))


def seconds(torch: Any, call: Callable[[], Any]) -> float:
    """Seconds of a call."""

    def timed(count: int) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3 / count

    timed(3)
    count = max(3, int(0.01 / timed(3)))
    return statistics.median(timed(count) for _ in range(7))


def attempted(function: Callable[..., None]) -> Callable[..., None]:
    """The function, which prints an error so that those after it still run."""

    def run(*args: Any, **options: Any) -> None:
        try:
            function(*args, **options)
        except Exception as error:  # noqa: BLE001
            print(f"{function.__name__}{args[1:]} FAILED: {error}", flush=True)  # noqa: T201

    return run


def compare(
    torch: Any, title: str, module: Any, arrays: list[Any], peer: Callable[[], Any], work: float, unit: str
) -> None:
    """Check the result, which is the last array, and print a line.

    Args:
        torch: The module.
        title: What is computed.
        module: The compiled module.
        arrays: Its arguments, on the device.
        peer: The same by PyTorch.
        work: Operations or bytes.
        unit: TFLOP/s or TB/s.
    """
    result, want = arrays[-1], peer().clone()
    result.fill_(float("nan") if result.is_floating_point() else -1)
    module.entry(*arrays)
    error = (result.float() - want.float()).abs().max().item()
    bound = 2**-6 * want.float().abs().max().item()
    addresses = [array.data_ptr() for array in arrays]
    own, other = seconds(torch, lambda: module.entry.unchecked(*addresses)), seconds(torch, peer)
    verdict = "right" if error <= bound else f"WRONG by {error:.3g}"
    rates = f"{work / own * 1e-12:8.2f} {unit}, torch {work / other * 1e-12:8.2f}: {other / own:.2f}"
    print(f"{title:42} {own * 1e6:9.1f} us {rates}  {verdict}", flush=True)  # noqa: T201


def _dtype(torch: Any, element: str) -> Any:
    return {"bfloat": torch.bfloat16, "half": torch.float16, "float": torch.float32, "double": torch.float64}[element]


@attempted
def product(torch: Any, size: int, element: str) -> None:
    """A square product."""
    dtype = _dtype(torch, element)
    x, y = (torch.randn(size, size, device="cuda").to(dtype) for _ in range(2))
    module = tlx.compile(matmul(size, size, size, element, element), "nvidia", opt_level=3)
    out, mine = torch.empty_like(x), torch.empty_like(x)
    compare(
        torch,
        f"matmul {size} {element}",
        module,
        [x, y, mine],
        lambda: torch.matmul(x, y, out=out),
        2 * size**3,
        "TFLOP/s",
    )


@attempted
def rounded_product(torch: Any, size: int) -> None:
    """A square product of floats as TF32, beside PyTorch's."""
    x, y = (torch.randn(size, size, device="cuda") for _ in range(2))
    text = matmul(size, size, size, "float", "float")
    module = tlx.compile(text, "nvidia", opt_level=3, float_products="tf32")
    out, mine, title = torch.empty_like(x), torch.empty_like(x), f"matmul {size} tf32"
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        compare(torch, title, module, [x, y, mine], lambda: torch.matmul(x, y, out=out), 2 * size**3, "TFLOP/s")
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


@attempted
def of_bytes(torch: Any, size: int, layouts: str) -> None:
    """A square product of signed bytes; PyTorch's second operand is column-major, as its kernel wants it."""
    x, y = (torch.randint(-9, 10, (size, size), device="cuda", dtype=torch.int8) for _ in range(2))
    module = tlx.compile(bytes_product("smma", size, size, size, layouts), "nvidia", opt_level=3)
    stored, multiply = y.t().contiguous(), getattr(torch, _INTEGER_PRODUCT)
    mine = torch.empty(size, size, device="cuda", dtype=torch.int32)
    operands = [x, stored if layouts[1] == "t" else y, mine]
    compare(
        torch,
        f"matmul {size} i8 {layouts}",
        module,
        operands,
        lambda: multiply(x, stored.t()),
        2 * size**3,
        "TFLOP/s",
    )


CONVOLUTIONS = ((64, 58, 64, 3, 1), (256, 56, 64, 1, 1), (256, 16, 256, 3, 1), (512, 9, 512, 3, 1), (3, 230, 64, 7, 2))
"""Layers of ResNet-50: channels, side of the padded image, filters, side of the window, stride."""


@attempted
def convolution(
    torch: Any, x_shape: tuple[int, ...], w_shape: tuple[int, ...], order: tuple[int, ...], stride: int
) -> None:
    """A convolution of padded images of bfloat, beside PyTorch's in the same layout."""
    text, shape = convolved("bfloat", x_shape, w_shape, order, stride)
    module = tlx.compile(text, "nvidia", opt_level=3)
    last = order == (0, 2, 3, 1)
    layout = torch.channels_last if last else torch.contiguous_format
    x, w = (torch.randn(*s, device="cuda").bfloat16().to(memory_format=layout) for s in (x_shape, w_shape))
    mine = torch.empty(*shape, device="cuda", dtype=torch.bfloat16).to(memory_format=layout)
    arrays = [array.permute(order) if last else array for array in (x, w, mine)]
    peer = lambda: torch.nn.functional.conv2d(x, w, stride=stride).permute(order)  # noqa: E731
    work = 2 * shape[0] * shape[1] * shape[2] * shape[3] * w_shape[1] * w_shape[2] * w_shape[3]
    name = "channels last" if last else "channels first"
    title = f"{x_shape[1]}-{w_shape[0]}.{x_shape[2]}.{w_shape[2]}s{stride} {name}"
    compare(torch, title, module, arrays, peer, work, "TFLOP/s")


@attempted
def batched(torch: Any, batch: int, size: int) -> None:
    """Many small products."""
    shape = (batch, size, size)
    count = batch * size * size
    body = f"""{tensor("a", "x", "bfloat", shape)}{tensor("b", "y", "bfloat", shape)}
  %p = call <{count} x bfloat> @llvm.tensor.matmul(token %a, token %b)
  store <{count} x bfloat> %p, ptr %c
"""
    x, y = (torch.randn(*shape, device="cuda").bfloat16() for _ in range(2))
    out, mine = torch.empty_like(x), torch.empty_like(x)
    module = tlx.compile(function(["x", "y", "c"], body), "nvidia", opt_level=3)
    compare(
        torch,
        f"{batch} x matmul {size} bfloat",
        module,
        [x, y, mine],
        lambda: torch.bmm(x, y, out=out),
        2 * batch * size**3,
        "TFLOP/s",
    )


@attempted
def layer(torch: Any, m: int, n: int, k: int) -> None:
    """gelu(x @ w + bias)."""
    operands = tensor("a", "x", "bfloat", (m, k)) + tensor("b", "w", "bfloat", (k, n))
    body = f"""{operands}{tensor("row", "bias", "float", (n,))}
  %p = call <{m * n} x float> @llvm.tensor.matmul(token %a, token %b)
{broadcast("rows", "row", "float", (m, n), (1,))}
  %sum = fadd <{m * n} x float> %p, %rows
{typed("s", "sum", "float", (m, n))}
  %r = call <{m * n} x float> @llvm.tensor.relu(token %s)
  %narrow = fptrunc <{m * n} x float> %r to <{m * n} x bfloat>
  store <{m * n} x bfloat> %narrow, ptr %c
"""
    x, w = (torch.randn(*s, device="cuda").bfloat16() for s in ((m, k), (k, n)))
    bias = torch.randn(n, device="cuda")
    narrow = bias.bfloat16()
    mine = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    module = tlx.compile(function(["x", "w", "bias", "c"], body), "nvidia", opt_level=3)
    peer = lambda: torch.relu_(torch.addmm(narrow, x, w))  # noqa: E731
    compare(torch, f"relu({m}x{n}x{k} + bias) bfloat", module, [x, w, bias, mine], peer, 2 * m * n * k, "TFLOP/s")


@attempted
def softmax(torch: Any, rows: int, columns: int) -> None:
    """Softmax of rows."""
    text = (ROOT / "examples" / "softmax.ll").read_text()
    text = text.replace("512000", str(rows * columns)).replace("1000", str(columns)).replace("512", str(rows))
    x = torch.randn(rows, columns, device="cuda")
    mine = torch.empty_like(x)
    module = tlx.compile(text, "nvidia", opt_level=3)
    compare(
        torch,
        f"softmax {rows}x{columns} float",
        module,
        [x, mine],
        lambda: torch.softmax(x, 1),
        8 * rows * columns,
        "TB/s",
    )


@attempted
def layer_norm(torch: Any, rows: int, columns: int) -> None:
    """Layer norm of rows, with a scale and a shift."""
    g = tlx.Graph("entry")
    x = g.parameter("x", (rows, columns))
    g.output(g.layer_norm(x, g.parameter("scale", (columns,)), g.parameter("shift", (columns,))))
    given = [torch.randn(*shape, device="cuda") for shape in ((rows, columns), (columns,), (columns,))]
    module = tlx.compile(g.text(), "nvidia", opt_level=3)
    peer = lambda: torch.nn.functional.layer_norm(given[0], (columns,), *given[1:])  # noqa: E731
    arrays = [*given, torch.empty_like(given[0])]
    compare(torch, f"layer norm {rows}x{columns} float", module, arrays, peer, 8 * rows * columns, "TB/s")


@attempted
def softmax_of_products(torch: Any, rows: int, columns: int, *, reassociated: bool = True) -> None:
    """Attention of 16 heads beside PyTorch's flash attention."""
    q, k, v = (torch.randn(1, 16, rows, columns, device="cuda").bfloat16() for _ in range(3))
    module = tlx.compile(
        attention((16, rows, rows, columns, columns), reassociated=reassociated), "nvidia", opt_level=3
    )
    kernels = import_module("torch.nn.attention")

    def peer() -> Any:
        with kernels.sdpa_kernel(kernels.SDPBackend.FLASH_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)[0]

    arrays = [q[0], k[0], v[0], torch.empty_like(q[0])]
    title = f"attention 16x{rows}x{columns}{'' if reassociated else ' exact'}"
    compare(torch, title, module, arrays, peer, 64 * rows * rows * columns, "TFLOP/s")


@attempted
def addition(torch: Any, rows: int, columns: int) -> None:
    """A sum of matrices."""
    count = rows * columns
    body = f"""{tensor("s", "x", "float", (rows, columns))}{tensor("t", "y", "float", (rows, columns))}
  %a = call <{count} x float> @llvm.tensor.tovector(token %s)
  %b = call <{count} x float> @llvm.tensor.tovector(token %t)
  %sum = fadd <{count} x float> %a, %b
  store <{count} x float> %sum, ptr %c
"""
    x, y = (torch.randn(rows, columns, device="cuda") for _ in range(2))
    out, mine = torch.empty_like(x), torch.empty_like(x)
    module = tlx.compile(function(["x", "y", "c"], body), "nvidia", opt_level=3)
    compare(
        torch, f"add {rows}x{columns} float", module, [x, y, mine], lambda: torch.add(x, y, out=out), 12 * count, "TB/s"
    )


if __name__ == "__main__":
    sys.exit(main())
