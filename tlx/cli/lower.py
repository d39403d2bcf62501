"""`tlx-lower`: tensor operations to plain LLVM IR, with the conventions of opt and llc."""

from __future__ import annotations

import gc
import os
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import click

from tlx import __version__
from tlx.cli.options import cache_option, file_argument, input_options, lowering_options, output_option, target_option
from tlx.cli.program import STDERR, print_diagnostics
from tlx.diagnostics import UsageError
from tlx.llvm import OUTPUT_KINDS, OutputKind

if TYPE_CHECKING:
    from tlx.api.cache import DiskCache
    from tlx.api.files import InputFormat
    from tlx.lower.options import Options
    from tlx.lower.remarks import Remarks
    from tlx.target.target import Target

_CHECK_HELP: Final = (
    "Interpret the input and the output of every stage on N sets of random data (default: 3), and compare."
)

_CACHE_HELP: Final = (
    "Reuse the output of an earlier run with the same input and options, from DIR or the user's cache; see 'tlx cache'."
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@file_argument
@input_options
@output_option
@target_option()
@click.option(
    "--emit", "--filetype", "kind", type=click.Choice(OUTPUT_KINDS), default="ll", help="What to write (default: ll)."
)
@click.option("-S", "as_text", is_flag=True, help="Write LLVM assembly: the same as --emit=ll.")
@click.option("-O", "level", type=click.IntRange(0, 3), metavar="0-3", help="Optimise the lowered module with LLVM.")
@click.option("--check", "runs", type=click.IntRange(1), metavar="[=N]", help=_CHECK_HELP)
@click.option("--remarks", metavar="[=FILE]", help="Write decisions and the reasons for them to stderr, or to a file.")
@lowering_options
@cache_option(_CACHE_HELP)
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
    cache: bool | str,
    force: bool,
    options: Options,
    input_format: InputFormat,
) -> None:
    """Lower the tensor operations of FILE to plain LLVM IR.

    FILE is LLVM assembly, bitcode, a program in the tensor language (*.tl, *.ir) or a model; '-' is standard input.

    The exit status is 0, or 1 after an error; then no output is written.
    """
    from tlx.api import files
    from tlx.api.cache import DiskCache

    kind = "ll" if as_text else kind
    if options.stop_after not in (None, "legalize") and kind in ("asm", "obj"):
        raise UsageError(f"--stop-after={options.stop_after} leaves tensor operations, which --emit={kind} cannot hold")
    emission = _Emission(kind, level)
    try:
        disk = None if runs is not None else DiskCache.of(cache)
        if disk is None:
            result = _result(file, None, input_format, target, options, runs, emission)
        else:
            result = _cached(disk, file, input_format, target, options, emission)
    finally:
        _write_remarks(remarks, options.remarks)
    files.write_output(output, result, force=force)


@dataclass(frozen=True, slots=True)
class _Emission:
    """The kind of output, and LLVM's optimisation level."""

    kind: OutputKind
    level: int | None


def _cached(
    cache: DiskCache, file: str, input_format: InputFormat, target: str, options: Options, emission: _Emission
) -> bytes | str:
    """The output, from the cache or added to it."""
    from tlx.api import files
    from tlx.api.cache import CacheEntry, CacheInput

    data = files.read_bytes(file)
    source = CacheInput(data, files.ir_name(file, input_format))

    def compute(options: Options) -> list[bytes]:
        result = _result(file, data, input_format, target, options, None, emission)
        return [source.compress(result.encode() if isinstance(result, str) else result)]

    suffix = os.path.splitext(file)[1]  # noqa: PTH122 (a path with a NUL is reported when it is read)
    others = {"result": emission, "suffix": suffix, "input_format": input_format}
    (result,) = CacheEntry(cache, source, target, options, others).get_or_compute(compute)
    output = zlib.decompress(result)
    return output.decode() if emission.kind == "ll" and emission.level is None else output


def _result(
    file: str,
    data: bytes | None,
    input_format: InputFormat,
    target: str,
    options: Options,
    runs: int | None,
    emission: _Emission,
) -> bytes | str:
    """The output for a file, whose contents are `data` if they have been read."""
    from tlx.api import files
    from tlx.llvm.triples import triple_of
    from tlx.lower import pipeline
    from tlx.target.lookup import find_target, foreign_triple

    emits = emission.kind != "ll" or emission.level is not None
    if emits or _is_verified(file, options.verify_each):
        from tlx.llvm.process import llvm

        llvm().start()  # it starts while this process reads the input
    workers = find_target(target).grid or options.threads
    text = (
        files.read_ir(file, workers, input_format) if data is None else files.ir_of(data, file, workers, input_format)
    )
    name = files.ir_name(file, input_format)
    if not options.triple and not triple_of(text):
        options = replace(options, triple=foreign_triple(target))
    options = replace(options, cpu=_processor(options.cpu, find_target(target)))
    if runs is None or not pipeline.has_work(text):
        lowered = pipeline.lower_text(text, name, target, options=options, is_compiled=emits)
    else:
        lowered = _checked(text, name, target, options, runs)
    return _emitted(lowered, name, emission, options)


def _processor(cpu: str, target: Target) -> str:
    """The processor to compile for; `native` is that of this machine's device."""
    if cpu == "native" and target.grid is not None:
        return target.grid.find_device().processor
    return cpu or target.default_cpu


def _checked(text: str, name: str, target: str, options: Options, runs: int) -> str:
    """The lowered text, after a check that each stage preserved the meaning of the input."""
    from tlx.api import validation
    from tlx.lower import pipeline

    gc.enable()  # frees the memory of the evaluator's machines
    stages = validation.StageRecorder(options.print_after)
    lowered = pipeline.lower_text(text, name, target, options=replace(options, print_after=stages))
    exact = options.bf16_intermediates == "exact"
    for note in validation.compare_stages(text, name, stages, runs, exact=exact):
        print_diagnostics(f"{note.render()}\n")
    return lowered


def _is_verified(file: str, verify_each: bool | None) -> bool:
    """Whether LLVM will probably verify a file, by its size."""
    from tlx.api import files
    from tlx.lower.pipeline import UNVERIFIED_SIZE

    return files.file_size(file) <= UNVERIFIED_SIZE if verify_each is None else verify_each


def _emitted(text: str, name: str, emission: _Emission, options: Options) -> str | bytes:
    from tlx.llvm.triples import with_platform

    kind, level = emission.kind, emission.level
    if kind == "ll" and level is None:
        return with_platform(text, options.triple) if options.triple else text
    from tlx.llvm.codegen import CodegenError, emit_code
    from tlx.llvm.verification import check_text
    from tlx.lower.options import STAGE_NAMES
    from tlx.target.installed import matrix_emulations

    emulations = matrix_emulations() if options.emulate_matrix else []
    emulating = [option for emulation in emulations for option in emulation.llvm_options]
    features = ",".join(options.features)
    try:
        code = emit_code(text, kind, level, options.cpu, features, options.triple, llvm_options=emulating)
    except CodegenError:
        if options.verify_each is None:
            check_text(text, name, stage=STAGE_NAMES[-1])  # if the text is wrong, the error is that of the lowering
        raise
    return with_platform(code.decode(), options.triple) if kind == "ll" and options.triple else code


def _write_remarks(path: str | None, remarks: Remarks) -> None:
    from tlx.api import files

    if path is None:
        return
    text = "".join(f"{remark.render()}\n" for remark in remarks)
    if path == STDERR:
        print_diagnostics(text)
    else:
        files.write_output(path, text)
