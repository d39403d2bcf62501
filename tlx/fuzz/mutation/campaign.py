"""`tlx fuzz --malformed`: whatever damage a text or bitcode has, the answer is a result or a clean error, and quick."""

from __future__ import annotations

import base64
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from json import loads
from pathlib import Path
from typing import Any, Final

_BATCH: Final = 500
_WALL_SECONDS: Final = 120


@dataclass
class _Findings:
    """What is wrong, by place; the first input of each is kept in a file."""

    folder: Path
    say: Callable[[str], None]
    tried: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, event: dict[str, Any]) -> None:
        with self.lock:
            self.counts[event["key"]] += 1
            if self.counts[event["key"]] > 1:
                return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"malformed-{event['seed']}{'.bc' if 'bitcode' in event else event.get('suffix', '.ll')}"
        if "bitcode" in event:
            path.write_bytes(base64.b64decode(event["bitcode"]))
        else:
            path.write_text(event.get("input", ""), encoding="utf-8", errors="surrogatepass", newline="")
        self.say(f"{path}: {event['key']}; tlx {event.get('how', 'lower')} {path}\n{event['message']}")


def fuzz_malformed(
    program: str, seed: int, count: int, jobs: int, folder: Path, seconds: float | None, say: Callable[[str], None]
) -> bool:
    """Try damaged inputs; whether all end well or with a clean error.

    Args:
        program: The command `tlx` as `MODULE:COMMAND`.
        seed: The first input's; the others follow.
        count: How many inputs.
        jobs: Processes.
        folder: Where inputs that end otherwise are written to.
        seconds: After which no more batches are begun; None for no limit.
        say: Prints a line.
    """
    findings, begun = _Findings(folder, say), time.monotonic()
    batches = iter(range(seed, seed + count, _BATCH))
    lock = threading.Lock()

    def work(_: int) -> None:
        while seconds is None or time.monotonic() - begun < seconds:
            with lock:
                first = next(batches, None)
            if first is None:
                return
            _batch(program, first, min(first + _BATCH, seed + count), findings)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, range(jobs)))
    say(f"{findings.tried} damaged inputs: {findings.counts.total()} failed; {time.monotonic() - begun:.0f} s")
    for key, times in findings.counts.most_common():
        say(f"  {times:5}  {key}")
    return not findings.counts


def _batch(program: str, first: int, last: int, findings: _Findings) -> None:
    """Try inputs in a process; one that ends it is followed by another process for the rest."""
    while first < last:
        first = _run(program, first, last, findings)


def _run(program: str, first: int, last: int, findings: _Findings) -> int:
    """The seed to go on with."""
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        [sys.executable, "-m", "tlx.fuzz.mutation.worker", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path},
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(f"{first} {last}\n".encode())
        process.stdin.flush()
        at = first
        for event in _events(process):
            if "done" in event:
                process.kill()
                findings.tried += last - first
                return last
            if "at" in event:
                at = event["at"]
            else:
                findings.add(event)
        process.kill()
        said = process.stderr.read().decode(errors="replace")[-1500:]
    hung = process.returncode == -signal.SIGKILL
    how = f"nothing happened for {_WALL_SECONDS} s" if hung else f"the process died with status {process.returncode}"
    findings.add(
        {"seed": at, "key": f"{how}: {said.strip().splitlines()[-1] if said.strip() else ''}", "message": said}
    )
    findings.tried += at + 1 - first
    return at + 1


def _events(process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    """Events until the process ends or says nothing for too long."""
    assert process.stdout is not None
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(_WALL_SECONDS):
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                process.wait()
                return
            *lines, pending = (pending + piece).split(b"\n")
            yield from (loads(line) for line in lines)
