"""The client of an LLVM in a separate process, which answers requests through pipes.

The process starts at the first request and serves all later ones. If LLVM crashes (a fatal error, a stack overflow),
the request raises `LLVMCrashError`, which quotes LLVM's output, and the next request starts another process. If the
process was killed from outside, the request is repeated in a new one.

The process serves one thread at a time. A forked process starts another LLVM, as pipes and the bulk file belong to one
client. Each request has a number that its reply repeats.

An interrupt (Ctrl-C) may raise `KeyboardInterrupt` between any two instructions of the main thread, more than once. A
process that still owes a reply is therefore never asked again, and processes are started in another thread.
"""

from __future__ import annotations

import _thread
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
from collections.abc import Callable, Iterator
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


@dataclass(eq=False)
class _Connection:
    """A running process, the bulk file that both sides have open, and the process's standard error.

    The files are not buffered: buffers have locks, and a lock that another thread holds at a fork stays locked in the
    child.

    Attributes:
        owes_reply: Whether a request has begun whose reply has not been read.
        is_closed: Whether the process has been ended, or is another one's.
    """

    child: subprocess.Popen[bytes]
    bulk: IO[bytes]
    errors: IO[bytes]
    owes_reply: bool = False
    is_closed: bool = False

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

    @property
    def is_usable(self) -> bool:
        """Whether the process waits for a request."""
        return not self.is_closed and not self.owes_reply and self.status(os.WNOHANG) is None

    def status(self, flags: int = 0) -> int | None:
        """Wait for the end of the process; returns its exit status, or None if it runs (`WNOHANG`).

        `Popen.wait` would wait for ever if an interrupt of `Popen.poll` had left its lock held. The status is 0 if
        another thread or an interrupted call has collected it.
        """
        child = self.child
        if child.returncode is None:
            try:
                ended, status = os.waitpid(child.pid, flags)
            except ChildProcessError:
                return child.returncode or 0
            if ended:
                child.returncode = os.waitstatus_to_exitcode(status)
        return child.returncode

    def exchange(self, request: dict[str, Any]) -> bytes:
        """Send a request and return the line of the reply; empty if the process has ended.

        `owes_reply` is set before.
        """
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
            self.owes_reply = False
        return line

    def error_output(self) -> str:
        """What the process wrote to standard error, as the end of a message."""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return "; it said:\n" + "\n".join(f"  {line}" for line in lines[:_QUOTED_LINES]) if lines else ""

    def close(self) -> None:
        """End the process, and close the files, from which no other thread may read."""
        self.end()
        self.detach()

    def end(self) -> None:
        """End the process: another thread that waits for a reply finds that there is none."""
        self.is_closed = True
        with contextlib.suppress(OSError):
            self.child.kill()
        self.status()

    def detach(self) -> None:
        """Close this side's ends of the pipes and files."""
        self.is_closed = True
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
        connection = self._connection
        if connection is None:
            return
        connection.end()
        if self._lock.acquire(blocking=False):  # otherwise a request is served: its thread closes the files
            try:
                connection.detach()
            finally:
                self._lock.release()

    def disown(self) -> None:
        """In a forked process: leave the running LLVM to the parent."""
        self._lock = threading.Lock()  # another thread of the parent may hold the old one
        self._running = None
        if self._connection is not None:
            self._connection.detach()
        self._owner = os.getpid()

    def _check_owner(self) -> None:
        """Make sure that LLVM is not shared with the parent process, even if a library has forked past Python."""
        if self._owner != os.getpid():
            self.disown()

    def _connect(self) -> _Connection:
        """The running process, or another one if it has ended or a request was interrupted."""
        connection = self._connection
        if connection is not None and connection.is_usable:
            return connection
        if connection is not None:
            connection.close()
        _uninterrupted(self._open)
        assert self._connection is not None
        return self._connection

    def _open(self) -> None:
        with _starting:
            if self._connection is None or self._connection.is_closed:
                self._connection = _Connection.open(self._options)

    def _raise_if_cancelled(self) -> None:
        if self._running is not None and self._running.is_set():
            raise LLVMCancelledError

    def _request(self, do: str, data: str | bytes, arguments: dict[str, Any], *, retry: bool) -> bytes:
        self._raise_if_cancelled()
        connection = self._connect()
        self._raise_if_cancelled()  # `cancel` sets the event first: if it is not set yet, that finds this connection
        connection.owes_reply = True
        try:
            number = next(self._numbers)
            size = _write(connection.bulk.fileno(), data)
            request = {"do": do, "number": number, "size": size, "seconds": self.seconds, **arguments}
            line = connection.exchange(request)
            if line:
                return _result(line, number, connection.bulk)
            status = connection.status() or 0
        except LLVMRejectedError:
            raise
        except BaseException:
            connection.close()  # interrupted: nobody waits for the reply
            raise
        is_cancelled = connection.is_closed
        output = "" if is_cancelled else connection.error_output()
        connection.close()
        if is_cancelled:
            raise LLVMCancelledError
        if retry and status in _EXTERNAL_ENDS:
            return self._request(do, data, arguments, retry=False)
        if status == -signal.SIGPROF:
            raise LLVMCrashError(f"LLVM took more than {self.seconds:g} s of CPU time in '{do}'")
        raise LLVMCrashError(f"LLVM {_ending(status)} in '{do}'{output}")


_processes: Final = weakref.WeakSet[LLVMProcess]()
_shared: Final[dict[tuple[str, ...], LLVMProcess]] = {}
_starting: Final = threading.RLock()
"""Held while a process is started, and at a fork: the child must not inherit half-created pipes."""


def llvm(options: tuple[str, ...] = ()) -> LLVMProcess:
    """The process for some command-line options of LLVM, shared by all callers."""
    with _starting:
        process = _shared.get(options)
        if process is None:
            process = _shared[options] = LLVMProcess(options)
            atexit.register(process.close)
        return process


def _disown_all() -> None:
    for process in _processes:
        process.disown()


if hasattr(os, "register_at_fork"):
    # Functions in C: an interrupt of one in Python would leave the lock held for ever. In the child, another thread of
    # the parent may hold it, if an interrupt ended `acquire`: `_at_fork_reinit` unlocks it all the same. `logging` uses
    # it, too, but it is not public, so that a Python may lack it.
    _unlock = getattr(_starting, "_at_fork_reinit", _starting.release)
    os.register_at_fork(before=_starting.acquire, after_in_parent=_starting.release, after_in_child=_unlock)
    os.register_at_fork(after_in_child=_disown_all)


def _uninterrupted(run: Callable[[], None]) -> None:
    """Run a function to its end even if the caller is interrupted.

    It runs in another thread, as Python interrupts the main thread only. The caller waits for a lock: a second
    interrupt of `Thread.join` may raise `RuntimeError` (Python 3.11).
    """
    errors: list[BaseException] = []
    running = threading.Lock()

    def work() -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001 (raised in the caller)
            errors.append(error)
        finally:
            running.release()

    running.acquire()
    try:
        _thread.start_new_thread(work, ())
    except RuntimeError:  # no thread can be started
        work()
    running.acquire()
    for error in errors:
        raise error


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
