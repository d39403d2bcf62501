"""LLVM in a process of its own, which answers requests through pipes.

The process starts at the first request and serves all later ones. When LLVM crashes it (a fatal error, a stack
overflow), the request raises `LLVMCrashError`, which quotes LLVM's output, and the next request starts another process.
If it was killed from outside, the request is repeated in a new one.

One thread at a time is served. A forked process starts an LLVM of its own, as pipes and the bulk file belong to one
client. Each request has a number that its reply repeats.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

from tlx.diagnostics import TlxError

_CHUNK: Final = 1 << 20
_QUOTED_LINES: Final = 12
_FROM_OUTSIDE: Final = (0, *(-number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP)))
"""Signals that end the process from outside: an interrupt of all programs of a terminal, `kill`."""


class LLVMCrashError(TlxError):
    """LLVM ended its process instead of answering: a fatal error or a crash of LLVM itself."""


class LLVMRejectedError(Exception):
    """LLVM does not accept a module.

    Attributes:
        kind: "parse", "verify" or "emit": what LLVM was doing.
        message: LLVM's own message.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


@dataclass(frozen=True)
class _Running:
    """A process, the bulk file that both sides have open, and its standard error.

    Nothing is buffered: buffers have locks, and a lock that another thread holds at a fork stays locked in the child.
    """

    child: subprocess.Popen[bytes]
    bulk: IO[bytes]
    errors: IO[bytes]

    @classmethod
    def started(cls, options: tuple[str, ...]) -> _Running:
        """A new one, which comes up by itself."""
        bulk = _bulk_file()
        errors = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (lives as long as the process)
        script = Path(__file__).with_name("service.py")
        command = [sys.executable, "-I", "-S", str(script), _llvmlite_folder(), str(bulk.fileno()), *options]
        pipe = subprocess.PIPE
        child = subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, stderr=errors, pass_fds=(bulk.fileno(),))
        return cls(child, bulk, errors)

    def exchange(self, request: dict[str, Any]) -> bytes:
        """The line that answers a request; nothing if the process has ended."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        line = b""
        with contextlib.suppress(BrokenPipeError):
            left = json.dumps(request).encode() + b"\n"
            while left:
                left = left[self.child.stdin.write(left) :]
            while not line.endswith(b"\n"):
                piece = self.child.stdout.read(_CHUNK)
                if not piece:
                    return b""
                line += piece
        return line

    def error_output(self) -> str:
        """What it wrote to standard error."""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return "; it said:\n" + "\n".join(f"  {line}" for line in lines[:_QUOTED_LINES]) if lines else ""

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):
            self.child.kill()
        self.child.wait()
        self.detach()

    def detach(self) -> None:
        """Close this side's ends of what connects it with the process."""
        self.child.returncode = self.child.returncode or 0  # another process's child cannot be waited for
        for file in (self.child.stdin, self.child.stdout, self.bulk, self.errors):
            if file:
                with contextlib.suppress(OSError):
                    file.close()


class LLVMProcess:
    """A running LLVM, shared by all threads of this process; a forked process gets its own.

    Args:
        options: Command line options of LLVM, such as `-enable-x86-scalar-amx`.
    """

    seconds: float = 0
    """Time of the processor that one answer may take, of every process; 0: any."""

    def __init__(self, options: tuple[str, ...] = ()) -> None:
        self._options = options
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._owner = os.getpid()
        with _starting:
            _processes.add(self)

    def start(self) -> None:
        """Start the process, if it is not running, without waiting for it."""
        self._check_owner()
        with self._lock:
            self._started()

    def ask(self, request: str, data: str | bytes, **arguments: Any) -> bytes:
        """Have LLVM do something with a text or bitcode.

        Raises:
            LLVMRejectedError: LLVM says no.
            LLVMCrashError: LLVM ended the process, or took too long.
        """
        self._check_owner()
        with self._lock:
            return self._asked(request, data, arguments, again=True)

    def close(self) -> None:
        """End the process."""
        self._check_owner()
        running, self._running = self._running, None
        if running is not None:
            running.close()

    def disown(self) -> None:
        """In a forked process: leave the running LLVM to the parent."""
        running, self._running = self._running, None
        self._lock = threading.Lock()  # another thread of the parent may hold the old one
        self._owner = os.getpid()
        if running is not None:
            running.detach()

    def _check_owner(self) -> None:
        """Make sure that this process has an LLVM of its own, even where a library forked without Python's help."""
        if self._owner != os.getpid():
            self.disown()

    def _started(self) -> _Running:
        running = self._running
        if running is not None and running.child.poll() is not None:
            running.close()
            running = None
        if running is None:
            with _starting:
                running = self._running = _Running.started(self._options)
        return running

    def _asked(self, do: str, data: str | bytes, arguments: dict[str, Any], *, again: bool) -> bytes:
        running = self._started()
        try:
            number = next(self._numbers)
            size = _write(running.bulk.fileno(), data)
            line = running.exchange({"do": do, "number": number, "size": size, "seconds": self.seconds, **arguments})
            if line:
                return _answer(line, number, running.bulk)
            status = running.child.wait()
        except LLVMRejectedError:
            raise
        except BaseException:
            self.close()  # interrupted: the reply to this request must not be taken for that of the next
            raise
        said = running.error_output()
        self.close()
        if again and status in _FROM_OUTSIDE:
            return self._asked(do, data, arguments, again=False)
        if status == -signal.SIGPROF:
            raise LLVMCrashError(f"LLVM took more than {self.seconds:g} s of the processor's time in '{do}'")
        raise LLVMCrashError(f"LLVM {_ending(status)} in '{do}'{said}")


_processes: Final = weakref.WeakSet[LLVMProcess]()
_shared: Final[dict[tuple[str, ...], LLVMProcess]] = {}
_starting = threading.RLock()
"""Held while a process is started, and at a fork: the child must not inherit half-created pipes."""


def llvm(options: tuple[str, ...] = ()) -> LLVMProcess:
    """The process for these command line options of LLVM, shared by everyone who asks."""
    with _starting:
        process = _shared.get(options)
        if process is None:
            process = _shared[options] = LLVMProcess(options)
            atexit.register(process.close)
        return process


def _after_fork() -> None:
    global _starting  # noqa: PLW0603 (a lock that was locked in another process)
    _starting = threading.RLock()
    for process in _processes:
        process.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _starting.acquire(),  # noqa: PLW0108 (the lock of that moment)
        after_in_parent=lambda: _starting.release(),  # noqa: PLW0108
        after_in_child=_after_fork,
    )


def _answer(line: bytes, number: int, bulk: IO[bytes]) -> bytes:
    """What an answer says.

    Raises:
        LLVMRejectedError: LLVM says no.
        LLVMCrashError: It answers another question.
    """
    reply: dict[str, Any] = {}
    with contextlib.suppress(ValueError):
        reply = json.loads(line)
    if reply.get("number") != number:
        message = f"the answer to question {number} of LLVM's process is not there, but {line[:80]!r}"
        raise LLVMCrashError(f"{message}: another process writes to its pipes, or reads from them")
    if "rejected" in reply:
        raise LLVMRejectedError(reply["rejected"], reply["message"])
    return _read(bulk.fileno(), reply["size"])


def _bulk_file() -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("tlx"), "r+b", buffering=0)  # noqa: PTH123 (a number, and it stays open)
    return tempfile.TemporaryFile(buffering=0)


@cache
def _llvmlite_folder() -> str:
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        raise TlxError("llvmlite is not installed; install it, or do without LLVM by --no-verify-each")
    return str(Path(spec.origin).parents[1])


def _write(file: int, data: str | bytes) -> int:
    os.ftruncate(file, 0)
    size = 0
    for chunk in _chunks(data):
        size += _write_at(file, chunk, size)
    return size


def _chunks(data: str | bytes) -> Iterator[bytes]:
    """The data in UTF-8, a piece at a time: no second copy of a large text."""
    for start in range(0, len(data), _CHUNK):
        piece = data[start : start + _CHUNK]
        yield piece if isinstance(piece, bytes) else piece.encode(errors="surrogatepass")


def _write_at(file: int, data: bytes, offset: int) -> int:
    view = memoryview(data)
    done = 0
    while done < len(view):
        done += os.pwrite(file, view[done:], offset + done)
    return done


def _read(file: int, size: int) -> bytes:
    """The first `size` bytes of a file."""
    pieces: list[bytes] = []
    done = 0
    while done < size:
        piece = os.pread(file, size - done, done)
        if not piece:
            raise LLVMCrashError(f"LLVM's answer of {size} bytes ends after {done}")
        pieces.append(piece)
        done += len(piece)
    return b"".join(pieces)


def _ending(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    with contextlib.suppress(ValueError):
        return f"died of {signal.Signals(-status).name}"
    return f"died of signal {-status}"
