#!/usr/bin/env python3
"""Stands in for LLVM's ``not``: succeeds where the command fails. ``not --crash`` asks for death by a signal."""

import subprocess
import sys


def main(arguments: list[str]) -> int:
    """Run the command and return 0 where it failed in the way that was asked for."""
    crash = arguments[:1] == ["--crash"]
    status = subprocess.run(arguments[crash:], check=False).returncode
    return int(status >= 0) if crash else int(status <= 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
