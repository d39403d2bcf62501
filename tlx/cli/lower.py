"""`tlx-lower`: tensor operations to plain LLVM IR, with the conventions of opt and llc."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from tlx import __version__
from tlx.cli.options import input_options, lowering_options
from tlx.cli.program import STDERR
from tlx.diagnostics import UsageError
from tlx.llvm import OUTPUT_KINDS, OutputKind

if TYPE_CHECKING:
    from tlx.api.files import InputFormat
    from tlx.lower.options import Options
    from tlx.lower.remarks import Remarks

_CHECK_HELP: Final = (
    "Interpret the input and the output of every stage on N sets of random data (default: 3), and compare."
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", default="-")
@input_options
@click.option("-o", "output", metavar="FILE", default="-", help="Output file; '-' (the default) is standard output.")
@click.option(
    "--target", metavar="NAME", default="native", help="Target to generate code for; 'tlx targets' lists them."
)
@click.option("--emit", "--filetype", "kind", type=click.Choice(OUTPUT_KINDS), default="ll", help="What to write.")
@click.option("-S", "as_text", is_flag=True, help="Write LLVM assembly: the same as --emit=ll.")
@click.option("-O", "level", type=click.IntRange(0, 3), metavar="0-3", help="Optimise the lowered module with LLVM.")
@click.option("--check", "runs", type=click.IntRange(1), metavar="[=N]", help=_CHECK_HELP)
@click.option("--remarks", metavar="[=FILE]", help="Write decisions and the reasons for them to stderr, or to a file.")
@lowering_options
@click.option("-f", "force", is_flag=True, help="Write binary output even to a terminal.")
@click.version_option(__version__, message="%(prog)s %(version)s")
def lower(
    file: str,
    output: str,
    target: str,
    kind: OutputKind,
    as_text: bool,
    level: int | None,
    runs: int | None,
    remarks: str | None,
    force: bool,
    options: Options,
    reading: InputFormat,
) -> None:
    """Lower the tensor operations of FILE to plain LLVM IR.

    FILE is LLVM assembly, bitcode, or a program in the tensor language (*.tl, *.ir); '-' is standard input.

    The exit status is 0, or 1 after an error; then no output is written.
    """
    from tlx.api import files

    kind = "ll" if as_text else kind
    if options.stop_after not in (None, "legalize") and kind in ("asm", "obj"):
        raise UsageError(f"--stop-after={options.stop_after} leaves tensor operations, which --emit={kind} cannot hold")
    try:
        emits = kind != "ll" or level is not None
        text = _lowered(
            file, reading, target, options, runs, needs_llvm=emits or _is_verified(file, options.verify_each)
        )
    finally:
        _write_remarks(remarks, options.remarks)
    files.write_output(output, _emitted(text, kind, level, options), force=force)


def _lowered(
    file: str, reading: InputFormat, target: str, options: Options, runs: int | None, *, needs_llvm: bool
) -> str:
    from tlx.api import files
    from tlx.lower import pipeline

    if needs_llvm:
        from tlx.llvm.process import llvm

        llvm().start()  # it starts while this process reads the input
    text = files.read_ir(file, options.threads, reading)
    name = files.ir_name(file, reading)
    if runs is None or not pipeline.has_work(text):
        return pipeline.lower_text(text, name, target, options=options)
    return _checked(text, name, target, options, runs)


def _checked(text: str, name: str, target: str, options: Options, runs: int) -> str:
    """The lowered text, after checking that it and each stage's output mean the same as the input."""
    from tlx.api import validation
    from tlx.lower import pipeline

    gc.enable()  # frees the memory of the evaluator's machines
    stages = validation.StageRecorder(options.print_after)
    lowered = pipeline.lower_text(text, name, target, options=replace(options, print_after=stages))
    for note in validation.compare_stages(text, name, stages, runs):
        click.echo(note.render(), err=True)
    return lowered


def _is_verified(file: str, verify_each: bool | None) -> bool:
    """Whether LLVM will probably verify a file, by its size."""
    from tlx.api import files
    from tlx.lower.pipeline import UNJUDGED_SIZE

    return files.file_size(file) <= UNJUDGED_SIZE if verify_each is None else verify_each


def _emitted(text: str, kind: OutputKind, level: int | None, options: Options) -> str | bytes:
    if kind == "ll" and level is None:
        return text
    from tlx.llvm.codegen import emit_code
    from tlx.target.target import matrix_emulations

    emulations = matrix_emulations() if options.emulate_matrix else []
    emulating = [option for emulation in emulations for option in emulation.llvm_options]
    features = ",".join(options.features)
    return emit_code(text, kind, level, options.cpu, features, options.triple, llvm_options=emulating)


def _write_remarks(path: str | None, remarks: Remarks) -> None:
    from tlx.api import files

    if path is None:
        return
    text = "".join(f"{remark.render()}\n" for remark in remarks)
    if path == STDERR:
        click.echo(text, err=True, nl=False)
    else:
        files.write_output(path, text)
