"""The wheel and the source distribution: what is in them, and that a stranger can install and use them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.tree import ROOT
from tests.support.tools import HANG_S, missing

PYTHONS: Final = ("python3.11", "python3.12", "python3.13", "python3.14")

PROGRAM: Final = """
import numpy as np

import tlx

TEXT = '''
define void @gemm(ptr noalias %x, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <64 x float> @llvm.tensor.matmul(token %a, token %a)
  store <64 x float> %p, ptr %c
  ret void
}
'''


def product(x: np.ndarray) -> np.ndarray:
    c = np.zeros((8, 8), np.float32)
    options = tlx.Options(threads="none")
    tlx.compile(TEXT, options=options).gemm(x, c)
    return c


x = np.arange(64, dtype=np.float32).reshape(8, 8)
assert (product(x) == x @ x).all()
lowered: str = tlx.lower_text(TEXT, "gemm.ll", "avx2")
assert "llvm.tensor" not in lowered
print(sorted(tlx.targets())[0])
"""

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        missing("git, and a clone of the repository")
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "tools/make_dist.py", str(folder), cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(folder: Path) -> Path:
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_same_bytes_twice(folder: Path, tmp_path: Path) -> None:
    _run(sys.executable, "tools/make_dist.py", str(tmp_path), cwd=ROOT)
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == 2
    assert [(tmp_path / name).read_bytes() for name in names] == [(folder / name).read_bytes() for name in names]


def test_contents(folder: Path, wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.partition("/")[0].partition("-0")[0] for name in names}
    assert top == {"tlx", "tlx-stubs", "tlx_ir"}
    for name in ("tlx/py.typed", "tlx/frontends/c_header/tlx.h", "tlx/llvm/emulator.c", "tlx/legalize/x86/amx.py"):
        assert name in names
    assert [name for name in names if name.endswith("licenses/LICENSE")]
    (source,) = folder.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "legalize/x86/amx.py", "frontends/stubs/jax.pyi"} <= inside
    assert wheel.stat().st_size < 4 << 20


@pytest.mark.parametrize("python", PYTHONS)
def test_a_fresh_environment_can_use_it(python: str, wheel: Path, tmp_path: Path) -> None:
    """Those Pythons that this machine has; the one that runs the tests is among them."""
    found = sys.executable if python == f"python3.{sys.version_info.minor}" else _find(python)
    if found is None or subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip(f"{python} is not installed")
    _run(found, "-m", "venv", str(tmp_path / "venv"))
    installed = tmp_path / "venv/bin"
    _run(str(installed / "python"), "-m", "pip", "install", "-q", str(wheel))
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    assert _run(str(installed / "python"), "program.py", cwd=tmp_path).split() == ["amx"]
    assert "amx" in _run(str(installed / "tlx"), "targets", cwd=tmp_path)
    types = [sys.executable, "-m", "mypy", "--strict", "--allow-any-generics", "--python-executable"]
    _run(*types, str(installed / "python"), "program.py", cwd=tmp_path)


def test_the_source_distribution_installs(folder: Path, tmp_path: Path) -> None:
    (source,) = folder.glob("*.tar.gz")
    _run(sys.executable, "-m", "venv", str(tmp_path / "venv"))
    python = str(tmp_path / "venv/bin/python")
    _run(python, "-m", "pip", "install", "-q", str(source))
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    assert _run(python, "program.py", cwd=tmp_path).split() == ["amx"]


def _find(python: str) -> str | None:
    """An interpreter on PATH, or one of pyenv's that no shim starts."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    others = sorted(versions.glob(f"{python.removeprefix('python')}*/bin/{python}"))
    return str(others[-1]) if others else shutil.which(python)


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
