"""The client of an LLVM in a separate process, which answers requests through pipes.

The process starts at the first request and serves all later ones. If LLVM crashes (a fatal error, a stack overflow),
the request raises `LLVMCrashError`, which quotes LLVM's output, and the next request starts another process. If the
process was killed from outside, the request is repeated in a new one.

The process serves one thread at a time. A forked process starts another LLVM, as pipes and the bulk file belong to one
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
_EXTERNAL_ENDS: Final = (0, *(-number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP)))
"""Exit statuses of a process that is ended from outside: by `kill`, or an interrupt from the terminal."""


class LLVMCrashError(TlxError):
    """LLVM ended its process instead of replying: by a fatal error or a crash."""


class LLVMCancelledError(Exception):
    """A request was cancelled, or LLVM was closed while it ran."""


class LLVMRejectedError(Exception):
    """LLVM rejects a module.

    Attributes:
        kind: What LLVM was doing: "parse", "verify" or "emit".
        message: LLVM's own message.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


@dataclass(frozen=True)
class _Connection:
    """A running process, the bulk file that both sides have open, and the process's standard error.

    The files are not buffered: buffers have locks, and a lock that another thread holds at a fork stays locked in the
    child.
    """

    child: subprocess.Popen[bytes]
    bulk: IO[bytes]
    errors: IO[bytes]

    @classmethod
    def open(cls, options: tuple[str, ...]) -> _Connection:
        """Start a process, without waiting until it is ready."""
        bulk = _bulk_file()
        errors = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (lives as long as the process)
        script = Path(__file__).with_name("service.py")
        command = [sys.executable, "-I", "-S", str(script), _llvmlite_folder(), str(bulk.fileno()), *options]
        pipe = subprocess.PIPE
        child = subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, stderr=errors, pass_fds=(bulk.fileno(),))
        return cls(child, bulk, errors)

    def exchange(self, request: dict[str, Any]) -> bytes:
        """Send a request and return the line of the reply; empty if the process has ended."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        line = b""
        with contextlib.suppress(BrokenPipeError):
            unsent = json.dumps(request).encode() + b"\n"
            while unsent:
                unsent = unsent[self.child.stdin.write(unsent) :]
            while not line.endswith(b"\n"):
                received = self.child.stdout.read(_CHUNK)
                if not received:
                    return b""
                line += received
        return line

    def error_output(self) -> str:
        """What the process wrote to standard error, as the end of a message."""
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
        """Close this side's ends of the pipes and files."""
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
    """CPU time that a reply may take, in every process; 0 means any."""

    def __init__(self, options: tuple[str, ...] = ()) -> None:
        self._options = options
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._connection: _Connection | None = None
        self._running: threading.Event | None = None
        self._owner = os.getpid()
        with _starting:
            _processes.add(self)

    def start(self) -> None:
        """Start the process, if it is not running, without waiting for it."""
        self._check_owner()
        with self._lock:
            self._connect()

    def ask(
        self, request: str, data: str | bytes, *, cancelled: threading.Event | None = None, **arguments: Any
    ) -> bytes:
        """Send a request with a text or bitcode to LLVM; returns the result.

        Args:
            request: What to do.
            data: The text or bitcode.
            cancelled: Identifies the request to `cancel`, which sets it.
            arguments: Arguments of the request.

        Raises:
            LLVMRejectedError: LLVM rejects it.
            LLVMCancelledError: The request was cancelled, or LLVM closed.
            LLVMCrashError: LLVM ended the process, or took too long.
        """
        self._check_owner()
        with self._lock:
            self._running = cancelled
            try:
                return self._request(request, data, arguments, retry=True)
            finally:
                self._running = None

    def cancel(self, cancelled: threading.Event) -> None:
        """Cancel a request, whether it waits or runs; another one that has begun meanwhile is repeated."""
        self._check_owner()
        cancelled.set()
        connection = self._connection
        if connection is not None and self._running is cancelled:
            connection.child.kill()

    def close(self) -> None:
        """End the process, and the request that it serves, if any."""
        self._check_owner()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def disown(self) -> None:
        """In a forked process: leave the running LLVM to the parent."""
        connection, self._connection = self._connection, None
        self._lock = threading.Lock()  # another thread of the parent may hold the old one
        self._running = None
        self._owner = os.getpid()
        if connection is not None:
            connection.detach()

    def _check_owner(self) -> None:
        """Make sure that LLVM is not shared with the parent process, even if a library has forked past Python."""
        if self._owner != os.getpid():
            self.disown()

    def _connect(self) -> _Connection:
        connection = self._connection
        if connection is not None and connection.child.poll() is not None:
            connection.close()
            connection = None
        if connection is None:
            with _starting:
                connection = self._connection = _Connection.open(self._options)
        return connection

    def _request(self, do: str, data: str | bytes, arguments: dict[str, Any], *, retry: bool) -> bytes:
        if self._running is not None and self._running.is_set():
            raise LLVMCancelledError
        connection = self._connect()
        try:
            number = next(self._numbers)
            size = _write(connection.bulk.fileno(), data)
            request = {"do": do, "number": number, "size": size, "seconds": self.seconds, **arguments}
            line = connection.exchange(request)
            if line:
                return _result(line, number, connection.bulk)
            status = connection.child.wait()
        except LLVMRejectedError:
            raise
        except BaseException:
            self.close()  # interrupted: the reply to this request must not be taken for that to the next
            raise
        if self._connection is not connection:
            raise LLVMCancelledError
        output = connection.error_output()
        self.close()
        if retry and status in _EXTERNAL_ENDS:
            return self._request(do, data, arguments, retry=False)
        if status == -signal.SIGPROF:
            raise LLVMCrashError(f"LLVM took more than {self.seconds:g} s of CPU time in '{do}'")
        raise LLVMCrashError(f"LLVM {_ending(status)} in '{do}'{output}")


_processes: Final = weakref.WeakSet[LLVMProcess]()
_shared: Final[dict[tuple[str, ...], LLVMProcess]] = {}
_starting = threading.RLock()
"""Held while a process is started, and at a fork: the child must not inherit half-created pipes."""


def llvm(options: tuple[str, ...] = ()) -> LLVMProcess:
    """The process for some command-line options of LLVM, shared by all callers."""
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


def _result(line: bytes, number: int, bulk: IO[bytes]) -> bytes:
    """The result of a request, from the line of the reply and the bulk file.

    Raises:
        LLVMRejectedError: LLVM rejects the module.
        LLVMCrashError: It is the reply to another request.
    """
    reply: dict[str, Any] = {}
    with contextlib.suppress(ValueError):
        reply = json.loads(line)
    if reply.get("number") != number:
        message = f"expected LLVM's reply to request {number}, got {line[:80]!r}"
        raise LLVMCrashError(f"{message}: another process uses the pipes to LLVM's process")
    if "rejected" in reply:
        raise LLVMRejectedError(reply["rejected"], reply["message"])
    return _read(bulk.fileno(), reply["size"])


def _bulk_file() -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("tlx"), "r+b", buffering=0)  # noqa: PTH123 (a file descriptor, which stays open)
    return tempfile.TemporaryFile(buffering=0)


@cache
def _llvmlite_folder() -> str:
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        raise TlxError("llvmlite is not installed: install it, or avoid LLVM with --no-verify-each")
    return str(Path(spec.origin).parents[1])


def _write(file: int, data: str | bytes) -> int:
    os.ftruncate(file, 0)
    size = 0
    for chunk in _chunks(data):
        size += _write_at(file, chunk, size)
    return size


def _chunks(data: str | bytes) -> Iterator[bytes]:
    """The data in UTF-8, in chunks, so that a large text is not copied as a whole."""
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
            raise LLVMCrashError(f"LLVM's reply of {size} bytes ends after {done}")
        pieces.append(piece)
        done += len(piece)
    return b"".join(pieces)


def _ending(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    with contextlib.suppress(ValueError):
        return f"died of {signal.Signals(-status).name}"
    return f"died of signal {-status}"
