"""`tlx verify`: the reader, the rules of the tensor intrinsics, and LLVM's verifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tlx.cli.options import input_options
from tlx.cli.program import render_error
from tlx.diagnostics import TlxError

if TYPE_CHECKING:
    from tlx.api.files import InputFormat


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1, metavar="FILE...")
@input_options
@click.pass_context
def verify(ctx: click.Context, files: tuple[str, ...], reading: InputFormat) -> None:
    """Check files of LLVM assembly, bitcode, or a front end's language ('-' for standard input).

    Nothing is printed about a file that is right. All files are checked; the exit status is 1 if one of them is wrong.
    """
    errors = [error for file in files or ("-",) for error in _errors(file, reading)]
    for error in errors:
        click.echo(render_error(error, "tlx"), err=True)
    if errors:
        ctx.exit(1)


def _errors(path: str, reading: InputFormat) -> list[TlxError]:
    try:
        return list(_broken_rules(path, reading))
    except TlxError as error:
        return [error]


def _broken_rules(path: str, reading: InputFormat) -> Sequence[TlxError]:
    from tlx.api import files
    from tlx.llvm import judge
    from tlx.lower import pipeline

    text = files.read_ir(path, reading=reading)
    name = files.ir_name(path, reading)
    if not pipeline.has_work(text):
        judge.check_text(text, name)
        return []
    from tlx.ir.parser.module import parse
    from tlx.ir.tensors.analysis import collect_errors

    module = pipeline.raise_front_ends(parse(text, name))
    broken = collect_errors(module)
    if not broken:
        pipeline.verify(module)
    return broken
