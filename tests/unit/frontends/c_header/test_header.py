"""`tlx.h` itself: it agrees with the table, and compiles without warnings with every compiler and standard."""

from __future__ import annotations

import dataclasses
import subprocess
from typing import Final

import pytest

from tests.support.tools import require
from tlx.frontends.c_header import header, include_dir
from tlx.frontends.c_header.placeholders import operations_by_c_name, parse_placeholder
from tlx.intrinsics import INTRINSICS

PROGRAM: Final = """
#include <tlx.h>
#include <tlx.h>
typedef float _tensor_t __attribute__((__vector_size__(64), __aligned__(4)));
typedef int dims __attribute__((__vector_size__(8), __aligned__(4)));
TLX_TENSOR(also, _tensor_t)
void f(float *out, const float *in);
void f(float *out, const float *in) {
  int t = tensor_load(in, (dims){4, 4}, (dims){0, 1}, (dims){0, 0}, (dims){0, 0});
  _tensor_t v = tensor_matmul(t, t);
  int u = tensor_typeinfo(v, (dims){4, 4}, (dims){0, 1}, (dims){0, 0});
  tensor_store(out, tensor_typeinfo(tensor_matmul_also(t, u), (dims){4, 4}, (dims){0, 1}, (dims){0, 0}), (dims){0, 0});
}
"""


def test_the_header_is_up_to_date() -> None:
    text = (include_dir() / "tlx.h").read_text(encoding="utf-8")
    assert text == header.header_text(), "write it anew: python -m tlx.frontends.c_header.header"


def test_a_new_row_of_the_table_appears_in_the_header(monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(row for row in INTRINSICS if row.name == "matmul")
    added = dataclasses.replace(row, name="outer.product", aliases=("outer",))
    monkeypatch.setattr(header, "INTRINSICS", (*INTRINSICS, added))
    text = header.header_text()
    assert "#define tensor_outer_product(...) TLX_CALL(_tensor_t, outer_product, __VA_ARGS__)" in text
    assert "#define tensor_outer(...) TLX_CALL(_tensor_t, outer, __VA_ARGS__)" in text
    assert "TLX_EXTERN T tensor_outer_product_##suffix(int, ...) TLX_ATTRIBUTES;" in text


@pytest.mark.parametrize(
    ("name", "operation", "element"),
    [
        ("tensor_matmul15", "matmul", None),
        ("tensor_matmul15_f32", "matmul", "float"),
        ("tensor_reduce_add4_left", "reduce.add", None),
        ("tensor_load2_bf16", "load", "bfloat"),
        ("tensor_exp2", "exp2", None),
        ("tensor_log10_2", "log10", None),
        ("tensor_exp_2", "exp", None),
        ("tensor_exp10", None, None),
        ("tensor_log22", None, None),
        ("tensor_matmulx", None, None),
        ("tensor_15", None, None),
        ("_ZN3tlx13tensor_matmulIDv16_fEET_iz", "matmul", None),
        ("_ZN3tlx11tensor_exp2IDv4_fEET_iz", "exp2", None),
        ("_ZN3tlx9tensor_foIDv4_fEET_iz", None, None),
    ],
)
def test_digits_may_follow_a_name(name: str, operation: str | None, element: str | None) -> None:
    actual = parse_placeholder(name)
    assert (actual.intrinsic.name if actual else None) == operation
    assert (str(actual.element) if actual and actual.element else None) == element


def test_every_row_has_a_placeholder() -> None:
    text = header.header_text()
    for name in operations_by_c_name():
        assert f"tensor_{name}(" in text
        actual = parse_placeholder(f"tensor_{name}_of_mine")
        assert actual is not None
        assert actual.intrinsic is operations_by_c_name()[name]


@pytest.mark.parametrize("language", ["c -std=c11", "c -std=gnu17", "c -std=c2x", "c++ -std=c++11", "c++ -std=c++20"])
@pytest.mark.parametrize("target", ["", "-mavx512f", "--target=aarch64-linux-gnu", "--target=riscv64-linux-gnu"])
@pytest.mark.parametrize("compiler", ["clang-14", "clang-15", "clang-19"])
def test_compilers_give_no_warning(compiler: str, target: str, language: str) -> None:
    require(compiler)
    words = ["-x", *language.split(), *target.split(), "-Wall", "-Wextra", "-Werror", f"-I{include_dir()}"]
    command = [compiler, *words, "-S", "-emit-llvm", "-o", "-", "-"]
    done = subprocess.run(command, input=PROGRAM, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("language", ["c99", "c11", "c2x"])
@pytest.mark.parametrize("compiler", ["clang-14", "clang-15", "clang-16", "clang-19"])
def test_strict_warnings_do_not_concern_the_header(compiler: str, language: str) -> None:
    require(compiler)
    warnings = "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wundef -Werror".split()
    command = [compiler, "-xc", f"-std={language}", *warnings, f"-I{include_dir()}", "-fsyntax-only", "-"]
    done = subprocess.run(command, input=PROGRAM, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_another_compiler_gets_one_error() -> None:
    require("gcc")
    command = ["gcc", "-xc", f"-I{include_dir()}", "-fsyntax-only", "-"]
    done = subprocess.run(command, input="#include <tlx.h>\n", capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "tlx.h needs clang" in done.stderr
    assert done.stderr.count("error:") == 1
    assert "warning:" not in done.stderr
