"""Runs the `tlx` commands on corrupted texts, bitcode, models and settings, in a separate process.

    python -m tlx.fuzz.mutation_worker MODULE:COMMAND KIND

MODULE:COMMAND is the `tlx` command as a click object; `tlx fuzz` passes its name, since nothing imports the commands.
KIND is the kind of the inputs, or empty for a mixture.
Standard input has a line `FIRST LAST` for each batch of seeds. Standard output reports the seed of each input before
it is tried, and a failure if a command neither succeeds nor ends with a clean error:

    {"at": 17}
    {"key": "KeyError reader.py:210 in _phi", "message": "Traceback ...", "input": "...", "seed": 17}

An input may take two seconds of CPU time, and the process a gigabyte of memory.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import io
import json
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import FrameType
from typing import Any, Final

import click

from tlx.diagnostics import TlxError, UsageError
from tlx.fuzz.mutation import (
    KINDS,
    PRODUCT,
    SETTINGS,
    combined_text,
    damaged_models,
    front_end_examples,
    mutated_bytes,
    mutated_text,
    seed_texts,
)
from tlx.fuzz.shrinking import drop_items
from tlx.ir.parser.module import parse, uses_typed_pointers
from tlx.llvm.codegen import emit_code
from tlx.lower.pipeline import raise_front_ends, verify
from tlx.target.installed import targets
from tlx.target.instructions.compilers import LAST_WITH_TYPED_POINTERS

SECONDS: Final = 2.0
"""CPU time for one input."""
MEMORY: Final = 4 << 30
"""Limit of this process's address space."""
RESIDENT: Final = 1 << 30
"""Most memory that the process may have used."""
_WHOLE: Final = 0.04
"""Share of the programs that are not damaged: each takes as long as twenty others."""
_COMBINED: Final = 0.15
_TARGETS: Final = tuple(targets())
_GRIDS: Final = frozenset(name for name, target in targets().items() if target.grid is not None)
_TARGETS_OF_OLD_READERS: Final = tuple(
    name for name, target in targets().items() if target.compiler[0] <= LAST_WITH_TYPED_POINTERS
)
"""Code for the others is refused where pointers are typed."""
_DISCARD: Final = ("-o", "/dev/null")
_QUICK: Final = ("lower", "--no-verify-each", *_DISCARD)
_SOUND: Final = (
    *(_QUICK,) * 5,
    ("lower", *_DISCARD),
    ("lower", "--stop-after=to-2d", *_DISCARD),
    ("lower", "--stop-after=to-tiles", "--no-verify-each", *_DISCARD),
    ("lower", "--threads=openmp", "--no-verify-each", *_DISCARD),
    ("verify",),
    ("raise", *_DISCARD),
    ("canonicalise", *_DISCARD),
    ("convert", "--to=tensor", *_DISCARD),
    ("convert", "--to=matrix", *_DISCARD),
)
"""Commands for LLVM assembly, repeated by weight; none of them may call a valid program invalid."""
_RUNNING: Final = (
    ("lower", "--check=1", *_DISCARD),
    ("lower", "--start-after=to-2d", *_DISCARD),
    ("lower", "--start-after=to-tiles", *_DISCARD),
    ("run", "--evaluate"),
    ("run", "--evaluate", "--function=f"),
)
"""Further commands, which may refuse a valid program."""
_TRANSLATING: Final = (
    *(("translate", f"--emit={kind}", *_DISCARD) for kind in ("ll", "ast", "signature", "header")),
    ("translate", "--std=v1", *_DISCARD),
    ("translate", "--std=v1", "--emit=v2", *_DISCARD),
    _QUICK,
)
_READING: Final = (_QUICK, ("lower", *_DISCARD), ("verify",), ("translate", *_DISCARD))
_DECODING: Final = (_QUICK, ("lower", *_DISCARD))
_NAMES: Final = re.compile(r"[%@][\w.]+|\d+")
_INTERNAL_ERROR: Final = "bug in TLX"
_SHRINK_TRIES: Final = 200
_DEEP_NESTING: Final = 40
"""Depth of brackets above which the tools may report that the input is nested too deeply."""


class HangError(BaseException):
    """An input takes too long; not an `Exception`, so that no ordinary handler catches it."""


class UncleanError(Exception):
    """An error that is a bug in TLX, that has no location, or that is reported for a valid program."""


def main() -> None:
    """Try all inputs that standard input names."""
    program = load_program(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGVTALRM, _raise_hang)
    for target in _TARGETS:
        run_command(program, seed_texts()[0], (*_QUICK, f"--target={target}"))  # so that the imports count for no input
    for line in sys.stdin:
        first, last = map(int, line.split())
        for seed in range(first, last):
            _say(at=seed)
            try_input(program, seed, sys.argv[2])
        _say(done=last - first)


def load_program(name: str) -> click.Command:
    """Import the command `MODULE:COMMAND`."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def try_input(program: click.Command, seed: int, kind: str) -> None:
    """Run a command on the input of a seed, and report a failure."""
    trial = _Trial.draw(random.Random(f"damage {seed}"), kind)
    before = _most_memory()
    failure = failure_of(lambda: trial.run(program))
    if failure is None and before < RESIDENT <= _most_memory():
        failure = ("MemoryError more than 1 GB", f"{_most_memory() >> 20} MB")
    elif failure and isinstance(trial.content, str):
        small = shrink_text(trial.content, failure[0], lambda text: replace(trial, content=text).run(program))
        trial = replace(trial, content=small)
    if failure:
        content = trial.content
        data = {"input": content} if isinstance(content, str) else {"binary": base64.b64encode(content).decode()}
        _say(seed=seed, key=failure[0], message=failure[1], how=" ".join(trial.command), suffix=trial.suffix, **data)


def _most_memory() -> int:
    """The most memory that this process has used, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@dataclass(frozen=True)
class _Trial:
    """An input and the command to run on it.

    Attributes:
        content: The input.
        suffix: Suffix of its file.
        command: Arguments of `tlx`, without the file; if the last one is an option that ends with `=`, the file is its
            value, and the input a program that is not damaged.
        is_valid: Whether the input is valid, so that no command may reject it.
    """

    content: str | bytes
    suffix: str
    command: tuple[str, ...]
    is_valid: bool

    @classmethod
    def draw(cls, choose: random.Random, kind: str) -> _Trial:
        """Draw an input, of any kind if `kind` is empty, and a command at random."""
        match kind or choose.choices(list(KINDS), list(KINDS.values()))[0]:
            case "bitcode":
                data, command = mutated_bytes(choose, choose.choice(_bitcodes())), choose.choice(_DECODING)
                return cls(data, ".bc", (*command, f"--target={choose.choice(_TARGETS)}"), is_valid=False)
            case "models" if damaged_models():
                draw, suffix = choose.choice(damaged_models())
                return cls(draw(choose), suffix, choose.choice(_READING), is_valid=False)
            case "settings":
                option, suffix, text = choose.choice(SETTINGS)
                target = choose.choice(("avx512", "avx2"))
                return cls(mutated_text(choose, text), suffix, (*_QUICK, f"--target={target}", option), is_valid=False)
            case "languages":
                text, suffix = choose.choice([example for example in front_end_examples() if example[1] != ".ll"])
                return cls(mutated_text(choose, text), suffix, choose.choice(_TRANSLATING), is_valid=False)
            case _:
                return cls._draw_program(choose)

    @classmethod
    def _draw_program(cls, choose: random.Random) -> _Trial:
        whole = choose.random() < _WHOLE
        text = (
            combined_text(choose)
            if whole
            else mutated_text(choose, combined_text(choose) if choose.random() < _COMBINED else None)
        )
        command = choose.choice(_SOUND if whole else (*_SOUND, *_RUNNING))
        if command[0] == "lower":
            known = _TARGETS_OF_OLD_READERS if uses_typed_pointers(text) else _TARGETS
            known = [name for name in known if not whole or name not in _GRIDS]  # they do not run every program
            command = (*command, f"--target={choose.choice(known)}")
        return cls(text, ".ll", command, whole)

    def run(self, program: click.Command) -> None:
        """Run the command.

        Raises:
            UncleanError: Its error is a bug in TLX, has no location, or is reported for a valid program.
        """
        output = run_command(program, self.content, self.command, self.suffix)
        if self.is_valid and "error: " in output:
            raise UncleanError(output)


def run_command(program: click.Command, content: str | bytes, command: Sequence[str], suffix: str = ".ll") -> str:
    """The output of a `tlx` command for a file with this content.

    Raises:
        UncleanError: An error is a bug in TLX or has no location.
    """
    stderr = io.StringIO()
    with tempfile.NamedTemporaryFile(suffix=suffix) as file:
        file.write(content if isinstance(content, bytes) else content.encode(errors="surrogatepass"))
        file.flush()
        with contextlib.redirect_stderr(stderr), contextlib.redirect_stdout(io.StringIO()):
            try:
                with _arguments(command, file.name) as arguments:
                    program.main(arguments, prog_name="tlx", standalone_mode=False)
            except TlxError as error:
                if error.span is None and error.name is None and not _is_about_arguments(error, command):
                    raise UncleanError(f"no location: {error.render()}") from None
                stderr.write(error.render())
            except RecursionError:
                if isinstance(content, bytes) or _nesting_depth(content) < _DEEP_NESTING:
                    raise
            except MemoryError:
                if "--check=1" not in command:  # it watches a gigabyte per pointer
                    raise
        output = stderr.getvalue().replace(file.name, f"damaged{suffix}")
    if _INTERNAL_ERROR in output:
        raise UncleanError(next(line for line in output.splitlines() if _INTERNAL_ERROR in line))
    return output


@contextlib.contextmanager
def _arguments(command: Sequence[str], name: str) -> Generator[list[str]]:
    """The arguments of a command with a file, which is its input or the value of an option."""
    if not command[-1].endswith("="):
        yield [*command, name]
        return
    with tempfile.NamedTemporaryFile("w", suffix=".ll", encoding="utf-8") as file:
        file.write(PRODUCT)
        file.flush()
        yield [*command[:-1], f"{command[-1]}{name}", file.name]


def _is_about_arguments(error: TlxError, command: Sequence[str]) -> bool:
    return isinstance(error, UsageError) or command[0] == "run"


def _nesting_depth(text: str) -> int:
    """The maximum nesting depth of brackets."""
    deepest = depth = 0
    for character in text:
        if character in "<{[(":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ">}])":
            depth = max(0, depth - 1)
    return deepest


@cache
def _bitcodes() -> tuple[bytes, ...]:
    """Some of the seed texts as bitcode."""
    plain = "define i32 @g(i32 %x, ptr %p) {\n  %y = load i32, ptr %p\n  %z = add i32 %x, %y\n  ret i32 %z\n}\n"
    texts = [plain]
    for text in seed_texts()[-6:]:
        module = raise_front_ends(parse(text))
        verify(module)
        texts.append(str(module))
    return tuple(emit_code(text, "bc") for text in texts)


def failure_of(use: Callable[[], object]) -> tuple[str, str] | None:
    """The failure of a call as (key, message); None if it succeeds."""
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        use()
    except (Exception, HangError) as error:  # noqa: BLE001 (any exception is a failure)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        frames = [
            f for f in traceback.extract_tb(error.__traceback__) if "/tlx/" in f.filename and f.filename != __file__
        ] or [None]
        place = f"{frames[-1].filename.rpartition('/')[2]} in {frames[-1].name}" if frames[-1] else ""
        detail = _NAMES.sub("_", str(error).split("\n")[0])[:80] if isinstance(error, UncleanError) else place
        return f"{type(error).__name__} {detail}", "".join(traceback.format_exception(error)[-8:])[-3000:]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None


def shrink_text(text: str, key: str, use: Callable[[str], object]) -> str:
    """The text reduced to the lines that the failure needs."""
    if key.startswith("HangError"):
        return text
    lines = text.split("\n")
    tries = iter(range(_SHRINK_TRIES))

    def drop(start: int, end: int) -> int | None:
        candidate = "\n".join(lines[:start] + lines[end:])
        failure = failure_of(lambda: use(candidate)) if next(tries, None) is not None else None
        if failure is None or failure[0] != key:
            return None
        del lines[start:end]
        return len(lines)

    drop_items(len(lines), drop)
    return "\n".join(lines)


def _raise_hang(_signal: int, _frame: FrameType | None) -> None:
    raise HangError


def _say(**event: Any) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
