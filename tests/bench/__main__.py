"""The command line: `python -m tests.bench COMMAND`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from tlx.diagnostics import TlxError
from tlx.target.host import cpu_flags
from tlx.tuning import machine

_CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "tlx-bench"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure the speed of TLX itself; `tlx bench` measures the code that it generates."""


@main.command()
@click.option("--cache", default=_CACHE, type=click.Path(path_type=Path), help="Where sources and IR are kept.")
@click.option("--lines", default=100_000, help="Lines of LLVM IR to read at least.")
@click.option("--only", default="", metavar="NAME", help="Files whose name holds this, such as zstd.c.")
def roundtrip(cache: Path, lines: int, only: str) -> None:
    """Read and write LLVM IR that clang 14 and 19 make of packages from PyPI: losslessness, time, memory."""
    from tests.bench import roundtrip as bench

    raise SystemExit(bench.run(cache, lines, only))


@main.command(name="compile")
@click.option("--target", default="avx512", help="Machine to aim at.")
@click.option("--counts", default="1,10,100,1000", help="Numbers of tensor operations.")
@click.option("--only", default="", metavar="NAME", help="Programs whose name holds this, such as chain.")
def compile_(target: str, counts: str, only: str) -> None:
    """Time tlx-lower on 1 to 1000 tensor operations, and opt -O2 on what comes out."""
    from tests.bench import lowering

    raise SystemExit(lowering.run(target, [int(count) for count in counts.split(",")], only))


@main.command(name="tensor_language")
@click.option("--target", default="native", help="Machine to aim at; it must be one that this machine is.")
@click.option("--rounds", default=15, help="Samples of each figure.")
@click.option("--cpu", type=int, help="Processor to stay on; the last one by default.")
def tensor_language_(target: str, rounds: int, cpu: int | None) -> None:
    """Time kernels of the tensor language on small matrices, against numpy and the machine's peak."""
    machine.prepare_libraries(cpu_flags())  # before anything imports numpy
    from tests.bench import tensor_language

    try:
        tensor_language.run(target, rounds, machine.pin(cpu)[0])
    except (TlxError, ValueError) as error:
        raise click.ClickException(str(error)) from None


@main.command(name="parse")
@click.option("--lines", default="1000,10000,100000", help="Lengths of the files.")
def parse_(lines: str) -> None:
    """Time parsing and checking files in the tensor language."""
    from tests.bench import parsing

    raise SystemExit(parsing.run([int(length) for length in lines.split(",")]))


if __name__ == "__main__":
    main(prog_name="python -m tests.bench")
