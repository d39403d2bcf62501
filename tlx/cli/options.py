"""Options that commands share: the input's language (-x, --std), knobs (--tile, --knobs, --tuned), how to lower."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from tlx.api.files import InputFormat
from tlx.cli.spelling import CACHE
from tlx.diagnostics import UsageError, did_you_mean
from tlx.llvm.openmp import THREAD_CYCLES, THREADS
from tlx.lower.knobs import WEIGHT_BYTES
from tlx.lower.options import STAGE_NAMES

if TYPE_CHECKING:
    from tlx.ir.module import Module
    from tlx.lower.knobs import KnobSource
    from tlx.lower.options import Options, PipelineStep

_LANGUAGE_HELP: Final = (
    "What the input is written in: ll or ir for LLVM assembly or bitcode, tl for the tensor language; by default what "
    "its name says."
)
_STD_HELP: Final = "Version of the tensor language: v1, or v2, which is the default."


def input_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, whose function takes `reading` (`tlx.api.files.InputFormat`) in their place."""

    @wraps(function)
    def command(*, language: str, std: str, **given: Any) -> Any:
        return function(reading=InputFormat(language, std), **given)

    std = click.option("--std", default="", metavar="VERSION", help=_STD_HELP)
    return click.option("-x", "language", default="", metavar="LANGUAGE", help=_LANGUAGE_HELP)(std(command))


_KNOBS_HELP: Final = "Tiles, cache blocks and packing of products, for all by name (kc=512) or in a file by pattern."
_KNOB_OPTIONS: Final = (
    click.option("--tile", metavar="RxC", help="Register tile of every product: rows and columns, such as 8x48."),
    click.option("--knobs", metavar="NAME=VALUE,...|FILE", multiple=True, help=_KNOBS_HELP),
    click.option("--tuned", metavar="[=FILE]", help="Use what 'tlx tune' found for this machine, or another database."),
)


def knob_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, whose function takes `tile`, `knobs` and `tuned`."""
    for option in reversed(_KNOB_OPTIONS):
        function = option(function)
    return function


def knob_source(tile: str | None, knobs: tuple[str, ...], tuned: str | None) -> KnobSource:
    """What is asked of products: on the command line for all of them, else by the files, else by the database."""
    from tlx.lower.knobs import FirstKnobSource, FixedKnobs, KnobOrigin, parse_knobs

    if "" in knobs:
        raise UsageError("--knobs= is empty; write NAME=VALUE,... or the name of a file")
    given = [text for text in knobs if "=" in text.partition(",")[0]]
    sources: list[KnobSource] = []
    if given or tile is not None:
        settings = [f"tile={tile}"] * (tile is not None) + given
        by = " and ".join(["--tile"] * (tile is not None) + ["--knobs"] * bool(given))
        sources.append(FixedKnobs(parse_knobs(",".join(settings), KnobOrigin(f"from {by}"))))
    for path in knobs:
        if path not in given:
            from tlx.tuning.knobs_file import read_knobs_file

            sources.append(read_knobs_file(path))
    if tuned is not None:
        from tlx.tuning import database

        sources.append(database.tuned_knobs(None if tuned == CACHE else tuned))
    return FirstKnobSource(tuple(sources))


_VERIFY_HELP: Final = "Have LLVM verify the input and every stage; by default all but large input that stays as it is."
_START_HELP: Final = "The input is what --stop-after=STAGE left: go on behind it."
_PRINT_HELP: Final = "Print the module after a stage, on stderr."
_PERMISSION_HELP: Final = "Ask Linux for AMX tiles in a constructor."
_CYCLES_HELP: Final = f"Work that is worth a thread, in cycles; {THREAD_CYCLES}."
_WEIGHTS_HELP: Final = f"Bytes up to which a constant B is packed when lowered; {WEIGHT_BYTES}."
_TARGET_AND_STAGES: Final = (
    click.option("--mcpu", metavar="CPU", default="", help="Processor that machine code is scheduled for."),
    click.option("--mattr", metavar="+A,-B", multiple=True, help="Features added to or taken from the target's."),
    click.option("--vector-bits", type=click.Choice(["128", "256", "512"]), help="Vectors of --target=generic."),
    click.option("--mtriple", metavar="TRIPLE", default="", help="Triple to emit for, in place of the module's."),
    click.option("--start-after", type=click.Choice(STAGE_NAMES[:-1]), metavar="STAGE", help=_START_HELP),
    click.option("--stop-after", type=click.Choice(STAGE_NAMES), metavar="STAGE", help="Last stage to run."),
    click.option("--print-after", multiple=True, metavar="STAGE|all", help=_PRINT_HELP),
    click.option("--verify-each/--no-verify-each", default=None, help=_VERIFY_HELP),
)
_CODE: Final = (
    click.option("--amx-permission/--no-amx-permission", default=True, help=_PERMISSION_HELP),
    click.option("--emulate-matrix", is_flag=True, help="Make AMX code that runs without AMX (slowly)."),
    click.option("--threads", type=click.Choice(THREADS), default="none", help="What runs large kernels on all cores."),
    click.option("--thread-cycles", type=click.IntRange(0), metavar="N", default=THREAD_CYCLES, help=_CYCLES_HELP),
    click.option("--weight-bytes", type=click.IntRange(0), metavar="N", default=WEIGHT_BYTES, help=_WEIGHTS_HELP),
)
_SAME_NAMES: Final = (
    "start_after",
    "stop_after",
    "verify_each",
    "amx_permission",
    "emulate_matrix",
    "threads",
    "thread_cycles",
    "weight_bytes",
)
"""Options that are called as in `Options`."""


def lowering_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, whose function takes `options` (`tlx.lower.options.Options`) in their place."""

    @wraps(function)
    def command(**given: Any) -> Any:
        return function(options=_options_from(given), **given)

    return _with_options(_TARGET_AND_STAGES, knob_options(_with_options(_CODE, command)))


def _with_options(options: Sequence[Callable[..., Any]], function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(options):
        function = option(function)
    return function


def _options_from(given: dict[str, Any]) -> Options:
    """What the options say; they are taken out of `given`."""
    from tlx.lower.options import Options
    from tlx.lower.remarks import Remarks

    return Options(
        print_after=_printer(given.pop("print_after")),
        remarks=Remarks(),
        cpu=given.pop("mcpu"),
        attrs=_features(given.pop("mattr")),
        triple=given.pop("mtriple"),
        vector_bits=int(given.pop("vector_bits") or 0),
        knobs=knob_source(given.pop("tile"), given.pop("knobs"), given.pop("tuned")),
        **{name: given.pop(name) for name in _SAME_NAMES},
    )


def _features(mattr: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(feature for attrs in mattr for feature in attrs.split(",") if feature)


def _printer(names: tuple[str, ...]) -> _Printer | None:
    wanted = {name for value in names for name in value.split(",")}
    if not wanted:
        return None
    known = ("all", *STAGE_NAMES)
    for name in sorted(wanted - set(known)):
        near = did_you_mean(name, known)
        raise UsageError(f"unknown stage '{name}' in --print-after; known are {', '.join(known)}{near}")
    return _Printer(set(STAGE_NAMES) if "all" in wanted else wanted)


class _Printer:
    """Prints the module after the stages the user asked for."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def __call__(self, step: PipelineStep, module: Module) -> None:
        if step.name in self._names:
            click.echo(f"; *** IR Dump After {step.title} ({step.name}) ***\n{module}", err=True)
