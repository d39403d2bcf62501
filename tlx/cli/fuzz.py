"""`tlx fuzz`: finds bugs in TLX by random programs and by corrupted ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tlx.cli.options import setting_option
from tlx.diagnostics import UsageError, did_you_mean

if TYPE_CHECKING:
    from tlx.llvm.openmp import Threads


@click.command(
    "fuzz",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: tlx fuzz --count 1000 --targets avx2,amx --ops matmul,reduce,fadd --keep failures",
)
@click.option("--seed", type=click.IntRange(0), default=0, metavar="N", help="Seed of the first program; 0.")
@click.option("--count", type=click.IntRange(1), default=100, metavar="N", help="Number of programs; 100.")
@click.option("--targets", default="native", metavar="A,B", help="Targets to lower for, A/B for both in one; native.")
@click.option("--ops", default="", metavar="A,B", help="Operations to use: names, -names, groups.")
@click.option("--profile", default="", metavar="NAME", help="Kind of programs; a mixture.")
@click.option("--keep", default="tlx-fuzz", metavar="DIR", help="Folder for failing programs; tlx-fuzz.")
@click.option(
    "--time", "seconds", type=click.FloatRange(0), metavar="SECONDS", help="Start no program after this time."
)
@click.option("--jobs", type=click.IntRange(1), default=1, metavar="N", help="Processes; 1.")
@click.option("--shrink", type=click.IntRange(0), default=300, metavar="N", help="Tries to simplify a failure; 300.")
@setting_option("emulate_matrix", "Emulate the matrix unit even if there is one.")
@setting_option("threads", "Library that runs every kernel on several threads.")
@click.option("--opt", default="", metavar="PROGRAM", help="LLVM's opt, to optimise some programs first.")
@click.option("--replay", metavar="FILE", help="Only check the program in a failure's file again.")
@click.option("--malformed", is_flag=True, help="Corrupt texts and bitcode: errors must be clean and quick.")
@click.pass_context
def fuzz(
    ctx: click.Context,
    seed: int,
    count: int,
    targets: str,
    ops: str,
    profile: str,
    keep: str,
    seconds: float | None,
    jobs: int,
    shrink: int,
    emulate_matrix: bool,
    threads: Threads,
    opt: str,
    replay: str | None,
    malformed: bool,
) -> None:
    """Check random programs: evaluating them before the lowering and after each stage, and running them must agree.

    The same seed gives the same programs. A failing one is simplified and written to a file; the exit status is then 1.
    Programs that the lowering refuses are counted by reason and are not failures.
    """
    from pathlib import Path

    from tlx.fuzz import command
    from tlx.fuzz.generation.programs import parse_operations

    if replay is not None:
        from tlx.api import files

        right = command.replay(replay, files.read_ir(replay), click.echo)
    elif malformed:
        from tlx.fuzz.mutation import fuzz_malformed

        right = fuzz_malformed("tlx.cli.group:group", seed, count, jobs, Path(keep), seconds, click.echo)
    else:
        plan = command.CampaignPlan(
            seed,
            count,
            _targets(targets),
            Path(keep),
            _profile(profile),
            parse_operations(ops),
            jobs,
            seconds,
            shrink,
            emulate_matrix,
            threads == "openmp",
            _program(opt),
        )
        right = command.fuzz(plan, click.echo)
    if not right:
        ctx.exit(1)


def _targets(text: str) -> tuple[str, ...]:
    from tlx.target.host import native_target
    from tlx.target.lookup import find_target

    names = [name.replace("/", ",") for name in text.split(",") if name and name != "none"]
    found = [
        native_target().name if name == "native" else name if "+" in name else find_target(name).name for name in names
    ]
    return tuple(dict.fromkeys(found))


def _program(name: str) -> str:
    """Where a program is; empty where none is named."""
    import shutil

    found = shutil.which(name) if name else ""
    if found is None:
        raise UsageError(f"--opt: there is no program '{name}'")
    return found


def _profile(name: str) -> str:
    from tlx.fuzz.generation.profiles import PROFILES

    if name and name not in PROFILES:
        near = did_you_mean(name, PROFILES)
        raise UsageError(f"unknown profile '{name}' in --profile; known are {', '.join(PROFILES)}{near}")
    return name
