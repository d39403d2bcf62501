"""The command line: `tlx-lower`, which works as LLVM's tools do, and `tlx`, which has everything.

Everything is imported when it is needed, so that `--help` is quick.
"""

from __future__ import annotations

import atexit
import gc


def lower_main() -> None:
    """Entry point of `tlx-lower`."""
    end_without_collection()
    from tlx.cli.lower import lower
    from tlx.cli.program import run_program

    run_program(lower, "tlx-lower")


def main() -> None:
    """Entry point of `tlx`."""
    from tlx.cli.group import group
    from tlx.cli.program import run_program

    run_program(group, "tlx")


def end_without_collection() -> None:
    """No garbage collection from here to the end of the process, the one that Python makes at its end included.

    That is for a process that does one thing and ends: all it has goes with it.
    """
    gc.disable()
    atexit.register(gc.freeze)  # what is frozen is not looked at
