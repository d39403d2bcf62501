"""Measures models: compares every library's results with the origin's, then times the libraries alternately."""

from __future__ import annotations

import ctypes
import gc
import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Final

import numpy as np

from tlx.bench.measure import OURS
from tlx.bench.models.libraries import OURSELVES, Library, model_file, onnx_reference, use_jax
from tlx.bench.models.workloads import JaxProgram, ModelWorkload, OnnxFile, converted, programs
from tlx.bench.peers.base import MissingError
from tlx.diagnostics import TlxError
from tlx.intrinsics.numpy_types import Array
from tlx.tuning import timing
from tlx.tuning.timing import Contestant, Rates

_HOPELESS: Final = 20.0  # times our time; slower libraries are not waited for, but for this many seconds:
_LEAST: Final = 0.5
_REST: Final = 0.1  # seconds in which the threads of all libraries go to sleep after a call
_BOUNDS: Final = {"f32": 2e-4, "bf16": 0.06}  # of the norm of a result
_MARGINS: Final = {"f32": 0.01, "bf16": 0.25}  # of the deviation of logits, by which a token may miss the best
_MIB: Final = 1 << 20
Mistakes = Callable[[list[Array]], str]
"""Describes what is wrong with results; empty if they are right."""


@dataclass
class ModelCell:
    """The measurements of one model.

    Attributes:
        rates: Calls per nanosecond, by library.
        compile_seconds: Wall-clock seconds to compile, by library.
        memory: MiB by which the process has grown, from before the model is compiled until after it has run.
        notes: Why a library is left out.
        error: Why TLX was not measured; empty if it was.
    """

    model: ModelWorkload
    rates: dict[str, Rates] = field(default_factory=dict[str, Rates])
    compile_seconds: dict[str, float] = field(default_factory=dict[str, float])
    memory: dict[str, float] = field(default_factory=dict[str, float])
    notes: dict[str, str] = field(default_factory=dict[str, str])
    error: str = ""


@dataclass(frozen=True)
class ModelBench:
    """How to measure models.

    Attributes:
        target: Target that our code is compiled for.
        libraries: Libraries to compare with.
        rounds: Number of samples of each library.
        seconds: Seconds for the samples of one model, after which there are only as many rounds as a median needs.
        threads: Number of threads of every library.
    """

    target: str
    libraries: Sequence[Library]
    rounds: int
    seconds: float
    threads: int = 1

    def measure(self, model: ModelWorkload) -> ModelCell:
        """Check and time a model."""
        cell = ModelCell(model)
        try:
            source = model_file(model.origin) if isinstance(model.origin, OnnxFile) else model.program()
            check = _check(model, source)
        except MissingError as reason:
            cell.notes["model"] = str(reason)
            return cell
        contestants: dict[str, Contestant] = {}
        for library in (OURSELVES, *self.libraries):
            try:
                contestant = self._load(library, cell, source, check)
            except TlxError as problem:
                cell.error = problem.message
                continue
            except Exception as problem:  # noqa: BLE001 (other libraries raise anything)
                cell.notes[library.name] = f"{type(problem).__name__}: {problem}"[:200]
                continue
            if contestant is None:
                continue
            ours = contestants.get(OURS, contestant)
            if contestant.seconds_estimate > max(_LEAST, _HOPELESS * ours.seconds_estimate):
                cell.notes[library.name] = f"left out: takes {contestant.seconds_estimate:.3g} s"
            else:
                contestants[library.name] = contestant
        budget = int(self.seconds * 1e9)
        rest = _REST if self.threads > 1 else 0.0
        cell.rates = timing.interleaved(contestants, self.rounds, long_ns=budget, rest=rest).rates
        gc.collect()  # the command line has turned it off
        return cell

    def _load(self, library: Library, cell: ModelCell, source: JaxProgram | Path, check: Mistakes) -> Contestant | None:
        """A library's model, checked; None if it does not run it, or its result is wrong."""
        model = cell.model
        before = _resident()
        runnable = library.load(model, source, self.threads, self.target)
        if runnable is None:
            return None
        begun = perf_counter()
        results = runnable.call()
        first = perf_counter() - begun
        arrays = [array.copy() for array in runnable.arrays(results)]  # the next step may overwrite them
        begun = perf_counter()
        seconds = timing.seconds(runnable.repeat, times=1)
        second = perf_counter() - begun
        del results
        if runnable.compile_seconds is not None:
            extra = max(0.0, first - second) if runnable.compiles_in_first_call else 0.0
            cell.compile_seconds[library.name] = runnable.compile_seconds + extra
        cell.memory[library.name] = max(0.0, _resident() - before) / _MIB
        mistakes = check(arrays)
        if mistakes and library is OURSELVES:
            cell.error = f"wrong result: {mistakes}"
        elif mistakes:
            cell.notes[library.name] = f"wrong result: {mistakes}"
        return None if mistakes else Contestant(runnable.repeat, 1, seconds)


def _resident() -> float:
    """Bytes of the process in memory, without what is free."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


# Comparison with the origin --------------------------------------------------------------------------------------


def _check(model: ModelWorkload, source: JaxProgram | Path) -> Mistakes:
    """Compares results with those of the origin, in float: XLA's of a program, onnxruntime's of a file."""
    if isinstance(source, Path):
        assert isinstance(model.origin, OnnxFile)
        try:
            runtime = import_module("onnxruntime")
        except ImportError as error:
            raise MissingError(f"no package onnxruntime: {error}"[:80]) from None
        expected = onnx_reference(runtime, source, 1).run(None, model.origin.arrays())
        return lambda arrays: _compare(expected, arrays, _BOUNDS[model.types])
    jax = use_jax()
    wide = source if model.types == "f32" else converted(source, "float32")
    if model.checks == "text":
        return _text_check(wide, _MARGINS[model.types])
    results = jax.jit(wide.run)(wide.weights, wide.state, *wide.inputs)
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves(results)]
    return lambda arrays: _compare(expected, arrays, _BOUNDS[model.types])


def _compare(expected: Sequence[Array], arrays: Sequence[Array], bound: float) -> str:
    if len(expected) != len(arrays):
        return f"{len(arrays)} results instead of {len(expected)}"
    for number, (one, other) in enumerate(zip(expected, arrays, strict=True)):
        if one.shape != other.shape:
            return f"result {number} has shape {other.shape} instead of {one.shape}"
        if one.dtype.kind in "biu":
            if not np.array_equal(one, other):
                return f"{np.count_nonzero(one != other)} of {one.size} elements of result {number} differ"
            continue
        wide = one.astype(np.float64)
        error = float(np.linalg.norm(other.astype(np.float64) - wide) / (np.linalg.norm(wide) or 1.0))
        if not error <= bound:
            return f"result {number} is off by {error:.2g} of its norm, above {bound:.2g}"
    return ""


def _text_check(program: JaxProgram, margin: float) -> Mistakes:
    """Each token must have almost the highest logit after the text before it.

    Tokens themselves are no measure: where two logits are equal but for rounding, all that follows differs.
    """
    jax = use_jax()
    prefill = jax.jit(programs().gpt2_prefill)
    prompt = np.asarray(program.inputs[0])

    def check(arrays: Sequence[Array]) -> str:
        text = arrays[0].astype(np.int32)
        if not np.array_equal(text[: len(prompt)], prompt):
            return "the text does not begin with the prompt"
        logits = np.asarray(prefill(program.weights, text), np.float64)[len(prompt) - 1 : -1]
        tokens = text[len(prompt) :]
        missing = (logits.max(1) - logits[np.arange(len(tokens)), tokens]) / logits.std(1)
        worst = int(missing.argmax())
        if missing[worst] > margin:
            return f"token {worst} misses the best logit by {missing[worst]:.2g} deviations, above {margin:.2g}"
        return ""

    return check
