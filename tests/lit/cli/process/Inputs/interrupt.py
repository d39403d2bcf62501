"""Run a command that reads its input, interrupt it there, and tell how it ends."""

import signal
import subprocess
import sys

_PIPE = 1 << 16
"""Bytes that a pipe of Linux holds: who has written more has a reader that is at it."""


def obey() -> None:
    """A shell's background jobs ignore interrupts, and what they start inherits that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


with subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=obey) as command:  # noqa: PLW1509
    assert command.stdin
    assert command.stderr
    command.stdin.write(b";\n" * _PIPE)
    command.stdin.flush()
    command.send_signal(signal.SIGINT)
    command.stdin.close()  # the signal may have come just before a call that waits for more
    said = command.stderr.read().decode()
print(f"status {command.wait()}, said {said!r}")  # noqa: T201
