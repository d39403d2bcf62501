"""Lower the examples for this machine, compile them, run them on random data, compare with numpy: `make demo`.

`python examples/demo.py avx2` does it for another target that this machine runs (`tlx targets` lists them).
The exit status is 1 if a result is further from numpy's than rounding explains.
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
from tlx.pipeline import STAGE_NAMES, Options, lower
from tlx.remarks import Remarks
from tlx.target import find

if TYPE_CHECKING:
    from tlx.ir.module import Module
    from tlx.pipeline import Step
    from tlx.target import Target

Array = np.ndarray[Any, np.dtype[Any]]

HERE = Path(__file__).parent
SECONDS = 0.4  # of measuring for each example
ROW = "  {:<12}{:<18}{:<18}{:>9}  {:>9}  {:>6}  {}"


@dataclass(frozen=True)
class Example:
    """A function of one file, with data to run it on.

    Attributes:
        file: Name of the file; the function has the same, without `.ll`.
        sizes: What is multiplied with what.
        types: Of lhs, rhs and result.
        operations: Multiplications and additions of one call.
        lhs, rhs: The operands.
        out: Where the result goes; what is there before is added to it by int8.ll only.
        exact: The result, and the sum of absolute products that rounding errors are relative to.
    """

    file: str
    sizes: str
    types: str
    operations: int
    lhs: Array
    rhs: Array
    out: Array
    exact: tuple[Array, Array]

    @property
    def bound(self) -> float:
        """The largest error that adding K products in any order can make: K rounding errors of the result's type."""
        if self.out.dtype.kind == "i":
            return 0.0
        terms = self.lhs.shape[-1]
        return float(terms * np.finfo(self.out.dtype).eps / 2 * self.exact[1].max())


@dataclass
class Stages:
    """Counts what is left after each stage."""

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
    """Run all examples; the exit status."""
    target = find(arguments[0] if arguments else "native")
    print(f"target {target.name}: {target.title}\n")
    for line in stages_of("matmul.ll", target):
        print(line)
    print("\n" + ROW.format("example", "sizes", "types", "max error", "bound", "Gop/s", "by"))
    results = [show(example, target) for example in examples()]
    print("\nall right" if all(results) else "\nWRONG: see the rows marked so")
    return 0 if all(results) else 1


def stages_of(file: str, target: Target) -> Iterator[str]:
    """One line for each stage of the lowering."""
    stages = Stages()
    lower(tlx.parse((HERE / file).read_text(encoding="utf-8"), file), target, options=Options(print_after=stages))
    yield f"{file}, stage by stage:"
    yield from stages.lines


def means(remarks: Remarks) -> str:
    """What the lowering multiplies with: `dot product, tiles of 6x64`."""
    pattern = r": (\D+?) \S+ x .* register tile (\d+x\d+)"
    found = [re.search(pattern, remark.message) for remark in remarks if remark.kind == "applied"]
    return "; ".join(f"{match[1]}, tiles of {match[2]}" for match in found if match)


def show(example: Example, target: Target) -> bool:
    """Compile and run an example and print its row; whether the result is right."""
    remarks = Remarks()
    kernel = tlx.compile(HERE / example.file, target, options=Options(remarks=remarks))
    before = example.out.copy()

    def call() -> None:
        kernel(example.lhs, example.rhs, example.out)

    call()
    expected = example.exact[0] + before if example.file == "int8.ll" else example.exact[0]
    error = float(np.abs(example.out.astype(np.float64) - expected).max())
    right = error <= example.bound
    speed = example.operations / best(call) / 1e9
    numbers = (f"{error:.1e}", f"{example.bound:.1e}") if example.bound else (f"{error:.0f}", "0")
    by = means(remarks) if right else "WRONG"
    print(ROW.format(example.file, example.sizes, example.types, *numbers, f"{speed:.0f}", by), flush=True)
    return right


def best(call: Callable[[], None]) -> float:
    """Seconds of the fastest of some calls."""
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def examples() -> Iterator[Example]:
    """The examples with random data, one after the other."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((4, 512, 512), np.float32) for _ in "xy")
    yield Example("matmul.ll", "4 x 512x512x512", "f32 f32 -> f32", 2 * 4 * 512**3, x, y, np.zeros_like(x), exact(x, y))

    x, y = (rng.standard_normal(shape, np.float32).astype(bfloat16) for shape in ((500, 600), (600, 700)))
    out = np.zeros((500, 700), np.float32)
    yield Example("bfloat16.ll", "500x700x600", "bf16 bf16 -> f32", 2 * 500 * 700 * 600, x, y, out, exact(x, y))

    x, y = rng.integers(0, 256, (512, 512), np.uint8), rng.integers(-128, 128, (512, 512), np.int8)
    out = rng.integers(-1000, 1000, (512, 512), np.int32)
    yield Example("int8.ll", "512x512x512", "u8 i8 -> i32", 2 * 512**3, x, y, out, exact(x, y.T))


def exact(x: Array, y: Array) -> tuple[Array, Array]:
    """The product in double, and the product of absolute values."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    return x @ y, np.abs(x) @ np.abs(y)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
