"""Lower the examples for this machine, compile and run them on random data, and compare with numpy: `make demo`.

`python examples/demo.py avx2` does it for another target that this machine runs (`tlx targets` lists them).
The exit status is 1 if a result differs from numpy's by more than rounding errors.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from ml_dtypes import bfloat16

import tlx
from tlx import Options, Remarks, find_target
from tlx.lower.options import STAGE_NAMES
from tlx.lower.pipeline import lower

if TYPE_CHECKING:
    from tlx import Target
    from tlx.ir.module import Module
    from tlx.lower.options import Step

Array = np.ndarray[Any, np.dtype[Any]]

HERE = Path(__file__).parent / "ir"
FLOAT, BFLOAT = 24, 8  # bits of the significand
SECONDS = 0.3  # time to measure each example
ROW = "  {:<16}{:<18}{:<18}{:>9}  {:>8}  {:>5}  {}"


@dataclass(frozen=True)
class Example:
    """The function of an example file, with data to run it on.

    Attributes:
        file: Name of the file; the function has the same name, without `.ll`.
        extents: M x N x K of a product, else the extents of the operand.
        types: Element types of operands and result.
        operations: Arithmetic operations of one call.
        inputs: The operands.
        out: Array for the result.
        expected: The result computed by numpy, in double or in integers.
        bound: Upper bound of the rounding error.
    """

    file: str
    extents: str
    types: str
    operations: int
    inputs: tuple[Array, ...]
    out: Array
    expected: Array
    bound: float = 0.0


@dataclass
class Stages:
    """Counts the instructions after each stage."""

    lines: list[str] = field(default_factory=list[str])

    def __call__(self, step: Step, module: Module) -> None:
        """Count the instructions of the module, and those that are tensor operations."""
        if step.name not in ("canonicalise", *STAGE_NAMES):
            return
        calls = [i.callee or "" for f in module.functions for i in f.instructions()]
        names = sorted({name.split(".")[2] for name in calls if name.startswith("llvm.tensor.")})
        title = "input" if step.name == "canonicalise" else step.name
        left = (
            f"{sum(name.startswith('llvm.tensor.') for name in calls)} of them tensor operations ({', '.join(names)})"
        )
        self.lines.append(f"  {title:<10}{len(calls):4} instructions, {left if names else 'no tensor operations'}")


def main(arguments: list[str]) -> int:
    """Run all examples; returns the exit status."""
    target = find_target(arguments[0] if arguments else "native")
    print(f"target {target.name}: {target.title}\n")
    for line in stages_of("mlp.ll", target):
        print(line)
    print("\n" + ROW.format("example", "M x N x K", "types", "max error", "bound", "Gop/s", "by"))
    results = [show(example, target) for example in examples()]
    print("\nall right" if all(results) else "\nWRONG: see the rows marked WRONG")
    return 0 if all(results) else 1


def stages_of(file: str, target: Target) -> Iterator[str]:
    """A line for each stage of the lowering."""
    stages = Stages()
    lower(tlx.parse((HERE / file).read_text(encoding="utf-8"), file), target, options=Options(print_after=stages))
    yield f"{file}, stage by stage:"
    yield from stages.lines


def means(remarks: Remarks) -> str:
    """How a program was lowered, such as `dot product, tiles of 6x64; 1 pass`."""
    applied = [remark.message for remark in remarks if remark.kind == "applied"]
    found = [re.search(r": (\D+?) \S+ x .* register tile (\d+x\d+)", message) for message in applied]
    products = [f"{match[1]}, tiles of {match[2]}" for match in found if match]
    passes = sum("one pass" in message for message in applied)
    return "; ".join(dict.fromkeys([*products, *([f"{passes} pass{'es'[: 2 * passes - 2]}"] if passes else [])]))


def show(example: Example, target: Target) -> bool:
    """Compile and run an example, and print its row; returns whether the result is right."""
    remarks = Remarks()
    kernel = tlx.compile(HERE / example.file, target, options=Options(remarks=remarks))

    def call() -> None:
        kernel(*example.inputs, example.out)

    call()
    error = float(np.abs(example.out.astype(np.float64) - example.expected).max())
    right = error <= example.bound
    speed = example.operations / best(call) / 1e9
    numbers = (f"{error:.1e}", f"{example.bound:.1e}") if example.bound else (f"{error:.0f}", "0")
    by = means(remarks) if right else "WRONG"
    print(ROW.format(example.file, example.extents, example.types, *numbers, f"{speed:.0f}", by), flush=True)
    return right


def best(call: Callable[[], None]) -> float:
    """Seconds of the fastest of several calls."""
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def examples() -> Iterator[Example]:
    """The examples with random data."""
    rng = np.random.default_rng(0)
    yield matmul(rng)
    yield bfloat16_product(rng)
    yield int8(rng)
    yield mlp(rng)
    yield convolution(rng)
    yield softmax(rng)


def matmul(rng: np.random.Generator) -> Example:
    """A batch of products of float matrices."""
    x, y = (rng.standard_normal((4, 512, 512), np.float32) for _ in "xy")
    expected, sums = exact(x, y)
    bound = rounding(512, FLOAT) * sums
    return Example("matmul.ll", "4 x 512x512x512", "f32", 2 * 4 * 512**3, (x, y), np.zeros_like(x), expected, bound)


def bfloat16_product(rng: np.random.Generator) -> Example:
    """A product of bfloat matrices with a float result."""
    x, y = normal(rng, (500, 600)), normal(rng, (600, 700))
    expected, sums = exact(x, y)
    out, bound = np.zeros((500, 700), np.float32), rounding(600, FLOAT) * sums
    return Example("bfloat16.ll", "500x700x600", "bf16 -> f32", 2 * 500 * 700 * 600, (x, y), out, expected, bound)


def int8(rng: np.random.Generator) -> Example:
    """A product of bytes, added to the result array."""
    x, y = rng.integers(0, 256, (512, 512), np.uint8), rng.integers(-128, 128, (512, 512), np.int8)
    out = rng.integers(-1000, 1000, (512, 512), np.int32)
    expected = exact(x, y.T)[0] + out
    return Example("int8.ll", "512x512x512", "u8 i8 -> i32", 2 * 512**3, (x, y), out, expected)


def mlp(rng: np.random.Generator) -> Example:
    """A product with bias and relu, rounded to bfloat."""
    x, w = normal(rng, (512, 256)), normal(rng, (256, 256))
    bias = rng.standard_normal(256, np.float32)
    products, sums = exact(x, w)
    expected = np.maximum(products + bias, 0)
    bound = rounding(257, FLOAT) * (sums + 5) + rounding(1, BFLOAT) * expected.max()
    operations = 2 * 512 * 256 * 256 + 2 * 512 * 256
    out = np.zeros((512, 256), bfloat16)
    return Example("mlp.ll", "512x256x256", "bf16 -> bf16", operations, (x, w, bias), out, expected, bound)


def convolution(rng: np.random.Generator) -> Example:
    """A convolution with bias and relu."""
    x, w = rng.standard_normal((8, 64, 30, 30), np.float32), rng.standard_normal((64, 64, 3, 3), np.float32)
    bias = rng.standard_normal(64, np.float32)
    taps = [(w[:, :, i, j], x[:, :, i : i + 28, j : j + 28].swapaxes(0, 1)) for i in range(3) for j in range(3)]
    products, sums = np.zeros((64, 8 * 28 * 28)), 0.0
    for filters, pixels in taps:
        product, most = exact(filters, pixels.reshape(64, -1))
        products, sums = products + product, sums + most
    expected = np.maximum(products.reshape(64, 8, 28, 28).swapaxes(0, 1) + bias[:, None, None], 0)
    operations = 2 * expected.size * (64 * 3 * 3 + 1)
    bound = rounding(64 * 3 * 3 + 1, FLOAT) * (sums + 5)
    out = np.zeros((8, 64, 28, 28), np.float32)
    return Example("convolution.ll", "8x64x30x30, 3x3", "f32", operations, (x, w, bias), out, expected, bound)


def softmax(rng: np.random.Generator) -> Example:
    """Softmax of rows; five operations per element: compare, subtract, exp, add, divide."""
    x = rng.standard_normal((512, 1000), np.float32)
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    bound = rounding(1000 + 30, FLOAT) * expected.max()  # the sum, the exponentials and the division
    return Example("softmax.ll", "512x1000", "f32", 5 * x.size, (x,), np.zeros_like(x), expected, bound)


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Normally distributed bfloat numbers."""
    return rng.standard_normal(shape, np.float32).astype(bfloat16)


def exact(x: Array, y: Array) -> tuple[Array, float]:
    """The product in double, and the largest sum of absolute products, to which rounding errors are relative."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    return x @ y, float((np.abs(x) @ np.abs(y)).max())


def rounding(operations: int, digits: int) -> float:
    """The largest relative error of consecutive operations, each rounded to `digits` bits."""
    return operations * 2.0**-digits


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
