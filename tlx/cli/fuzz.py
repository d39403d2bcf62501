"""`tlx fuzz`: finds bugs in TLX with random programs and with corrupted ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tlx.cli.options import setting_option
from tlx.cli.progress import ProgressBars
from tlx.diagnostics import UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection

    from tlx.llvm.openmp import Threads


@click.command(
    "fuzz",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: tlx fuzz --count 1000 --targets avx2,amx --ops matmul,reduce,fadd --keep failures",
)
@click.option("--seed", type=click.IntRange(0), default=0, metavar="N", help="Seed of the first program (default: 0).")
@click.option("--count", type=click.IntRange(1), default=100, metavar="N", help="Number of programs (default: 100).")
@click.option(
    "--targets",
    default="native",
    metavar="A,B",
    help="Targets to lower for; A/B means one multiversioned module (default: native).",
)
@click.option("--ops", default="", metavar="A,B", help="Operations to use: names or groups; -NAME leaves one out.")
@click.option("--profile", default="", metavar="NAME", help="Kind of inputs (default: a mixture).")
@click.option("--keep", default="tlx-fuzz", metavar="DIR", help="Folder for failing programs (default: tlx-fuzz).")
@click.option(
    "--time",
    "seconds",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="End after this many seconds, without the programs that still run.",
)
@click.option("--jobs", type=click.IntRange(1), default=1, metavar="N", help="Worker processes (default: 1).")
@click.option(
    "--shrink",
    type=click.IntRange(0),
    default=300,
    metavar="N",
    help="Maximum attempts to simplify a failing program (default: 300).",
)
@setting_option("emulate_matrix", "Emulate the matrix unit even if there is one.")
@setting_option("threads", "Library that runs every kernel on several threads.")
@click.option(
    "--opt", default="", metavar="PROGRAM", help="Path of LLVM's opt, to optimise some programs before lowering them."
)
@click.option(
    "--emulator",
    default="",
    metavar="COMMAND",
    help="Run code for another machine under its emulator, such as 'qemu-ppc64le -cpu power10'.",
)
@setting_option("features", "Add features to the targets', or remove them.")
@click.option(
    "--code-only",
    is_flag=True,
    help="Evaluate the stages only of programs whose machine code fails, or cannot run here.",
)
@click.option(
    "--resume",
    metavar="LOG",
    help="Leave out the programs that a log has, and append the others to it; print totals.",
)
@click.option("--replay", metavar="FILE", help="Only check the program of a failure file again.")
@click.option(
    "--malformed",
    is_flag=True,
    help="Feed corrupted texts, bitcode, models and settings to the tools, which must fail cleanly and quickly.",
)
@click.option("--graphs", is_flag=True, help="Draw graphs of tensors and compare with JAX.")
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
    emulator: str,
    features: tuple[str, ...],
    code_only: bool,
    resume: str | None,
    replay: str | None,
    malformed: bool,
    graphs: bool,
) -> None:
    """Check random programs: interpreted before and after each stage, and compiled, they must give the same results.

    The same seed gives the same programs. A failing one is simplified and written to a file, and the exit status is 1.
    Programs that the lowering rejects are counted by reason; they are not failures.
    """
    from pathlib import Path

    from tlx.fuzz import campaign
    from tlx.fuzz.generation.profiles import PROFILES
    from tlx.fuzz.generation.programs import parse_operations
    from tlx.fuzz.graphs.generator import graph_operations
    from tlx.fuzz.worker import GRAPHS

    if not malformed:
        _check_bfloat16()
    if replay is not None:
        from tlx.api import files

        passed = campaign.replay(replay, files.read_bytes(replay).decode(errors="replace"), click.echo)
    elif malformed:
        from tlx.fuzz.mutation import KINDS, fuzz_malformed

        kind = _profile(profile, KINDS)
        bars = ProgressBars()
        with bars.watch("fuzz", count) as step:
            log = None if resume is None else Path(resume)
            passed = fuzz_malformed(
                "tlx.cli.group:group", seed, count, jobs, Path(keep), seconds, bars.echo, step, log, kind
            )
    else:
        plan = campaign.CampaignPlan(
            seed,
            count,
            _targets("generic" if emulator and targets == "native" else targets),
            Path(keep),
            GRAPHS if graphs else _profile(profile, PROFILES),
            graph_operations(ops) if graphs else parse_operations(ops),
            jobs,
            seconds,
            shrink,
            emulate_matrix,
            threads == "openmp",
            _program(opt),
            _emulator(emulator),
            features,
            code_only,
            None if resume is None else Path(resume),
        )
        bars = ProgressBars()
        with bars.watch("fuzz", count) as step:
            passed = campaign.fuzz(plan, bars.echo, step)
    if not passed:
        ctx.exit(1)


def _check_bfloat16() -> None:
    """Check that numpy has arrays of bfloat16, which the programs are called on."""
    from importlib.util import find_spec

    if find_spec("ml_dtypes") is None:
        raise UsageError("random programs have arrays of bfloat16; they need ml_dtypes: pip install 'tlx-ir[bfloat16]'")


def _targets(text: str) -> tuple[str, ...]:
    from tlx.target.host import native_target
    from tlx.target.lookup import find_target

    names = [name.replace("/", ",") for name in text.split(",") if name and name != "none"]
    resolved = [
        native_target().name if name == "native" else name if "+" in name else find_target(name).name for name in names
    ]
    return tuple(dict.fromkeys(resolved))


def _emulator(command: str) -> str:
    """The command of an emulator, checked along with the compiler that links for it."""
    from tlx.llvm.emulator import emulator_command, emulator_triple, toolchain

    if command:
        triple = emulator_triple(command)
        if not triple:
            raise UsageError(f"--emulator: '{command}' is not one of qemu's, such as 'qemu-aarch64 -cpu max'")
        emulator_command(command, triple)
        toolchain(triple)
    return command


def _program(name: str) -> str:
    """The path of a program; empty if none is named."""
    import shutil

    path = shutil.which(name) if name else ""
    if path is None:
        raise UsageError(f"--opt: there is no program '{name}'")
    return path


def _profile(name: str, known: Collection[str]) -> str:
    if name and name not in known:
        near = did_you_mean(name, known)
        raise UsageError(f"unknown profile '{name}' in --profile; choose from {', '.join(known)}{near}")
    return name
