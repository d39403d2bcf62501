"""`tlx tune`: find the fastest tile, cache blocks and packing for products on this machine or on a cluster."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

import click

from tlx.cli.options import complete_file, input_options, target_option
from tlx.cli.progress import ProgressBars, Step
from tlx.diagnostics import UsageError

if TYPE_CHECKING:
    from tlx.api.files import InputFormat
    from tlx.lower.knobs import KnobQuery
    from tlx.target.target import Target
    from tlx.tuning.database import Database
    from tlx.tuning.pools import Pool
    from tlx.tuning.session import Budget, SearchReport

_BUDGET: Final = re.compile(r"(\d+(?:\.\d+)?)(s|m|h)|(\d+)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}
_TRIALS_ESTIMATE: Final = 80  # of a product
_SHAPE: Final = re.compile(r"\d+x\d+x(?:\d+\*)?\d+")


@click.command(
    "tune",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: tlx tune matmul 64x64x64 1024x1024x1024 --types=f32,bf16 --budget=60s",
)
@click.argument("inputs", nargs=-1, metavar="FILE...|matmul MxNxK...", shell_complete=complete_file)
@click.option(
    "--types",
    default="f32",
    metavar="A,B",
    help="Element types for MxNxK: f64, f32, f16, bf16, s8, u8s8 (default: f32).",
)
@click.option(
    "--layout",
    default="nn",
    type=click.Choice(["nn", "nt", "tn", "tt", "nv2", "nv4"]),
    help="Layouts of A and B for MxNxK: n row-major, t column-major, vN with N rows interleaved (default: nn).",
)
@click.option("--fused", is_flag=True, help="For MxNxK, follow the product by a bias, relu and rounding.")
@click.option(
    "--threads", type=click.IntRange(1), default=1, metavar="N", help="OpenMP threads (default: 1, without OpenMP)."
)
@target_option("Target to tune for; the machines that measure must support it.")
@click.option(
    "--budget",
    metavar="N|TIME",
    help="Limit per product: a number of trials, or a time such as 30s or 5m (default: 40 trials).",
)
@click.option("--cpu", type=click.IntRange(0), metavar="N", help="CPU to measure on (default: the last one).")
@click.option(
    "--scheduler", metavar="ADDRESS", help="Measure on the Dask cluster at this address, such as tcp://host:8786."
)
@click.option("--database", metavar="FILE", help="Database of results (default: tlx/tuned.json in the user's cache).")
@click.option("--again", is_flag=True, help="Tune again even if the database has results.")
@click.option("--show", is_flag=True, help="Print the database and exit.")
@click.option("--export", metavar="FILE", help="Write the results for this machine as a knobs file and exit.")
@click.option("--clear", is_flag=True, help="Delete all results and exit.")
@input_options
def tune(
    inputs: tuple[str, ...],
    types: str,
    layout: str,
    fused: bool,
    threads: int,
    target: str,
    budget: str | None,
    cpu: int | None,
    scheduler: str | None,
    database: str | None,
    again: bool,
    show: bool,
    export: str | None,
    clear: bool,
    input_format: InputFormat,
) -> None:
    """Search for knobs that make matrix products faster than the cost model's choice, for tlx-lower --tuned.

    The products are those of the files, or of the shapes MxNxK. Every result is stored at once, so an interrupted run
    continues where it stopped.
    """
    from tlx.tuning.database import Database

    results = Database(Path(database) if database else None)
    if show or export is not None or clear:
        _manage(results, inputs, show=show, export=export, clear=clear)
        return
    if not inputs:
        raise UsageError("name files, or shapes such as 'matmul 1024x1024x1024'")
    limit = _budget(budget)
    shapes = _Shapes([name for name in types.split(",") if name], layout, fused)
    queries = _queries(inputs, input_format, shapes, target, threads)
    if not queries:
        click.echo("no products to tune")
        return
    with _pool(scheduler, cpu, threads) as pool:
        _search(results, pool, limit, queries, again=again)


def _manage(database: Database, inputs: Sequence[str], *, show: bool, export: str | None, clear: bool) -> None:
    if inputs:
        raise UsageError("--show, --export and --clear apply to the whole database; they take no files or shapes")
    if show:
        from tlx.tuning.session import format_database

        click.echo(format_database(database.entries(), database.path), nl=False)
    if export is not None:
        from tlx.api import files
        from tlx.tuning.machine import processor
        from tlx.tuning.session import format_knobs_file

        files.write_output(export, format_knobs_file(database.entries(), processor()))
    if clear:
        count = database.clear()
        click.echo(f"deleted {count} product{'' if count == 1 else 's'}", err=True)


@dataclass(frozen=True)
class _Shapes:
    """Types, layout and epilogue of the shapes on the command line."""

    types: Sequence[str]
    layout: str
    fused: bool


def _queries(
    inputs: Sequence[str], input_format: InputFormat, shapes: _Shapes, name: str, threads: int
) -> list[KnobQuery]:
    from tlx.tuning.product import products_of_file, products_of_shapes

    target = _target(name)
    if inputs[0] == "matmul":
        invalid = next((shape for shape in inputs[1:] if not _SHAPE.fullmatch(shape)), None)
        if invalid is not None or len(inputs) == 1:
            raise UsageError(f"'matmul {invalid or ''}': write shapes as MxNxK, such as 'matmul 1024x1024x1024'")
        return products_of_shapes(inputs[1:], shapes.types, shapes.layout, target, threads, fused=shapes.fused)
    if shapes != _Shapes(["f32"], "nn", False):
        raise UsageError("--types, --layout and --fused apply to shapes only; products of files have their own")
    shape = next((path for path in inputs if path == "matmul" or _SHAPE.fullmatch(path)), None)
    if shape is not None:
        raise UsageError(f"'{shape}' is not a file; write shapes after 'matmul', without files: 'matmul 64x64x64'")
    queries = [query for path in inputs for query in products_of_file(path, target, threads, input_format)]
    return list(dict.fromkeys(queries))


def _target(name: str) -> Target:
    from tlx.target.lookup import find_target

    target = find_target(name)
    if target.versions:
        raise UsageError(f"--target={name}: a machine runs only one of its versions; tune for one target at a time")
    return target


@contextmanager
def _pool(scheduler: str | None, cpu: int | None, threads: int) -> Generator[Pool]:
    from tlx.tuning.pools import DaskPool, LocalPool

    if scheduler is not None and cpu is not None:
        raise UsageError("--cpu applies to this machine, not to those of --scheduler")
    if scheduler is not None and threads > 1:
        raise UsageError("--threads applies to this machine only: a worker of --scheduler has one thread")
    pool = DaskPool(scheduler) if scheduler is not None else LocalPool(cpu, threads)
    try:
        yield pool
    finally:
        pool.close()


def _search(database: Database, pool: Pool, budget: Budget, queries: Sequence[KnobQuery], *, again: bool) -> None:
    from tlx.tuning.session import TuningSession, format_report

    tunable, refusals = _tunable(queries)
    for message in refusals:
        click.echo(f"tlx: {message}", err=True)
    total = len(tunable) * len(pool.kinds)
    each = budget.trials or _TRIALS_ESTIMATE
    with ProgressBars().watch("tuning", total * each) as step:
        progress = _Progress(step, total, each)
        session = TuningSession(database, pool, budget, again, progress.step)
        reports = list(map(progress.ended, session.run(tunable)))
    for report in reports:
        click.echo(format_report(report, several=len(pool.kinds) > 1))
    if failed := next((report.error for report in reports if report.error), None):
        raise UsageError(failed)


@dataclass
class _Progress:
    """The progress of trials; the number of trials of each product is an estimate."""

    advance: Step
    total: int
    each: int
    position: int = 0
    trials: int = 0
    products: int = 0
    lock: Lock = field(default_factory=Lock)

    def step(self) -> None:
        """Count a trial."""
        with self.lock:
            self.trials += 1
            self._move(min(self.position + 1, self.total * self.each - 1))

    def ended(self, report: SearchReport) -> SearchReport:
        """Count a product."""
        with self.lock:
            self.products += 1
            self._move(self.products * self.each)
        return report

    def _move(self, position: int) -> None:
        """Move the bar forward."""
        position = max(position, self.position)
        self.advance(f"trials: {self.trials}, products: {self.products}/{self.total}", position - self.position)
        self.position = position


def _tunable(queries: Sequence[KnobQuery]) -> tuple[list[KnobQuery], list[str]]:
    """The products that can be tuned, and why the others cannot."""
    from tlx.tuning.product import parse_product

    tunable: list[KnobQuery] = []
    refusals: list[str] = []
    for query in queries:
        try:
            parse_product(query.text)
        except UsageError as error:
            refusals.append(error.message)
        else:
            tunable.append(query)
    return tunable, refusals


def _budget(text: str | None) -> Budget:
    from tlx.tuning.session import Budget

    if text is None:
        return Budget()
    match = _BUDGET.fullmatch(text)
    if match is None or (match[3] and not 1 <= int(match[3]) <= 1 << 20):
        raise UsageError(f"--budget={text}: write a number of trials (40), or a time (30s, 5m, 1h)")
    return Budget(trials=int(match[3])) if match[3] else Budget(seconds=float(match[1]) * _SECONDS[match[2]])
