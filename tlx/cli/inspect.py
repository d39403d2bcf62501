"""`tlx verify` checks files; `tlx targets` lists the targets."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tlx.cli.options import complete_file, input_options
from tlx.cli.program import print_diagnostics, render_error
from tlx.diagnostics import TlxError

if TYPE_CHECKING:
    from tlx.api.files import InputFormat


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1, metavar="FILE...", shell_complete=complete_file)
@input_options
@click.pass_context
def verify(ctx: click.Context, files: tuple[str, ...], input_format: InputFormat) -> None:
    """Check files of LLVM assembly, bitcode, or a front end's language ('-' for standard input).

    Prints the errors of every file; the exit status is 1 if there are any.
    """
    errors = [error for file in files or ("-",) for error in _errors(file, input_format)]
    for error in errors:
        print_diagnostics(f"{render_error(error, 'tlx')}\n")
    if errors:
        ctx.exit(1)


def _errors(path: str, input_format: InputFormat) -> list[TlxError]:
    try:
        return list(_rule_errors(path, input_format))
    except TlxError as error:
        return [error]


def _rule_errors(path: str, input_format: InputFormat) -> Sequence[TlxError]:
    from tlx.api import files
    from tlx.llvm import verification
    from tlx.lower import pipeline

    text = files.read_ir(path, input_format=input_format)
    name = files.ir_name(path, input_format)
    if not pipeline.has_work(text):
        verification.check_text(text, name)
        return []
    from tlx.ir.parser.module import parse
    from tlx.ir.tensors.inference import collect_errors

    module = pipeline.raise_front_ends(parse(text, name))
    errors = collect_errors(module)
    if not errors:
        pipeline.verify(module)
    return errors


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
def targets() -> None:
    """List the targets: name, whether this machine runs its code, first LLVM, triples, title, features.

    The first version of LLVM that compiles the code is followed by features that need a later one.

    A star marks the target that 'native' selects.
    """
    from tlx.target import host
    from tlx.target.installed import targets as known

    flags = host.cpu_flags()
    best = host.native_target().name
    rows = [("", "name", "runs here", "LLVM", "triples", "title", "features")]
    for name, target in known().items():
        is_foreign = not target.is_for(platform.machine())
        missing = ["another architecture"] if is_foreign else host.missing_features(target, flags)
        triples = ",".join(target.triples) or "any"
        here = "yes" if not missing else f"no: {', '.join(missing[:3])}{', ...' if missing[3:] else ''}"
        features, star = ",".join(target.features) or "-", "*" if name == best else ""
        rows.append((star, name, here, str(target.compilers), triples, target.title, features))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*cells, row[-1]]).rstrip())
