"""Compile the kernels in this folder, run them on random data, and compare with numpy: `python run.py`.

The exit status is 1 if a result differs from numpy's by more than rounding errors.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from ml_dtypes import bfloat16

import tlx

Array = np.ndarray[Any, np.dtype[Any]]
Outcome = tuple[float, float]  # largest error relative to the largest number, and seconds of a run

HERE: Final = Path(__file__).parent
kernels = tlx.tensor_language
random = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    """Random single-precision numbers, column-major as in the language."""
    return np.asfortranarray(random.standard_normal(shape, np.float32))


def timed(call: Callable[[], None]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def error(found: Array, exact: Array) -> float:
    """Largest difference, relative to the largest number."""
    return float(np.abs(found - exact).max() / np.abs(exact).max())


def fused(file: str, std: str) -> Outcome:
    """Two products per group, in either version of the language."""
    kernel = kernels.compile(HERE / file, std=std)
    groups = 1000
    a, b, c = [normal(16, 8) for _ in range(groups)], normal(8, 8), normal(8, 16)
    d = normal(16, 16, groups)
    exact = d + 1.5 * np.stack([m.astype(float) @ b.T @ c for m in a], axis=-1)
    seconds = timed(lambda: kernel.fused(1.5, a, b, c, d, groups=groups))
    return error(d, exact), seconds


def ader_dg() -> Outcome:
    """The volume update of a discontinuous Galerkin method, 1000 elements."""
    kernel = kernels.compile(HERE / "ader_dg.tl")
    groups = 1000
    p, i = [normal(32, 32) for _ in range(3)], normal(32, 9, groups)
    a, q = normal(9, 9, 3, groups), normal(32, 9, groups)
    exact = q + sum(np.einsum("ij,jkg,klg->ilg", p[d].astype(float), i, a[:, :, d]) for d in range(3))
    seconds = timed(lambda: kernel.volume(*p, i, a, q, groups=groups))
    return error(q, exact), seconds


def tall_skinny() -> Outcome:
    """100,000 x 32 times 32 x 16; the number of rows is known only at run time."""
    kernel = kernels.compile(HERE / "tall_skinny.tl")
    rows = 100_000
    a, b, c = normal(rows, 32), normal(32, 16), normal(rows, 16)
    exact = 2 * a.astype(float) @ b + 0.5 * c
    seconds = timed(lambda: kernel.tall_skinny(2, a, b, 0.5, c, groups=-(-rows // 256)))
    return error(c, exact), seconds


def attention() -> Outcome:
    """One head with 500 queries and keys of 64 elements."""
    kernel = kernels.compile(HERE / "attention.tl")
    n = 500
    q, k, v = (normal(n, 64).astype(bfloat16, order="F") for _ in range(3))
    o = np.full((n, 64), np.nan, np.float32, order="F")
    scores = q.astype(float) @ k.astype(float).T / 8
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    exact = weights / weights.sum(axis=1, keepdims=True) @ v.astype(float)
    seconds = timed(lambda: kernel.attention(q, k, v, o, groups=-(-n // 64)))
    return error(o, exact), seconds


def product() -> Outcome:
    """300 x 200 times 200 x 400, whose sizes are no multiples of the tiles."""
    kernel = kernels.compile(HERE / "product.tl")
    a, b = (normal(*shape).astype(bfloat16, order="F") for shape in ((300, 200), (200, 400)))
    c = np.full((300, 400), np.nan, np.float32, order="F")
    seconds = timed(lambda: kernel.product(a, b, c, groups=(2, 4)))
    return error(c, a.astype(float) @ b.astype(float)), seconds


# The examples, and bounds of their rounding errors: of f32 sums, and of weights rounded to bf16.
EXAMPLES: Final[dict[str, tuple[Callable[[], Outcome], float]]] = {
    "fused.tl": (lambda: fused("fused.tl", "v2"), 1e-6),
    "fused_v1.tl": (lambda: fused("fused_v1.tl", "v1"), 1e-6),
    "ader_dg.tl": (ader_dg, 1e-6),
    "tall_skinny.tl": (tall_skinny, 1e-6),
    "attention.tl": (attention, 2**-8),
    "product.tl": (product, 1e-6),
}


def main() -> int:
    """Run the examples; returns the exit status."""
    wrong = 0
    for name, (run, bound) in EXAMPLES.items():
        relative, seconds = run()
        right = relative <= bound
        wrong += not right
        print(f"{name:<16} {seconds * 1e3:8.2f} ms   error {relative:.1e}   {'right' if right else 'WRONG'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
