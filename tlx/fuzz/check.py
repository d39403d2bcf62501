"""Checks a program: its meaning, the output of each stage and the machine code must agree.

The meaning of a form is its numpy model, with which the evaluator must agree; that of a dataflow function is the
evaluator's. Machine code runs on guarded memory: the byte after an array's last one is inaccessible or, in a second
run, the byte before its first one; the rest of its pages is filled and must not change.

    [ no access ][ fill | array ][ no access ]        [ no access ][ array | fill ][ no access ]
"""

from __future__ import annotations

import ctypes
import mmap
import random
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

import tlx
from tlx.api.call import CompiledFunction
from tlx.api.signatures import Parameter
from tlx.diagnostics import EvaluationError, LoweringError
from tlx.evaluate import Machine
from tlx.evaluate.context import ThreadTeam
from tlx.fuzz.generation.model import RandomFunction, difference
from tlx.fuzz.generation.programs import RandomProgram, canonical
from tlx.fuzz.options import RandomOptions
from tlx.intrinsics.numpy_types import Array, memory_dtype
from tlx.ir.analysis.large_vectors import mentions_slow_vectors
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.llvm import openmp
from tlx.lower.options import Options
from tlx.lower.pipeline import lower, verify
from tlx.lower.to_2d.analysis.tensor_operations import call_operands, exceeds_register_elements, is_elementwise
from tlx.lower.to_tiles.versions import at_level, levels
from tlx.target.hardware import Caches
from tlx.target.host import best_target, cpu_flags
from tlx.target.lookup import find_target
from tlx.target.target import Target

_DEFAULT: Final = Caches()
_TINY: Final = Caches(l1=4 << 10, l2=16 << 10, l3=64 << 10)
_TEAMS: Final = (3, 1, 2, 7)
_LEVELS: Final = (2, 2, 2, 0, 0, 1, 3)
_INTERNAL_ERROR: Final = "bug of TLX"
_PIPELINES: Final = (
    ("-O2",),
    ("-O3",),
    ("-O1",),
    ("-Os",),
    ("-O3", "-mtriple=x86_64-unknown-linux-gnu", "-mcpu=x86-64-v4"),
    ("-passes=slp-vectorizer,vector-combine,instcombine,gvn,loop-unroll,jump-threading,simplifycfg,instcombine",),
)
"""Options of LLVM's `opt`; without a machine it hardly transforms vectors."""
MAX_STEPS: Final = 20_000_000
_STAGE_STEPS: Final = 5_000_000
_TILE_PRODUCT: Final = re.compile(r"call (?:x86_amx|void) @llvm\.x86\.tdp")
Arguments = tuple[list[Array], list[Array]]


class MismatchError(Exception):
    """Two ways to run a program give different results.

    Attributes:
        stage: What was run.
    """

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(f"{stage}: {message}")
        self.stage = stage


class RefusedError(Exception):
    """The lowering says that it cannot do something yet."""


@dataclass(frozen=True)
class Check:
    """How a program is checked.

    Attributes:
        target: The target's name; empty to evaluate the input only.
        emulate: Run matrix instructions by LLVM's scalarisation of them.
        evaluate: Evaluate the stages' output.
        run: Run machine code.
        variant: Chooses among equal ways: features, cache sizes, LLVM's optimisation level.
        optimise: Let LLVM's own `opt` optimise the input before it is lowered: the program to call; empty for none.
            The lowering must not refuse its output.
        threads: Run every kernel on several threads, however small it is.
        asked: Further options of the lowering.
    """

    target: str = ""
    emulate: bool = False
    evaluate: bool = True
    run: bool = True
    variant: int = 0
    optimise: str = ""
    threads: bool = False
    asked: RandomOptions = field(default_factory=RandomOptions)

    @property
    def pipeline(self) -> tuple[str, ...]:
        """What `opt` is asked for."""
        return _PIPELINES[self.variant % len(_PIPELINES)]

    @property
    def options(self) -> Options:
        """How to lower."""
        options = self.asked.options(Options(emulate_matrix=self.emulate))
        return replace(options, threads="openmp", thread_cycles=0) if self.threads else options

    @property
    def team(self) -> ThreadTeam:
        """The threads of parallel regions: one, a few, or more than there is work for; in either order."""
        return ThreadTeam(_TEAMS[self.variant % len(_TEAMS)], reverse_order=self.variant % 2 == 1)

    @property
    def opt_level(self) -> int:
        """LLVM's optimisation level for machine code, drawn apart from all else that the variant chooses."""
        return 0 if self.emulate else random.Random(f"level {self.variant}").choice(_LEVELS)

    @property
    def lowering_target(self) -> Target:
        """The target: every other time with all features that this machine has beyond the target's, or tiny caches.

        It is as its file says where the lowering is asked for a machine.
        """
        target = find_target(self.target)
        caches = _TINY if self.variant % 3 == 0 else _DEFAULT
        if self.emulate or not self.run or self.asked.has_machine:
            return replace(target, caches=caches)
        native = best_target([target], cpu_flags(), caches)
        if self.variant % 2:
            return native
        return replace(native, features=tuple(f for f in native.features if f in target.features))


@dataclass
class Counts:
    """What was done for one program: functions checked, and kernels that multiply tiles."""

    functions: int = 0
    tiled: int = 0


def check_program(made: RandomProgram, check: Check, doing: Callable[[str], None]) -> Counts:
    """Check a program.

    Args:
        made: The program.
        check: How.
        doing: Called with the next step before the process can crash in it.

    Raises:
        MismatchError: Results differ.
        RefusedError: The lowering does not do this yet.
        TlxError: It cannot be lowered or run.
    """
    if not check.optimise:
        return _check(made, check, doing)
    optimised = replace(made, text=_optimised(made.text, check))
    try:
        return _check(optimised, check, doing)
    except RefusedError as refusal:
        _lowered(check.asked.compiled_for(made.text), check.lowering_target, check.options)
        message = f"what {' '.join(check.pipeline)} makes of a program that is lowered is refused: {refusal}"
        raise MismatchError("opt", message) from None


def _check(made: RandomProgram, check: Check, doing: Callable[[str], None]) -> Counts:
    """Check a program as it is."""
    made = replace(made, text=check.asked.compiled_for(made.text))
    doing("evaluating the input")
    arguments = _evaluated_input(made, check)
    if not check.target:
        return Counts(len(made.functions))
    target = check.lowering_target
    if check.evaluate:
        for title, module in _stages(check, made, target, doing):
            doing(f"evaluating {title}")
            _evaluate(title, module, made, arguments, check)
    if not check.run:
        if not check.evaluate:
            _lowered(made.text, target, check.options)
        return Counts(len(made.functions))
    return _run(made, check, target, arguments, doing)


def _optimised(text: str, check: Check) -> str:
    """What LLVM's pipeline leaves of a module; its tensor operations are still there.

    LLVM 19 crashes on scalable splats where x86's cost model is asked for their cost.
    """
    asked = [word for word in check.pipeline if "vscale" not in text or not word.startswith("-m")]
    command = [check.optimise, *asked, "-S"]
    done = subprocess.run(command, input=canonical(text), text=True, capture_output=True, check=False)
    if done.returncode:
        raise MismatchError("opt", f"{check.optimise} refuses the program: {done.stderr}")
    return done.stdout


# Evaluation --------------------------------------------------------------------------------------------------------


def _evaluated_input(made: RandomProgram, check: Check) -> list[Arguments]:
    """Arrays for each function, before and after a call."""
    found = [function.arguments() for function in made.functions]
    if not check.evaluate and all(after is not None for _, after in found):
        return [(before, after) for before, after in found if after is not None]
    if not check.target:
        verify(parse(made.text))
    machine = Machine(parse(made.text), max_steps=MAX_STEPS)
    arguments: list[Arguments] = []
    for function, (before, after) in zip(made.functions, found, strict=True):
        mine = [array.copy() for array in before]
        machine.call(function.name, *mine)
        if after is not None:
            _compare("evaluating the input", function, mine, after)
        arguments.append((before, after or mine))
    return arguments


def _stages(
    check: Check, made: RandomProgram, target: Target, doing: Callable[[str], None]
) -> Iterator[tuple[str, Module]]:
    """The outputs of the stages; every fourth time a stage reads the text that the one before wrote.

    Every fourth time the last stage's output is evaluated as well, which takes long; otherwise it is only run.
    """
    text = made.text
    stages = ["to-2d", "to-tiles"]
    if check.variant % 4 == 1 or not check.run:
        stages.append("legalize")
    for stage in stages:
        doing(f"lowering to {stage}")
        module = _lowered(text, target, replace(check.options, emulate_matrix=False, stop_after=stage))
        yield stage, module
        if check.variant % 4 == 0:
            text = str(module)


def _lowered(text: str, target: Target, options: Options) -> Module:
    try:
        return lower(parse(text), target, options=options)
    except LoweringError as error:
        if _INTERNAL_ERROR in error.message:
            raise
        raise RefusedError(error.message) from None


def _evaluate(title: str, module: Module, made: RandomProgram, arguments: list[Arguments], check: Check) -> None:
    """Compare what a stage left with the input.

    What takes too long is left to machine code, if it runs, or to programs that ask for another machine. Of several
    versions, each variant evaluates another.
    """
    kinds = levels(text := str(module))
    if kinds:
        module = parse(at_level(text, kinds[check.variant % len(kinds)]))
    may_end = check.run or check.asked.has_machine
    machine = Machine(module, max_steps=_STAGE_STEPS if may_end else MAX_STEPS, team=check.team)
    for function, (before, after) in zip(made.functions, arguments, strict=True):
        mine = [array.copy() for array in before]
        try:
            machine.call(function.name, *mine)
        except EvaluationError as error:
            if may_end and "instructions were executed" in error.message:
                return
            raise
        _compare(f"evaluating {title}", function, mine, after)


# Machine code ------------------------------------------------------------------------------------------------------


def _run(
    made: RandomProgram, check: Check, target: Target, arguments: list[Arguments], doing: Callable[[str], None]
) -> Counts:
    doing("compiling")
    try:
        compiled = tlx.compile(made.text, target, opt_level=check.opt_level, options=check.options)
    except LoweringError as error:
        if _INTERNAL_ERROR in error.message:
            raise
        raise RefusedError(error.message) from None
    check_registers(made.text, compiled.lowered)
    if check.threads:
        openmp.set_threads(check.team.max_threads)
    for function, (before, after) in zip(made.functions, arguments, strict=True):
        for at_end in (True, False):
            place = "in front of a guard page" if at_end else "behind a guard page"
            doing(f"running @{function.name} {place}")
            _call_guarded(compiled[function.name], function, before, after, at_end=at_end, retyped=bool(check.optimise))
    return Counts(len(made.functions), _count_tile_kernels(compiled.lowered))


def check_registers(text: str, lowered: str) -> None:
    """Check that nothing of what was lowered computes with vectors that LLVM takes minutes for.

    Args:
        text: The program; its functions that need no lowering are LLVM's own affair.
        lowered: What became of it.

    Raises:
        MismatchError: Something does.
    """
    if not mentions_slow_vectors(lowered):
        return
    names = {function.name for function in parse(text).functions}
    for function in parse(lowered, "<lowered>", mentions_slow_vectors).functions:
        if not function.name.startswith("tlx.") and function.name not in names:
            continue
        for instruction in function.instructions():
            if instruction.opcode != "phi" and not is_elementwise(instruction):
                continue
            if any(exceeds_register_elements(value.type) for value in (instruction.value, *call_operands(instruction))):
                raise MismatchError("lowering", f"LLVM takes long for @{function.name}: {instruction.text}")


def _count_tile_kernels(text: str) -> int:
    """Kernels that multiply tiles, values or numbered registers."""
    return sum(_TILE_PRODUCT.search(function) is not None for function in text.split("\ndefine "))


def _call_guarded(
    call: CompiledFunction,
    function: RandomFunction,
    before: list[Array],
    after: list[Array],
    *,
    at_end: bool,
    retyped: bool,
) -> None:
    """Call a function on guarded memory; `opt` may have it read and write the same bytes as another type."""
    guarded = [GuardedArray(array, at_end=at_end) for array in before]
    parameters = call.prototype.parameters
    call(*(_retyped(g.array, p) if retyped else g.array for g, p in zip(guarded, parameters, strict=True)))
    _compare("running", function, [g.array for g in guarded], after)
    for buffer, memory in zip(function.buffers, guarded, strict=True):
        if not memory.is_intact:
            place = "in front of" if at_end else "behind"
            raise MismatchError("running", f"@{function.name} wrote {place} {buffer.name}")


def _retyped(array: Array, parameter: Parameter) -> Array:
    """An array as the elements that a parameter asks for."""
    dtype = None if parameter.element is None else memory_dtype(parameter.element)
    return array if dtype is None or array.nbytes % dtype.itemsize else array.view(dtype)


def _compare(stage: str, function: RandomFunction, got: list[Array], expected: list[Array]) -> None:
    for buffer, mine, wanted in zip(function.buffers, got, expected, strict=True):
        different = difference(mine, wanted, buffer)
        if different:
            where = f"{buffer.name} of @{function.name} ({function.form}, {buffer.element})"
            raise MismatchError(stage, f"{where}: {different}")


_PAGE: Final = mmap.PAGESIZE
_FILL: Final = 0xFF  # NaN in every floating-point type
_NO_ACCESS: Final = 0
_libc: Final = ctypes.CDLL(None, use_errno=True)


class GuardedArray:
    """A copy of an array between two inaccessible pages.

    Args:
        array: What it holds, one-dimensional.
        at_end: Whether its end or its beginning is at an inaccessible page.

    Attributes:
        array: The copy.
    """

    def __init__(self, array: Array, *, at_end: bool) -> None:
        pages = -(-array.nbytes // _PAGE) * _PAGE
        memory = mmap.mmap(-1, pages + 2 * _PAGE)
        inside = np.frombuffer(memory, np.uint8, pages, _PAGE)
        inside[:] = _FILL
        start = pages - array.nbytes if at_end else 0
        self.array = inside[start : start + array.nbytes].view(array.dtype)
        self.array[:] = array
        self._rest = (inside[:start], inside[start + array.nbytes :])
        address = int(inside.__array_interface__["data"][0])
        _forbid(address - _PAGE)
        _forbid(address + pages)

    @property
    def is_intact(self) -> bool:
        """Whether the rest of the array's pages is as it was."""
        return all(bool(np.all(part == _FILL)) for part in self._rest)


def _forbid(page: int) -> None:
    if _libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(_PAGE), _NO_ACCESS):
        raise OSError(ctypes.get_errno(), "mprotect")
