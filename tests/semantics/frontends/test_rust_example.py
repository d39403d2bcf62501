"""The Rust example: its build script, run as cargo runs it, with each rustc of this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.tools import HANG_S, quick, require

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
    _build_and_run(require(name), _EXAMPLE, tmp_path)


@pytest.mark.parametrize("name", ["rustc", "/usr/bin/rustc"])
def test_tensors_in_vectors(tmp_path: Path, name: str) -> None:
    """With `repr(simd)`, tensors are passed as copies of bytes, shapes as vectors; stable compilers need a variable."""
    project = tmp_path / "project"
    project.mkdir()
    kernels = (_EXAMPLE / "kernels.rs").read_text(encoding="utf-8")
    kernels = kernels.replace(
        "#![no_std]", "#![no_std]\n#![feature(repr_simd, simd_ffi)]\n#![allow(internal_features)]"
    )
    kernels = kernels.replace("#[repr(C, align(64))]", "#[repr(simd)]").replace("#[repr(C)]", "#[repr(simd)]")
    (project / "kernels.rs").write_text(kernels, encoding="utf-8")
    for part in ("build.rs", "src"):
        (project / part).symlink_to(_EXAMPLE / part)
    module = _build_and_run(require(name), project, tmp_path, RUSTC_BOOTSTRAP="1")
    bytes_ = r"(?:\[8192 x i8\]|<2048 x float>)"  # LLVM 14 has the type
    assert re.search(rf"call void @tensor_matmul_f32_64x32\(.*sret\({bytes_}\)", module)
    assert re.search(rf"@tensor_typeinfo_f32\(.*byval\({bytes_}\).*<2 x i32> <i32 64, i32 32>", module)


def _build_and_run(rustc: str, project: Path, folder: Path, **variables: str) -> str:
    """Build the project in a folder and run it; returns the module that rustc writes for the kernels."""
    host = next(line.split()[1] for line in _run(rustc, "-vV").splitlines() if line.startswith("host:"))
    script, program = str(folder / "build-script"), str(folder / "program")
    _run(rustc, "--edition=2021", str(project / "build.rs"), "-o", script)
    said = _run(script, OUT_DIR=str(folder), CARGO_MANIFEST_DIR=str(project), TARGET=host, RUSTC=rustc, **variables)
    settings = [line.partition("=") for line in said.splitlines()]
    words = [word for key, _, value in settings if key in _KEYS for word in (_KEYS[key], value)]
    _run(rustc, "--edition=2021", str(project / "src" / "main.rs"), "-o", program, *words)
    assert _run(program) == "all 2048 elements agree\n"
    module = (folder / "kernels.ll").read_text(encoding="utf-8")
    assert "@tensor_matmul_f32_64x32(" in module
    return module
