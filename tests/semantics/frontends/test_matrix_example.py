"""The example with clang's own matrices: compile, lower, link, run; it compares with plain loops itself."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.support.tools import HANG_S, require, require_processor
from tlx.lower import pipeline

SOURCE: Final = Path(__file__).parents[3] / "examples" / "matrix" / "matrix.c"


@pytest.mark.parametrize(("level", "target"), [("-O0", "generic"), ("-O2", "avx512")])
@pytest.mark.parametrize("compiler", ["clang-14", "clang-15", "clang-16", "clang-19"])
def test_example(compiler: str, level: str, target: str, tmp_path: Path) -> None:
    require_processor(target)
    require(compiler)
    assembly, lowered, binary = (tmp_path / name for name in ("matrix.ll", "lowered.ll", "matrix"))
    front_end = ("-fenable-matrix", level, "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm")
    _run(compiler, *front_end, str(SOURCE), "-o", str(assembly))
    text = assembly.read_text()
    assert "@llvm.matrix.multiply." in text
    lowered.write_text(pipeline.lower_text(text, SOURCE.name, target))
    assert "llvm.matrix" not in lowered.read_text()
    _run(compiler, "-O2", "-Wno-override-module", str(lowered), "-o", str(binary))
    assert _run(str(binary)) == "all elements agree\n"


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
