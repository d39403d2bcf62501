"""Checks a program: its meaning, the output of each stage and the machine code must agree.

The meaning of a form is its numpy model, with which the evaluator must agree; that of a dataflow function is what the
evaluator computes. Machine code runs on guarded memory: the byte after an array's last one is inaccessible or, in a
second run, the byte before its first one; the rest of its pages is filled with a pattern that must not change.

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
from tlx.api.compiler import CompiledModule
from tlx.api.emulation import EmulatedFunction, EmulatedModule, compile_emulated
from tlx.api.signatures import CallParameter
from tlx.diagnostics import EvaluationError, LoweringError
from tlx.evaluate import Machine
from tlx.evaluate.teams import ThreadTeam
from tlx.fuzz.generation.model import RandomFunction, difference
from tlx.fuzz.generation.programs import RandomProgram, canonical
from tlx.fuzz.limits import backend_limit
from tlx.fuzz.options import RandomOptions, without_workspace_argument
from tlx.intrinsics.numpy_types import Array, memory_dtype
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.types import mentions_slow_vectors
from tlx.llvm import openmp
from tlx.llvm.codegen import CodegenError
from tlx.llvm.emulator import EmulationError, Guard, emulator_triple
from tlx.lower.options import Options
from tlx.lower.pipeline import lower, verify
from tlx.lower.to_2d.analysis.tensor_operations import call_operands, exceeds_register_elements, is_elementwise
from tlx.lower.to_tiles.versions import at_level, levels
from tlx.target.costs.memory import Caches
from tlx.target.host import best_target, cpu_flags
from tlx.target.lookup import find_target
from tlx.target.target import Target

_DEFAULT: Final = Caches()
_TINY: Final = Caches(l1=4 << 10, l2=16 << 10, l3=64 << 10)
_TEAMS: Final = (3, 1, 2, 7)
_LEVELS: Final = (2, 2, 2, 0, 0, 1, 3)
INTERNAL_ERROR: Final = "bug in TLX"
_PIPELINES: Final = (
    ("-O2",),
    ("-O3",),
    ("-O1",),
    ("-Os",),
    ("-O3", "-mtriple=x86_64-unknown-linux-gnu", "-mcpu=x86-64-v4"),
    ("-passes=slp-vectorizer,vector-combine,instcombine,gvn,loop-unroll,jump-threading,simplifycfg,instcombine",),
)
"""Options of LLVM's `opt`; without a target machine it hardly transforms vectors."""
MAX_STEPS: Final = 20_000_000
STAGE_STEPS: Final = 5_000_000
EMULATED_SECONDS: Final = 300
"""CPU time for all calls of one program under an emulator."""
_TILE_PRODUCT: Final = re.compile(r"call (?:x86_amx|void) @llvm\.x86\.tdp")
Arguments = tuple[list[Array], list[Array]]


OLD_OPT: Final = "this version of LLVM's opt does not have an intrinsic on vectors"
"""Why a program is refused that LLVM's optimiser runs over first: `lround` of vectors is new in LLVM 20."""


class MismatchError(Exception):
    """Two ways to run a program give different results.

    Attributes:
        stage: The step that was run.
    """

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(f"{stage}: {message}")
        self.stage = stage


class RefusedError(Exception):
    """The lowering reports that it does not support something."""


@dataclass(frozen=True)
class CheckSettings:
    """How to check a program.

    Attributes:
        target: The target's name; empty to evaluate the input only.
        emulate: Emulate matrix instructions by LLVM's scalarisation of them.
        evaluate: Evaluate the stages' output.
        run: Run machine code.
        variant: Number from which features, cache sizes and LLVM's optimisation level are drawn.
        optimise: The `opt` program that optimises the input before it is lowered; empty for none. The lowering must not
            refuse its output.
        threads: Run every kernel on several threads, however small.
        drawn: Random options of the lowering.
        emulator: The command of the emulator that runs machine code; empty for this machine.
        features: Features to add to the target's, or to remove: `+a`, `-b`.
    """

    target: str = ""
    emulate: bool = False
    evaluate: bool = True
    run: bool = True
    variant: int = 0
    optimise: str = ""
    threads: bool = False
    drawn: RandomOptions = field(default_factory=RandomOptions)
    emulator: str = ""
    features: tuple[str, ...] = ()

    @property
    def pipeline(self) -> tuple[str, ...]:
        """Arguments of `opt`."""
        return _PIPELINES[self.variant % len(_PIPELINES)]

    @property
    def options(self) -> Options:
        """Options of the lowering."""
        triple = emulator_triple(self.emulator)
        options = self.drawn.options(Options(emulate_matrix=self.emulate, triple=triple))
        options = replace(options, features=(*self.features, *options.features))
        return replace(options, threads="openmp", thread_cycles=0) if self.threads else options

    @property
    def team(self) -> ThreadTeam:
        """The team of parallel regions: one thread, a few, or more than there is work for; in either order."""
        return ThreadTeam(_TEAMS[self.variant % len(_TEAMS)], reverse_order=self.variant % 2 == 1)

    @property
    def opt_level(self) -> int:
        """LLVM's optimisation level for machine code, drawn independently of the variant's other effects."""
        return 0 if self.emulate else random.Random(f"level {self.variant}").choice(_LEVELS)

    @property
    def lowering_target(self) -> Target:
        """The target, for odd variants with all features of this machine, for every third variant with tiny caches.

        If the drawn options name a machine, or an emulator runs the code, its features are unchanged.
        """
        target = find_target(self.target)
        caches = _TINY if self.variant % 3 == 0 else _DEFAULT
        if self.emulate or not self.run or self.emulator or self.features or self.drawn.has_machine:
            return replace(target, caches=caches)
        native = best_target([target], cpu_flags(), caches)
        if self.variant % 2:
            return native
        return replace(native, features=tuple(f for f in native.features if f in target.features))


@dataclass
class CheckStatistics:
    """Statistics of one program: functions checked, and kernels that use a matrix unit."""

    functions: int = 0
    tile_kernels: int = 0


def check_program(program: RandomProgram, check: CheckSettings, doing: Callable[[str], None]) -> CheckStatistics:
    """Check a program.

    Args:
        program: The program to check.
        check: How to check it.
        doing: Called with the name of each step before it starts, as it may crash the process.

    Raises:
        MismatchError: Results differ.
        RefusedError: The lowering does not support the program.
        TlxError: It cannot be lowered or run.
    """
    if not check.optimise:
        return _check(program, check, doing)
    optimised = replace(program, text=_optimised(program.text, check))
    try:
        return _check(optimised, check, doing)
    except RefusedError as refusal:
        _lowered(check.drawn.compiled_for(program.text), check.lowering_target, check.options)
        message = f"a program is refused only after {' '.join(check.pipeline)} has optimised it: {refusal}"
        raise MismatchError("opt", message) from None


def _check(program: RandomProgram, check: CheckSettings, doing: Callable[[str], None]) -> CheckStatistics:
    """Check a program as it is, without optimising it first."""
    program = replace(program, text=check.drawn.compiled_for(program.text))
    doing("evaluating the input")
    arguments = _evaluated_input(program, check)
    if not check.target:
        return CheckStatistics(len(program.functions))
    target = check.lowering_target
    if check.evaluate:
        for title, module in _stages(check, program, target, doing):
            doing(f"evaluating {title}")
            _evaluate(title, module, program, arguments, check)
    if not check.run:
        if not check.evaluate:
            _lowered(program.text, target, check.options)
        return CheckStatistics(len(program.functions))
    return _run(program, check, target, arguments, doing)


def _optimised(text: str, check: CheckSettings) -> str:
    """A module after LLVM's pipeline, which leaves tensor operations alone.

    LLVM 19 crashes when x86's cost model computes the cost of a scalable splat.
    """
    arguments = [word for word in check.pipeline if "vscale" not in text or not word.startswith("-m")]
    command = [check.optimise, *arguments, "-S"]
    done = subprocess.run(command, input=canonical(text), text=True, capture_output=True, check=False)
    if "Intrinsic does not support vectors" in done.stderr:
        raise RefusedError(OLD_OPT)
    if done.returncode:
        raise MismatchError("opt", f"{check.optimise} refuses the program: {done.stderr}")
    return done.stdout


# Evaluation --------------------------------------------------------------------------------------------------------


def _evaluated_input(program: RandomProgram, check: CheckSettings) -> list[Arguments]:
    """Each function's arrays before and after a call."""
    results = [function.arguments() for function in program.functions]
    if not check.evaluate and all(after is not None for _, after in results):
        return [(before, after) for before, after in results if after is not None]
    if not check.target:
        verify(parse(program.text))
    machine = Machine(parse(program.text), max_steps=MAX_STEPS)
    arguments: list[Arguments] = []
    for function, (before, after) in zip(program.functions, results, strict=True):
        arrays = [array.copy() for array in before]
        machine.call(function.name, *arrays)
        if after is not None:
            _compare("evaluating the input", function, arrays, after)
        arguments.append((before, after or arrays))
    return arguments


def _stages(
    check: CheckSettings, program: RandomProgram, target: Target, doing: Callable[[str], None]
) -> Iterator[tuple[str, Module]]:
    """The outputs of the stages; every fourth variant, each stage parses the text that the previous one wrote.

    Every fourth variant evaluates the last stage's output as well, which is slow; otherwise it is only run.
    """
    text = program.text
    options = without_workspace_argument(check.options)
    stages = ["to-2d", "to-tiles"]
    if check.variant % 4 == 1 or not check.run:
        stages.append("legalize")
    for stage in stages:
        doing(f"lowering to {stage}")
        module = _lowered(text, target, replace(options, emulate_matrix=False, stop_after=stage))
        yield stage, module
        if check.variant % 4 == 0:
            text = str(module)


def _lowered(text: str, target: Target, options: Options) -> Module:
    try:
        return lower(parse(text), target, options=options)
    except LoweringError as error:
        if INTERNAL_ERROR in error.message:
            raise
        raise RefusedError(error.message) from None


def _evaluate(
    title: str, module: Module, program: RandomProgram, arguments: list[Arguments], check: CheckSettings
) -> None:
    """Compare the meaning of a stage's output with that of the input.

    An evaluation may exceed its limit of instructions if machine code runs as well. If there are several versions, the
    variant determines which one is evaluated.
    """
    kinds = levels(text := str(module))
    if kinds:
        module = parse(at_level(text, kinds[check.variant % len(kinds)]))
    may_end = check.run or check.drawn.has_machine
    machine = Machine(module, max_steps=STAGE_STEPS if may_end else MAX_STEPS, team=check.team)
    for function, (before, after) in zip(program.functions, arguments, strict=True):
        arrays = [array.copy() for array in before]
        try:
            machine.call_prepared(function.name, *arrays)
        except EvaluationError as error:
            if may_end and "instructions were executed" in error.message:
                return
            raise
        _compare(f"evaluating {title}", function, arrays, after)


# Machine code ------------------------------------------------------------------------------------------------------


def _run(
    program: RandomProgram,
    check: CheckSettings,
    target: Target,
    arguments: list[Arguments],
    doing: Callable[[str], None],
) -> CheckStatistics:
    doing("compiling")
    try:
        compiled = _compiled(program.text, target, check)
    except LoweringError as error:
        if INTERNAL_ERROR in error.message:
            raise
        raise RefusedError(error.message) from None
    except (CodegenError, EmulationError) as error:
        features = check.drawn.machine_features(target)
        reason = backend_limit(error.message, program.text, features, is_foreign=bool(check.emulator))
        if reason:
            raise RefusedError(reason) from None
        raise
    check_registers(program.text, compiled.lowered)
    if check.threads and not check.emulator:
        openmp.set_threads(check.team.max_threads)
    for function, (before, after) in zip(program.functions, arguments, strict=True):
        for at_end in (True, False):
            place = "before a guard page" if at_end else "after a guard page"
            doing(f"running @{function.name} {place}")
            call = compiled[function.name]
            if isinstance(call, EmulatedFunction):
                guard: Guard = "after" if at_end else "before"
                _call_emulated(call, function, before, after, guard, retyped=bool(check.optimise))
            else:
                _call_guarded(call, function, before, after, at_end=at_end, retyped=bool(check.optimise))
    if isinstance(compiled, EmulatedModule):
        compiled.close()
    return CheckStatistics(len(program.functions), _count_tile_kernels(compiled.lowered))


def _compiled(text: str, target: Target, check: CheckSettings) -> CompiledModule | EmulatedModule:
    """A program as machine code, for this machine or for the emulated one."""
    if not check.emulator:
        return tlx.compile(text, target, opt_level=check.opt_level, options=check.options)
    return compile_emulated(
        text,
        target,
        check.emulator,
        opt_level=check.opt_level,
        options=check.options,
        cpu_seconds=EMULATED_SECONDS,
    )


def check_registers(text: str, lowered: str) -> None:
    """Check that the lowered functions have no instructions on vectors for which LLVM would take minutes.

    Args:
        text: The program; its functions without tensor operations are not checked.
        lowered: The lowered program.

    Raises:
        MismatchError: An instruction has such vectors.
    """
    if not mentions_slow_vectors(lowered):
        return
    names = {function.name for function in parse(text).functions}
    for function in parse(lowered, "<lowered>", mentions_slow_vectors).functions:
        if not function.name.startswith("tlx.") and function.name not in names:
            continue
        for instruction in function.instructions():
            if not is_elementwise(instruction) and not _merges_values(instruction):
                continue
            if any(exceeds_register_elements(value.type) for value in (instruction.value, *call_operands(instruction))):
                raise MismatchError("lowering", f"vectors too large for LLVM in @{function.name}: {instruction.text}")


def _merges_values(instruction: Instruction) -> bool:
    """Whether an instruction is a phi of several values; LLVM replaces one of a single value by that value."""
    return instruction.opcode == "phi" and len({value for value, _ in instruction.incoming}) > 1


def _count_tile_kernels(text: str) -> int:
    """Number of kernels that use a matrix unit, with tiles as values or as numbered registers."""
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
    """Call a function on guarded memory; `opt` may have changed the element types of its parameters."""
    guarded = [GuardedArray(array, at_end=at_end) for array in before]
    parameters = call.prototype.parameters
    call.call_prepared(
        *(_retyped(g.array, p) if retyped else g.array for g, p in zip(guarded, parameters, strict=True))
    )
    _compare("running", function, [g.array for g in guarded], after)
    for buffer, memory in zip(function.buffers, guarded, strict=True):
        if not memory.is_intact:
            place = "before" if at_end else "after"
            raise MismatchError("running", f"@{function.name} wrote {place} {buffer.name}")


def _call_emulated(
    call: EmulatedFunction,
    function: RandomFunction,
    before: list[Array],
    after: list[Array],
    guard: Guard,
    *,
    retyped: bool,
) -> None:
    """Call a function under an emulator, on memory that is guarded there."""
    parameters = call.prototype.parameters
    arrays = [array.copy() for array in before]
    passed = [_retyped(a, p) if retyped else a for a, p in zip(arrays, parameters, strict=True)]
    _, intact = call.call_guarded(passed, guard)
    _compare("running", function, arrays, after)
    for buffer, is_intact in zip(function.buffers, intact, strict=True):
        if not is_intact:
            raise MismatchError("running", f"@{function.name} wrote beside {buffer.name}")


def _retyped(array: Array, parameter: CallParameter) -> Array:
    """An array reinterpreted as elements of a parameter's type."""
    dtype = None if parameter.element is None else memory_dtype(parameter.element)
    return array if dtype is None or array.nbytes % dtype.itemsize else array.view(dtype)


def _compare(stage: str, function: RandomFunction, got: list[Array], expected: list[Array]) -> None:
    for buffer, got_array, expected_array in zip(function.buffers, got, expected, strict=True):
        error = difference(got_array, expected_array, buffer)
        if error:
            name = f"{buffer.name} of @{function.name} ({function.form}, {buffer.element})"
            raise MismatchError(stage, f"{name}: {error}")


_PAGE: Final = mmap.PAGESIZE
_FILL: Final = 0xFF  # NaN in every floating-point type
_NO_ACCESS: Final = 0
_libc: Final = ctypes.CDLL(None, use_errno=True)


class GuardedArray:
    """A copy of an array between two inaccessible pages.

    Args:
        array: Its contents, one-dimensional.
        at_end: Whether the inaccessible page follows its end or precedes its beginning.

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
        """Whether the rest of the array's pages is unchanged."""
        return all(bool(np.all(part == _FILL)) for part in self._rest)


def _forbid(page: int) -> None:
    if _libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(_PAGE), _NO_ACCESS):
        raise OSError(ctypes.get_errno(), "mprotect")
