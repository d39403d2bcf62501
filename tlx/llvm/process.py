"""LLVM in a process of its own, asked through pipes.

A process is started at the first question and answers all later ones. When LLVM takes it down (a fatal error, a crash,
a stack that overflows), the question is answered by `LLVMCrashError`, which quotes what LLVM said, and the next
question starts another.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

from tlx.diagnostics import TlxError

_CHUNK: Final = 1 << 20
_QUOTED_LINES: Final = 12


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


class LLVMProcess:
    """A running LLVM.

    Args:
        options: Command line options of LLVM, such as `-enable-x86-scalar-amx`.
    """

    seconds: float = 0
    """Time of the processor that one answer may take, of every process; 0: any."""

    def __init__(self, options: tuple[str, ...] = ()) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._bulk: int = -1
        self._errors: IO[bytes] | None = None

    def start(self) -> None:
        """Start the process, if it is not running, without waiting for it."""
        if self._child is not None:
            return
        self._bulk = _bulk_file()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        script = Path(__file__).with_name("service.py")
        command = [sys.executable, "-I", "-S", str(script), _llvmlite_folder(), str(self._bulk), *self._options]
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            pass_fds=(self._bulk,),
        )

    def ask(self, do: str, data: str | bytes, **arguments: Any) -> bytes:
        """Have LLVM do something with a text or bitcode.

        Raises:
            LLVMRejectedError: LLVM says no.
            LLVMCrashError: LLVM ended the process, or took too long.
        """
        with self._lock:
            self.start()
            size = _write(self._bulk, data)
            reply = self._talk({"do": do, "size": size, "seconds": self.seconds, **arguments})
            if "rejected" in reply:
                raise LLVMRejectedError(reply["rejected"], reply["message"])
            return os.pread(self._bulk, reply["size"], 0)

    def close(self) -> None:
        """End the process."""
        child, self._child = self._child, None
        if child is None:
            return
        with contextlib.suppress(OSError):
            child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout, self._errors):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()
        os.close(self._bulk)

    def _talk(self, request: dict[str, Any]) -> dict[str, Any]:
        child = self._child
        if child is None or child.stdin is None or child.stdout is None:
            msg = "the LLVM process is not running"
            raise RuntimeError(msg)
        line = b""
        try:
            with contextlib.suppress(BrokenPipeError):
                child.stdin.write(json.dumps(request).encode() + b"\n")
                child.stdin.flush()
                line = child.stdout.readline()
        except BaseException:
            self.close()  # interrupted: the answer to this question must not be taken for that of the next
            raise
        if line:
            return json.loads(line)
        status = child.wait()
        said = self._last_words()
        self.close()
        if status == -signal.SIGPROF:
            raise LLVMCrashError(f"LLVM took more than {self.seconds:g} s of the processor's time in '{request['do']}'")
        raise LLVMCrashError(f"LLVM {_ending(status)} in '{request['do']}'{said}")

    def _last_words(self) -> str:
        if self._errors is None:
            return ""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return "; it said:\n" + "\n".join(f"  {line}" for line in lines[:_QUOTED_LINES]) if lines else ""


@cache
def llvm(options: tuple[str, ...] = ()) -> LLVMProcess:
    """The process for these command line options of LLVM, shared by everyone who asks."""
    process = LLVMProcess(options)
    atexit.register(process.close)
    return process


def _bulk_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("tlx")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


@cache
def _llvmlite_folder() -> str:
    found = importlib.util.find_spec("llvmlite")
    if found is None or found.origin is None:
        raise TlxError("llvmlite is not installed; install it, or do without LLVM by --no-verify-each")
    return str(Path(found.origin).parents[1])


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


def _ending(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    with contextlib.suppress(ValueError):
        return f"died of {signal.Signals(-status).name}"
    return f"died of signal {-status}"
