"""The command line: `tlx-lower`, which works like LLVM's tools, and `tlx`, the group of all commands.

Modules are imported when they are needed, so that `--help` is quick.
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


def cc_main() -> None:
    """Entry point of `tlx-cc`."""
    end_without_collection()
    from tlx.cli.driver.program import run_driver

    run_driver("tlx-cc", cxx=False)


def cxx_main() -> None:
    """Entry point of `tlx-c++`."""
    end_without_collection()
    from tlx.cli.driver.program import run_driver

    run_driver("tlx-c++", cxx=True)


def main() -> None:
    """Entry point of `tlx`."""
    from tlx.cli.group import group
    from tlx.cli.program import run_program

    run_program(group, "tlx")


def end_without_collection() -> None:
    """Turn off garbage collection until the process ends, including the collection at interpreter shutdown.

    The process is short, and the system frees its memory.
    """
    gc.disable()
    atexit.register(gc.freeze)  # frozen objects are not traversed
