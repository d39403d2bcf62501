"""Numba's cache on disk, its environment variables, and an installation without it: in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tools import require_module

require_module("numba")

ROOT = Path(__file__).parents[4]

KERNELS = """
import os
import tlx

SCALE = float(os.environ.get("SCALE", "1"))

@tlx.numba.kernel("float32[4,4], float32[4,4]", **eval(os.environ.get("SETTINGS", "{}")))
def scaled(g, x, y):
    return (x @ y) * SCALE
"""
MAIN = """
import numba
import numpy as np
import kernels
from kernels import scaled

@numba.njit(cache=True)
def inner(x):
    return scaled(x, x)

@numba.njit(cache=True, parallel=True)
def run(x):
    out = np.empty_like(x)
    for i in numba.prange(len(x)):
        out[i] = inner(x[i]) + kernels.scaled(x[i], x[i])
    return out

def closure(kernel):
    @numba.njit(cache=True)
    def call(x):
        return kernel(x, x)
    return call

x = np.random.default_rng(0).integers(-3, 4, (6, 4, 4)).astype("f4")
assert (run(x) == 2 * kernels.SCALE * (x @ x)).all()
call = closure(scaled)
assert (call(x[0]) == kernels.SCALE * (x[0] @ x[0])).all()
print(sum(run.stats.cache_hits.values()), sum(call.stats.cache_hits.values()))
"""


def run(folder: Path, program: str, **environment: str) -> str:
    command = [sys.executable, program] if program.endswith(".py") else [sys.executable, "-c", program]
    known = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "NUMBA_NUM_THREADS": "2", **environment}
    finished = subprocess.run(command, cwd=folder, env=known, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()


def test_cached_code_is_complete_and_follows_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    (tmp_path / "main.py").write_text(MAIN)
    assert run(tmp_path, "main.py") == "0 0"
    assert run(tmp_path, "main.py") == "1 1"
    assert run(tmp_path, "main.py", SCALE="2") == "0 0"  # the kernel is in another file, which Numba does not look at
    assert run(tmp_path, "main.py", SCALE="2", SETTINGS="{'target': 'generic'}") == "0 0"


@pytest.mark.parametrize(
    "variables", [{"NUMBA_DISABLE_JIT": "1"}, {"NUMBA_CPU_NAME": "generic"}, {"NUMBA_ENABLE_AVX": "0"}]
)
def test_variables_of_numba(variables: dict[str, str], tmp_path: Path) -> None:
    program = """
import numba
import numpy as np
import tlx
from tlx.frontends.numba.linking import numba_target

@tlx.numba.kernel("float32[16,16], float32, int32")
def power(g, x, factor, number):
    half = x.astype("float16")
    return (half @ half).astype("float32") * factor + g.weight("w", np.eye(16, dtype="f4")), number + 1

@numba.njit
def run(x):
    return power(x, 2, 3)

x = np.random.default_rng(0).integers(-3, 4, (16, 16)).astype("f4")
product, number = run(x)
assert (product == 2 * x @ x + np.eye(16)).all()
assert number == 4
try:
    run(x[:3])
except ValueError as error:
    assert "got x (3, 16)" in str(error)
print(numba_target().name)
"""
    name = run(tmp_path, program, **variables)
    if "NUMBA_DISABLE_JIT" not in variables:
        assert name == "generic"


def test_products_of_bfloat_in_a_fresh_process(tmp_path: Path) -> None:
    """With AMX, the kernel has inline assembly, which LLVM assembles in Numba's process."""
    program = """
import numba
import numpy as np
import tlx

@tlx.numba.kernel("float32[64,64], float32[64,64]")
def product(g, x, y):
    return g.matmul(x.astype("bfloat16"), y.astype("bfloat16"), dtype="float32")

@numba.njit
def run(x):
    return product(x, x)

x = np.random.default_rng(0).integers(-3, 4, (64, 64)).astype("f4")
print((run(x) == x @ x).all())
"""
    assert run(tmp_path, program) == "True"


def test_without_numba(tmp_path: Path) -> None:
    program = """
import sys
sys.modules["numba"] = None
import tlx
for make in (lambda: tlx.numba.kernel("float32[3]"), lambda: tlx.numba.compile("f.ll")):
    try:
        make()
    except tlx.TlxError as error:
        print(error)
"""
    lines = run(tmp_path, program).splitlines()
    assert len(lines) == 2
    assert all("tlx.numba needs Numba: pip install 'tlx-ir[numba]'" in line for line in lines)


def test_other_processes_load_lowered_kernels(tmp_path: Path) -> None:
    """TLX's cache on disk holds what is linked."""
    program = """
import numpy as np
import tlx

@tlx.numba.kernel("float32[16,16]", cache="lowered")
def square(g, x):
    return x @ x

x = np.eye(16, dtype="f4")
assert (square(x) == x).all()
"""
    run(tmp_path, program)
    entries = list((tmp_path / "lowered").iterdir())
    assert len(entries) == 1
    run(tmp_path, program)
    assert set((tmp_path / "lowered").iterdir()) == set(entries)


def test_amx_programs_request_tiles_once() -> None:
    """The call of the constructor, which Numba would not run, stands before the first call."""
    from tlx.frontends.numba.program import Lowering, NumbaProgram
    from tlx.graph import Graph
    from tlx.lower.options import Options
    from tlx.target.lookup import find_target

    g = Graph("product")
    x = g.parameter("x", (64, 64)).astype("bfloat16")
    g.output((x @ x).astype("float32"))
    lowering = Lowering(find_target("amx"), Options(), None)
    program = NumbaProgram("product", g.text(), "<graph>", g.name, [("ptr", "")] * 2, lowering)
    assert "call void @tlx.start()" in program.lowered
    assert "@llvm.global_ctors" not in program.lowered
    tlx_llvm = require_module("tlx.llvm.codegen")
    assert tlx_llvm.emit_code(program.lowered, "obj", 2)
