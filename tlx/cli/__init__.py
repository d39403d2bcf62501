"""The command line: `tlx-lower`, which works as LLVM's tools do, and `tlx`, which has everything.

Everything is imported when it is needed, so that `--help` is quick.
"""

from __future__ import annotations


def lower_main() -> None:
    """Entry point of `tlx-lower`."""
    from tlx.collection import end_without_collection

    end_without_collection()
    from tlx.cli.lower import lower
    from tlx.cli.program import run

    run(lower, "tlx-lower")


def main() -> None:
    """Entry point of `tlx`."""
    from tlx.cli.group import group
    from tlx.cli.program import run

    run(group, "tlx")
