"""Options by which a command line says how to lower."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from tlx.cli.asking import answers, knob_options
from tlx.diagnostics import UsageError, did_you_mean
from tlx.knobs import WEIGHT_BYTES
from tlx.openmp import THREAD_CYCLES, THREADS
from tlx.pipeline import STAGE_NAMES

if TYPE_CHECKING:
    from tlx.ir.module import Module
    from tlx.pipeline import Options, Step

_VERIFY_HELP: Final = "Have LLVM verify the input and every stage; by default all but large input that stays as it is."
_START_HELP: Final = "The input is what --stop-after=STAGE left: go on behind it."
_PRINT_HELP: Final = "Print the module after a stage, on stderr."
_PERMISSION_HELP: Final = "Ask Linux for AMX tiles in a constructor."
_CYCLES_HELP: Final = f"Work that is worth a thread, in cycles; {THREAD_CYCLES}."
_WEIGHTS_HELP: Final = f"Bytes up to which a constant B is packed when lowered; {WEIGHT_BYTES}."
_BEFORE: Final = (
    click.option("--mcpu", metavar="CPU", default="", help="Processor that machine code is scheduled for."),
    click.option("--mattr", metavar="+A,-B", multiple=True, help="Features added to or taken from the target's."),
    click.option("--vector-bits", type=click.Choice(["128", "256", "512"]), help="Vectors of --target=generic."),
    click.option("--mtriple", metavar="TRIPLE", default="", help="Triple to emit for, in place of the module's."),
    click.option("--start-after", type=click.Choice(STAGE_NAMES[:-1]), metavar="STAGE", help=_START_HELP),
    click.option("--stop-after", type=click.Choice(STAGE_NAMES), metavar="STAGE", help="Last stage to run."),
    click.option("--print-after", multiple=True, metavar="STAGE|all", help=_PRINT_HELP),
    click.option("--verify-each/--no-verify-each", default=None, help=_VERIFY_HELP),
)
_BEHIND: Final = (
    click.option("--amx-permission/--no-amx-permission", default=True, help=_PERMISSION_HELP),
    click.option("--emulate-matrix", is_flag=True, help="Make AMX code that runs without AMX (slowly)."),
    click.option("--threads", type=click.Choice(THREADS), default="none", help="What runs large kernels on all cores."),
    click.option("--thread-cycles", type=click.IntRange(0), metavar="N", default=THREAD_CYCLES, help=_CYCLES_HELP),
    click.option("--weight-bytes", type=click.IntRange(0), metavar="N", default=WEIGHT_BYTES, help=_WEIGHTS_HELP),
)
_PLAIN: Final = (
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
    """Add the options to a command, whose function takes `options` (`tlx.pipeline.Options`) in their place."""

    @wraps(function)
    def command(**given: Any) -> Any:
        return function(options=_taken(given), **given)

    return _with(_BEFORE, knob_options(_with(_BEHIND, command)))


def _with(options: Sequence[Callable[..., Any]], function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(options):
        function = option(function)
    return function


def _taken(given: dict[str, Any]) -> Options:
    """What the options say; they are taken out of `given`."""
    from tlx.pipeline import Options
    from tlx.remarks import Remarks

    return Options(
        print_after=_printer(given.pop("print_after")),
        remarks=Remarks(),
        cpu=given.pop("mcpu"),
        attrs=_features(given.pop("mattr")),
        triple=given.pop("mtriple"),
        vector_bits=int(given.pop("vector_bits") or 0),
        knobs=answers(given.pop("tile"), given.pop("knobs"), given.pop("tuned")),
        **{name: given.pop(name) for name in _PLAIN},
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

    def __call__(self, step: Step, module: Module) -> None:
        if step.name in self._names:
            click.echo(f"; *** IR Dump After {step.title} ({step.name}) ***\n{module}", err=True)
