"""`tlx-cc` in a build: files that several processes write, what else a command writes, and TLX's own options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.semantics.frontends.test_driver import KERNEL, MAIN, folder, run
from tests.support.tools import require, require_openmp, require_processor

__all__ = ["folder"]  # the fixture
_SOURCES: Final = 6
_MAKEFILE: Final = """
OBJECTS := main.o $(patsubst %.c,%.o,$(wildcard kernel*.c))
CFLAGS := -O1 -MMD --tlx-save-remarks

program: $(OBJECTS)
\t$(CC) $^ -o $@

-include $(OBJECTS:.o=.d)
"""
_WEIGHTS: Final = """
#include <stdio.h>
#include <tlx.h>
typedef float matrix __attribute__((__vector_size__(64 * 64 * 4)));
typedef int dims __attribute__((__vector_size__(8)));
#define ROWS (dims){64, 64}, (dims){0, 1}, (dims){0, 0}
static const float weights[64 * 64] = {[64 * 1 + 2] = 2, [64 * 63 + 5] = 3};
static float x[64 * 64], c[64 * 64];
void layer(float *result, const float *input) {
  int a = tensor_load(input, ROWS, (dims){0, 0}), b = tensor_load(weights, ROWS, (dims){0, 0});
  matrix p = TLX_CALL(matrix, matmul, a, b);
  tensor_store(result, tensor_typeinfo(p, ROWS), (dims){0, 0});
}
int main(void) {
  for (int i = 0; i < 64; i++)
    for (int j = 0; j < 64; j++) x[64 * i + j] = i + j;
  layer(c, x);
  printf("%.0f %.0f %.0f\\n", c[64 * 1 + 2], c[64 * 2 + 5], c[64 * 2 + 6]);
}
"""


def test_parallel_make(folder: Path) -> None:
    """Several processes in one folder; what they write is complete, and `make` knows when it is up to date."""
    require("make")
    for number in range(_SOURCES):
        text = KERNEL.replace("gemm", f"gemm{number}")
        (folder / f"kernel{number}.c").write_text(text, encoding="utf-8")
    calls = "".join(f"void gemm{k}(float *c, const float *x, const float *y);\n" for k in range(_SOURCES))
    body = "".join(f"  gemm{k}(c, x, y);\n" for k in range(_SOURCES))
    text = MAIN.replace("void gemm(float *c, const float *x, const float *y);\n", calls)
    (folder / "main.c").write_text(text.replace("  gemm(c, x, y);\n", body), encoding="utf-8")
    (folder / "Makefile").write_text(_MAKEFILE, encoding="utf-8")
    run(folder, "make", "-j4", "CC=tlx-cc")
    assert run(folder, "./program") == "32 192\n"
    for number in range(_SOURCES):
        assert f"kernel{number}.o: kernel{number}.c" in (folder / f"kernel{number}.d").read_text(encoding="utf-8")
        remarks = (folder / f"kernel{number}.remarks").read_text(encoding="utf-8")
        assert f"kernel{number}.c:11:14: remark: matmul 32x32x32 float" in remarks
    assert not (folder / "main.remarks").exists()
    assert "up to date" in run(folder, "make", "-j4", "CC=tlx-cc")
    (folder / "kernel3.c").write_text("int broken(", encoding="utf-8")
    assert "kernel3.c:1:12: error" in run(folder, "make", "-j4", "CC=tlx-cc", status=2)


def test_remarks_of_several_sources(folder: Path) -> None:
    """One file has those of all sources of a command, each under its name."""
    (folder / "other.c").write_text(KERNEL.replace("gemm", "other"), encoding="utf-8")
    run(folder, "tlx-cc", "-O1", "gemm.c", "other.c", "main.c", "-o", "program", "--tlx-remarks=all.txt")
    text = (folder / "all.txt").read_text(encoding="utf-8")
    assert re.findall(r"^(\w+\.c):11:14: remark: matmul", text, re.MULTILINE) == ["gemm.c", "other.c"]
    said = run(folder, "tlx-cc", "-O1", "-c", "gemm.c", "--tlx-remarks=nowhere/all.txt", status=1)
    assert said == "tlx-cc: error: could not open output file 'nowhere/all.txt': No such file or directory\n"


def test_entries_of_a_compilation_database_are_those_of_clang(folder: Path) -> None:
    header = Path(run(folder, "tlx", "--include-dir").strip()).resolve()
    for options in ("-O2 -MD -c gemm.c main.c", "-x c -S -O1 -march=native gemm.cpp -o gemm.s"):
        run(folder, "clang-19", "-idirafter", str(header), *options.split(), "-MJ", "clang.json")
        run(folder, "tlx-cc", *options.split(), "-MJ", "tlx.json")
        entries = [(folder / f"{name}.json").read_text(encoding="utf-8") for name in ("tlx", "clang")]
        assert entries[0] == entries[1]


def test_precompiled_headers(folder: Path) -> None:
    """As `-include-pch`, and as CMake spells it; a source that includes nothing itself uses tensors all the same."""
    header, _, body = KERNEL.partition("#define")
    (folder / "tensors.h").write_text(header, encoding="utf-8")
    (folder / "kernel.c").write_text(f"#define{body}", encoding="utf-8")
    run(folder, "tlx-cc", "-O2", "-x", "c-header", "tensors.h", "-o", "tensors.h.pch")
    for words in (["-include-pch", "tensors.h.pch"], ["-Xclang", "-include-pch", "-Xclang", "tensors.h.pch"]):
        run(folder, "tlx-cc", "-O2", *words, "-c", "kernel.c", "--tlx-remarks=remarks.txt", "-o", "kernel.o")
        run(folder, "tlx-cc", "kernel.o", "main.c", "-o", "program")
        assert run(folder, "./program") == "32 192\n"
        assert "kernel.c:7:14: remark: matmul" in (folder / "remarks.txt").read_text(encoding="utf-8")


def test_weights_are_packed_when_they_are_compiled(folder: Path) -> None:
    (folder / "layer.c").write_text(_WEIGHTS, encoding="utf-8")
    for options, panels in (("-O2", True), ("-O2 --tlx-weight-bytes=0", False)):
        command = ["tlx-cc", *options.split(), "-march=x86-64-v3", "layer.c", "--tlx-knobs=pack_b=true"]
        said = run(folder, *command, "-o", "layer", "--tlx-remarks")
        assert ("B packed at compile time" in said) == panels, said
    require_processor("avx2")
    assert run(folder, "./layer") == "4 195 0\n"


def test_a_program_for_several_machines_in_threads(folder: Path) -> None:
    """Run-time dispatch and threads together."""
    require_openmp()
    kernel = KERNEL.replace("32", "256")
    (folder / "gemm.c").write_text(kernel, encoding="utf-8")
    (folder / "main.c").write_text(MAIN.replace("32", "256"), encoding="utf-8")
    own = ["--tlx-target=avx512,avx2,generic", "--tlx-threads=openmp"]
    run(folder, "tlx-cc", "-O2", "-c", *own, "gemm.c")
    run(folder, "tlx-cc", "-O2", "-fopenmp", "gemm.o", "main.c", "-o", "program")
    assert run(folder, "./program") == "256 1536\n"
    symbols = run(folder, "nm", "gemm.o")
    assert "U GOMP_parallel" in symbols
    assert all(re.search(rf"tlx\.matmul\S*{target}", symbols) for target in ("avx512", "avx2")), symbols
