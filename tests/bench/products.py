"""Matrix products, one thread: the kernels that TLX makes against the machine's peak, and numpy where it has the type.

Each product runs on operands aligned to 64 bytes and on operands one element further. Results are checked before
anything is timed. `of peak` is the median, over the rounds, of the speed divided by the peak measured beside it.
"""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.bench import machine
from tests.bench.kinds import KINDS, Array, Kind
from tests.bench.peaks import STEPS, Peak, peak
from tests.bench.timing import Contestant, Rates, interleaved
from tlx.diagnostics import UsageError
from tlx.jit import Compiled
from tlx.jit import compile as compile_module
from tlx.native import cpu_flags, missing
from tlx.target import Target, find

_ALIGNMENT: Final = 64
_NOISY: Final = 0.1
_REPEAT: Final = """
define void @repeat(ptr %f, i64 %n, ptr %c, ptr %a, ptr %b) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void %f(ptr %c, ptr %a, ptr %b)
  %next = add i64 %i, 1
  %again = icmp ult i64 %next, %n
  br i1 %again, label %loop, label %end
end:
  ret void
}
"""


@dataclass(frozen=True)
class Row:
    """Figures of one kind of product at one size; `rates` by contestant: peak, aligned, unaligned, numpy."""

    kind: Kind
    size: int
    peak: Peak
    rates: dict[str, Rates]

    def text(self) -> str:
        """A line of the table."""
        top, ours = self.rates["peak"], self.rates["aligned"]
        shares = [f"{rates.share(top):8.1%}" for name, rates in self.rates.items() if name != "peak"]
        return (
            f"{self.kind.title:11} {self.size:5} {ours.best:8.1f} {ours.median:8.1f} {ours.spread:7.1%} "
            f"{top.best:8.1f} {top.median:8.1f} {top.spread:7.1%} {' '.join(shares)}"
        )

    def record(self) -> dict[str, Any]:
        """The same for `--json`; rates in 10^9 operations a second."""
        top = self.rates["peak"]
        contestants = {
            name: {
                "best": r.best,
                "median": r.median,
                "spread": r.spread,
                "of_peak": r.share(top),
                "of_peak_best": r.best / top.best,
            }
            for name, r in self.rates.items()
        }
        return {"product": self.kind.name, "size": self.size, "peak_loop": self.peak.instruction, "rates": contestants}


def run(target: str, kinds: list[str], sizes: list[int], rounds: int, cpu: int, report: Path | None) -> None:
    """Measure and print.

    Raises:
        UsageError: An unknown target or kind, or a target whose code this machine cannot run.
        ValueError: A result is wrong.
    """
    aim = runnable(target)
    unknown = [name for name in kinds if name not in KINDS]
    if unknown:
        raise UsageError(f"unknown kind '{unknown[0]}'; known are {', '.join(KINDS)}")
    setting = {
        "machine": machine.processor(),
        "cpu": cpu,
        "target": aim.name,
        "features": ",".join(aim.features),
        "llvm": f"llvmlite {version('llvmlite')}",
        "numpy": version("numpy"),
        "date": machine.today(),
    }
    print("\n".join(f"{name + ':':9} {value}" for name, value in setting.items()))
    print("\nGFLOP/s (integers: GOP/s)       ours                        peak              of peak, median")
    print("product      size     best   median  spread     best   median  spread  aligned unaligned numpy")
    rows: list[Row] = []
    for name in kinds:
        for size in sizes:
            rows.append(_measured(KINDS[name], size, aim, rounds))
            print(rows[-1].text(), flush=True)
    _warn(rows)
    if report is not None:
        report.write_text(json.dumps({**setting, "rows": [row.record() for row in rows]}, indent=1) + "\n")


def runnable(name: str) -> Target:
    target = find(name)
    lacking = missing(target, cpu_flags())
    if lacking:
        raise UsageError(f"this machine cannot run the code of {target.name}: it lacks {', '.join(lacking)}")
    return target


def _warn(rows: list[Row]) -> None:
    spread = max((row.rates["peak"].spread for row in rows), default=0.0)
    if spread > _NOISY:
        print(f"\nThe peak itself varied by up to {spread:.0%}: something else is using the machine.")


def _measured(kind: Kind, size: int, target: Target, rounds: int) -> Row:
    compiled = compile_module(kind.module(size), target, entry="product")
    ceiling = peak(kind, target)
    lhs, rhs = kind.operands(size)
    contestants = {"peak": peak_contestant(ceiling, kind, target)}
    for name, shift in (("aligned", 0), ("unaligned", 1)):
        a, b = _placed(lhs, shift), _placed(rhs, shift)
        c = _placed(np.zeros((size, size), kind.dtypes[2]), shift)
        contestants[name] = _product(compiled, c, a, b)
        contestants[name].repeat(2)
        kind.check(c, a, b)
    if kind.name == "f32":
        contestants["numpy"] = _numpy(lhs, rhs)
    return Row(kind, size, ceiling, interleaved(contestants, rounds))


def _placed(matrix: Array, shift: int) -> Array:
    """A copy that begins `shift` elements behind a multiple of 64 bytes."""
    memory = np.zeros(matrix.nbytes + 2 * _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT + shift * matrix.itemsize
    copy = memory[start : start + matrix.nbytes].view(matrix.dtype).reshape(matrix.shape)
    copy[...] = matrix
    return copy


def _product(compiled: Compiled, c: Array, a: Array, b: Array) -> Contestant:
    """The kernel called from a loop of machine code: neither Python nor ctypes is in the figures."""
    loop = compile_module(_REPEAT, entry="repeat")
    function = _address(compiled)
    code = loop.entry._code
    operations = 2 * a.shape[0] * a.shape[1] * b.shape[1]
    pointers = [array.ctypes.data for array in (c, a, b)]
    keep = (compiled, loop, c, a, b)
    return Contestant(lambda count: (code(function, count, *pointers), keep), operations)


def peak_contestant(ceiling: Peak, kind: Kind, target: Target) -> Contestant:
    loop = compile_module(ceiling.text, target, entry="peak")
    code = loop.entry._code
    source, out = kind.operands(32)[0], np.zeros(4096, np.float32)
    pointers = [out.ctypes.data, source.ctypes.data]
    keep = (loop, source, out)
    return Contestant(lambda count: (code(count * STEPS, *pointers), keep), ceiling.operations * STEPS)


def _numpy(lhs: Array, rhs: Array) -> Contestant:
    out = np.zeros((lhs.shape[0], rhs.shape[1]), lhs.dtype)

    def repeat(count: int) -> None:
        for _ in range(count):
            np.matmul(lhs, rhs, out=out)

    return Contestant(repeat, 2 * lhs.shape[0] * lhs.shape[1] * rhs.shape[1])


def _address(compiled: Compiled) -> int:
    return ctypes.cast(compiled.entry._code, ctypes.c_void_p).value or 0
