"""`tlx verify`: the reader, the rules of the tensor intrinsics, and LLVM's verifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tlx.cli.program import rendered
from tlx.cli.reading import input_options
from tlx.diagnostics import TlxError

if TYPE_CHECKING:
    from tlx.files import Reading


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1, metavar="FILE...")
@input_options
@click.pass_context
def verify(ctx: click.Context, files: tuple[str, ...], reading: Reading) -> None:
    """Check files of LLVM assembly, bitcode, or a front end's language ('-' for standard input).

    Nothing is printed about a file that is right. All files are checked; the exit status is 1 if one of them is wrong.
    """
    errors = [error for file in files or ("-",) for error in _errors(file, reading)]
    for error in errors:
        click.echo(rendered(error, "tlx"), err=True)
    if errors:
        ctx.exit(1)


def _errors(path: str, reading: Reading) -> list[TlxError]:
    try:
        return list(_broken_rules(path, reading))
    except TlxError as error:
        return [error]


def _broken_rules(path: str, reading: Reading) -> Sequence[TlxError]:
    from tlx import files, judge, pipeline

    text = files.read_ir(path, reading=reading)
    name = files.ir_name(path, reading)
    if not pipeline.has_work(text):
        judge.check(text, name)
        return []
    from tlx.ir.reader import parse
    from tlx.ir.verifier import collect

    module = pipeline.raised(parse(text, name))
    broken = collect(module)
    if not broken:
        pipeline.verify(module)
    return broken
