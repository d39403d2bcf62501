"""Which instructions of an AArch64 object file need SVE where the processor may have none.

A processor with SME but without SVE, such as Apple M4, has SVE's instructions and registers in streaming mode only.
QEMU has no such processor, so each function's control flow is followed from its entry, outside of the mode:

    smstart sm, smstart      the mode begins, on all paths from here
    smstop sm, smstop        it ends
    bl, ret, b FUNCTION      the mode must be off: callers and callees are outside of it

An instruction that a processor without both SVE and SME lacks must be in the mode, but for those of SME that work
outside of it. It is LLVM's disassembler that knows these instructions: for such a processor it prints `<unknown>`.

Arm Architecture Reference Manual for A-profile, B1.4.8 (Streaming SVE mode), C9.2.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.tools import require

_FUNCTION: Final = re.compile(r"(?m)^[0-9a-f]+ <(.*)>:$")
_INSTRUCTION: Final = re.compile(r"^ *([0-9a-f]+):.*?\t([\w.]+|<unknown>)(?:\t(.*))?$")
_RELOCATION: Final = re.compile(r"R_AARCH64_(?:JUMP|CALL)26\t")
_PLACE: Final = re.compile(r"0x([0-9a-f]+)(?: <.*>)?$")
_WITHOUT_SVE_AND_SME: Final = "apple-m2"
_CONDITIONAL: Final = re.compile(r"b\.\w+|cbn?z|tbn?z")
_ENDS: Final = ("ret", "br", "brk", "udf", "hlt")
_CALLS: Final = ("bl", "blr")
_OUTSIDE: Final = re.compile(r"smstart|smstop|rdsvl|addsvl|addspl|zero\t\{za|(?:ldr|str)\tza\[")
"""Instructions of SME that work outside of streaming mode."""
_SAVE: Final = re.compile(r"__arm_tpidr2_save")
"""A function that works in and outside of streaming mode."""


@dataclass
class StreamingModeReport:
    """What is found in an object file.

    Attributes:
        streaming: Instructions of SVE and SME in streaming mode.
        faults: Instructions that fault on a processor without SVE, and calls and returns in streaming mode.
    """

    streaming: int = 0
    faults: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class _Line:
    """An instruction: its address, text, whether it is only in SVE or SME, and whether it leaves the function."""

    address: int
    name: str
    operands: str
    is_scalable: bool
    is_relocated: bool

    @property
    def text(self) -> str:
        return f"{self.name}\t{self.operands}"


def check_streaming_mode(file: Path) -> StreamingModeReport:
    """Follow the control flow of all functions of an object file."""
    report = StreamingModeReport()
    for name, lines in _functions(file).items():
        _follow(name, lines, report)
    return report


def _functions(file: Path) -> dict[str, list[_Line]]:
    """The instructions of each function; data is left out."""
    tool = require("llvm-objdump-19")
    command = [tool, "-d", "-r", "--no-show-raw-insn", str(file)]
    texts = [
        subprocess.run([*command, *options], check=True, capture_output=True, text=True).stdout
        for options in ([], [f"--mcpu={_WITHOUT_SVE_AND_SME}"])
    ]
    functions: dict[str, list[_Line]] = {}
    lines: list[_Line] = []
    pairs = list(zip(*(text.splitlines() for text in texts), strict=True))
    for number, (line, other) in enumerate(pairs):
        if head := _FUNCTION.match(line):
            lines = functions.setdefault(head[1], [])
        elif (known := _INSTRUCTION.match(line)) and not known[2].startswith(".") and "R_AARCH64" not in line:
            follows = pairs[number + 1][0] if number + 1 < len(pairs) else ""
            is_relocated = _RELOCATION.search(follows) is not None
            operands = (known[3] or "") + (f" {follows.split()[-1]}" if is_relocated else "")
            lines.append(_Line(int(known[1], 16), known[2], operands, "<unknown>" in other, is_relocated))
    return {name: lines for name, lines in functions.items() if lines}


def _follow(function: str, lines: list[_Line], report: StreamingModeReport) -> None:
    places = {line.address: number for number, line in enumerate(lines)}
    modes: dict[int, bool] = {}
    pending = [(0, False)]
    while pending:
        number, mode = pending.pop()
        if number in modes:
            if modes[number] != mode:
                report.faults.append(f"{function}: {lines[number].text}: streaming mode depends on the path")
            continue
        modes[number] = mode
        line = lines[number]
        leaves = line.name == "b" and (line.is_relocated or _target(line) not in places)
        if mode and (line.name == "ret" or leaves or (line.name in _CALLS and not _SAVE.search(line.operands))):
            report.faults.append(f"{function}: {line.text}: in streaming mode")
        if line.is_scalable:
            report.streaming += mode
            if not mode and not _OUTSIDE.match(line.text):
                report.faults.append(f"{function}: {line.text}: outside of streaming mode")
        if line.name in ("smstart", "smstop") and line.operands != "za":
            mode = line.name == "smstart"
        if (line.name == "b" or _CONDITIONAL.fullmatch(line.name)) and not leaves:
            pending.append((places[_target(line)], mode))
        if line.name not in (*_ENDS, "b"):
            pending.append((number + 1, mode))


def _target(line: _Line) -> int:
    match = _PLACE.search(line.operands)
    return int(match[1], 16) if match else -1
