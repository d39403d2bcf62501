"""How long tlx-lower takes: the whole program, on modules with 1, 10 and 100 products of different sizes.

Sizes differ, so that no kernel is shared. The first line, a module without tensor operations, is what starting Python
and LLVM costs.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.bench.kinds import KINDS

_COUNTS: Final = (0, 1, 10, 100)
_RUNS: Final = 5
_TOOL: Final = Path(sys.executable).with_name("tlx-lower")
_EMPTY: Final = "define void @nothing() {\n  ret void\n}\n"


def run() -> None:
    """Measure and print."""
    print(f"{'operations':>10} {'lines in':>9} {'lines out':>9} {'with LLVM as judge':>19} {'without':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for count in _COUNTS:
            source, output = Path(folder) / "in.ll", Path(folder) / "out.ll"
            text = _products(count) if count else _EMPTY
            source.write_text(text)
            judged = _seconds([str(source), "-o", str(output)])
            alone = _seconds([str(source), "-o", str(output), "--no-verify-each"])
            lines = output.read_text().count("\n")
            print(
                f"{count:10} {text.count(chr(10)):9} {lines:9} {judged * 1e3:16.0f} ms {alone * 1e3:6.0f} ms",
                flush=True,
            )


def _products(count: int) -> str:
    """A module with `count` functions, each a product of a size of its own."""
    functions: list[str] = []
    declarations: dict[str, None] = {}
    for index in range(count):
        text = KINDS["f32"].module(32 + index).replace("@product(", f"@product{index}(")
        define, *declared = text.strip().split("\n\ndeclare ")
        functions.append(define)
        declarations.update(dict.fromkeys(declared))
    return "\n\n".join([*functions, *(f"declare {text}" for text in declarations)]) + "\n"


def _seconds(arguments: list[str]) -> float:
    """Median of a few runs."""
    times: list[float] = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        subprocess.run([str(_TOOL), *arguments], check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)
