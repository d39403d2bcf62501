"""The main loop of each kernel as assembly, and what LLVM's machine code analyser says about it.

The main loop is an innermost loop, that with most products, else the longest. `llvm-mca` is part of LLVM's tools, not
of TLX: without it, the report has the loops alone.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from tlx.target.target import Target

_FUNCTION: Final = re.compile(r'^("?[\w.$-]+"?):')
_LABEL: Final = re.compile(r"^(\.?L[\w.$]*):")
_PRODUCT: Final = re.compile(r"fn?m[al]|dp[bw]|tdp|ml[as]|madd|mmla|dot|mop|ger[24]?|mpy")
_VERSIONS: Final = range(30, 13, -1)
_SECONDS: Final = 60
_LONGEST: Final = 400
_ITERATIONS: Final = 100


@dataclass(frozen=True, slots=True)
class AssemblyLoop:
    """A loop of machine code: its lines, from its label to the branch back."""

    lines: Sequence[str]

    @property
    def instructions(self) -> list[str]:
        """Its instructions, without labels and comments."""
        return [line.strip() for line in self.lines if _is_instruction(line)]


@dataclass(frozen=True, slots=True)
class Resource:
    """A unit of a processor, and the cycles of an iteration in which it is busy."""

    name: str
    cycles: float


@dataclass(frozen=True, slots=True)
class Analysis:
    """What llvm-mca says about a loop in steady state, with all data in L1.

    Attributes:
        processor: The processor, by LLVM's name.
        cycles: Cycles of an iteration.
        throughput: Instructions per cycle.
        resources: The units that the loop uses.
        shares: For each instruction, its part of the cycles in which units are busy, 0 to 1.
    """

    processor: str
    cycles: float
    throughput: float
    resources: Sequence[Resource]
    shares: Sequence[float]


def main_loops(assembly: str, functions: Sequence[str]) -> dict[str, AssemblyLoop]:
    """The main loop of each function that has a loop, by the function's name."""
    wanted = set(functions)
    found: dict[str, AssemblyLoop] = {}
    for name, lines in _functions(assembly):
        if name in wanted:
            loops = [loop for loop in _innermost(lines) if len(loop.lines) <= _LONGEST]
            if loops:
                found[name] = max(loops, key=_weight)
    return found


def _functions(assembly: str) -> Iterator[tuple[str, list[str]]]:
    """Each function of a text, with its lines."""
    name, lines = "", list[str]()
    for line in assembly.split("\n"):
        match = _FUNCTION.match(line)
        if match is not None and not _LABEL.match(line):
            yield name, lines
            name, lines = match[1].strip('"'), []
        lines.append(line)
    yield name, lines


def _innermost(lines: Sequence[str]) -> Iterator[AssemblyLoop]:
    """The loops that contain no other: from a label to a later branch back to it."""
    places: dict[str, int] = {}
    spans: list[tuple[int, int]] = []
    for number, line in enumerate(lines):
        label = _LABEL.match(line)
        if label is not None:
            places[label[1]] = number
        elif _is_instruction(line):
            destination = line.split("#")[0].split("//")[0].replace(",", " ").split()[-1]
            if destination in places:
                spans.append((places[destination], number))
    for start, end in spans:
        if not any((start, end) != other and start <= other[0] and other[1] <= end for other in spans):
            yield AssemblyLoop(lines[start : end + 1])


def _weight(loop: AssemblyLoop) -> tuple[int, int]:
    products = sum(bool(_PRODUCT.search(instruction.split()[0])) for instruction in loop.instructions)
    return products, len(loop.instructions)


def _is_instruction(line: str) -> bool:
    text = line.strip()
    return bool(text) and line[:1].isspace() and text[0] not in ".#/;@"


def find_mca() -> str | None:
    """The newest llvm-mca on PATH; None if there is none."""
    names = [*(f"llvm-mca-{version}" for version in _VERSIONS), "llvm-mca"]
    return next((path for name in names if (path := shutil.which(name))), None)


def likely_processor(target: Target) -> str:
    """The processor to analyse code for if the user names none: the first with most features of a target."""
    target = target.versions[-1] if target.versions else target
    features = {feature[1:] for feature in target.features}
    return max(target.cpus, key=lambda name: len(features.intersection(target.cpus[name].features)), default="")


def analyse(mca: str, loop: AssemblyLoop, triple: str, processor: str, features: str) -> Analysis | None:
    """What llvm-mca says about a loop; None if it cannot read the loop.

    Args:
        mca: The program.
        loop: The loop.
        triple: The target triple.
        processor: The processor, by LLVM's name; empty for the triple's default.
        features: Features of the target, `+a,-b`.
    """
    command = [mca, "--json", f"--iterations={_ITERATIONS}", f"-mtriple={triple}"]
    command += [f"-mcpu={processor}"] * bool(processor) + [f"-mattr={features}"] * bool(features)
    try:
        done = subprocess.run(
            command, input="\n".join(loop.lines), capture_output=True, text=True, timeout=_SECONDS, check=True
        )
        return _read(json.loads(done.stdout), len(loop.instructions))
    except (OSError, subprocess.SubprocessError, ValueError, LookupError):
        return None


def _read(reply: Mapping[str, Any], count: int) -> Analysis | None:
    region = cast("Mapping[str, Any]", reply["CodeRegions"][0])
    summary = region["SummaryView"]
    names = cast("Sequence[str]", reply["TargetInfo"]["Resources"])
    busy = [0.0] * len(names)
    shares = [0.0] * count
    for use in region["ResourcePressureView"]["ResourcePressureInfo"]:
        index, resource, cycles = use["InstructionIndex"], use["ResourceIndex"], use["ResourceUsage"]
        if index < len(region["Instructions"]):
            busy[resource] += cycles
            if index < count:
                shares[index] += cycles
    if len(region["Instructions"]) != count:
        return None
    total = sum(shares) or 1.0
    return Analysis(
        reply["TargetInfo"]["CPUName"],
        summary["TotalCycles"] / summary["Iterations"],
        summary["Instructions"] / summary["TotalCycles"],
        [Resource(name, cycles) for name, cycles in zip(names, busy, strict=True) if cycles > 0],
        [share / total for share in shares],
    )
