"""`tlx verify`: the reader, the rules of the tensor intrinsics, and LLVM's verifier."""

from __future__ import annotations

import click

from tlx.cli.program import rendered
from tlx.diagnostics import TlxError


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1, metavar="FILE...")
@click.pass_context
def verify(ctx: click.Context, files: tuple[str, ...]) -> None:
    """Check files of LLVM assembly or bitcode ('-' for standard input).

    Nothing is printed about a file that is right. All files are checked; the exit status is 1 if one of them is wrong.
    """
    wrong = False
    for file in files or ("-",):
        try:
            _verify(file)
        except TlxError as error:
            click.echo(rendered(error, ctx.command_path), err=True)
            wrong = True
    if wrong:
        ctx.exit(1)


def _verify(path: str) -> None:
    from tlx import files, judge, pipeline

    text = files.read_ir(path)
    name = files.display_name(path)
    if not pipeline.has_work(text):
        judge.check(text, name)
        return
    from tlx.ir.reader import parse

    pipeline.verify(pipeline.raised(parse(text, name)))
