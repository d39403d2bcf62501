"""Translation validation: checks on random data that each stage's output means the same as the input.

    import tlx.api.validation

    for note in tlx.api.validation.validate(text, "avx512"):
        print(note)                                   # what could not be checked, and why

Each function with tensor operations, or very large vectors, is evaluated before the lowering and after each stage, and
the memory that its pointers refer to is compared. Its size is found by a first run of the input, which has a large,
empty region for each pointer that records reads and writes.

    reach of %a      ..............[######]..........     then an array of just that size, full of random numbers

Floats are small integers, so that sums do not depend on their order; where a function divides, takes roots or calls
elementary functions, a few units in the last place of the largest number are allowed. As numbers may cancel, so are a
few times the differences that changing the inputs in their last places makes. Undefined results may be anything: where
something differs, the input is evaluated again with other bits for `undef`, `poison` and uninitialised memory, and
elements that change with them are not compared.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tlx.api.prototypes import prototype_of
from tlx.api.signatures import Prototype
from tlx.diagnostics import EvaluationError, Note, TlxError
from tlx.evaluate import Machine
from tlx.evaluate.memory import UNDEFINED, AddressSpace, MemoryRegion
from tlx.evaluate.teams import ThreadTeam
from tlx.intrinsics.numpy_types import Array, dtype_of
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.parser.module import needs_lowering, parse, parse_fully
from tlx.ir.types import (
    BFLOAT,
    DOUBLE,
    FLOAT,
    HALF,
    FloatType,
    IntType,
    PointerType,
    Type,
    VectorType,
    exceeds_abi,
    scalar_of,
)
from tlx.lower.memory.allocation import workspace_size
from tlx.lower.options import STAGE_NAMES, Options, Step
from tlx.lower.pipeline import lower, raise_front_ends
from tlx.lower.to_tiles.versions import at_level, levels

if TYPE_CHECKING:
    from tlx.target.target import Target

_BEFORE: Final = 64 << 20
_ROOM: Final = 1 << 30
_GROWTHS: Final = 4
_MAX_STEPS: Final = 1_000_000
_ULPS: Final = 16
_PERTURBED_RUNS: Final = 8
_PERTURBATION: Final = 4
"""Units in the last place by which floats are perturbed, the error of TLX's elementary functions."""
_SPREAD: Final = 4
"""Largest difference of a stage's results, as a multiple of that of results for perturbed floats."""
_UNROUNDING_STAGE: Final = "to-tiles"  # computes bfloat expressions in float, if asked for
_TEAMS: Final = (3, 1, 7)  # threads that parallel regions are evaluated with
_EPSILON: Final[dict[Type, float]] = {HALF: 2.0**-10, BFLOAT: 2.0**-7, FLOAT: 2.0**-23, DOUBLE: 2.0**-52}
_EXACT: Final[dict[Type, float]] = {HALF: 2.0**8, BFLOAT: 2.0**6, FLOAT: 2.0**21, DOUBLE: 2.0**50}
_INEXACT: Final = re.compile(
    r"\b(fdiv|fptrunc|frem|arcp|afn|reassoc|fast)\b|\.(tanh|sigmoid|erfc|sin|cos|tan|exp|exp2|exp10|log|log2|log10|sqrt|pow|powi)\b"
)
DEFAULT_RUNS: Final = 3


class ValidationError(TlxError):
    """A stage's output does not mean the same as the input."""


@dataclass(eq=False)
class StageRecorder:
    """Records the output of each stage; passed to the pipeline as `print_after`.

    Attributes:
        callback: Another function to call after each step.
        outputs: The stages and their outputs.
    """

    callback: Callable[[Step, Module], None] | None = None
    outputs: list[tuple[Step, str]] = field(default_factory=list[tuple[Step, str]])

    def __call__(self, step: Step, module: Module) -> None:
        """Record a step's output."""
        if step.name in STAGE_NAMES:
            self.outputs.append((step, str(module)))
        if self.callback:
            self.callback(step, module)


def validate(
    source: Module | str, target: Target | str = "native", *, options: Options | None = None, runs: int = DEFAULT_RUNS
) -> list[Note]:
    """Lower a module and compare its meaning before and after each stage.

    Args:
        source: A module (it is not changed) or LLVM assembly.
        target: The machine to aim at.
        options: Options of the lowering.
        runs: Number of times that each function is evaluated, on different data.

    Returns:
        What could not be checked, and why.

    Raises:
        CheckError: A stage's output means something else.
        TlxError: The module is wrong or cannot be lowered.
    """
    text, name = (source, "<string>") if isinstance(source, str) else (str(source), source.source.name)
    stages = StageRecorder()
    lower(parse(text, name), target, options=replace(options or Options(), print_after=stages))
    exact = options is None or options.bf16_intermediates == "exact"
    return compare_stages(text, name, stages, runs, exact=exact)


def compare_stages(
    text: str, name: str, stages: StageRecorder, runs: int = DEFAULT_RUNS, *, exact: bool = True
) -> list[Note]:
    """Compare a text with the outputs of the stages; see `validate`.

    Args:
        text: The input.
        name: Its name in messages.
        stages: The recorded outputs.
        runs: Number of times that each function is evaluated, on different data.
        exact: Whether intermediate results are rounded to bfloat. If they are not, what a function computes after the
            stage that omits the rounding is what the next stages are compared with.
    """
    module = _fully_parsed(str(raise_front_ends(parse(text, name))), name)
    outputs = [part for step, output in stages.outputs for part in _versions(step, output, name)]
    notes: list[Note] = []
    for function in module.functions:
        if not needs_lowering(str(function)):
            continue
        try:
            notes.extend(_compare_function(module, function, outputs, runs, rounded=exact))
        except _UncheckedError as reason:
            notes.append(Note(f"@{function.name} was not checked: {reason}", function.span))
    return notes


def _versions(step: Step, text: str, name: str) -> Iterator[tuple[Step, Module]]:
    """A stage's output for each kind of machine that it has versions for."""
    for level in levels(text) or [0]:
        version = replace(step, name=f"{step.name} on a machine of level {level}") if level else step
        yield version, _fully_parsed(at_level(text, level), f"{name} after {step.name}")


def _fully_parsed(text: str, name: str) -> Module:
    """A module with every function parsed."""
    return parse_fully(text, name)


class _UncheckedError(Exception):
    """A function cannot be evaluated."""


def _compare_function(
    module: Module, function: Function, outputs: Sequence[tuple[Step, Module]], runs: int, *, rounded: bool
) -> Iterator[Note]:
    if any(map(exceeds_abi, (function.signature.result, *function.signature.type.params))):
        raise _UncheckedError("its large vectors are passed by pointer in the end; functions that call it are checked")
    prototype = replace(prototype_of(module, function), name=function.name)
    exact = not _INEXACT.search(str(module))
    skipped: set[str] = set()
    unrounded = not rounded and "bfloat" in str(module)
    for run in range(runs):
        sample, reference = _sample(module, prototype, run), module
        expected = sample.evaluated(module)
        for step, output in outputs:
            if step.name in skipped or all(f.name != function.name for f in output.functions):
                continue
            try:
                got = sample.evaluated(output, ThreadTeam(_TEAMS[run % len(_TEAMS)], reverse_order=run % 2 == 1))
            except EvaluationError as error:
                if "instructions were executed" not in error.message:
                    raise _wrong(function, step, f"evaluating it fails: {error.message}", error) from None
                skipped.add(step.name)
                yield Note(f"@{function.name} was not checked after {step.name}: it takes too long", function.span)
                continue
            if not sample.difference(expected, got, exact=exact):
                continue
            difference = sample.difference(expected, got, sample.with_zero_undefined(module), exact=exact)
            if not difference or not (exact or sample.differs_by_more_than_rounding(reference, expected, got)):
                continue
            if not (unrounded and step.name.startswith(_UNROUNDING_STAGE)):
                raise _wrong(function, step, difference)
            expected, reference = got, output
            if run == 0:
                text = f"its intermediate results are not rounded to bfloat: {difference}"
                yield Note(f"@{function.name} was not checked after {step.name}: {text}", function.span)


def _wrong(function: Function, step: Step, what: str, cause: EvaluationError | None = None) -> ValidationError:
    message = (
        f"after {step.name} @{function.name} does not have the same meaning as the input: {what}; this is a bug in TLX"
    )
    error = ValidationError(message, function.span)
    if cause is not None and cause.span is not None:
        error.notes.append(Note("here", cause.span))
    return error


# Data --------------------------------------------------------------------------------------------------------------


@dataclass
class _PointerTarget:
    """The memory that a pointer refers to.

    Attributes:
        element: Type of its elements; i8 if unknown.
        low: Offset of the first byte that is accessed.
        data: Its contents before a call.
    """

    element: Type
    low: int = 0
    data: Array = field(default_factory=lambda: np.zeros(0, np.uint8))

    @property
    def values(self) -> Array:
        """The contents as elements."""
        return self.data.view(dtype_of(self.element))


_Results = tuple[list[Array], Any]
"""The memory of each pointer after a call, and the call's result."""


@dataclass
class _SampleArguments:
    """Arguments of a call: memory for pointers, numbers for the others."""

    prototype: Prototype
    pointed: dict[int, _PointerTarget]
    numbers: dict[int, Any]

    def evaluated(self, module: Module, team: ThreadTeam | None = None, undefined: int = UNDEFINED) -> _Results:
        """Memory after a call, and its result; undefined bytes are 255 or 0."""
        memory = AddressSpace(undefined)
        machine = Machine(module, max_steps=_MAX_STEPS, memory=memory, team=team)
        arguments: list[Any] = []
        after: list[Array] = []
        for index, parameter in enumerate(self.prototype.parameters):
            place = self.pointed.get(index)
            if place is None:
                arguments.append(self.numbers[index])
                continue
            copy = place.data.copy()
            after.append(copy)
            region = memory.add(copy.data.cast("B"), parameter.name, 64)
            arguments.append(region.base - place.low)
        workspace = workspace_size(module, self.prototype.name)
        if workspace:
            buffer = np.full(workspace, UNDEFINED, np.uint8)
            arguments.append(memory.add(buffer.data, "the workspace", 64).base)
        return after, machine.call_prepared(self.prototype.name, *arguments)

    def with_zero_undefined(self, module: Module) -> _Results | None:
        """The results of the input if undefined bytes are 0 instead of 255; None if that makes it fail."""
        try:
            return self.evaluated(module, undefined=0)
        except EvaluationError:
            return None

    def differs_by_more_than_rounding(self, module: Module, expected: _Results, got: _Results) -> bool:
        """Whether a stage's results are further from a module's than those of the module for perturbed floats."""
        wanted, actual = self._numbers_in(expected), self._numbers_in(got)
        spreads = [np.zeros(len(part)) for part in wanted]
        for seed in range(_PERTURBED_RUNS):
            try:
                moved = self._numbers_in(self._perturbed(seed).evaluated(module))
            except EvaluationError:  # floats are indices, for instance
                continue
            with np.errstate(all="ignore"):
                spreads = [np.fmax(s, np.abs(m - w)) for s, m, w in zip(spreads, moved, wanted, strict=True)]
        return any(itertools.starmap(_is_outside, zip(actual, wanted, spreads, strict=True)))

    def _perturbed(self, seed: int) -> _SampleArguments:
        """These arguments, each float changed in its last places."""
        generator = np.random.default_rng(seed)

        def perturbed(values: Array, type_: Type) -> Array:
            if not isinstance(type_, FloatType):
                return values
            wide = np.asarray(values, np.float64)
            steps = generator.integers(-_PERTURBATION, _PERTURBATION + 1, wide.shape)
            return np.asarray(wide + steps * (_EPSILON[type_] * np.where(wide == 0, 1, np.abs(wide))), values.dtype)

        pointed = {
            index: replace(place, data=perturbed(place.values, place.element).view(np.uint8))
            for index, place in self.pointed.items()
        }
        types = {index: scalar_of(self.prototype.parameters[index].type) for index in self.numbers}
        numbers = {index: perturbed(np.asarray(number), types[index])[()] for index, number in self.numbers.items()}
        return replace(self, pointed=pointed, numbers=numbers)

    def _numbers_in(self, results: _Results) -> list[Array]:
        """The memory of each pointer, and a result that is a number or a vector, in double."""
        dtypes = [dtype_of(place.element) for place in self.pointed.values()]
        parts = [memory.view(dtype) for memory, dtype in zip(results[0], dtypes, strict=True)]
        if isinstance(scalar_of(self.prototype.result), (IntType, FloatType)):
            parts.append(np.atleast_1d(results[1]))
        return [np.asarray(part, np.float64) for part in parts]

    def difference(
        self, expected: _Results, got: _Results, alternative: _Results | None = None, *, exact: bool
    ) -> str | None:
        """The first difference between the results of two runs; None if there is none.

        Args:
            expected: The results of the input.
            got: The results of a stage's output.
            alternative: The results of the input with other undefined bytes; elements that differ are undefined.
            exact: Whether floating-point numbers must be the same to the last bit.
        """
        alternative = alternative or expected
        memories = zip(self.pointed.items(), expected[0], got[0], alternative[0], strict=True)
        for (index, place), *buffers in memories:
            dtype = dtype_of(place.element)
            wanted, mine, other = (buffer.view(dtype) for buffer in buffers)
            mine = _with_undefined_as_expected(mine, wanted, other)
            at = _first_difference(mine, wanted, place.element, exact=exact)
            if at is not None:
                name = self.prototype.parameters[index].name
                element = at + place.low // dtype.itemsize
                values = f"is {mine[at]!s}, expected {wanted[at]!s}"
                return f"element {element} of {name} ({place.element}) {values}"
        return _result_difference(self.prototype.result, expected[1], got[1], alternative[1], exact=exact)


def _is_outside(actual: Array, expected: Array, spread: Array) -> bool:
    """Whether an element differs from the expected one by more than `_SPREAD` times the spread."""
    if not spread.size:
        return False
    with np.errstate(all="ignore"):
        typical = np.fmax(spread, np.median(spread))  # an element may happen not to move
        near = np.abs(actual - expected) <= _SPREAD * typical
    return not np.all(near | (actual == expected) | np.isnan(expected))


def _result_difference(type_: Type, expected: Any, got: Any, alternative: Any, *, exact: bool) -> str | None:
    element = type_.element if isinstance(type_, VectorType) else type_
    if not isinstance(element, (IntType, FloatType)):
        return None
    mine, wanted, other = (np.atleast_1d(np.asarray(x, dtype_of(element))) for x in (got, expected, alternative))
    at = _first_difference(_with_undefined_as_expected(mine, wanted, other), wanted, element, exact=exact)
    return None if at is None else f"element {at} of the result is {got!s}, expected {expected!s}"


def _with_undefined_as_expected(got: Array, expected: Array, alternative: Array) -> Array:
    """A stage's results, with elements that are undefined in the input replaced by the expected ones."""
    both_nan = (expected != expected) & (alternative != alternative)  # noqa: PLR0124
    return np.where(np.asarray((expected == alternative) | both_nan), got, expected)


def _first_difference(got: Array, expected: Array, element: Type, *, exact: bool) -> int | None:
    same = np.asarray(got == expected)
    if isinstance(element, FloatType):
        got, expected = got.astype(np.float64), expected.astype(np.float64)
        same |= np.isnan(got) & np.isnan(expected)
        largest = float(np.max(np.abs(expected), where=np.isfinite(expected), initial=0.0))
        if not exact or largest > _EXACT[element]:
            with np.errstate(all="ignore"):
                same |= np.abs(got - expected) <= _ULPS * _EPSILON[element] * largest
    wrong = np.flatnonzero(~same)
    return int(wrong[0]) if wrong.size else None


def _sample(module: Module, prototype: Prototype, run: int) -> _SampleArguments:
    """Data for a call: arbitrary integers, or small positive ones if the function fails on those.

    Raises:
        _UncheckedError: The function fails on both.
    """
    reason: Exception | None = None
    for small in (False, True):
        try:
            return _sized_sample(module, prototype, f"{prototype.name} {run} {small}", small=small)
        except EvaluationError as error:
            reason = error
    assert isinstance(reason, EvaluationError)
    raise _UncheckedError(reason.message)


def _sized_sample(module: Module, prototype: Prototype, seed: str, *, small: bool) -> _SampleArguments:
    """Data of the size that a call accesses; the call is repeated while the data make it access more."""
    scalars = random.Random(seed)
    arrays = np.random.default_rng(scalars.getrandbits(32))
    sample = _SampleArguments(prototype, {}, {})
    for index, parameter in enumerate(prototype.parameters):
        if isinstance(parameter.type, PointerType):
            sample.pointed[index] = _PointerTarget(parameter.stored_type or IntType(8))
        else:
            sample.numbers[index] = _number(parameter.type, scalars)
    for _ in range(_GROWTHS):
        if not _grow(module, sample, arrays, small=small):
            break
    return sample


def _number(type_: Type, generator: random.Random) -> Any:
    if isinstance(type_, IntType):
        return generator.randrange(2) if type_.bits == 1 else generator.randint(1, 9)
    if isinstance(type_, FloatType):
        return float(generator.randint(-3, 4))
    if isinstance(type_, VectorType) and not type_.scalable and isinstance(type_.element, (IntType, FloatType)):
        return np.array([generator.randint(0, 3) for _ in range(type_.count)], dtype_of(type_.element))
    raise _UncheckedError(f"it has a parameter of type {type_}")


def _grow(module: Module, sample: _SampleArguments, generator: np.random.Generator, *, small: bool) -> bool:
    """Call the input with ample memory, and extend the data to what it accessed; returns whether they grew."""
    memory = _RecordingMemory()
    machine = Machine(module, max_steps=_MAX_STEPS, memory=memory)
    arguments: list[Any] = []
    regions: dict[int, MemoryRegion] = {}
    for index, parameter in enumerate(sample.prototype.parameters):
        place = sample.pointed.get(index)
        if place is None:
            arguments.append(sample.numbers[index])
            continue
        regions[index] = memory.add_recorded(place, parameter.name)
        arguments.append(regions[index].base + _BEFORE)
    machine.call(sample.prototype.name, *arguments)
    grown = [_fit(sample.pointed[i], memory.accessed(r), generator, small=small) for i, r in regions.items()]
    return any(grown)


def _fit(place: _PointerTarget, accessed: tuple[int, int], generator: np.random.Generator, *, small: bool) -> bool:
    """Extend the data to the range that was accessed; returns whether it grew."""
    size = dtype_of(place.element).itemsize
    low, high = min(accessed[0], place.low), max(accessed[1], place.low + place.data.nbytes)
    low, high = low // size * size, -(-high // size) * size
    if (low, high) == (place.low, place.low + place.data.nbytes):
        return False
    place.low = low
    place.data = _random(place.element, (high - low) // size, generator, small=small).view(np.uint8)
    return True


def _random(element: Type, count: int, generator: np.random.Generator, *, small: bool) -> Array:
    dtype = dtype_of(element)
    if isinstance(element, FloatType):
        limit = 1 if element in (HALF, BFLOAT) else 4
        return generator.integers(-limit, limit + 1, count).astype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, count).astype(dtype)
    if small:
        return generator.integers(1, 7, count).astype(dtype)
    info = np.iinfo(dtype)
    return generator.integers(info.min, info.max, count, dtype, endpoint=True)


class _RecordingMemory(AddressSpace):
    """Memory that records the accessed range of some regions."""

    def __init__(self) -> None:
        super().__init__()
        self._nothing: MemoryRegion = self.last
        self._ranges: dict[int, list[int]] = {}

    def add_recorded(self, place: _PointerTarget, label: str) -> MemoryRegion:
        """A large region that a pointer refers to at offset `_BEFORE`, with the pointer's data in it."""
        buffer = np.zeros(_ROOM, np.uint8)
        at = _BEFORE + place.low
        buffer[at : at + place.data.nbytes] = place.data.view(np.uint8)
        region = self.add(buffer.data, label, 64, owner=buffer)
        self._ranges[region.base] = []
        return region

    def region(self, address: int, size: int, access: str) -> MemoryRegion:
        """The region of an access, which is recorded."""
        region = super().region(address, size, access)
        accessed = self._ranges.get(region.base)
        if accessed is not None:
            low = address - region.base
            accessed[:] = [min([low, *accessed[:1]]), max([low + size, *accessed[1:]])]
            self.last = self._nothing  # accesses to `last` are not looked up here
        return region

    def accessed(self, region: MemoryRegion) -> tuple[int, int]:
        """The range of bytes that was accessed, relative to the pointer (end exclusive)."""
        low, high = self._ranges[region.base] or (_BEFORE, _BEFORE)
        return low - _BEFORE, high - _BEFORE
