"""`tlx explain`: an HTML page that shows how a program is lowered, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from tlx.cli.options import file_argument, input_options, lowering_options, output_option, target_option
from tlx.diagnostics import UsageError

if TYPE_CHECKING:
    from tlx.api.files import InputFormat
    from tlx.explain.collect import Report, StageText
    from tlx.explain.page import MachineCode, Measurement
    from tlx.lower.options import Options

_ROUNDS: Final = 11
_FULL: Final = {"start_after": "--start-after", "stop_after": "--stop-after", "print_after": "--print-after"}


@click.command(
    "explain",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: tlx explain gemm.ll -o report.html",
)
@file_argument
@input_options
@output_option
@target_option()
@click.option(
    "-O",
    "level",
    type=click.IntRange(0, 3),
    default=2,
    metavar="0-3",
    help="LLVM's level for the assembly (default: 2).",
)
@click.option("--run", "is_run", is_flag=True, help="Measure a function on this machine, and show it in the roofline.")
@click.option("--function", metavar="NAME", help="Function to measure; required if the file defines several.")
@click.option("--args", "arguments", default="", metavar="A=V,...", help="Its arguments, as for 'tlx bench'.")
@lowering_options
def explain(
    file: str,
    input_format: InputFormat,
    output: str,
    target: str,
    level: int,
    is_run: bool,
    function: str | None,
    arguments: str,
    options: Options,
) -> None:
    """Write a page that shows what TLX makes of FILE: each stage, kernels, memory and remarks.

    FILE is what tlx-lower reads. The page needs no other file and no network.
    """
    from tlx.api import files
    from tlx.explain.collect import collect
    from tlx.explain.page import page
    from tlx.llvm.triples import triple_of
    from tlx.target.lookup import foreign_triple

    for name, flag in _FULL.items():
        if getattr(options, name) is not None:
            raise UsageError(f"tlx explain shows all stages, and does not take {flag}")
    if not is_run and (function or arguments):
        raise UsageError(f"{'--function' if function else '--args'} is for --run")
    data = files.read_bytes(file)
    translation = files.translate(data, file, options.threads, input_format)
    text = (
        files.ir_of(data, file, options.threads, input_format) if translation is None else str(translation).lstrip("\n")
    )
    original = None if translation is None else _original(data, translation, file)
    if not options.triple and not triple_of(text):
        options = replace(options, triple=foreign_triple(target))
    report = collect(text, files.ir_name(file, input_format), target, options, original)
    measured = _measured(file, function, arguments, input_format, target, options) if is_run else None
    files.write_output(output, page(report, _code(report, options, level), measured))


for _parameter in explain.params:
    if isinstance(_parameter, click.Option) and _parameter.name in _FULL:
        _parameter.hidden = True  # refused, with a message that gives the reason


def _code(report: Report, options: Options, level: int) -> MachineCode:
    """The main loops of the report's kernels, analysed where llvm-mca is there."""
    from tlx.explain.assembly import Analysis, analyse, find_mca, likely_processor, main_loops
    from tlx.explain.page import MachineCode
    from tlx.llvm.codegen import CodegenError, emit_code
    from tlx.llvm.triples import native_triple, triple_of

    homes = list(dict.fromkeys(kernel.home for kernel in report.kernels))
    if not homes:
        return MachineCode({}, {})
    triple = options.triple or triple_of(report.text) or native_triple()
    features = ",".join(options.features)
    try:
        assembly = emit_code(report.text, "asm", level, options.cpu, features, options.triple).decode()
    except CodegenError as error:
        return MachineCode({}, {}, f"There is no assembly: {error.message}")
    loops = main_loops(assembly, homes)
    mca = find_mca()
    if mca is None:
        note = "llvm-mca is not on PATH, so loops have no cycles: it is part of LLVM's tools (package llvm on Debian)."
        return MachineCode(loops, {}, note)
    analyses: dict[str, Analysis] = {}
    targets = {kernel.home: kernel.facts.target for kernel in report.kernels}
    for name, loop in loops.items():
        target = targets[name]
        words = ",".join([*target.features, *options.features])
        found = analyse(mca, loop, triple, options.cpu or likely_processor(target), words)
        if found is not None:
            analyses[name] = found
    return MachineCode(loops, analyses)


def _original(data: bytes, translation: object, file: str) -> StageText | None:
    """The text in a front end's language; None where the file is not text, such as a model."""
    from tlx.api import files
    from tlx.explain.collect import original_column
    from tlx.ir.module import Module

    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return original_column(text, files.display_name(file), translation) if isinstance(translation, Module) else None


def _measured(
    file: str, function: str | None, arguments: str, input_format: InputFormat, target: str, options: Options
) -> Measurement:
    """The speed of a function on this machine, and its share of the measured peak."""
    from tlx.bench.measure import OURS, PEAK, Bench, runnable
    from tlx.bench.user_workload import parse_arguments, user_workload
    from tlx.explain.page import Measurement
    from tlx.tuning.timing import PinnedCore

    words = tuple(word.strip() for word in arguments.split(",") if word.strip())
    bench = Bench(runnable(target), (), _ROUNDS, knobs=options.knobs, core=PinnedCore())
    work = user_workload(file, function, parse_arguments(words), input_format)
    cell = bench.measure(work)
    if cell.error:
        raise UsageError(f"@{work.function} cannot be measured: {cell.error}")
    ours, peak = cell.rates[OURS].median, cell.rates[PEAK].median
    return Measurement(work.function, work.operations / ours / 1e9, work.operations, ours / peak, cell.instruction)
