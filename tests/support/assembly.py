"""The inner loops of assembly for x86, AArch64, Power, RISC-V: what they consist of; how fast llvm-mca says they are.

    python tests/support/assembly.py FILE.s             counts the instructions of innermost loops that multiply
    python tests/support/assembly.py FILE.s --mcpu=CPU  and compares their cycles with what the ports allow;
                                                        with --bound=1.1, exits with 1 where a loop takes more than
                                                        1.1 times that

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
_NO_TARGET: Final = ".Lannotation"
"""Labels that nothing jumps to, which keep LLVM from moving instructions."""


@dataclass(frozen=True, slots=True)
class Language:
    """How assembly for an architecture is written.

    Attributes:
        triple: The architecture, as llvm-mca calls it.
        comment: What comments begin with.
        product: Matches instructions that multiply, and those that widen operands for them.
        stack: Matches vector and tile instructions that use the stack.
        register: Finds the kinds of an instruction's registers, wider ones later in the alphabet.
        call: Matches calls and finds the function.
        jump: Matches jumps and finds their target.
    """

    triple: str
    comment: str
    product: re.Pattern[str]
    stack: re.Pattern[str]
    register: re.Pattern[str]
    call: re.Pattern[str]
    jump: re.Pattern[str]


X86: Final = Language(
    "x86_64",
    "#",
    re.compile(r"vfn?madd|vdpbf16ps|vpdp|vpmaddwd|vpmulld|tdp|vcvtne[eo]bf|vbcstne"),
    re.compile(r"\(%rsp.*%[xyzt]mm|%[xyzt]mm.*\(%rsp"),
    re.compile(r"%([xyzt]mm)"),
    re.compile(r"\s+(?:callq?|jmp)\s+(?!\.L|\*)(\S+?)(?:@PLT)?(?:\s|$)"),
    re.compile(r"j\w+\s+(\S+)$"),
)
AARCH64: Final = Language(
    "aarch64",
    "//",
    re.compile(r"fmla|bf(?:dot|mmla)|[su]{1,2}(?:dot|mmla)|\w+mopa"),
    re.compile(r"(?<!\w)[qvz]\d+\b.*\[sp"),
    re.compile(r"(?<!\w)([qvz])\d+\b"),
    re.compile(r"\s+bl?\s+(?!\.L)(\S+)(?:\s|$)"),
    re.compile(r"(?:b\.\w+|cbn?z\s+\w+,|tbn?z\s+\w+, #\d+,)\s+(\S+)$"),
)


POWER: Final = Language(
    "powerpc64le",
    "#",
    re.compile(r"xvn?m(?:add|sub)|vmsum|xv\w+ger"),
    re.compile(r"(?:lx|stx)v\w*\s.*\(1\)"),
    re.compile(r"^(?:lx|stx|x)?([vx])\w*\s"),
    re.compile(r"\s+bl?\s+(?!\.L)(\S+)(?:\s|$)"),
    re.compile(r"(?:bdnz|b\w+\s+\d+,)\s+(\S+)$"),
)
RISCV: Final = Language(
    "riscv64",
    "#",
    re.compile(r"vf?n?m(?:acc|add)|vqdot"),
    re.compile(r"v[ls]\d+r"),  # whole registers, which code for vectors of a least length moves for spills only
    re.compile(r"^(v)\w*"),
    re.compile(r"\s+(?:call|tail)\s+(\S+)"),
    re.compile(r"b\w+\s+\w+, (?:\w+, )?(\S+)$"),
)


def language(text: str) -> Language:
    """The language that a file of assembly is in."""
    if re.search(r"(?m)^\s+(?:ldr|str|stp)\s", text):
        return AARCH64
    if re.search(r"(?m)^\s+blr$", text):
        return POWER
    return RISCV if re.search(r"(?m)^\s+\.attribute", text) else X86


_MCA: Final = ("llvm-mca-19", "/usr/lib/llvm-19/bin/llvm-mca")
_ITERATIONS: Final = 1000


@dataclass(frozen=True, slots=True)
class Loop:
    """An innermost loop.

    Attributes:
        language: The assembly it is in.
        function: Where it is.
        lines: Its instructions without comments, the jump back to its start last.
    """

    language: Language
    function: str
    lines: tuple[str, ...]

    @property
    def products(self) -> list[str]:
        """The instructions that multiply, and those that widen operands for them."""
        return [line for line in self.lines if self.language.product.match(line)]

    @property
    def stack_uses(self) -> int:
        """How many vector or tile instructions use the stack: spills."""
        return sum(bool(self.language.stack.search(line)) for line in self.lines)

    @property
    def counts(self) -> list[tuple[str, int]]:
        """How often each vector or tile instruction occurs, with the widest registers it has; products last."""
        find, product = self.language.register.findall, self.language.product.match
        registers = Counter(f"{line.split()[0]} {max(kinds)}" for line in self.lines if (kinds := find(line)))
        return sorted(registers.items(), key=lambda entry: (bool(product(entry[0])), entry[0]))

    def speed(self, cpu: str, features: str = "") -> Speed:
        """What llvm-mca says about it on a processor, with more features than that one has."""
        whole, alone = (_mca(lines, self.language.triple, cpu, features) for lines in (self.lines, self.products))
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


def inner_loops(written_in: Language, function: str, body: list[str]) -> Iterator[Loop]:
    """The blocks that jump to their own label."""
    label, block = "", list[str]()
    for line in body:
        if match := _LABEL.match(line):
            if not match[1].startswith(_NO_TARGET):
                label, block = match[1], []
            continue
        if not (code := line.split(written_in.comment)[0].replace("{vex}", "").strip()) or code.startswith("."):
            continue
        block.append(code)
        jump = written_in.jump.match(code)
        if jump and jump[1] == label:
            yield Loop(written_in, function, tuple(block))


def mca() -> str | None:
    """The path of llvm-mca, None where it is not installed."""
    return next((path for name in _MCA if (path := shutil.which(name))), None)


def _mca(lines: list[str] | tuple[str, ...], triple: str, cpu: str, features: str) -> dict[str, float]:
    """The summary of llvm-mca over instructions that are repeated."""
    tool = mca()
    assert tool is not None, "llvm-mca-19 is missing (package llvm-19)"
    command = [tool, f"-mtriple={triple}", f"-mcpu={cpu}", f"-iterations={_ITERATIONS}", "-instruction-info=0"]
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
    text = options.file.read_text(encoding="utf-8")
    written_in = language(text)
    for name, body in functions(text):
        called = sorted({match[1] for line in body if (match := written_in.call.match(line))})
        configured = sum(line.strip().startswith("ldtilecfg") for line in body)
        sys.stdout.write(f"{name}: calls {' '.join(called) or 'nothing'}, ldtilecfg {configured}\n")
        loops = [loop for loop in inner_loops(written_in, name, body) if loop.products]
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
