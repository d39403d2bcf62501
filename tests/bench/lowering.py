"""How long tlx-lower takes: the whole program, on modules with 1, 10, 100 and 1000 products (`tests.bench.programs`).

The first line, a module whose only tensor operation is unused, is the cost of starting Python and LLVM. `growth` says
how much longer a product takes than in the smaller program of the line above, starting not counted: 1 is linear. `opt`
is opt-19 -O2 on what comes out. Where starting is less than half of the time, growth may be at most 1.3, and the whole
may take at most twice as long as opt.

Times are those of processors, children (LLVM, the judge) included: other programs on the machine matter less to them.
The shortest of a few runs counts.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.programs import PROGRAMS

_RUNS: Final = 5
_ENOUGH_S: Final = 4.0
_TOOL: Final = str(Path(sys.executable).with_name("tlx-lower"))
_OPT: Final = "opt-19"
_EMPTY: Final = """
define void @nothing(ptr %p) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %p, <1 x i32> <i32 8>, <1 x i32> zeroinitializer,
    <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  ret void
}
"""
_KERNEL: Final = re.compile(r'(?m)^define internal [^\n]*@"?tlx\.')
_GROWTH_BAR: Final = 1.3
_TIME_BAR: Final = 2.0
_ENVIRONMENT: Final = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}  # nothing is compiled in a run that counts


@dataclass(frozen=True)
class Row:
    """The figures of a program; times in seconds of processors.

    Attributes:
        judged: With LLVM judging the input and each stage's output, as by default.
        alone: With `--no-verify-each`.
        opt: `opt -O2` on the output; 0 where there is no opt.
    """

    program: str
    count: int
    lines: int
    lines_out: int
    kernels: int
    judged: float
    alone: float
    opt: float

    def growth(self, smaller: Row | None, start: Row) -> float | None:
        """Time for each product as a multiple of that in a smaller program, starting not counted."""
        if smaller is None or not smaller.count:
            return None
        before = max(smaller.judged - start.judged, 1e-3) / smaller.count
        return (self.judged - start.judged) / self.count / before


def run(target: str, counts: list[int], only: str) -> int:
    """Measure and print; gives the exit status: 0 where all bars are met."""
    print(
        f"{'program':24} {'products':>8} {'lines in':>9} {'out':>8} {'kernels':>7} {'judged':>10} {'alone':>10} "
        f"{'each':>8} {'growth':>6} {'opt -O2':>10} {'ratio':>5} {'alone':>5}"
    )
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        start = _measured("nothing", 0, _EMPTY, target, Path(folder))
        _print(start, None, start)
        for name, program in PROGRAMS.items():
            smaller = None
            for count in counts if only in name else []:
                row = _measured(name, count, program(count), target, Path(folder))
                growth = _print(row, smaller, start)
                failures += _failures(row, growth, start)
                smaller = row
    for failure in failures:
        print(f"missed: {failure}")
    return int(bool(failures))


def _failures(row: Row, growth: float | None, start: Row) -> list[str]:
    bars = {
        "growth": growth is not None and growth > _GROWTH_BAR and row.judged > 2 * start.judged,
        "time": row.opt > 0 and row.judged > _TIME_BAR * row.opt and row.judged > 2 * start.judged,
    }
    return [f"{row.program}, {row.count}: {bar}" for bar, missed in bars.items() if missed]


def _print(row: Row, smaller: Row | None, start: Row) -> float | None:
    growth = row.growth(smaller, start)
    each = (row.judged - start.judged) / row.count * 1e3 if row.count else 0
    print(
        f"{row.program:24} {row.count:8} {row.lines:9} {row.lines_out:8} {row.kernels:7} {row.judged * 1e3:7.0f} ms "
        f"{row.alone * 1e3:7.0f} ms {each:5.1f} ms {'' if growth is None else f'{growth:.2f}':>6} "
        f"{row.opt * 1e3:7.0f} ms {_ratio(row.judged, row.opt):>5} {_ratio(row.alone, row.opt):>5}",
        flush=True,
    )
    return growth


def _ratio(ours: float, opt: float) -> str:
    return f"{ours / opt:.2f}" if opt else ""


def _measured(name: str, count: int, text: str, target: str, folder: Path) -> Row:
    source, output = folder / "in.ll", folder / "out.ll"
    source.write_text(text)
    command = [_TOOL, f"--target={target}", str(source), "-o", str(output)]
    judged = _seconds(command)
    alone = _seconds([*command, "--no-verify-each"])
    lowered = output.read_text()
    opt = shutil.which(_OPT)
    rival = _seconds([opt, "-O2", str(output), "-o", str(folder / "out.bc")]) if opt else 0.0
    kernels = len(_KERNEL.findall(lowered))
    return Row(name, count, text.count("\n"), lowered.count("\n"), kernels, judged, alone, rival)


def _seconds(command: list[str]) -> float:
    """The shortest of a few runs; of fewer where they take long."""
    times: list[float] = []
    while len(times) < _RUNS and sum(times) < _ENOUGH_S:
        before = _processor_time()
        subprocess.run(command, check=True, env=_ENVIRONMENT)
        times.append(_processor_time() - before)
    return min(times)


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
