"""`tlx-lower`: tensor operations to plain LLVM IR, with the conventions of opt and llc."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

import click

from tlx import __version__
from tlx.cli.asking import answers, knob_options
from tlx.cli.spelling import STDERR
from tlx.diagnostics import UsageError
from tlx.knobs import WEIGHT_BYTES
from tlx.openmp import THREAD_CYCLES, THREADS, Threads
from tlx.pipeline import STAGE_NAMES

if TYPE_CHECKING:
    from tlx.ir.module import Module
    from tlx.pipeline import Options, Step
    from tlx.remarks import Remarks

Kind = Literal["ll", "bc", "asm", "obj"]
KINDS: Final = ("ll", "bc", "asm", "obj")
_VERIFY_HELP: Final = "Have LLVM verify the input and every stage; by default all but large input that stays as it is."
_CYCLES_HELP: Final = f"Work that is worth a thread, in cycles; {THREAD_CYCLES}."
_WEIGHTS_HELP: Final = f"Bytes up to which a constant B is packed when lowered; {WEIGHT_BYTES}."
_CHECK_HELP: Final = "Evaluate the input and every stage on N sets of random data (3), and compare."


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", default="-")
@click.option("-o", "output", metavar="FILE", default="-", help="Output file; '-' (the default) is standard output.")
@click.option("--target", metavar="NAME", default="native", help="Machine to aim at; 'tlx targets' lists them.")
@click.option("--mcpu", metavar="CPU", default="", help="Processor that machine code is scheduled for.")
@click.option("--mattr", metavar="+A,-B", multiple=True, help="Features added to or taken from the target's.")
@click.option("--vector-bits", type=click.Choice(["128", "256", "512"]), help="Vectors of --target=generic.")
@click.option("--mtriple", metavar="TRIPLE", default="", help="Triple to emit for, in place of the module's.")
@click.option("--emit", "--filetype", "kind", type=click.Choice(KINDS), default="ll", help="What to write.")
@click.option("-S", "as_text", is_flag=True, help="Write text: the same as --emit=ll.")
@click.option("-O", "level", type=click.IntRange(0, 3), metavar="0-3", help="Have LLVM optimise the lowered module.")
@click.option("--stop-after", type=click.Choice(STAGE_NAMES), metavar="STAGE", help="Last stage to run.")
@click.option("--print-after", multiple=True, metavar="STAGE|all", help="Print the module after a stage, on stderr.")
@click.option("--verify-each/--no-verify-each", default=None, help=_VERIFY_HELP)
@click.option("--check", "runs", type=click.IntRange(1), metavar="[=N]", help=_CHECK_HELP)
@click.option("--remarks", metavar="[=FILE]", help="Write what was decided and why, to stderr or a file.")
@knob_options
@click.option("--amx-permission/--no-amx-permission", default=True, help="Ask Linux for AMX tiles in a constructor.")
@click.option("--emulate-matrix", is_flag=True, help="Make AMX code that runs without AMX (slowly).")
@click.option("--threads", type=click.Choice(THREADS), default="none", help="What runs large kernels on all cores.")
@click.option("--thread-cycles", type=click.IntRange(0), metavar="N", default=THREAD_CYCLES, help=_CYCLES_HELP)
@click.option("--weight-bytes", type=click.IntRange(0), metavar="N", default=WEIGHT_BYTES, help=_WEIGHTS_HELP)
@click.option("-f", "force", is_flag=True, help="Write binary output to a terminal.")
@click.version_option(__version__, message="%(prog)s %(version)s")
def lower(
    file: str,
    output: str,
    target: str,
    mcpu: str,
    mattr: tuple[str, ...],
    vector_bits: str | None,
    mtriple: str,
    kind: Kind,
    as_text: bool,
    level: int | None,
    stop_after: str | None,
    print_after: tuple[str, ...],
    verify_each: bool | None,
    runs: int | None,
    remarks: str | None,
    tile: str | None,
    knobs: tuple[str, ...],
    tuned: str | None,
    amx_permission: bool,
    emulate_matrix: bool,
    threads: Threads,
    thread_cycles: int,
    weight_bytes: int,
    force: bool,
) -> None:
    """Lower the tensor operations of FILE (LLVM assembly or bitcode; '-' is standard input) to plain LLVM IR.

    Exits with 0, or with 1 after an error; then no output is written.
    """
    from tlx import files
    from tlx.pipeline import Options
    from tlx.remarks import Remarks

    kind = "ll" if as_text else kind
    if stop_after not in (None, "legalize") and kind in ("asm", "obj"):
        raise UsageError(f"--stop-after={stop_after} leaves tensor operations, which --emit={kind} cannot hold")
    collected = Remarks()
    printer = _printer(print_after)
    options = Options(
        stop_after=stop_after,
        verify_each=verify_each,
        print_after=printer,
        remarks=collected,
        cpu=mcpu,
        attrs=_features(mattr),
        amx_permission=amx_permission,
        emulate_matrix=emulate_matrix,
        triple=mtriple,
        vector_bits=int(vector_bits or 0),
        knobs=answers(tile, knobs, tuned),
        threads=threads,
        thread_cycles=thread_cycles,
        weight_bytes=weight_bytes,
    )
    try:
        emits = kind != "ll" or level is not None
        text = _lowered(file, target, options, runs, needs_llvm=emits or _judges(file, verify_each))
    finally:
        _write_remarks(remarks, collected)
    files.write(output, _emitted(text, kind, level, options, mtriple), force=force)


def _lowered(file: str, target: str, options: Options, runs: int | None, *, needs_llvm: bool) -> str:
    from tlx import files, pipeline

    if needs_llvm:
        from tlx.llvm.process import llvm

        llvm().start()  # it comes up while this process reads
    text = files.read_ir(file)
    name = files.ir_name(file)
    if runs is None or not pipeline.has_work(text):
        return pipeline.lower_text(text, name, target, options=options)
    return _checked(text, name, target, options, runs)


def _checked(text: str, name: str, target: str, options: Options, runs: int) -> str:
    """The lowered text, after comparing what it and each stage's output mean with what the input means."""
    from tlx import check, pipeline

    gc.enable()  # the evaluator leaves memory of its machines behind
    stages = check.Stages(options.print_after)
    lowered = pipeline.lower_text(text, name, target, options=replace(options, print_after=stages))
    for note in check.compare(text, name, stages, runs):
        click.echo(note.render(), err=True)
    return lowered


def _judges(file: str, verify_each: bool | None) -> bool:
    """Whether LLVM is going to be asked about a file, as far as its size tells."""
    from tlx import files
    from tlx.pipeline import UNJUDGED_SIZE

    return files.size(file) <= UNJUDGED_SIZE if verify_each is None else verify_each


def _emitted(text: str, kind: Kind, level: int | None, options: Options, triple: str) -> str | bytes:
    if kind == "ll" and level is None:
        return text
    from tlx.codegen import emit

    features = ",".join(options.attrs)
    return emit(text, kind, level, options.cpu, features, triple, emulate_matrix=options.emulate_matrix)


def _features(mattr: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(feature for attrs in mattr for feature in attrs.split(",") if feature)


def _printer(names: tuple[str, ...]) -> _Printer | None:
    wanted = {name for value in names for name in value.split(",")}
    if not wanted:
        return None
    known = ("all", *STAGE_NAMES)
    for name in sorted(wanted - set(known)):
        raise UsageError(f"unknown stage '{name}' in --print-after; known are {', '.join(known)}")
    return _Printer(set(STAGE_NAMES) if "all" in wanted else wanted)


class _Printer:
    """Prints the module after the stages the user asked for."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def __call__(self, step: Step, module: Module) -> None:
        if step.name in self._names:
            click.echo(f"; *** IR Dump After {step.title} ({step.name}) ***\n{module}", err=True)


def _write_remarks(place: str | None, remarks: Remarks) -> None:
    from tlx import files

    if place is None:
        return
    text = "".join(f"{remark.render()}\n" for remark in remarks)
    if place == STDERR:
        click.echo(text, err=True, nl=False)
    else:
        files.write(place, text)
