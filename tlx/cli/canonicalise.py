"""`tlx canonicalise`: tensor calls of any spelling, mangled and declared, so that stock LLVM tools take the file."""

from __future__ import annotations

import click


@click.command("canonicalise", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", default="-")
@click.option("-o", "output", metavar="FILE", default="-", help="Output file; '-' (the default) is standard output.")
def canonicalise(file: str, output: str) -> None:
    """Give the tensor operations of FILE mangled names and declarations, so that stock LLVM tools take it.

    Operands of older prototypes are put in order. Everything else stays as it is, typed pointers too.
    """
    from tlx import files, pipeline
    from tlx.ir.reader import parse

    module = parse(files.read_ir(file), files.ir_name(file))
    pipeline.verify(module)
    files.write(output, str(module))
