"""Feeds damaged texts and bitcode to reader, verifier and lowering, in a process of its own.

    python -m tlx.fuzz.damage_worker

Standard input has a line `FIRST LAST` for each batch of seeds. Standard output says the seed of each input before it is
tried, and what is wrong with those that end neither well nor with a clean error:

    {"at": 17}
    {"key": "KeyError reader.py:210 in _phi", "message": "Traceback ...", "input": "...", "seed": 17}

An input may take two seconds of the processor's time, and the process a few gigabytes of memory.
"""

from __future__ import annotations

import base64
import json
import random
import re
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any, Final

from tlx.codegen import emit
from tlx.diagnostics import TlxError
from tlx.fuzz.mutate import damaged, damaged_bytes, seeds
from tlx.ir.reader import parse
from tlx.judge import disassemble
from tlx.pipeline import Options, lower_text, raised, verify

SECONDS: Final = 2.0
"""Of the processor's time, for one input."""
MEMORY: Final = 4 << 30
"""Address space of this process."""
_JUDGED: Final = 0.03
_BITCODE: Final = 0.03
_TARGETS: Final = ("generic", "avx2", "avx512", "amx")
_NAMES: Final = re.compile(r"[%@][\w.]+|\d+")
_BUG: Final = "bug of TLX"
_SIMPLER: Final = 200


class HangError(BaseException):
    """An input takes too long; no handler of ordinary errors catches this."""


class UncleanError(Exception):
    """An error that blames TLX."""


def main() -> None:
    """Try inputs until there are no more."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGVTALRM, _hang)
    for target in _TARGETS:
        use_text(seeds()[0], target, judged=False)  # what is imported now does not count
    for line in sys.stdin:
        first, last = map(int, line.split())
        for seed in range(first, last):
            _say(at=seed)
            _try(seed)
        _say(done=last - first)


def _try(seed: int) -> None:
    choose = random.Random(f"damage {seed}")
    kind = choose.random()
    if kind < _BITCODE:
        data = damaged_bytes(choose, choose.choice(_bitcodes()))
        found = failure(lambda: use_bitcode(data, choose.choice(_TARGETS)))
        if found:
            _say(seed=seed, key=found[0], message=found[1], bitcode=base64.b64encode(data).decode())
        return
    text, target, judged = damaged(choose), choose.choice(_TARGETS), kind < _BITCODE + _JUDGED
    found = failure(lambda: use_text(text, target, judged=judged))
    if found:
        small = simpler(text, found[0], lambda text: use_text(text, target, judged=judged))
        how = f"--target={target}{'' if judged else ' --no-verify-each'}"
        _say(seed=seed, key=found[0], message=found[1], input=small, how=how)


def use_text(text: str, target: str, *, judged: bool) -> None:
    """What the tools do with a text.

    Raises:
        UncleanError: An error blames TLX, not the text.
    """
    try:
        if judged:
            verify(raised(parse(text)))
        lower_text(text, "damaged.ll", target, options=Options(verify_each=judged))
    except TlxError as error:
        if _BUG in error.render():
            raise UncleanError(error.render()) from None


def use_bitcode(data: bytes, target: str) -> None:
    """What the tools do with a file of bitcode."""
    try:
        text = disassemble(data, "damaged.bc").decode(errors="replace")
    except TlxError as error:
        error.render()
        return
    use_text(text, target, judged=True)


@cache
def _bitcodes() -> tuple[bytes, ...]:
    """Some of the texts as bitcode."""
    plain = "define i32 @g(i32 %x, ptr %p) {\n  %y = load i32, ptr %p\n  %z = add i32 %x, %y\n  ret i32 %z\n}\n"
    texts = [plain]
    for text in seeds()[-6:]:
        module = parse(text)
        verify(module)
        texts.append(str(module))
    return tuple(emit(text, "bc") for text in texts)


def failure(use: Callable[[], None]) -> tuple[str, str] | None:
    """What goes wrong, in short and in full; None where all is well."""
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        use()
    except (Exception, HangError) as error:  # noqa: BLE001 (any of them is a failure)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if isinstance(error, RecursionError):  # the tools say that the input is nested too deeply
            return None
        frames = [
            f for f in traceback.extract_tb(error.__traceback__) if "/tlx/" in f.filename and f.filename != __file__
        ] or [None]
        place = f"{frames[-1].filename.rpartition('/')[2]} in {frames[-1].name}" if frames[-1] else ""
        said = _NAMES.sub("_", str(error).split("\n")[0])[:80] if isinstance(error, UncleanError) else place
        return f"{type(error).__name__} {said}", "".join(traceback.format_exception(error)[-8:])[-3000:]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None


def simpler(text: str, key: str, use: Callable[[str], None]) -> str:
    """A shorter text that fails alike: lines are left out, many at once first."""
    if key.startswith("HangError"):
        return text
    lines = text.split("\n")
    chunk, tries = len(lines) // 2, _SIMPLER
    while chunk and tries > 0:
        at = 0
        while at < len(lines) and tries > 0:
            candidate = lines[:at] + lines[at + chunk :]
            tries -= 1
            shorter = "\n".join(candidate)
            found = failure(lambda shorter=shorter: use(shorter))
            if found and found[0] == key:
                lines = candidate
            else:
                at += chunk
        chunk //= 2
    return "\n".join(lines)


def _hang(_signal: int, _frame: FrameType | None) -> None:
    raise HangError


def _say(**event: Any) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
