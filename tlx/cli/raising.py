"""`tlx raise`: what a front end wrote (calls of placeholder functions) becomes tensor operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tlx.cli.reading import input_options

if TYPE_CHECKING:
    from tlx.files import Reading


@click.command("raise", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", default="-")
@click.option("-o", "output", metavar="FILE", default="-", help="Output file; '-' (the default) is standard output.")
@input_options
def raise_(file: str, output: str, reading: Reading) -> None:
    """Turn calls of the functions of tlx.h in FILE, as clang compiles them, into tensor operations.

    tlx-lower does this by itself; this command shows the outcome.
    """
    from tlx import files, pipeline
    from tlx.ir.reader import parse

    text = files.read_ir(file, reading=reading)
    module = pipeline.raised(parse(text, files.ir_name(file, reading)))
    files.write(output, str(module))
