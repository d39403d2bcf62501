"""Lowered with --threads=openmp: the same bytes for every number of threads, alone and inside a parallel region."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

import tlx
from tests.support.tools import HANG_S, quick, require, require_processor
from tlx.diagnostics import TlxError
from tlx.fuzz.campaign import check_on
from tlx.fuzz.check import check_program
from tlx.fuzz.generation.programs import RandomProgram
from tlx.fuzz.worker import Request
from tlx.graph import Graph
from tlx.llvm import openmp
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text

PROGRAM: Final = Path(__file__).parent / "threads.c"
DIMS: Final = "<2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
THREADED: Final = Options(threads="openmp", thread_cycles=100)


def load(name: str, pointer: str, rows: int, cols: int) -> str:
    shape = f"<2 x i32> <i32 {rows}, i32 {cols}>"
    operands = f"{pointer}, {shape}, {DIMS}, <2 x i32> zeroinitializer"
    return f"  %{name} = call token @llvm.tensor.load({operands})\n"


def store(value: str, pointer: str, rows: int, cols: int) -> str:
    shape = f"<2 x i32> <i32 {rows}, i32 {cols}>"
    token = f"  %t = call token @llvm.tensor.typeinfo(<{rows * cols} x float> {value}, {shape}, {DIMS})\n"
    return f"{token}  call void @llvm.tensor.store({pointer}, token %t, <2 x i32> zeroinitializer)\n  ret void\n"


def module(m: int, n: int, k: int, pointer: str = "ptr") -> str:
    """A product, a map and sums of rows."""
    element = " elementtype(float)" if pointer == "ptr" else ""
    x, y = f"{pointer}{element} %a", f"{pointer}{element} %b"
    size = f"<{m * n} x float>"
    window = f"<2 x i32> <i32 1, i32 {n}>, <2 x i32> <i32 1, i32 1>"
    fill = f"call {size} @llvm.tensor.broadcast(token %x, float 2.0)"
    return f"""
define void @product({pointer} noalias %c, {pointer} noalias %a, {pointer} noalias %b) {{
{load("x", x, m, k)}{load("y", y, k, n)}  %p = call {size} @llvm.tensor.matmul(token %x, token %y)
{store("%p", f"{pointer} %c", m, n)}}}

define void @map({pointer} noalias %c, {pointer} noalias %a) {{
{load("x", x, m, n)}  %e = call {size} @llvm.tensor.exp(token %x)
  %two = {fill}
  %p = fmul {size} %e, %two
{store("%p", f"{pointer} %c", m, n)}}}

define void @sums({pointer} noalias %c, {pointer} noalias %a) {{
{load("x", x, m, n)}  %p = call <{m} x float> @llvm.tensor.reduce.add(token %x, {window})
{store("%p", f"{pointer} %c", m, 1)}}}
"""


def shell(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("library", ["clang-19", "gcc"])
@pytest.mark.parametrize(("target", "pointer"), [("generic", "ptr"), ("avx2", "float*"), ("avx512", "ptr")])
def test_a_c_program(target: str, pointer: str, library: str, tmp_path: Path) -> None:
    """LLVM's and GCC's OpenMP; kernels compiled by LLVM 14 where pointers are typed."""
    require_processor(target)
    compiler = require("clang-19" if pointer == "ptr" else "clang-14")
    lowered, kernels, program = tmp_path / "lowered.ll", tmp_path / "kernels.o", tmp_path / "program"
    lowered.write_text(lower_text(module(150, 210, 170, pointer), target=target, options=THREADED))
    shell(compiler, "-O2", "-c", str(lowered), "-o", str(kernels))
    shell(require(library), "-O1", "-fopenmp", str(PROGRAM), str(kernels), "-lm", "-o", str(program))
    assert shell(str(program)) == "equal\n"


@pytest.mark.parametrize(
    ("target", "shape"), [("avx512", (333, 444, 2500)), ("avx2", (64, 7, 900)), ("generic", (5, 300, 40))]
)
def test_same_bytes_for_every_number_of_threads(target: str, shape: tuple[int, int, int]) -> None:
    """Passes over K, narrow and flat results."""
    require_processor(target)
    m, n, k = shape
    product = tlx.compile(module(m, n, k), target, options=THREADED).product
    alone = tlx.compile(module(m, n, k), target).product
    random = np.random.default_rng(3)
    a, b = random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)
    expected = np.zeros((m, n), np.float32)
    alone(expected, a, b)
    np.testing.assert_allclose(expected, a.astype(float) @ b.astype(float), rtol=1e-3, atol=1e-3)
    for threads in (1, 2, 3, 7, 16):
        openmp.set_threads(threads)
        c = np.full((m, n), np.nan, np.float32)
        product(c, a, b)
        assert c.tobytes() == expected.tobytes(), threads


@pytest.mark.parametrize(("batch", "size", "waits"), [(32, 96, False), (2, 400, True)])
def test_threads_share_iterations_or_kernels(batch: int, size: int, *, waits: bool) -> None:
    """Those that share many iterations never wait for each other between them; those that share kernels do."""
    g = Graph("f")
    g.output(g.matmul(g.parameter("x", (batch, size, size)), g.parameter("w", (batch, size, size))))
    text = lower_text(g.text(), target="avx512", options=replace(THREADED, thread_cycles=0, stop_after="to-tiles"))
    assert ("sched_yield" in text) == waits


def test_the_library_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(openmp.VARIABLE, "/no/such/libomp.so")
    with pytest.raises(TlxError, match=r"could not load library '/no/such/libomp\.so'"):
        tlx.compile(module(64, 64, 64), "generic", options=THREADED)


def nothing(_text: str) -> None:
    """Stands for a search that finds nothing."""


def no_library(name: str) -> ctypes.CDLL:
    """Stands for a loader on a machine without libraries."""
    raise OSError(f"{name}: cannot open shared object file")


def test_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(openmp.VARIABLE, raising=False)
    monkeypatch.setattr(openmp, "loaded_library", nothing)
    monkeypatch.setattr(ctypes, "CDLL", no_library)
    with pytest.raises(TlxError, match=r"install LLVM's.*libomp5.*libgomp1"):
        tlx.compile(module(64, 64, 64), "generic", options=THREADED)


def test_the_loaded_library_is_used() -> None:
    maps = "7f0 r-xp 0 08:01 5 /lib/libc.so.6\n7f1 r-xp 0 08:01 7 /site/torch/lib/libgomp-a34b3233.so.1\n"
    assert openmp.loaded_library(maps) == "/site/torch/lib/libgomp-a34b3233.so.1"
    assert openmp.loaded_library("7f0 r-xp 0 08:01 5 /lib/libgompertz.so\n") is None
    assert ctypes.CDLL(openmp.openmp_library())


@pytest.mark.parametrize("seed", quick(range(8), 2))
@pytest.mark.parametrize("target", ["generic", "avx512"])
def test_random_programs(target: str, seed: int) -> None:
    """Everything in threads, however small: evaluated with teams of one to seven, in both orders, and run."""
    check = replace(check_on(target, seed), threads=True)
    program = Request("small", seed, check, ()).program()
    assert isinstance(program, RandomProgram)
    check_program(program, check, lambda _doing: None)
