"""Kernels of the tensor language on 10,000 small matrices, one thread, against numpy and the machine's peak.

    fused       t = A B^T;  D += alpha t C       16x8 8x8, 16x8 8x16; a matrix A and D of each work-group
    chain n     Q := P A B                       n x n; a matrix A and Q of each work-group

numpy multiplies stacks of the same matrices, with `matmul` and with `einsum` along its best path. Results are checked
before anything is timed. In figures `of peak` is the median, over the rounds, of the speed divided by the peak
measured beside it. `hot` are the same kernels on as many groups as fit the first-level cache: the memory's share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tlx.bench import peaks
from tlx.bench.measure import runnable
from tlx.frontends import tensor_language as tl
from tlx.intrinsics.numpy_types import Array
from tlx.target.target import Target
from tlx.tuning import machine
from tlx.tuning.timing import Contestant, Rates, interleaved
from tlx.tuning.workload import F32

GROUPS: Final = 10_000
_HOT: Final = 8
_FUSED: Final = """
func @kernel(%alpha: f32, %A: memref<f32x16x8x?>, %B: memref<f32x8x8>, %C: memref<f32x8x16>,
             %D: memref<f32x16x16x?>) {
  %0 = constant 0.0 : f32
  %1 = constant 1.0 : f32
  %g = group_id.x : index
  %a = subview %A[0:16,0:8,%g] : memref<f32x16x8>
  %d = subview %D[0:16,0:16,%g] : memref<f32x16x16>
  %t = alloca : memref<f32x16x8,local>
  gemm.n.t %1, %a, %B, %0, %t
  gemm.n.n %alpha, %t, %C, %1, %d
}
"""
_CHAIN: Final = """
func @kernel(%P: memref<f32xNxN>, %A: memref<f32xNxNx?>, %B: memref<f32xNxN>, %Q: memref<f32xNxNx?>)
    attributes {"fast_beta"=true} {
  %0 = constant 0.0 : f32
  %1 = constant 1.0 : f32
  %g = group_id.x : index
  %a = subview %A[0:N,0:N,%g] : memref<f32xNxN>
  %q = subview %Q[0:N,0:N,%g] : memref<f32xNxN>
  %t = alloca : memref<f32xNxN,local>
  gemm %1, %P, %a, %0, %t
  gemm %1, %t, %B, %0, %q
}
"""


@dataclass(frozen=True)
class Program:
    """A kernel and what numpy does instead.

    Attributes:
        title: In the table.
        text: The kernel.
        operations: Additions and multiplications of one group.
        arguments: Of the kernel, for a number of groups; the output is the last one.
        matmul, einsum: Compute the output from stacks: mode 0 is the group.
    """

    title: str
    text: str
    operations: int
    arguments: Callable[[int], list[Any]]
    matmul: Callable[[list[Any]], Array]
    einsum: Callable[[list[Any]], Array]


def run(target: str, rounds: int, cpu: int) -> None:
    """Measure and print.

    Raises:
        UsageError: An unknown target, or one whose code this machine cannot run.
        ValueError: A result is wrong.
    """
    aim = runnable(target)
    print(f"machine: {machine.processor()}\ncpu:     {cpu}\ntarget:  {aim.name}\ndate:    {machine.today()}")
    print(f"\n{GROUPS} groups          GFLOP/s, median                          of peak")
    print("kernel        ours   spread     hot   matmul   einsum     peak     ours      hot   matmul   einsum")
    for program in programs():
        print(_line(program, _measured(program, aim, rounds)), flush=True)


def programs() -> list[Program]:
    """All that is measured."""
    return [_fused(), *(_chain(n) for n in (8, 16, 32))]


def _line(program: Program, rates: dict[str, Rates]) -> str:
    top = rates["peak"]
    names = ("ours", "hot", "matmul", "einsum")
    ours, hot, matmul, einsum = (rates[name] for name in names)
    speeds = " ".join(f"{r.median:8.1f}" for r in (matmul, einsum, top))
    shares = " ".join(f"{r.share(top):8.1%}" for r in (ours, hot, matmul, einsum))
    return f"{program.title:10} {ours.median:7.1f} {ours.spread:8.1%} {hot.median:7.1f} {speeds} {shares}"


def _measured(program: Program, target: Target, rounds: int) -> dict[str, Rates]:
    kernel = tl.compile(program.text, target)["kernel"]
    _check(program, kernel)
    every, hot = program.arguments(GROUPS), program.arguments(_HOT)
    again = GROUPS // _HOT
    contestants = {
        "peak": peaks.contestant(peaks.peak((F32, F32, F32), target), target),
        "ours": _contestant(program, lambda: kernel(*every, groups=GROUPS), GROUPS),
        "hot": _contestant(program, lambda: [kernel(*hot, groups=(_HOT, again))], _HOT * again),
        "matmul": _contestant(program, lambda: program.matmul(every), GROUPS),
        "einsum": _contestant(program, lambda: program.einsum(every), GROUPS),
    }
    return interleaved(contestants, rounds).rates


def _contestant(program: Program, once: Callable[[], object], groups: int) -> Contestant:
    def repeat(count: int) -> None:
        for _ in range(count):
            once()

    return Contestant(repeat, program.operations * groups)


def _check(program: Program, kernel: Any) -> None:
    """Compare a run of the kernel with both of numpy's ways."""
    given = program.arguments(100)
    expected = program.matmul([x.copy("K") if isinstance(x, np.ndarray) else x for x in given])
    other = program.einsum([x.copy("K") if isinstance(x, np.ndarray) else x for x in given])
    kernel(*given, groups=100)
    got = given[-1].T.swapaxes(1, 2)
    for values in (expected, other):
        if not np.allclose(got, values, rtol=1e-4, atol=1e-4):
            msg = f"{program.title}: differs from numpy by up to {np.abs(got - values).max()}"
            raise ValueError(msg)


def _matrices(*shape: int) -> Array:
    """Column-major, the last mode outermost."""
    values = np.random.default_rng(shape[-1]).uniform(-1, 1, shape)
    return np.asfortranarray(values.astype(np.float32))


def _stack(array: Array) -> Array:
    """The matrices as numpy stacks them, without a copy: mode 0 is the group."""
    return array.T.swapaxes(1, 2)


def _fused() -> Program:
    def arguments(groups: int) -> list[Any]:
        a, d = _matrices(16, 8, groups), _matrices(16, 16, groups)
        return [1e-3, a, _matrices(8, 8), _matrices(8, 16), d]

    def matmul(given: list[Any]) -> Array:
        alpha, a, b, c, d = given
        out = _stack(d)
        out += alpha * np.matmul(np.matmul(_stack(a), b.T), c)
        return out

    def einsum(given: list[Any]) -> Array:
        alpha, a, b, c, d = given
        out = _stack(d)
        out += alpha * np.einsum("gik,jk,jn->gin", _stack(a), b, c, optimize=True)
        return out

    return Program("fused", _FUSED, 2 * 16 * 8 * 8 + 2 * 16 * 8 * 16 + 2 * 16 * 16, arguments, matmul, einsum)


def _chain(n: int) -> Program:
    def arguments(groups: int) -> list[Any]:
        return [_matrices(n, n), _matrices(n, n, groups), _matrices(n, n), _matrices(n, n, groups)]

    def matmul(given: list[Any]) -> Array:
        p, a, b, _ = given
        return np.matmul(np.matmul(p, _stack(a)), b)

    def einsum(given: list[Any]) -> Array:
        p, a, b, _ = given
        return np.einsum("ij,gjk,kl->gil", p, _stack(a), b, optimize=True)

    return Program(f"chain {n}", _CHAIN.replace("N", str(n)), 4 * n**3, arguments, matmul, einsum)
