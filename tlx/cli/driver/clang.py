"""Finding and running clang, whose diagnostics and exit status become the driver's.

A signal to the driver first ends the clang that it waits for, then removes the driver's temporary files.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final, NoReturn

from tlx.cli.driver.arguments import quoted

VARIABLE: Final = "TLX_CLANG"
OLDEST: Final = 14
_NEWEST: Final = 22
NAMES: Final = ("clang", *(f"clang-{version}" for version in range(_NEWEST, OLDEST - 1, -1)))
MOST_BYTES: Final = 100_000
"""Bytes of a command line that go without a response file; Linux takes 128 KB in one word, and 2 MB in all."""
_FATAL: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SignalledError(BaseException):
    """A signal that ends the driver."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def find_clang(name: str) -> str | None:
    """The path of a clang, of that name or the first of `NAMES`; None if there is none."""
    for candidate in (name,) if name else NAMES:
        if os.sep in candidate:
            return candidate if os.access(candidate, os.X_OK) else None
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
            path = f"{folder or '.'}{os.sep}{candidate}"
            if os.access(path, os.X_OK) and not os.path.isdir(path):  # noqa: PTH112 (quicker)
                return path
    return None


class Clang:
    """A clang.

    Attributes:
        command: The words that every command line begins with.
    """

    def __init__(self, path: str, *, cxx: bool) -> None:
        self.command = [path, *["--driver-mode=g++"] * cxx]

    def become(self, words: Sequence[str]) -> NoReturn:
        """Run clang in place of this process."""
        sys.stdout.flush()
        os.execv(self.command[0], [*self.command, *words])

    def run(
        self, words: Sequence[str], folder: str, *, text: bytes | None = None, out: bool = False, err: bool = False
    ) -> subprocess.CompletedProcess[bytes]:
        """Run clang.

        Args:
            words: Its arguments.
            folder: A folder for a response file.
            text: Its standard input.
            out: Whether to keep what it writes to standard output.
            err: The same for standard error.
        """
        if sum(map(len, words)) > MOST_BYTES:
            file = f"{folder}{os.sep}arguments"
            with open(file, "w", encoding="utf-8", errors="surrogateescape") as response:  # noqa: PTH123
                response.write(quoted(words))
            words = [f"@{file}"]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            [*self.command, *words],
            stdin=None if text is None else pipe,
            stdout=pipe if out else None,
            stderr=pipe if err else None,
        ) as process:
            try:
                output, errors = process.communicate(text)
            except BaseException:
                process.terminate()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def exit_status(status: int) -> int:
    """The exit status of a shell's command for that of a child process, which is negative after a signal."""
    return 128 - status if status < 0 else status


@contextmanager
def fatal_signals() -> Generator[None]:
    """Turns signals that end the process into `SignalledError`; those that are ignored stay so."""

    def raise_error(number: int, _frame: FrameType | None) -> None:
        for other in _FATAL:
            signal.signal(other, signal.SIG_IGN)
        raise SignalledError(number)

    before = {number: signal.getsignal(number) for number in _FATAL}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, raise_error)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def end_by(number: int) -> NoReturn:
    """End this process by a signal, so that its parent sees that signal as the exit status."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    with suppress(InterruptedError):
        signal.pause()
    raise SystemExit(128 + number)
