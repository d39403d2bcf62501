"""Measure what epilogues behind bfloat products cost: their time as a multiple of that of the product alone.

    python tools/measure/bench_epilogues.py 512x3072x768 1024x3072x768 --rounds=50 --cpu=3

The weights are packed once, and bfloat expressions are computed in float. All arrays are aligned to cache lines, as
those of JAX and PyTorch are. Calls alternate on one thread; each number is the median over rounds, of the least
processor time of a few calls each.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from statistics import median
from typing import Any, Final

import ml_dtypes
import numpy as np

import tlx
from tlx.graph.value import Value

Array = np.ndarray[Any, np.dtype[Any]]
Epilogue = Callable[[tlx.Graph, Value, Value], Value]

BFLOAT: Final = np.dtype(ml_dtypes.bfloat16)
_CACHE_LINE: Final = 64
_CALLS: Final = 5


def gelu_by_tanh(g: tlx.Graph, y: Value) -> Value:
    """GELU by `tanh` in operations on the type of y, as `jax.nn.gelu` writes it."""
    u = (y + y * y * y * 0.044715) * math.sqrt(2 / math.pi)
    return y * (0.5 * (g.tanh(u) + 1.0))


def exact_gelu(g: tlx.Graph, y: Value) -> Value:
    """GELU by `erfc` in operations on the type of y, as `jax.nn.gelu(y, approximate=False)` writes it."""
    return y * 0.5 * g.erfc(-y * math.sqrt(0.5))


def in_float(activation: Callable[[tlx.Graph, Value], Value]) -> Epilogue:
    """An activation in operations on float, whose result the program rounds."""
    return lambda g, y, _r: g.convert(activation(g, g.convert(y, np.float32)), BFLOAT)


EPILOGUES: Final[dict[str, Epilogue]] = {
    "bias": lambda _g, y, _r: y,
    "GELU": lambda g, y, _r: gelu_by_tanh(g, y),
    "SiLU": lambda g, y, _r: y * g.sigmoid(y),
    "GELU on floats": lambda g, y, _r: g.gelu(y),
    "exact GELU": lambda g, y, _r: exact_gelu(g, y),
    "GELU in float": in_float(gelu_by_tanh),
    "exact GELU in float": in_float(exact_gelu),
    "residual": lambda _g, y, r: y + r,
    "GELU and residual": lambda g, y, r: gelu_by_tanh(g, y) + r,
}
"""What follows the sum of a product and a bias, with a residual matrix at hand."""


def aligned(values: Any) -> Array:
    """Numbers as bfloats in memory that begins at a cache line."""
    memory = np.empty(values.size * BFLOAT.itemsize + _CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    array = memory[start : start + values.size * BFLOAT.itemsize].view(BFLOAT).reshape(values.shape)
    array[...] = values
    return array


def calls(m: int, n: int, k: int, target: str) -> dict[str, Callable[[], None]]:
    """A call of the product alone, then one for each epilogue."""
    random = np.random.default_rng(0)
    x, residual, bias, result = (aligned(random.normal(size=size)) for size in ((m, k), (m, n), (n,), (m, n)))
    weights = aligned(random.normal(size=(k, n)) / math.sqrt(k))

    def compiled(epilogue: Epilogue | None) -> Callable[[], None]:
        g = tlx.Graph("layer")
        y = g.parameter("x", (m, k), BFLOAT) @ g.weight("weights", weights)
        added = g.parameter("residual", (m, n), BFLOAT)
        g.output(y if epilogue is None else epilogue(g, y + g.weight("bias", bias), added))
        function = g.compile(target, bf16_intermediates="float").prepared
        assert function is not None
        return lambda: function(x, residual, result)

    return {"product": compiled(None), **{name: compiled(epilogue) for name, epilogue in EPILOGUES.items()}}


def best_time(call: Callable[[], None]) -> float:
    """The least processor time of a few calls, in seconds."""
    times: list[float] = []
    for _ in range(_CALLS):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Measure the shapes on the command line, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="+", metavar="MxNxK", help="extents of a product")
    parser.add_argument("--rounds", type=int, default=50, help="rounds of calls (default: 50)")
    parser.add_argument("--cpu", type=int, help="processor to run on")
    parser.add_argument("--target", default="native", help="target to generate code for (default: native)")
    options = parser.parse_args()
    if options.cpu is not None:
        os.sched_setaffinity(0, {options.cpu})
    print(f"| M x N x K | product, Gop/s | {' | '.join(EPILOGUES)} |\n|{' --- |' * (2 + len(EPILOGUES))}")
    for shape in options.shapes:
        m, n, k = map(int, shape.split("x"))
        functions = calls(m, n, k, options.target)
        rounds = [{name: best_time(call) for name, call in functions.items()} for _ in range(options.rounds)]
        speed = 2e-9 * m * n * k / median(times["product"] for times in rounds)
        ratios = (median(times[name] / times["product"] for times in rounds) for name in EPILOGUES)
        print(f"| {shape} | {speed:.0f} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |", flush=True)


if __name__ == "__main__":
    main()
