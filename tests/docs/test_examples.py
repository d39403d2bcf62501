"""The examples run and print what they should."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

from tlx.target.host import cpu_flags

ROOT: Final = Path(__file__).parents[2]
EXAMPLES: Final = ROOT / "examples"
TARGET: Final = EXAMPLES / "add_a_target"
UNIT: Final = EXAMPLES / "add_a_matrix_unit"

_MULTIPLY: Final = """
import numpy as np, sys, tlx
kernel = tlx.compile(sys.argv[1], "sse")
rng = np.random.default_rng(5)
x, y = (rng.integers(-32768, 32768, shape, np.int16) for shape in ((48, 100), (100, 40)))
c = np.zeros((48, 40), np.int32)
kernel(x, y, c)
assert np.array_equal(c, x.astype(np.int32) @ y.astype(np.int32))
assert "@llvm.x86.sse2.pmadd.wd" in kernel.lowered
"""

_LAYER: Final = """
import numpy as np, sys, tlx
from tlx.evaluate import Machine
from tlx.ir.parser.module import parse
kernel = tlx.compile(sys.argv[1], "quad")
assert "phi <16 x float>" in kernel.lowered
rng = np.random.default_rng(5)
x, y = (rng.standard_normal(shape, np.float32) for shape in ((30, 50), (50, 40)))
for call in kernel, lambda *arrays: Machine(parse(kernel.lowered)).call("layer", *arrays):
    c = np.zeros((30, 40), np.float32)
    call(x, y, c)
    np.testing.assert_allclose(c, np.maximum(x @ y, 0), atol=1e-5)
"""


def announce(package: Path, folder: Path) -> None:
    """Put a package of one module into a folder, as installing it would: module and metadata."""
    project = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(head, encoding="utf-8")
    groups = project["entry-points"].items()
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in entries.items()) for group, entries in groups]
    (info / "entry_points.txt").write_text("".join(lines), encoding="utf-8")
    for module in package.glob("*.py"):
        shutil.copy(module, folder)


def python_path(folder: Path) -> str:
    """The folder, before those where Python looks already."""
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


def run(*arguments: str, packages: Path | None = None, status: int = 0) -> str:
    """What a Python program prints."""
    environment = os.environ | ({"PYTHONPATH": python_path(packages)} if packages else {})
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == status, done.stdout
    return done.stdout


def test_demo_succeeds() -> None:
    printed = run("examples/demo.py")
    rows = [path.name for path in EXAMPLES.glob("ir/*.ll")]
    assert {"mlp.ll", "softmax.ll", "convolution.ll"} < {*rows}
    for word in ("to-2d", "to-tiles", "legalize", *rows):
        assert f"  {word} " in printed
    assert printed.endswith("all right\n")


def test_demo_fails_if_a_result_is_wrong() -> None:
    """The same program with a numpy whose absolute values are off by a little."""
    wrong = "import runpy, numpy as np; right = np.abs; np.abs = lambda x: right(x) + 0.1; "
    printed = run("-c", wrong + "runpy.run_path('examples/demo.py', run_name='__main__')", status=1)
    assert "WRONG" in printed


def test_a_target_of_another_package_runs(tmp_path: Path) -> None:
    announce(TARGET, tmp_path)
    names = "from tlx.target.installed import targets; print(*targets())"
    assert run("-c", names, packages=tmp_path).split() == [*run("-c", names).split(), "sse"]
    if "sse4_2" in cpu_flags():
        run("-c", _MULTIPLY, str(TARGET / "shorts.ll"), packages=tmp_path)


def test_a_matrix_unit_of_another_package_runs(tmp_path: Path) -> None:
    announce(UNIT, tmp_path)
    names = "from tlx.target.installed import targets; print(*targets())"
    assert run("-c", names, packages=tmp_path).split() == [*run("-c", names).split(), "quad"]
    if "sse2" in cpu_flags():
        run("-c", _LAYER, str(UNIT / "layer.ll"), packages=tmp_path)


def test_python_api_example_prints_what_its_comments_say() -> None:
    printed = run("examples/python_api.py")
    assert "[20. 21.]" in printed
    assert "argument 0 (%x): expected 12 elements of bfloat16, got float32 array of shape (4, 3)" in printed
    assert "typeinfo: expected 8 elements for shape 4x2, got <9 x float>" in printed
