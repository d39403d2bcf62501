"""Run a command, read a little of what it prints, close the pipe, and tell how the command ends."""

import subprocess
import sys

with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
    assert command.stdout
    assert command.stderr
    command.stdout.read(10)
    command.stdout.close()
    said = command.stderr.read().decode()
print(f"status {command.returncode}, said {said!r}")  # noqa: T201
