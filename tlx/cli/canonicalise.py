"""`tlx canonicalise`: tensor calls of any spelling, mangled and declared, so that stock LLVM tools take the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tlx.cli.reading import input_options

if TYPE_CHECKING:
    from tlx.files import Reading


@click.command("canonicalise", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", default="-")
@click.option("-o", "output", metavar="FILE", default="-", help="Output file; '-' (the default) is standard output.")
@input_options
def canonicalise(file: str, output: str, reading: Reading) -> None:
    """Give the tensor operations of FILE mangled names and declarations, so that stock LLVM tools take it.

    Operands of older prototypes are put in order. Everything else stays as it is, typed pointers too.
    """
    from tlx import files, pipeline
    from tlx.ir.reader import parse

    module = parse(files.read_ir(file, reading=reading), files.ir_name(file, reading))
    pipeline.verify(module)
    files.write(output, str(module))
