"""`tlx bench`: speed of the generated code against the machine's peak and other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from tlx.cli.options import complete_file, complete_target, input_options, knob_options, knob_source
from tlx.cli.progress import ProgressBars
from tlx.diagnostics import UsageError

if TYPE_CHECKING:
    from tlx.api.files import InputFormat

_FROM_HELP: Final = "Merge the results of --json files instead of measuring; may be repeated."


@click.command(
    "bench",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: tlx bench gemm --types=f32,bf16 --sizes=64,1024 --target=avx512 --peers=libxsmm,openblas",
)
@click.argument(
    "rows", nargs=-1, metavar="[ROW]... | models [MODEL]... | paper [ROW]... | FILE", shell_complete=complete_file
)
@click.option("--types", default="", metavar="A,B", help="Only these element types, by their names in the table.")
@click.option("--sizes", default="", metavar="A,B", help="Only these sizes, by their names in the table.")
@click.option("--variants", default="", metavar="A,B", help="Only these variants; 'plain' is the one without a name.")
@click.option(
    "--target",
    default="",
    metavar="NAME",
    help="Target to generate code for; this machine must support it (default: native). 'paper' takes several, one "
    "after the other (default: all that this machine runs).",
    shell_complete=complete_target,
)
@click.option(
    "--peers", default=None, metavar="A,B", help="Libraries to compare with, or 'none' (default: all installed)."
)
@click.option(
    "--peers-path",
    metavar="DIRS",
    help="Folders to search for the libraries, separated by colons (default: $TLX_PEERS).",
)
@click.option(
    "--rounds", type=click.IntRange(1), default=11, metavar="N", help="Samples per measurement (default: 11)."
)
@click.option(
    "--seconds",
    type=click.FloatRange(0),
    default=5.0,
    metavar="S",
    help="Time for the samples of a model; after it, three rounds are enough (default: 5).",
)
@click.option("--cpu", type=click.IntRange(0), metavar="N", help="CPU to run on (default: the last one).")
@click.option(
    "--threads",
    default="",
    metavar="N",
    help="OpenMP threads for TLX and every library (default: 1). 'paper' takes several numbers (default: 1, 2, 4 to "
    "all).",
)
@click.option("--scaling", default="", metavar="N,M", help="Print only the speedup on N, M, ... threads.")
@click.option("--sweep", is_flag=True, help="With 'paper': measure every register tile, instead of other libraries.")
@click.option("--json", "report", metavar="FILE", help="Write the results to a file.")
@click.option("--plot", metavar="FILE", help="Plot the results: .png, .svg or .pdf; needs matplotlib.")
@click.option("--compare", metavar="FILE", help="Also print the ratio to the results in an earlier --json file.")
@click.option("--from", "sources", metavar="FILE|DIR", multiple=True, help=_FROM_HELP)
@click.option("--markdown", metavar="FILE", help="Write Markdown tables: a summary, and every result.")
@knob_options
@click.option("--save", "folder", metavar="DIR", help="Write the workloads' LLVM IR to a folder.")
@click.option("--function", metavar="NAME", help="Function of FILE to measure; required if it defines several.")
@click.option(
    "--args", "arguments", default="", metavar="A=V,...", help="Arguments of that function, such as x=f32:64x64 or n=5."
)
@input_options
@click.option("--list", "listed", is_flag=True, help="List the workloads and exit.")
def bench(
    rows: tuple[str, ...],
    types: str,
    sizes: str,
    variants: str,
    target: str,
    peers: str | None,
    peers_path: str | None,
    rounds: int,
    seconds: float,
    cpu: int | None,
    threads: str,
    scaling: str,
    sweep: bool,
    report: str | None,
    plot: str | None,
    compare: str | None,
    sources: tuple[str, ...],
    markdown: str | None,
    tile: str | None,
    knobs: tuple[str, ...],
    tuned: str | None,
    folder: str | None,
    function: str | None,
    arguments: str,
    listed: bool,
    input_format: InputFormat,
) -> None:
    """Measure the speed of generated code against the machine's peak and other libraries, in one process.

    ROWs are rows of the table of workloads (see --list; default: all), 'models' and names of whole models (default:
    all), 'paper' and rows of the nanokernel paper's table (default: all), or one FILE with a function
    of your own. Results are checked before anything is timed; the exit status is 1 if TLX computes a wrong one or
    generates no code.
    """
    from tlx.bench import command

    selection = command.WorkloadSelection(
        rows, _words(types), _words(sizes), _words(variants), function, _words(arguments), input_format
    )
    if listed:
        command.show(selection, click.echo, target or "native")
        return
    measured = rows[0] if rows[:1] in {("models",), ("paper",)} else "scaling" if scaling else "workloads"
    counts = _counts("--threads", threads)
    if measured != "paper":
        if len(counts) > 1:
            raise UsageError(f"--threads={threads}: only 'tlx bench paper' takes several numbers of threads")
        target = target or "native"
    elif scaling:
        raise UsageError("'tlx bench paper' measures numbers of threads by --threads=1,2,4, not by --scaling")
    _check_options("sweep" if sweep and measured == "paper" else measured)
    if scaling:
        command.scale(selection, target, _counts("--scaling", scaling), rounds, click.echo)
        return
    names = None if peers is None else tuple(name for name in _words(peers) if name != "none")
    knob_settings = knob_source(tile, knobs, tuned)
    setting = command.BenchSettings(
        target,
        names,
        peers_path,
        rounds,
        cpu,
        counts[0] if counts else 1,
        report,
        plot,
        compare,
        sources,
        markdown,
        knob_settings,
        folder,
        seconds,
        counts,
        sweep,
    )
    bars = ProgressBars()
    if not command.run(selection, setting, bars.echo, bars.watch):
        click.get_current_context().exit(1)


_KERNEL_OPTIONS: Final = ("--compare", "--save", "--tile", "--knobs", "--tuned")
_UNUSED: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "workloads": ("only 'tlx bench paper' sweeps tiles; other measurements do", ("--sweep",)),
    "scaling": (
        "--scaling prints the speedup on threads only, and does",
        ("--sweep", "--json", "--plot", "--from", "--markdown", *_KERNEL_OPTIONS),
    ),
    "models": ("measurements of models do", ("--sweep", "--scaling", "--peers-path", *_KERNEL_OPTIONS)),
    "paper": ("measurements of the paper do", _KERNEL_OPTIONS),
    "sweep": ("--sweep measures register tiles only, and does", ("--peers", "--plot", *_KERNEL_OPTIONS)),
}
"""For each kind of measurement, the options that it does not take."""


def _check_options(measured: str) -> None:
    """Refuse options that a kind of measurement does not take."""
    context = click.get_current_context()
    given = {option.opts[0]: context.params[option.name] for option in context.command.params if option.name}
    who, unused = _UNUSED[measured]
    for option in unused:
        if given[option]:
            raise UsageError(f"{who} not take {option}")


def _counts(option: str, text: str) -> tuple[int, ...]:
    """Numbers of threads, such as `1,2,4`."""
    words = _words(text)
    for word in words:
        if not word.isdecimal() or not int(word):
            raise UsageError(f"{option}={word}: write numbers of threads, such as 1,2,4")
    return tuple(dict.fromkeys(map(int, words)))


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
