"""The C header: C and C++ compilers read it, and programs that include it call the kernels."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.support.tools import require
from tlx.frontends import tensor_language as tl
from tlx.frontends.tensor_language.signature import c_parameters, function_names, header, signatures

BIN: Final = Path(sys.executable).parent

SCALARS: Final = """
func @scalars(%b: bool, %i8: i8, %i16: i16, %i32: i32, %i64: i64, %n: index, %bf: bf16, %h: f16, %f: f32, %d: f64,
              %c: c32, %z: c64, %out: memref<f64x12>) {
    %0 = constant 0 : index
    %1 = constant 1 : index
    %2 = constant 2 : index
    %3 = constant 3 : index
    %4 = constant 4 : index
    %5 = constant 5 : index
    %6 = constant 6 : index
    %7 = constant 7 : index
    %8 = constant 8 : index
    %9 = constant 9 : index
    %10 = constant 10 : index
    %one = constant 1.0 : f64
    %two = constant 2.0 : f64
    %vb = if %b -> (f64) { yield (%one) } else { yield (%two) }
    store %vb, %out[%0]
    %v8 = cast %i8 : f64
    store %v8, %out[%1]
    %v16 = cast %i16 : f64
    store %v16, %out[%2]
    %v32 = cast %i32 : f64
    store %v32, %out[%3]
    %v64 = cast %i64 : f64
    store %v64, %out[%4]
    %vn = cast %n : f64
    store %vn, %out[%5]
    %vbf = cast %bf : f64
    store %vbf, %out[%6]
    %vh = cast %h : f64
    store %vh, %out[%7]
    %vf = cast %f : f64
    store %vf, %out[%8]
    store %d, %out[%9]
    %cr = re %c : f32
    %ci = im %c : f32
    %cs = sub %cr, %ci : f32
    %vc = cast %cs : f64
    %zr = re %z : f64
    %zi = im %z : f64
    %zs = sub %zr, %zi : f64
    store %vc, %out[%10]
    %11 = constant 11 : index
    store %zs, %out[%11]
}
"""

MAIN: Final = """
#include <stdio.h>
#include "kernels.h"
int main(void) {
  double out[12];
  tlx_c32 c = {1.5f, -2.0f};
  tlx_c64 z = {0.25, 8.0};
  scalars(true, -8, -16, -32, -64, 1LL << 40, 0x4049 /* 3.140625 */, 0x3e00 /* 1.5 */, 0.1f, 0.1, c, z, out, 1, 1, 1);
  for (int i = 0; i < 12; i++) printf("%.17g ", out[i]);
  scalars_group(false, 127, 32767, 7, 9, -1, 0xc049, 0xbe00, 2.0f, 3.0, c, z, out, 0, 0, 0, 1, 1, 1);
  for (int i = 0; i < 12; i++) printf("%.17g ", out[i]);
  return 0;
}
"""
EXPECTED: Final = (
    "1 -8 -16 -32 -64 1099511627776 3.140625 1.5 0.10000000149011612 0.10000000000000001 3.5 -7.75 "
    "2 127 32767 7 9 -1 -3.140625 -1.5 2 3 3.5 -7.75 "
)

MEMREFS: Final = """
func @double(%int: group<memref<f32x?>x?,offset:?>, %A: memref<f32x2x?,strided<1,?>>, %A_shape1: index) {
    %0 = group_id.x : index
    %member = load %int[%0] : memref<f32x?>
    %zero = constant 0 : index
    %one = constant 1 : index
    %first = load %member[%zero] : f32
    %column = sub %A_shape1, %one : index
    store %first, %A[%one, %column]
    %members = size %int[0] : index
    %count = cast %members : f32
    store %count, %A[%zero, %column]
    %columns = size %A[1] : index
    %more = cast %columns : f32
    store %more, %A[%zero, %zero]
}
"""
MEMREFS_MAIN: Final = """
#include <stdio.h>
#include "kernels.h"
int main(void) {
  float x[] = {1, 2, 3, 4}, y[] = {5, 6, 7, 8}, a[10] = {0};
  float *members[] = {x, y};
  int64_t extents[] = {3, 3};
  double_group(members, extents, 2, 1, a, 3, 4, 3, 1, 0, 0, 2, 1, 1);
  for (int i = 0; i < 10; i++) printf("%g ", a[i]);
  return 0;
}
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function that gives the folder with the object file and the header of kernels, from `tlx-lower` and `tlx`."""

    @cache
    def folder_of(text: str) -> Path:
        folder = tmp_path_factory.mktemp("kernels")
        (folder / "kernels.tl").write_text(text, encoding="utf-8")
        printed([str(BIN / "tlx-lower"), "kernels.tl", "--target=generic", "--emit=obj", "-o", "kernels.o"], folder)
        printed([str(BIN / "tlx"), "translate", "kernels.tl", "--emit=header", "-o", "kernels.h"], folder)
        return folder

    return folder_of


def build(folder: Path, kernels: Path, main: str, compiler: str, *flags: str) -> str:
    """What a C program prints that is linked with the kernels of another folder."""
    suffix = "cc" if "++" in compiler else "c"
    (folder / f"main.{suffix}").write_text(main, encoding="utf-8")
    sources = [f"main.{suffix}", str(kernels / "kernels.o"), "-lm", "-o", "main"]
    printed([compiler, *flags, "-Wall", "-Werror", f"-I{kernels}", *sources], folder)
    return printed(["./main"], folder)


def printed(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("compiler", ["clang-14", "clang-19", "clang++-14", "gcc", "g++"])
def test_scalars_arrive(compiler: str, tmp_path: Path, compiled: Callable[[str], Path]) -> None:
    require(compiler)
    assert build(tmp_path, compiled(SCALARS), MAIN, compiler, "-O1") == EXPECTED


@pytest.mark.parametrize("compiler", ["clang-14", "clang-19", "g++"])
def test_memrefs_and_groups_arrive_under_names_that_are_keywords(
    compiler: str, tmp_path: Path, compiled: Callable[[str], Path]
) -> None:
    require(compiler)
    assert build(tmp_path, compiled(MEMREFS), MEMREFS_MAIN, compiler) == "3 0 0 0 0 0 0 0 2 6 "


@pytest.mark.parametrize(
    ("compiler", "flags"),
    [
        ("clang-14", "-std=c11 -xc"),
        ("clang-19", "-std=c23 -xc"),
        ("clang-14", "-xc++"),
        ("clang-19", "-xc++ -std=c++20"),
    ],
)
def test_compilers_give_no_warnings(compiler: str, flags: str, tmp_path: Path) -> None:
    text = header(tl.parse(SCALARS + MEMREFS), "all kernels")
    (tmp_path / "a.h").write_text(text, encoding="utf-8")
    twice = f'#include "{tmp_path}/a.h"\n#include "{tmp_path}/a.h"\n'
    command = [require(compiler), *flags.split(), "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-"]
    done = subprocess.run(command, input=twice, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def names(text: str) -> list[str]:
    (function,) = tl.parse(text).functions
    return [c.name for c in c_parameters(function, one_group=True)]


def test_names_of_c_are_different_from_one_another() -> None:
    text = "func @f(%A: memref<f32x?>, %A_shape0: i32, %group_id_x: i32, %0: i32, %arg0: i32, %int: i8, %int_: i8) {}"
    actual = names(text)
    assert len(set(actual)) == len(actual)
    assert actual[:8] == ["A", "A_shape0_", "A_shape0", "group_id_x", "arg0_", "arg0", "int__", "int_"]
    assert actual[8] == "group_id_x_"


def test_functions_have_different_names_too() -> None:
    program = tl.parse("func @f() {} func @f_group() {} func @int() {} func @0() {}")
    assert function_names(program) == [
        ("f", "f_group_"),
        ("f_group", "f_group_group"),
        ("int_", "int_group"),
        ("kernel0", "kernel0_group"),
    ]
    assert 'int_(int64_t num_groups_x, int64_t num_groups_y, int64_t num_groups_z) __asm__("int");' in header(
        program, "x.tl"
    )


def test_memory_that_is_only_read_is_const() -> None:
    text = """func @f(%A: memref<f32x4>, %B: memref<f32x4>, %C: group<memref<f32x4>x2>, %D: memref<f32x4x4>) {
        %0 = constant 0 : index
        %1 = constant 1.0 : f32
        %2 = load %C[%0] : memref<f32x4>
        axpby %1, %A, %1, %2
        %3 = subview %D[0:4, 1] : memref<f32x4>
        axpby %1, %B, %1, %3
    }"""
    first = signatures(tl.parse(text)).partition("\n  A")[0].replace("\n   ", "")
    assert "(const float *A, const float *B, float *const *C, float *D," in first.replace("( ", "(")


def test_signature_names_each_entry_of_the_dope_vector() -> None:
    text = "func @f(%B: group<memref<f32x8x?,strided<1,?>>x?,offset:?>, %a: bf16) {}"
    assert signatures(tl.parse(text)) == (
        "void f(\n"
        "    float *const *B, const int64_t *B_shape1, const int64_t *B_stride1, int64_t B_size, int64_t B_offset, "
        "tlx_bf16 a,\n"
        "    int64_t num_groups_x, int64_t num_groups_y, int64_t num_groups_z);\n"
        "  B             %B: group<memref<f32x8x?,strided<1,?>>x?,offset:?>, address of each member's first element\n"
        "  B_shape1      %B: extent of mode 1 of each member\n"
        "  B_stride1     %B: stride of mode 1 of each member, in elements\n"
        "  B_size        %B: number of members\n"
        "  B_offset      %B: elements added to each member's address\n"
        "  a             %a: bf16\n"
        "  num_groups_x  number of work-groups along x\n"
        "  num_groups_y  number of work-groups along y\n"
        "  num_groups_z  number of work-groups along z\n"
    )


def test_guard_is_a_macro_name() -> None:
    assert "#ifndef TLX_A_B_C___TL_H\n" in header(tl.parse("func @f() {}"), "a-b c.é.tl")


def test_a_file_name_cannot_end_the_comment() -> None:
    assert "*/ evil" not in header(tl.parse("func @f() {}"), "a*/ evil\n.tl").partition("#ifndef")[0]
