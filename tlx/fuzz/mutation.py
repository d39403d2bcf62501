"""`tlx fuzz --malformed`: damaged texts, bitcode, models and settings must give a result or a clean error, and quickly.

A campaign starts workers, which mutate seed texts; it counts their findings and keeps the first input of each.
"""

from __future__ import annotations

import base64
import contextlib
import math
import os
import random
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from json import loads
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Final, Self

from tlx.diagnostics import UsageError
from tlx.fuzz.generation.programs import random_program
from tlx.fuzz.log import FuzzLog, Series
from tlx.intrinsics import INTRINSICS
from tlx.lower.pipeline import front_ends

_PIECE: Final = re.compile(r'"[^"]*"|[%@!#$]?[-\w.$]+|\s+|.', re.DOTALL)
_NUMBER: Final = re.compile(r"-?\d+")
_NUMBERS: Final = tuple(
    str(n) for n in (0, 1, -1, 2, 7, 255, 65536, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, 10**30, -(2**31), 6400000)
)
_ODD: Final = ("\0", "\\", "9" * 5000, "é", "<" * 60, "{" * 60, *"()\"'!#;%@*", "\n", "\r\n", "...")
_PROGRAMS: Final = 60
_FRONT_END_WEIGHT: Final = 3
"""How often a front end's example counts: there are few, but front ends have much code that rejects input."""
_FIELDS: Final = 0.5
"""Share of the models whose fields are changed instead of their bytes, where the front end can change fields."""
_DEFINED: Final = re.compile(r"^define [^@\n]*@([\w.]+)", re.MULTILINE)
_GLOBAL: Final = re.compile(r"@([\w.]+)")
_TYPED: Final = re.compile(r"(?:\w|>)\*")
_LONGEST: Final = 6000
_OPERAND: Final = re.compile(r"(<[^<>]*>|ptr|\b(?:i\d+|half|bfloat|float|double))(?: elementtype\(\w+\))? (%\w+)")
Pieces = list[str]


@cache
def seed_texts() -> tuple[str, ...]:
    """Seed texts: an example of each intrinsic, those of front ends, short random programs in all spellings."""
    programs = [random_program("any", f"seed {n}").text for n in range(_PROGRAMS)]
    programs += [random_program("loops", f"seed {n}").functions[0].text for n in range(10)]
    examples = [_function(row.example) for row in INTRINSICS]
    raised = [text for text, suffix in front_end_examples() if suffix == ".ll"]
    return (*examples, *raised * _FRONT_END_WEIGHT, *(text for text in programs if len(text) < _LONGEST))


def _has_examples(front_end: ModuleType) -> bool:
    return hasattr(front_end, "__path__") and find_spec(f"{front_end.__name__}.examples") is not None


@cache
def front_end_examples() -> tuple[tuple[str, str], ...]:
    """The front ends' examples, each with its file suffix: LLVM assembly, or a language of its own."""
    examples: list[tuple[str, str]] = []
    for front_end in front_ends():
        if not hasattr(front_end, "READ") and _has_examples(front_end):
            suffix = getattr(front_end, "SUFFIXES", (".ll",))[0]
            examples += [(text, suffix) for text in import_module(f"{front_end.__name__}.examples").EXAMPLES]
    return tuple(examples)


@cache
def damaged_models() -> tuple[tuple[Callable[[random.Random], bytes], str], ...]:
    """For each kind of model file that can be read here, a function that draws a damaged one, and the file suffix."""
    found: list[tuple[Callable[[random.Random], bytes], str]] = []
    for front_end in front_ends():
        if hasattr(front_end, "READ") and _has_examples(front_end):
            with contextlib.suppress(ModuleNotFoundError):  # a package that reads them
                examples = import_module(f"{front_end.__name__}.examples")
                found.append((partial(_damaged_example, examples), front_end.SUFFIXES[0]))
    return tuple(found)


def _damaged_example(examples: ModuleType, choose: random.Random) -> bytes:
    return damaged_model(choose, choose.choice(examples.EXAMPLES), getattr(examples, "mutated_fields", None))


def damaged_model(
    choose: random.Random, model: bytes | str, mutated_fields: Callable[[random.Random, bytes], bytes] | None
) -> bytes:
    """A model with changed text or bytes, or with changed fields if its front end has a function that changes them."""
    if isinstance(model, str):
        return mutated_text(choose, model).encode(errors="surrogatepass")
    if mutated_fields is not None and choose.random() < _FIELDS:
        return mutated_fields(choose, model)
    return mutated_bytes(choose, model)


SETTINGS: Final = (
    (
        "--knobs=",
        ".toml",
        '["matmul 32x32x32 float"]\ntile = "3x32"\nkc = 32\n\n["avx2: matmul * float"]\ntile = "4x16"\npack_b = true\n',
    ),
    (
        "--knobs=",
        ".json",
        '{"matmul 32x32x32 float": {"tile": "3x32", "kc": 32}, "avx2: matmul *": {"pack_a": false}}\n',
    ),
    (
        "--tuned=",
        ".json",
        """{"schema": 1, "entries": {"matmul 32x32x32 float | avx512 +avx512f | any": {
 "problem": "matmul 32x32x32 float", "cpu": "any", "target": "avx512", "features": ["+avx512f"],
 "trials": {"tile=8x32@3": {"ratios": [1.02, 1.01], "best_ratio": 1.02, "rate": 98.1,
  "default_rate": 95.9, "error": ""}}, "complete": true, "best": {"knobs": "tile=8x32", "ratio": 1.02,
  "rate": 98.1, "default_rate": 95.9, "date": "2026-11-22"}}}}
""",
    ),
)
"""Files of settings: the option that names one, its suffix and its text."""
PRODUCT: Final = """define void @f(ptr noalias %c, ptr noalias %x) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>,
    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <1024 x float> @llvm.tensor.matmul(token %a, token %a)
  %t = call token @llvm.tensor.typeinfo(<1024 x float> %p, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>,
    <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
"""
"""A program that settings apply to."""


def combined_text(choose: random.Random) -> str:
    """One to three texts in one, all with typed or all with opaque pointers: front ends' calls and tensor calls."""
    first = choose.choice(seed_texts())
    texts = [first, *choose.choices(_texts_of(typed=_is_typed(first)), k=choose.choice([0, 1, 2]))]
    lines: dict[str, None] = {}
    bodies: list[str] = []
    for at, text in enumerate(texts):
        own = set(_DEFINED.findall(text))
        body = _GLOBAL.sub(lambda name, own=own, at=at: f"{name[0]}.{at}" if name[1] in own else name[0], text)
        declared = [line for line in body.splitlines() if line.startswith("declare ")]
        lines |= dict.fromkeys(line for line in declared if _declared(line) not in map(_declared, lines))
        bodies.append("\n".join(line for line in body.splitlines() if not line.startswith("declare ")))
    return "\n".join([*bodies, *lines, ""])


@cache
def _texts_of(*, typed: bool) -> tuple[str, ...]:
    """The seed texts with typed or with opaque pointers."""
    return tuple(text for text in seed_texts() if _is_typed(text) == typed)


@cache
def _is_typed(text: str) -> bool:
    return _TYPED.search(text) is not None


def _declared(line: str) -> str:
    """The name that a declaration declares."""
    match = _GLOBAL.search(line)
    return match[1] if match else line


def _function(example: str) -> str:
    """A function around the example of an intrinsic; undefined values become parameters."""
    defined = set(re.findall(r"(%\w+) = ", example))
    free = {name: type_ for type_, name in _OPERAND.findall(example) if name not in defined}
    parameters = ", ".join(f"{type_} {name}" for name, type_ in free.items())
    return f"define void @f({parameters}) {{\n{example}\n  ret void\n}}\n"


@cache
def _pieces(text: str) -> tuple[str, ...]:
    return tuple(_PIECE.findall(text))


@cache
def _vocabulary() -> tuple[str, ...]:
    words = {piece for text in seed_texts() for piece in _pieces(text) if len(piece) < 40}
    return (*sorted(words), *_ODD, *_NUMBERS)


def mutated_text(choose: random.Random, text: str | None = None) -> str:
    """A text with a few mutations; by default of a random seed text."""
    pieces = list(_pieces(choose.choice(seed_texts()) if text is None else text))
    for _ in range(choose.choice([1, 1, 1, 2, 3, 6])):
        choose.choice(_MUTATIONS)(choose, pieces)
    return "".join(pieces)


def mutated_bytes(choose: random.Random, original: bytes) -> bytes:
    """Bitcode or a model with some bytes changed, removed or inserted, or truncated."""
    data = bytearray(original)
    for _ in range(choose.choice([1, 1, 2, 5, 20])):
        at = choose.randrange(len(data))
        kind = choose.randrange(6)
        if kind == 0 and len(data) > 8:
            del data[at : at + choose.randint(1, 8)]
        elif kind == 1:
            data[at:at] = choose.randbytes(choose.randint(1, 8))
        elif kind == 2 and len(data) > 64:
            del data[max(at, 4) :]
        else:
            data[at] = choose.randrange(256) if kind % 2 else data[at] ^ 1 << choose.randrange(8)
        if not data:
            return b"BC"
    return bytes(data)


# Mutations of a text -----------------------------------------------------------------------------------------------


def _at(choose: random.Random, pieces: Sequence[str]) -> int:
    return choose.randrange(len(pieces)) if pieces else 0


def _delete(choose: random.Random, pieces: Pieces) -> None:
    at = _at(choose, pieces)
    del pieces[at : at + choose.choice([1, 1, 2, 5, 30])]


def _duplicate(choose: random.Random, pieces: Pieces) -> None:
    at = _at(choose, pieces)
    pieces[at:at] = pieces[at : at + choose.choice([1, 1, 2, 5, 30])]


def _swap(choose: random.Random, pieces: Pieces) -> None:
    if pieces:
        one, other = _at(choose, pieces), _at(choose, pieces)
        pieces[one], pieces[other] = pieces[other], pieces[one]


def _replace(choose: random.Random, pieces: Pieces) -> None:
    if pieces:
        pieces[_at(choose, pieces)] = choose.choice(_vocabulary())


def _insert(choose: random.Random, pieces: Pieces) -> None:
    pieces.insert(_at(choose, pieces), choose.choice(_vocabulary()))


def _renumber(choose: random.Random, pieces: Pieces) -> None:
    """Replace a number by another, or by a close one."""
    numbers = [at for at, piece in enumerate(pieces) if _NUMBER.fullmatch(piece)]
    if numbers:
        at = choose.choice(numbers)
        near = int(pieces[at][:20]) + choose.choice([1, -1, 2])
        pieces[at] = choose.choice([str(near), choose.choice(_NUMBERS), pieces[choose.choice(numbers)]])


def _truncate(choose: random.Random, pieces: Pieces) -> None:
    del pieces[_at(choose, pieces) :]


def _splice(choose: random.Random, pieces: Pieces) -> None:
    """Continue with part of another text."""
    other = _pieces(choose.choice(seed_texts()))
    start = choose.randrange(len(other))
    at = _at(choose, pieces)
    pieces[at:] = other[start : start + 2000]


def _exchange(choose: random.Random, pieces: Pieces) -> None:
    """Replace a name by another of the text: uses before definitions, or of the wrong type."""
    names = [at for at, piece in enumerate(pieces) if piece[:1] in "%@" and len(piece) > 1]
    if names:
        pieces[choose.choice(names)] = pieces[choose.choice(names)]


def _retype(choose: random.Random, pieces: Pieces) -> None:
    types = ("i1", "i8", "i32", "i64", "half", "bfloat", "float", "double", "token", "ptr", "void", "metadata", "fp128")
    positions = [at for at, piece in enumerate(pieces) if piece in types]
    if positions:
        pieces[choose.choice(positions)] = choose.choice(types)


def _mangle(choose: random.Random, pieces: Pieces) -> None:
    """Change one character of a piece."""
    if pieces:
        at = _at(choose, pieces)
        place = choose.randrange(len(pieces[at]) + 1)
        pieces[at] = pieces[at][:place] + chr(choose.randrange(1, 300)) + pieces[at][place + 1 :]


_MUTATIONS: Final[tuple[Callable[[random.Random, Pieces], None], ...]] = (
    _delete,
    _duplicate,
    _swap,
    _replace,
    _insert,
    _renumber,
    _renumber,
    _exchange,
    _exchange,
    _retype,
    _splice,
    _mangle,
    _truncate,
)
KINDS: Final = {"programs": 77, "languages": 10, "models": 5, "settings": 5, "bitcode": 3}
"""Kinds of inputs, and their shares in a mixture, in percent."""
_BATCH: Final = 500
_BATCHES_OF_PROCESS: Final = 40
"""Then a new process starts, since what a process keeps in memory counts as used by the input at hand."""
_WALL_SECONDS: Final = 120


@dataclass
class _Findings:
    """Failures by where they are raised; the first input of each is written to a file."""

    folder: Path
    say: Callable[[str], None]
    tried: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])
    failed: set[int] = field(default_factory=set[int])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, event: dict[str, Any]) -> None:
        with self.lock:
            self.counts[event["key"]] += 1
            self.failed.add(event["seed"])
            if self.counts[event["key"]] > 1:
                return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"malformed-{event['seed']}{event.get('suffix', '.ll')}"
        if "binary" in event:
            path.write_bytes(base64.b64decode(event["binary"]))
        else:
            path.write_text(event.get("input", ""), encoding="utf-8", errors="surrogatepass", newline="")
        self.say(f"{path}: {event['key']}; tlx {event.get('how', 'lower')} {path}\n{event['message']}")


def fuzz_malformed(
    program: str,
    seed: int,
    count: int,
    jobs: int,
    folder: Path,
    seconds: float | None,
    say: Callable[[str], None],
    step: Callable[[str, int], object] | None = None,
    resume: Path | None = None,
    kind: str = "",
) -> bool:
    """Try corrupted inputs; returns whether each succeeds or ends with a clean error.

    Args:
        program: The command `tlx` as `MODULE:COMMAND`.
        seed: Seed of the first input; the others count up from it.
        count: Number of inputs.
        jobs: Number of processes.
        folder: Folder to write failing inputs to.
        seconds: Time after which the campaign ends; None for no limit.
        say: Prints a line.
        step: Counts inputs, given a text to show and their number.
        resume: Log of the inputs that were tried; those are left out, and the others are added.
        kind: The kind of inputs, one of `KINDS`; by default, a mixture.

    Raises:
        UsageError: The log cannot be read or written, or no package is installed that reads models.
    """
    if kind == "models" and not damaged_models():
        raise UsageError("no package is installed that reads models: pip install 'tlx-ir[jax,onnx]'")
    series = Series("any", "malformed inputs", f"--profile={kind}" if kind else "")
    findings, begun = _Findings(folder, say), time.monotonic()
    deadline = math.inf if seconds is None else begun + seconds
    log = None if resume is None else FuzzLog.read(resume)
    batches = iter(range(seed, seed + count, _BATCH))
    lock = threading.Lock()

    def work(_: int) -> None:
        with tempfile.TemporaryFile() as errors, _Worker([program, kind], findings, errors, deadline) as worker:
            while time.monotonic() < deadline:
                with lock:
                    first = next(batches, None)
                if first is None:
                    return
                last = min(first + _BATCH, seed + count)
                if log is None or not all(log.has_run(series, number) for number in range(first, last)):
                    last = worker.try_inputs(first, last)
                    _note(log, first, last)
                if step is not None:
                    with lock:
                        step("", last - first)

    def _note(log: FuzzLog | None, first: int, last: int) -> None:
        if log is not None:
            with lock:
                for number in range(first, last):
                    log.note(series, number, "failed" if number in findings.failed else "passed")
                log.flush()

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, range(jobs)))
    say(f"{findings.tried} corrupted inputs: {findings.counts.total()} failed; {time.monotonic() - begun:.0f} s")
    for key, times in findings.counts.most_common():
        say(f"  {times:5}  {key}")
    if log is not None:
        for line in log.totals():
            say(f"{log.path}: {line}")
    return not findings.counts


class _Worker:
    """A process that tries inputs; another one takes its place where it dies or hangs.

    A process lasts for many batches: to import TLX and to draw the seed texts takes it as long as a thousand inputs.
    """

    def __init__(self, arguments: list[str], findings: _Findings, errors: IO[bytes], deadline: float) -> None:
        self._arguments = arguments
        self._findings = findings
        self._errors = errors
        self._deadline = deadline
        self._process: subprocess.Popen[bytes] | None = None
        self._batches = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def try_inputs(self, first: int, last: int) -> int:
        """Try the inputs of some seeds; if one ends the process, another process tries the rest.

        Returns:
            The seed after the last one that was tried before the deadline.
        """
        while first < last and time.monotonic() < self._deadline:
            first = self._run(first, last)
        self._batches += 1
        if self._batches % _BATCHES_OF_PROCESS == 0:
            self._stop()
        return first

    def _run(self, first: int, last: int) -> int:
        """Try inputs in one process, until one ends it or the deadline passes; returns the seed to continue with."""
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        process.stdin.write(f"{first} {last}\n".encode())
        process.stdin.flush()
        at = first
        for event in _events(process, self._deadline):
            if "done" in event:
                self._findings.tried += last - first
                return last
            if "at" in event:
                at = event["at"]
            else:
                self._findings.add(event)
        status = self._stop()
        if time.monotonic() >= self._deadline:
            self._findings.tried += at - first
            return at
        self._errors.seek(0)
        errors = self._errors.read().decode(errors="replace")[-1500:]
        hung = status == -signal.SIGKILL
        reason = f"no response for {_WALL_SECONDS} s" if hung else f"the process died with status {status}"
        last_line = errors.strip().splitlines()[-1] if errors.strip() else ""
        self._findings.add({"seed": at, "key": f"{reason}: {last_line}", "message": errors})
        self._findings.tried += at + 1 - first
        return at + 1

    def _start(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, sys.path))
        self._errors.seek(0)
        self._errors.truncate()
        return subprocess.Popen(
            [sys.executable, "-m", "tlx.fuzz.mutation_worker", *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path},
        )

    def _stop(self) -> int | None:
        """End the process, if there is one; returns its status."""
        if self._process is None:
            return None
        with self._process as process:
            process.kill()
        self._process = None
        return process.returncode


def _events(process: subprocess.Popen[bytes], deadline: float) -> Iterator[dict[str, Any]]:
    """Events until the process ends or times out, or the deadline passes."""
    assert process.stdout is not None
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(max(0, min(_WALL_SECONDS, deadline - time.monotonic()))):
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                process.wait()
                return
            *lines, pending = (pending + piece).split(b"\n")
            yield from (loads(line) for line in lines)
