"""Programs through every clang: C to IR, lowered, back into the same clang, run. They compare with plain loops."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.support.tools import HANG_S, require, require_processor
from tlx.frontends.c_header import include_dir
from tlx.lower import pipeline

HERE: Final = Path(__file__).parent
COMPILERS: Final = ("clang-14", "clang-15", "clang-16", "clang-19")


PROGRAMS: Final = (
    ("versions.c", "-O0", "avx512"),
    ("versions.c", "-O2", "generic"),
    ("versions.c", "-O3", "avx2"),
    ("versions_operations.c", "-O0", "avx2"),
    ("versions_operations.c", "-O2", "avx512"),
)


@pytest.mark.parametrize(("program", "level", "target"), PROGRAMS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_clang_compiles_the_lowered_file(
    compiler: str, program: str, level: str, target: str, tmp_path: Path
) -> None:
    require_processor(target)
    require(compiler)
    assembly, lowered, binary = (tmp_path / name for name in ("program.ll", "lowered.ll", "program"))
    _run(compiler, level, "-S", "-emit-llvm", f"-I{include_dir()}", str(HERE / program), "-o", str(assembly))
    lowered.write_text(pipeline.lower_text(assembly.read_text(), program, target))
    _run(compiler, "-O2", "-Wno-override-module", str(lowered), "-o", str(binary), "-lm")
    assert _run(str(binary)) == "all elements agree\n"


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
