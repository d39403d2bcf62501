"""The Rust example: its build script, run as cargo runs it, with each rustc of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.tools import HANG_S, quick, require

_EXAMPLE: Final = Path(__file__).parents[3] / "examples" / "rust"
_KEYS: Final = {"cargo:rustc-link-search": "-L", "cargo:rustc-link-lib": "-l"}


def _run(*command: str, **variables: str) -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", quick(["rustc", "/usr/bin/rustc"]))
def test_build_script(tmp_path: Path, name: str) -> None:
    """Debian's rustc writes typed pointers and named types, newer ones bytes."""
    rustc = require(name)
    host = next(line.split()[1] for line in _run(rustc, "-vV").splitlines() if line.startswith("host:"))
    script, program = str(tmp_path / "build-script"), str(tmp_path / "program")
    _run(rustc, "--edition=2021", str(_EXAMPLE / "build.rs"), "-o", script)
    said = _run(script, OUT_DIR=str(tmp_path), CARGO_MANIFEST_DIR=str(_EXAMPLE), TARGET=host, RUSTC=rustc)
    settings = [line.partition("=") for line in said.splitlines()]
    words = [word for key, _, value in settings if key in _KEYS for word in (_KEYS[key], value)]
    _run(rustc, "--edition=2021", str(_EXAMPLE / "src" / "main.rs"), "-o", program, *words)
    assert _run(program) == "all 2048 elements agree\n"
    assert "@tensor_matmul_f32_64x32(" in (tmp_path / "kernels.ll").read_text(encoding="utf-8")
