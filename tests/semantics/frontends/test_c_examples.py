"""The C examples end to end: compile, lower, link with plain loops, run, compare."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.support.tools import HANG_S, require, require_processor
from tlx.frontends.c_header import include_dir
from tlx.lower import pipeline

EXAMPLES: Final = Path(__file__).parents[3] / "examples" / "c"
PROGRAMS: Final = ("matmul", "matmul_i8", "matmul_bf16")
SIZES: Final = {
    "ragged": ("-DHEADS=3", "-DM=37", "-DN=50", "-DK=43"),
    "even": ("-DBATCH=2", "-DHEADS=1", "-DM=64", "-DN=96", "-DK=128"),
    "tiny": ("-DHEADS=1", "-DM=1", "-DN=2", "-DK=3"),
}


def run_example(program: str, target: str, size: str, level: str, directory: Path, compiler: str = "clang-19") -> str:
    """What an example prints, compiled and lowered as its README says."""
    require_processor(target)
    require(compiler)
    source, assembly, lowered, binary = (
        EXAMPLES / f"{program}.c",
        directory / "program.ll",
        directory / "lowered.ll",
        directory / "program",
    )
    defines = SIZES[size]
    _run(compiler, level, *defines, "-S", "-emit-llvm", f"-I{include_dir()}", str(source), "-o", str(assembly))
    lowered.write_text(pipeline.lower_text(assembly.read_text(), source.name, target))
    _run(compiler, "-O2", *defines, str(lowered), str(EXAMPLES / "naive.c"), "-o", str(binary))
    return _run(str(binary))


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_example(program: str, target: str, size: str, tmp_path: Path) -> None:
    assert "elements agree" in run_example(program, target, size, "-O1", tmp_path)


@pytest.mark.parametrize("level", ["-O0", "-O2", "-O3"])
@pytest.mark.parametrize("compiler", ["clang-14", "clang-19"])
def test_example_at_other_levels(compiler: str, level: str, tmp_path: Path) -> None:
    assert "elements agree" in run_example("matmul_i8", "avx2", "ragged", level, tmp_path, compiler)
