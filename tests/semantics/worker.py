"""Checks random programs, in a process of its own: compiled code that touches what it must not ends it.

    python -m tests.semantics.worker --profile small --target avx512 --seeds 0:100

For each program: what it means by `model`, what TLX's evaluator makes of the input, of stage 1's and of stage 2's
output, and what the machine code does on guarded memory, must agree. Standard output is a line of JSON for each event,
written before the process can die of it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

import tlx
from tests.semantics.guarded import GuardedArray
from tests.semantics.model import difference
from tests.semantics.programs import Function, Program, canonical, program
from tlx.evaluate import Machine
from tlx.ir.module import Module
from tlx.ir.reader import parse
from tlx.native import best_target, cpu_flags
from tlx.numpy_types import Array
from tlx.pipeline import Options, lower
from tlx.target import Caches, Target, find

_DEFAULT: Final = Caches()
_TINY: Final = Caches(l1=4 << 10, l2=16 << 10, l3=64 << 10)
_LEVELS: Final = (2, 2, 2, 3, 1, 0)


class MismatchError(Exception):
    """Two ways to run a program give different results."""


@dataclass(frozen=True)
class Check:
    """How programs are checked.

    Attributes:
        profile: What they contain.
        target: The target's name.
        emulate: Run matrix instructions by LLVM's scalarisation of them.
        evaluate: Evaluate the stages too.
        optimise: Let LLVM's own `opt` optimise the input before it is lowered: the program to call.
    """

    profile: str
    target: str
    emulate: bool
    evaluate: bool
    optimise: str | None = None

    def target_for(self, seed: int) -> Target:
        """The target: every other time with all features that this machine has beyond the target's, or tiny caches."""
        target = find(self.target)
        caches = _TINY if seed % 3 == 0 else _DEFAULT
        if self.emulate:
            return replace(target, caches=caches)
        native = best_target([target], cpu_flags(), caches)
        if seed % 2:
            return native
        return replace(native, features=tuple(f for f in native.features if f in target.features))


@dataclass
class Counts:
    """What was done for one program: functions checked, and kernels that multiply tiles."""

    functions: int = 0
    tiled: int = 0


def check_program(check: Check, seed: int, only: int | None = None) -> Counts:
    """Check the program of a seed.

    Raises:
        MismatchError: Results differ.
        TlxError: It cannot be lowered or run.
    """
    made = program(check.profile, seed, only)
    if check.optimise:
        made = replace(made, text=_optimised(made.text, check.optimise))
    _say(file=str(_saved(check, seed, made)))
    target = check.target_for(seed)
    if check.evaluate:
        for title, module in _stages(check, made, target, seed):
            _evaluate(title, module, made)
    options = Options(emulate_matrix=check.emulate)
    level = 0 if check.emulate else _LEVELS[seed % len(_LEVELS)]
    compiled = tlx.compile(made.text, target, opt_level=level, options=options)
    for function in made.functions:
        before, after = function.arguments()
        for at_end in (True, False):
            _say(call=function.name, guard="behind" if at_end else "in front")
            _run(compiled[function.name], function, before, after, at_end=at_end)
    return Counts(len(made.functions), _tiled(compiled.lowered))


def _optimised(text: str, opt: str) -> str:
    """What LLVM's pipeline leaves of a module; its tensor operations are still there."""
    done = subprocess.run([opt, "-O2", "-S"], input=canonical(text), text=True, capture_output=True, check=False)
    if done.returncode:
        raise MismatchError(f"{opt} refuses the program: {done.stderr}")
    return done.stdout


def _tiled(text: str) -> int:
    """Kernels that multiply tiles."""
    return sum("call x86_amx @llvm.x86.tdp" in function for function in text.split("\ndefine "))


def _stages(check: Check, made: Program, target: Target, seed: int) -> Iterator[tuple[str, Module]]:
    """The input and what the stages leave; every fourth time a stage reads the text that the one before wrote.

    Tile instructions are evaluated, too, every fourth time: what is run is their emulated form.
    """
    yield "input", parse(made.text)
    text = made.text
    stages = ["to-2d", "to-tiles"]
    if check.emulate and seed % 4 == 1:
        stages.append("legalize")
    for stage in stages:
        module = lower(parse(text), target, options=Options(stop_after=stage))
        yield stage, module
        if seed % 4 == 0:
            text = str(module)


def _evaluate(title: str, module: Module, made: Program) -> None:
    machine = Machine(module)
    for function in made.functions:
        before, after = function.arguments()
        _say(evaluate=function.name, stage=title)
        machine.call(function.name, *before)
        _compare(f"evaluating {title}", function, before, after)


def _run(call: Any, function: Function, before: list[Array], after: list[Array], *, at_end: bool) -> None:
    guarded = [GuardedArray(array, at_end=at_end) for array in before]
    call(*(g.array for g in guarded))
    place = "in front of a guard page" if at_end else "behind a guard page"
    _compare(f"running {place}", function, [g.array for g in guarded], after)
    for buffer, memory in zip(function.buffers, guarded, strict=True):
        if not memory.is_intact:
            message = f"running {place}: @{function.name} ({function.form}) wrote outside of {buffer.name}"
            raise MismatchError(message)


def _compare(doing: str, function: Function, got: list[Array], expected: list[Array]) -> None:
    for buffer, mine, wanted in zip(function.buffers, got, expected, strict=True):
        different = difference(mine, wanted, buffer.element)
        if different:
            where = f"{buffer.name} of @{function.name} ({function.form}, {buffer.element})"
            message = f"{doing}: {where}: {different}"
            raise MismatchError(message)


def _saved(check: Check, seed: int, made: Program) -> Path:
    """The program in a file, for whoever has to look at it."""
    path = Path(_arguments.folder) / f"{check.profile}-{check.target}-{seed}.ll"
    path.write_text(f"; {reproduction(check, seed)}\n{made.text}", encoding="utf-8")
    return path


def reproduction(check: Check, seed: int) -> str:
    """The command that checks one program."""
    flags = (" --emulate" if check.emulate else "") + ("" if check.evaluate else " --no-evaluate")
    flags += f" --optimise {check.optimise}" if check.optimise else ""
    seeds = f"--seeds {seed}:{seed + 1}"
    return f"python -m tests.semantics.worker --profile {check.profile} --target {check.target} {seeds}{flags}"


def _say(**event: Any) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--seeds", required=True, help="first:last, last excluded")
    parser.add_argument("--function", type=int, help="check this function of each program only")
    parser.add_argument("--folder", default=".", help="where programs are written")
    parser.add_argument("--emulate", action="store_true", help="emulate matrix instructions")
    parser.add_argument("--no-evaluate", dest="evaluate", action="store_false", help="run machine code only")
    parser.add_argument("--optimise", metavar="OPT", help="run this program's -O2 over the input first")
    return parser.parse_args()


def main() -> None:
    check = Check(_arguments.profile, _arguments.target, _arguments.emulate, _arguments.evaluate, _arguments.optimise)
    first, last = map(int, _arguments.seeds.split(":"))
    for seed in range(first, last):
        _say(start=seed)
        begun = time.monotonic()
        try:
            counts = check_program(check, seed, _arguments.function)
        except Exception as error:  # noqa: BLE001 (whatever goes wrong is this program's failure)
            told = str(error) if isinstance(error, MismatchError) else traceback.format_exc(limit=-4)
            _say(failed=seed, message=told)
            continue
        seconds = round(time.monotonic() - begun, 3)
        _say(done=seed, functions=counts.functions, tiled=counts.tiled, seconds=seconds)


if __name__ == "__main__":
    _arguments = _parsed()
    np.seterr(all="ignore")
    main()
