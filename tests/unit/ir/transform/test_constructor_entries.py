"""Entries of @llvm.global_ctors."""

from __future__ import annotations

import pytest

from tlx.ir.parser.module import parse
from tlx.ir.transform import add_constructor
from tlx.llvm.verification import check_text

_FUNCTION = "define void @start() {\n  ret void\n}\ndefine void @other() {\n  ret void\n}\n"
_ENTRY = "{ i32, ptr, ptr } { i32 65535, ptr @start, ptr null }"
_OTHER = "{ i32, ptr, ptr } { i32 1, ptr @other, ptr null }"


def _added(text: str) -> str:
    module = parse(text)
    add_constructor(module, "start")
    return str(module)


def test_the_first_constructor_makes_the_list() -> None:
    text = _added(_FUNCTION)
    assert text.rstrip().endswith(f"@llvm.global_ctors = appending global [1 x {{ i32, ptr, ptr }}] [{_ENTRY}]")
    check_text(text, "constructors.ll")


@pytest.mark.parametrize(
    "listed",
    [
        f"@llvm.global_ctors = appending global [1 x {{ i32, ptr, ptr }}] [{_OTHER}]",
        f"@llvm.global_ctors = appending global [1 x {{ i32, ptr, ptr }}]\n    [{_OTHER}]",
        f"@llvm.global_ctors = appending global [1 x {{ i32, ptr, ptr }}] [{_OTHER}] ; by hand",
        f"; @llvm.global_ctors\n@llvm.global_ctors = appending global [1 x {{ i32, ptr, ptr }}] [{_OTHER}], align 8",
    ],
)
def test_existing_constructors_run_first(listed: str) -> None:
    text = _added(f"{listed}\n{_FUNCTION}")
    assert text.count("@llvm.global_ctors =") == 1
    assert "[2 x { i32, ptr, ptr }]" in text
    assert f"{_OTHER}, {_ENTRY}" in text
    check_text(text, "constructors.ll")


def test_two_constructors_are_called_in_order() -> None:
    module = parse(_FUNCTION)
    add_constructor(module, "other")
    add_constructor(module, "start")
    text = str(module)
    assert "[2 x { i32, ptr, ptr }]" in text
    assert text.index("ptr @other") < text.index("ptr @start")
    check_text(text, "constructors.ll")


def test_typed_pointers() -> None:
    text = _added("define void @start() {\n  ret void\n}\ndefine void @f(float* %p) {\n  ret void\n}\n")
    assert "[1 x { i32, void ()*, i8* }] [{ i32, void ()*, i8* } { i32 65535, void ()* @start, i8* null }]" in text


def test_an_empty_list_is_filled() -> None:
    text = _added(f"@llvm.global_ctors = appending global [0 x {{ i32, ptr, ptr }}] zeroinitializer\n{_FUNCTION}")
    assert text.count("@llvm.global_ctors") == 1
    check_text(text, "constructors.ll")


def test_a_list_in_a_comment_is_ignored() -> None:
    text = _added(f"; @llvm.global_ctors = appending global [1 x {{ i32, ptr, ptr }}] [{_OTHER}]\n{_FUNCTION}")
    assert f"\n@llvm.global_ctors = appending global [1 x {{ i32, ptr, ptr }}] [{_ENTRY}]" in text
    check_text(text, "constructors.ll")


def test_entries_may_contain_brackets() -> None:
    data = "{ i32, ptr, ptr } { i32 1, ptr @other, ptr getelementptr ([2 x i32], ptr @table, i64 0, i64 1) }"
    listed = f"@llvm.global_ctors = appending global [1 x {{ i32, ptr, ptr }}] [{data}]"
    text = _added(f"@table = global [2 x i32] zeroinitializer\n{listed}\n{_FUNCTION}")
    assert f"[{data}, {_ENTRY}]" in text
    check_text(text, "constructors.ll")


def test_lists_without_associated_data_stay_so() -> None:
    old = "{ i32, void ()* } { i32 1, void ()* @other }"
    listed = f"@llvm.global_ctors = appending global [1 x {{ i32, void ()* }}] [{old}]"
    text = _added(f"{listed}\n{_FUNCTION}define void @f(float* %p) {{\n  ret void\n}}\n")
    assert f"[2 x {{ i32, void ()* }}] [{old}, {{ i32, void ()* }} {{ i32 65535, void ()* @start }}]" in text
