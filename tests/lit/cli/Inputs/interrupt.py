"""Run a command that waits for its input, interrupt it, and tell how it ends."""

import signal
import subprocess
import sys
import time


def obey() -> None:
    """A shell's background jobs ignore interrupts, and what they start inherits that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


with subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=obey) as command:  # noqa: PLW1509
    time.sleep(1)
    command.send_signal(signal.SIGINT)
    time.sleep(1)
    command.kill()
    assert command.stderr
    said = command.stderr.read().decode()
print(f"status {command.returncode}, said {said!r}")  # noqa: T201
