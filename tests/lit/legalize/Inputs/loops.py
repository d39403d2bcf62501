"""Print what the inner loops of x86 assembly consist of: loops.py FILE.s.

A line for each function, with the calls in it and how often it configures tiles; for each innermost loop that
multiplies, how often each vector or tile instruction occurs, products last, and how many of them use the stack:

    kernel: calls free malloc, ldtilecfg 0
      loop
        vbroadcastss zmm 8
        vmovups zmm 3
        vfmadd231ps zmm 24
        stack 0
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_LABEL: Final = re.compile(r'^"?([^\s#:"]+)"?:')
_PRODUCT: Final = re.compile(r"vfmadd|vdpbf16ps|vpdpbusd|tdp")
_STACK: Final = re.compile(r"\(%rsp.*%[xyzt]mm|%[xyzt]mm.*\(%rsp")
_REGISTER: Final = re.compile(r"%([xyzt]mm)")
_CALL: Final = re.compile(r"\s+(?:callq?|jmp)\s+(?!\.L|\*)(\S+?)(?:@PLT)?(?:\s|$)")


def _functions(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Name and lines of each function."""
    name: str | None = None
    body: list[str] = []
    for line in lines:
        label = _LABEL.match(line)
        if label and label[1].startswith(".Lfunc_end"):
            assert name is not None
            yield name, body
        elif label and not label[1].startswith("."):
            name, body = label[1], []
        body.append(line)


def _loops(body: list[str]) -> Iterator[list[str]]:
    """The blocks that jump to their own label."""
    label, block = "", list[str]()
    for line in body:
        if found := _LABEL.match(line):
            label, block = found[1], []
            continue
        block.append(line.split("#")[0].strip())
        words = block[-1].split()
        if len(words) == 2 and words[0].startswith("j") and words[1] == label:
            yield block


def _report(loop: list[str]) -> str:
    opcodes = Counter(f"{line.split()[0]} {max(kinds)}" for line in loop if (kinds := _REGISTER.findall(line)))
    ordered = sorted(opcodes, key=lambda opcode: (bool(_PRODUCT.match(opcode)), opcode))
    stack = sum(bool(_STACK.search(line)) for line in loop)
    return "".join(f"    {line}\n" for line in [*(f"{o} {opcodes[o]}" for o in ordered), f"stack {stack}"])


for function, code in _functions(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()):
    called = sorted({found[1] for line in code if (found := _CALL.match(line))})
    configured = sum(line.strip().startswith("ldtilecfg") for line in code)
    sys.stdout.write(f"{function}: calls {' '.join(called) or 'nothing'}, ldtilecfg {configured}\n")
    for inner in _loops(code):
        if any(_PRODUCT.match(line) for line in inner):
            sys.stdout.write(f"  loop\n{_report(inner)}")
