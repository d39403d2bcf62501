"""The inner loops of x86 assembly: what they consist of, and how fast llvm-mca says they are.

    python tests/assembly.py FILE.s                     counts the instructions of innermost loops that multiply
    python tests/assembly.py FILE.s --mcpu=CPU          and compares their cycles with what the ports allow
    python tests/assembly.py FILE.s --mcpu=CPU --bound=1.1      exits with 1 where a loop takes more than 1.1 times that

A line for each function, with the calls in it and how often it configures tiles; for each innermost loop that
multiplies, how often each vector or tile instruction occurs, products last, and how many of them use the stack:

    kernel: calls free malloc, ldtilecfg 0
      loop
        vbroadcastss zmm 8
        vmovups zmm 3
        vfmadd231ps zmm 24
        stack 0
        cycles 12.03, port limit 12.00, ratio 1.00

The port limit is what llvm-mca needs for a loop's products alone (their pressure on the ports), the cycles are those of
an iteration of the whole loop when it runs for long, with all its loads, dependences and the loop's own instructions.
Only the loops with the most products of a function are judged: others are for edges, or sum up columns.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_LABEL: Final = re.compile(r'^"?([^\s#:"]+)"?:')
_PRODUCT: Final = re.compile(r"vfn?madd|vdpbf16ps|vpdp|vpmaddwd|vpmulld|tdp|vcvtne[eo]bf|vbcstne")
_STACK: Final = re.compile(r"\(%rsp.*%[xyzt]mm|%[xyzt]mm.*\(%rsp")
_REGISTER: Final = re.compile(r"%([xyzt]mm)")
_CALL: Final = re.compile(r"\s+(?:callq?|jmp)\s+(?!\.L|\*)(\S+?)(?:@PLT)?(?:\s|$)")
_MCA: Final = ("llvm-mca-19", "/usr/lib/llvm-19/bin/llvm-mca")
_ITERATIONS: Final = 1000


@dataclass(frozen=True, slots=True)
class Loop:
    """An innermost loop.

    Attributes:
        function: Where it is.
        lines: Its instructions without comments, the jump back to its start last.
    """

    function: str
    lines: tuple[str, ...]

    @property
    def products(self) -> list[str]:
        """The instructions that multiply, and those that widen operands for them."""
        return [line for line in self.lines if _PRODUCT.match(line)]

    @property
    def stack_uses(self) -> int:
        """How many vector or tile instructions use the stack: spills."""
        return sum(bool(_STACK.search(line)) for line in self.lines)

    @property
    def counts(self) -> list[tuple[str, int]]:
        """How often each vector or tile instruction occurs, with the widest registers it has; products last."""
        registers = Counter(
            f"{line.split()[0]} {max(kinds)}" for line in self.lines if (kinds := _REGISTER.findall(line))
        )
        return sorted(registers.items(), key=lambda entry: (bool(_PRODUCT.match(entry[0])), entry[0]))

    def speed(self, cpu: str, features: str = "") -> Speed:
        """What llvm-mca says about it on a processor, with more features than that one has."""
        whole = _mca(self.lines, cpu, features)
        alone = _mca(self.products, cpu, features)
        return Speed(whole["Total Cycles"] / _ITERATIONS, alone["Block RThroughput"])


@dataclass(frozen=True, slots=True)
class Speed:
    """Cycles that an iteration takes, and those that the ports need for its products alone."""

    cycles: float
    port_limit: float

    @property
    def ratio(self) -> float:
        """Cycles for each that the products need; 1 is the machine's peak."""
        return self.cycles / self.port_limit


def functions(text: str) -> Iterator[tuple[str, list[str]]]:
    """Name and lines of each function of assembly."""
    name: str | None = None
    body: list[str] = []
    for line in text.splitlines():
        label = _LABEL.match(line)
        if label and label[1].startswith(".Lfunc_end"):
            assert name is not None
            yield name, body
        elif label and not label[1].startswith("."):
            name, body = label[1], []
        body.append(line)


def inner_loops(function: str, body: list[str]) -> Iterator[Loop]:
    """The blocks that jump to their own label."""
    label, block = "", list[str]()
    for line in body:
        if match := _LABEL.match(line):
            label, block = match[1], []
            continue
        if not (code := line.split("#")[0].replace("{vex}", "").strip()) or code.startswith("."):
            continue
        block.append(code)
        words = code.split()
        if len(words) == 2 and words[0].startswith("j") and words[1] == label:
            yield Loop(function, tuple(block))


def product_loops(text: str) -> list[Loop]:
    """The innermost loops of assembly that multiply."""
    return [loop for name, body in functions(text) for loop in inner_loops(name, body) if loop.products]


def mca() -> str | None:
    """The path of llvm-mca, None where it is not installed."""
    return next((path for name in _MCA if (path := shutil.which(name))), None)


def _mca(lines: list[str] | tuple[str, ...], cpu: str, features: str) -> dict[str, float]:
    """The summary of llvm-mca over instructions that are repeated."""
    tool = mca()
    assert tool is not None, "llvm-mca-19 is missing (package llvm-19)"
    command = [tool, "-mtriple=x86_64", f"-mcpu={cpu}", f"-iterations={_ITERATIONS}", "-instruction-info=0"]
    command += ["-resource-pressure=0", f"-mattr={features}"] if features else ["-resource-pressure=0"]
    code = "".join(f"{line}\n" for line in lines)
    answer = subprocess.run(command, input=code, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    figures = re.findall(r"(?m)^(Total Cycles|Block RThroughput): +([\d.]+)", answer.stdout)
    return {name: float(number) for name, number in figures}


def _report(loop: Loop) -> str:
    lines = [f"{name} {count}" for name, count in loop.counts]
    return "".join(f"    {line}\n" for line in [*lines, f"stack {loop.stack_uses}"])


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, metavar="FILE.s")
    parser.add_argument("--mcpu", default="", help="processor whose ports llvm-mca models")
    parser.add_argument("--mattr", default="", help="features that the processor has in addition")
    parser.add_argument("--bound", type=float, default=1e9, help="largest ratio of cycles to the port limit")
    options = parser.parse_args()
    failed = 0
    for name, body in functions(options.file.read_text(encoding="utf-8")):
        called = sorted({match[1] for line in body if (match := _CALL.match(line))})
        configured = sum(line.strip().startswith("ldtilecfg") for line in body)
        sys.stdout.write(f"{name}: calls {' '.join(called) or 'nothing'}, ldtilecfg {configured}\n")
        loops = [loop for loop in inner_loops(name, body) if loop.products]
        most = max((len(loop.products) for loop in loops), default=0)
        for loop in loops:
            sys.stdout.write(f"  loop\n{_report(loop)}")
            if options.mcpu:
                speed = loop.speed(options.mcpu, options.mattr)
                sys.stdout.write(
                    f"    cycles {speed.cycles:.2f}, port limit {speed.port_limit:.2f}, ratio {speed.ratio:.2f}\n"
                )
                if len(loop.products) == most and speed.ratio > options.bound:
                    failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
