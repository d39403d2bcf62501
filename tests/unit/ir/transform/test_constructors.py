"""`@llvm.global_ctors`: constructors are added, and existing ones are kept."""

from __future__ import annotations

import re

import pytest

from tests.unit.ir.transform.test_rewrite import accepted
from tlx.ir.builder import Builder, new_function
from tlx.ir.parser.module import parse
from tlx.ir.transform import add_constructor

OPAQUE = """\
declare void @opaque(ptr)
"""
TYPED = """\
declare void @typed(i8*)
"""
ONE = """\
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 101, ptr @old, ptr null }]
@behind = global ptr @old

define internal void @old() {
  ret void
}
"""
ONE_TYPED = """\
@behind = global i8* null
@llvm.global_ctors = appending global [1 x { i32, void ()*, i8* }] [{ i32, void ()*, i8* } { i32 101, void ()* @old, i8* null }]

define internal void @old() {
  ret void
}
"""  # noqa: E501
TWO = ONE.replace("[1 x", "[2 x").replace(" null }]", " null }, { i32, ptr, ptr } { i32 102, ptr @old, ptr null }]")


def with_constructors(text: str, count: int) -> str:
    module = parse(text)
    for _ in range(count):
        name = module.global_names.fresh("start")
        Builder(module, new_function(module, name, [], "nounwind")).ret()
        add_constructor(module, name)
    return str(module)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(("text", "before"), [(OPAQUE, 0), (TYPED, 0), (ONE, 1), (ONE_TYPED, 1), (TWO, 2), ("", 0)])
def test_constructors(text: str, before: int, count: int) -> None:
    changed = with_constructors(text, count)
    accepted(changed, "opt-19", *(["opt-14"] if "*" in text else []))
    assert changed.count("@llvm.global_ctors") == 1
    (declared,) = re.findall(r"appending global \[(\d+) x", changed)
    assert int(declared) == before + count
    for name in ["start", "start.1", "start.2"][:count]:
        assert changed.count(f"@{name},") == 1
    if before:
        assert "@behind" in changed
        assert changed.count("i32 101,") == 1


def test_constructors_run_once_each() -> None:
    import tlx

    text = """\
@count = internal global i32 0
define void @more() {
  %a = load i32, ptr @count
  %b = add i32 %a, 1
  store i32 %b, ptr @count
  ret void
}
define i32 @get() {
  %a = load i32, ptr @count
  ret i32 %a
}
"""
    module = parse(text)
    add_constructor(module, "more")
    add_constructor(module, "more")
    assert tlx.compile(module).get() == 2
