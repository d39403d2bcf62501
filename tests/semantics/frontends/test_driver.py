"""`tlx-cc` and `tlx-c++`: programs that they compile run, and files beside the outputs are those of clang."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from tests.support.tools import HANG_S, quick, require

COMMANDS: Final = Path(sys.executable).parent
EXAMPLES: Final = Path(__file__).parents[3] / "examples"
KERNEL: Final = """
#include <tlx.h>
typedef float matrix __attribute__((__vector_size__(32 * 32 * 4)));
typedef int dims __attribute__((__vector_size__(8)));
#define ROWS (dims){32, 32}, (dims){0, 1}, (dims){0, 0}
#ifdef __cplusplus
extern "C"
#endif
void gemm(float *c, const float *x, const float *y) {
  int a = tensor_load(x, ROWS, (dims){0, 0}), b = tensor_load(y, ROWS, (dims){0, 0});
  matrix p = TLX_CALL(matrix, matmul, a, b);
  tensor_store(c, tensor_typeinfo(p, ROWS), (dims){0, 0});
}
"""
MAIN: Final = """
#include <stdio.h>
#ifdef __cplusplus
extern "C"
#endif
void gemm(float *c, const float *x, const float *y);
static float x[32 * 32], y[32 * 32], c[32 * 32];
int main(void) {
  for (int i = 0; i < 32; i++)
    for (int j = 0; j < 32; j++) { x[32 * i + j] = i; y[32 * i + j] = j; }
  gemm(c, x, y);
  printf("%.0f %.0f\\n", c[32 * 1 + 1], c[32 * 3 + 2]);
  return 0;
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for suffix in ("c", "cpp"):
        (tmp_path / f"gemm.{suffix}").write_text(KERNEL, encoding="utf-8")
        (tmp_path / f"main.{suffix}").write_text(MAIN, encoding="utf-8")
    (tmp_path / "tmp").mkdir()
    return tmp_path


def environment(folder: Path, clang: str = "clang-19") -> dict[str, str]:
    return {
        **os.environ,
        "TLX_CLANG": require(clang),
        "TMPDIR": str(folder / "tmp"),
        "PATH": f"{COMMANDS}{os.pathsep}{os.environ['PATH']}",
    }


def run(folder: Path, *command: str, clang: str = "clang-19", status: int = 0) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment(folder, clang), capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == status, done.stderr
    assert not list((folder / "tmp").iterdir())
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "case",
    quick(
        [
            ("clang-14", "-O0 -g gemm.c main.c"),
            ("clang-19", "-O2 -x c gemm.cpp -x none main.c"),
            ("clang-19", "-O3 -march=native -fPIC gemm.c main.c"),
            ("clang-16", "-Os -static gemm.c main.c"),
            ("clang-14", "-O2 -g gemm.c main.c"),
            ("clang-19", "-O2 --tlx-target=generic,avx2 gemm.c main.c"),
        ],
        2,
    ),
)
def test_programs_run(folder: Path, case: tuple[str, str]) -> None:
    clang, options = case
    run(folder, "tlx-cc", *options.split(), "-o", "program", clang=clang)
    assert run(folder, "./program") == "32 192\n"


@pytest.mark.parametrize(
    "case",
    quick(
        [
            ("--target=powerpc64-linux-gnu", "qemu-ppc64"),
            ("-target aarch64-linux-gnu", "qemu-aarch64"),
            ("--target=powerpc64le-linux-gnu -mcpu=power10", "qemu-ppc64le -cpu power10"),
            ("--target=riscv64-linux-gnu -march=rv64gcv", "qemu-riscv64 -cpu max,vlen=128"),
        ]
    ),
)
def test_programs_for_other_machines_run(folder: Path, case: tuple[str, str]) -> None:
    options, emulator = case
    require(emulator.split(maxsplit=1)[0])
    run(folder, "tlx-cc", *options.split(), "-O1", "-static", "gemm.c", "main.c", "-o", "program")
    assert run(folder, *emulator.split(), "./program") == "32 192\n"


def test_cxx_and_a_shared_library(folder: Path) -> None:
    run(folder, "tlx-c++", "-O1", "-shared", "-fPIC", "gemm.cpp", "-o", "libgemm.so")
    run(folder, "tlx-c++", "-O1", "main.cpp", "-L.", "-lgemm", "-Wl,-rpath,.", "-o", "program")
    assert run(folder, "./program") == "32 192\n"


def test_dependency_files_are_those_of_clang(folder: Path) -> None:
    """In all their spellings, apart from the folder of the header."""
    include = run(folder, "tlx", "--include-dir").strip()
    header = str(Path(include).resolve())
    (folder / "sub").mkdir()
    for number, options in enumerate(
        (
            "-MD -c",
            "-MMD -MP -c -o sub/a.o",
            "-MD -MT target -MQ a$b -MF sub/b.d -c -o c.o",
            "-Wp,-MD,sub/c.d -S -o sub/d.s",
        )
    ):
        files: list[dict[str, str]] = []
        for command in (["clang-19", "-idirafter", header], ["tlx-cc"]):
            run(folder, *command, *options.split(), "gemm.c")
            found = list(folder.rglob("*.d"))
            files.append({str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in found})
            for path in found:
                path.unlink()
        assert files[0] == files[1], number
        assert files[0]


def test_calls_of_kernels_have_lines(folder: Path) -> None:
    run(folder, "tlx-cc", "-O2", "-g", "-S", "-emit-llvm", "gemm.c")
    text = (folder / "gemm.ll").read_text(encoding="utf-8")
    call = next(line for line in text.splitlines() if "call" in line and "@tlx.matmul" in line)
    node = call.rpartition("!dbg ")[2]
    line = next(number for number, source in enumerate(KERNEL.splitlines(), 1) if "TLX_CALL" in source)
    assert f"\n{node} = !DILocation(line: {line}," in text


@pytest.mark.parametrize("case", quick([("clang-19", "-O2"), ("clang-14", "-O0"), ("clang-19", "-O0")]))
def test_programs_have_the_lines_of_kernel_calls(folder: Path, case: tuple[str, str]) -> None:
    """In the DWARF of the linked program, as debuggers and profilers read it."""
    clang, level = case
    for tool in ("llvm-objdump-19", "llvm-symbolizer-19", "llvm-dwarfdump-19"):
        require(tool)
    run(folder, "tlx-cc", level, "-g", "-c", "gemm.c", clang=clang)
    run(folder, "llvm-dwarfdump-19", "--verify", "gemm.o")
    run(folder, "tlx-cc", "-g", "gemm.o", "main.c", "-o", "program", clang=clang)
    code = run(folder, "llvm-objdump-19", "-d", "--no-show-raw-insn", "program")
    (address,) = re.findall(r"^ *([0-9a-f]+):\s+call.*<tlx\.matmul", code, re.MULTILINE)
    line = next(number for number, source in enumerate(KERNEL.splitlines(), 1) if "TLX_CALL" in source)
    function, place = run(folder, "llvm-symbolizer-19", "--obj=program", f"0x{address}").split()
    assert (function, place.rpartition(":")[0]) == ("gemm", f"{folder}/gemm.c:{line}")


def test_sanitizers_see_undefined_behaviour(folder: Path) -> None:
    """The first clang instruments the source for it, before there are kernels."""
    require("gcc")  # Debian's clang lacks the sanitizers' library
    more = "int more(int x) { return x + 1; }\n"
    (folder / "gemm.c").write_text(KERNEL + more, encoding="utf-8")
    (folder / "main.c").write_text("int more(int); int main(void) { return more(__INT_MAX__) > 0; }", encoding="utf-8")
    run(folder, "tlx-cc", "-O1", "-g", "-fsanitize=undefined", "-c", "gemm.c")
    run(folder, "gcc", "-fsanitize=undefined", "gemm.o", "main.c", "-o", "program")
    line = len(KERNEL.splitlines()) + 1
    assert f"gemm.c:{line}:28: runtime error: signed integer overflow" in run(folder, "./program")


def test_a_signal_leaves_nothing_behind(folder: Path) -> None:
    for delay in (0.3, 0.8):
        command = subprocess.Popen(
            ["tlx-cc", "-O2", "-MD", "-c", "gemm.c", "-o", "out.o"], cwd=folder, env=environment(folder)
        )
        time.sleep(delay)
        command.send_signal(signal.SIGTERM)
        assert command.wait() in (-signal.SIGTERM, 0)
        assert not list((folder / "tmp").iterdir())
        assert not [path for path in folder.iterdir() if path.name.startswith("out") and command.returncode]


def test_a_signal_in_the_last_step_removes_the_dependency_file(folder: Path) -> None:
    """By then the first clang has written it."""
    require("clang-19")
    clang, reached = folder / "clang", folder / "reached"
    clang.write_text(f'#!/bin/sh\ncase "$*" in *"-x ir"*) touch {reached}; exec sleep 60;; esac\nexec clang-19 "$@"\n')
    clang.chmod(0o755)
    words = ["tlx-cc", "-O2", "-MD", "-c", "gemm.c", "-o", "out.o"]
    with subprocess.Popen(words, cwd=folder, env=environment(folder, str(clang))) as command:
        while not reached.exists():
            assert command.poll() is None
            time.sleep(0.01)
        assert (folder / "out.d").exists()
        command.send_signal(signal.SIGTERM)
    assert command.returncode == -signal.SIGTERM
    assert not list((folder / "tmp").iterdir())
    assert not list(folder.glob("out*"))


def test_an_error_removes_the_dependency_files(folder: Path) -> None:
    """Those of all sources: no output is written."""
    (folder / "wrong.c").write_text(f"{KERNEL}\nint wrong = ;\n", encoding="utf-8")
    words = ["tlx-cc", "-O2", "-MD", "-c", "gemm.c", "wrong.c"]
    done = subprocess.run(words, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "wrong.c" in done.stderr
    assert not [*folder.glob("*.o"), *folder.glob("*.d")]


def test_a_cmake_project(tmp_path: Path) -> None:
    for tool in ("cmake", "ninja", "ctest"):
        require(tool)
    (tmp_path / "tmp").mkdir()
    source = str(EXAMPLES / "cmake")
    compilers = ["-DCMAKE_C_COMPILER=tlx-cc", "-DCMAKE_CXX_COMPILER=tlx-c++", "-DCMAKE_BUILD_TYPE=Release"]
    run(tmp_path, "cmake", "-S", source, "-B", "build", "-G", "Ninja", *compilers)
    run(tmp_path, "ninja", "-C", "build")
    assert "100% tests passed" in run(tmp_path, "ctest", "--test-dir", "build")
    (tmp_path / "touched").touch()
    assert "no work to do" in run(tmp_path, "ninja", "-C", "build")
