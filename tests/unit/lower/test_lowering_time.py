"""The work of lowering is linear in the length of a program; it is measured in function calls, not seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import pytest

from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text

_VECTOR: Final = "<4096 x float>"
_TYPE: Final = "<2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
_DENSE: Final = "<2 x i32> zeroinitializer"
_MOST: Final = 2.4


def _load(name: str, at: int = 0) -> list[str]:
    return [
        f"  %{name}.p = getelementptr float, ptr %a, i64 {at * 4096}",
        f"  %{name}.t = call token @llvm.tensor.load(ptr elementtype(float) %{name}.p, {_TYPE}, {_DENSE})",
        f"  %{name} = call {_VECTOR} @llvm.tensor.tovector(token %{name}.t)",
    ]


def _store(name: str, at: int = 0) -> list[str]:
    return [
        f"  %{name}.q = getelementptr float, ptr %c, i64 {at * 4096}",
        f"  %{name}.o = call token @llvm.tensor.typeinfo({_VECTOR} %{name}, {_TYPE})",
        f"  call void @llvm.tensor.store(ptr %{name}.q, token %{name}.o, {_DENSE})",
    ]


def _function(lines: list[str], name: str = "f") -> str:
    head = f"define void @{name}(ptr noalias %a, ptr noalias %c, i32 %k) {{\nentry:"
    return "\n".join([head, *lines, "  ret void\n}\n"])


def _conditions(count: int) -> str:
    """Operations that run under conditions, one after the other."""
    lines = [*_load("v0"), "  br label %h0"]
    for i in range(count):
        lines += [
            f"h{i}:",
            f"  %q{i} = icmp sgt i32 %k, {i}",
            f"  br i1 %q{i}, label %b{i}, label %j{i}",
            f"b{i}:",
            f"  %w{i} = fadd {_VECTOR} %v{i}, %v{i}",
            f"  br label %j{i}",
            f"j{i}:",
            f"  %v{i + 1} = phi {_VECTOR} [ %v{i}, %h{i} ], [ %w{i}, %b{i} ]",
            f"  br label %h{i + 1}",
        ]
    return _function([*lines, f"h{count}:", *_store(f"v{count}")])


def _insertions(count: int) -> str:
    lines = _load("v0")
    for i in range(count):
        lines += [
            f"  %e{i} = extractelement {_VECTOR} %v{i}, i32 {i}",
            f"  %v{i + 1} = insertelement {_VECTOR} %v{i}, float %e{i}, i32 {i * 17 % 4096}",
        ]
    return _function(lines + _store(f"v{count}"))


def _loads_first(count: int) -> str:
    """All loads in front of all stores, in one block."""
    lines = [line for i in range(count) for line in _load(f"v{i}", i)]
    for i in range(count):
        lines += [f"  %w{i} = fadd {_VECTOR} %v{i}, %v{i}", *_store(f"w{i}", i)]
    return _function(lines)


def _early_exits(count: int) -> str:
    """Loads in the first block, each used in a block of its own, which may be the last."""
    lines = [*(line for i in range(count) for line in _load(f"v{i}", i)), "  br label %h0"]
    for i in range(count):
        lines += [f"h{i}:", f"  %w{i} = fadd {_VECTOR} %v{i}, %v{i}", *_store(f"w{i}", i)]
        lines += [f"  %q{i} = icmp sgt i32 %k, {i}", f"  br i1 %q{i}, label %x, label %h{i + 1}"]
    return _function([*lines, f"h{count}:", "  br label %x", "x:"])


def _functions(count: int) -> str:
    made = [
        _function([*_load("v", i), f"  %w = fadd {_VECTOR} %v, %v", *_store("w", i)], f"g{i}") for i in range(count)
    ]
    return "".join(made) + _function([f"  call void @g{i}(ptr %a, ptr %c, i32 %k)" for i in range(count)])


def _chain(count: int) -> str:
    """Elementwise operations, comparisons and selects, each of the result before it."""
    lines = _load("v0")
    for i in range(count):
        lines += [
            f"  %m{i} = fcmp ogt {_VECTOR} %v{i}, %v0",
            f"  %w{i} = fadd {_VECTOR} %v{i}, %v0",
            f"  %v{i + 1} = select <4096 x i1> %m{i}, {_VECTOR} %w{i}, {_VECTOR} %v{i}",
        ]
    return _function(lines + _store(f"v{count}"))


def _phis(count: int) -> str:
    """One loop that carries many vectors."""
    lines = [line for i in range(count) for line in _load(f"v{i}", i)]
    lines += ["  br label %loop", "loop:", "  %i = phi i32 [ 0, %entry ], [ %j, %loop ]"]
    lines += [f"  %a{i} = phi {_VECTOR} [ %v{i}, %entry ], [ %w{i}, %loop ]" for i in range(count)]
    lines += [f"  %w{i} = fadd {_VECTOR} %a{i}, %a{(i + 1) % count}" for i in range(count)]
    lines += ["  %j = add i32 %i, 1", "  %d = icmp eq i32 %j, %k", "  br i1 %d, label %x, label %loop", "x:"]
    return _function(lines + [line for i in range(count) for line in _store(f"w{i}", i)])


def _loops(count: int) -> str:
    """Loops one after the other."""
    lines, before = [*_load("x0"), "  br label %l0"], "entry"
    for i in range(count):
        lines += [
            f"l{i}:",
            f"  %i{i} = phi i32 [ 0, %{before} ], [ %j{i}, %l{i} ]",
            f"  %v{i} = phi {_VECTOR} [ %x{i}, %{before} ], [ %x{i + 1}, %l{i} ]",
            f"  %x{i + 1} = fadd {_VECTOR} %v{i}, %v{i}",
            f"  %j{i} = add i32 %i{i}, 1",
            f"  %d{i} = icmp eq i32 %j{i}, %k",
            f"  br i1 %d{i}, label %y{i}, label %l{i}",
            f"y{i}:",
            f"  br label %l{i + 1}",
        ]
        before = f"y{i}"
    return _function([*lines, f"l{count}:", *_store(f"x{count}")])


def _sums(count: int) -> str:
    """Sums of vectors: every second one in the order of the elements."""
    lines = _load("v")
    for i in range(count):
        kind, start = ("fadd", "float 0.0, ") if i % 2 else ("fmaximum", "")
        lines += [
            f"  %r{i} = call float @llvm.vector.reduce.{kind}.v4096f32({start}{_VECTOR} %v)",
            f"  store float %r{i}, ptr %c",
        ]
    return _function(lines)


def _truths(count: int) -> str:
    """Whether any element is true, and how many are, as LLVM's optimiser asks."""
    lines = _load("v")
    for i in range(count):
        lines += [
            f"  %m{i} = fcmp ogt {_VECTOR} %v, %v",
            f"  %b{i} = bitcast <4096 x i1> %m{i} to i4096",
            f"  %n{i} = call i4096 @llvm.ctpop.i4096(i4096 %b{i})",
            f"  %t{i} = trunc i4096 %n{i} to i32",
            f"  %c{i} = icmp ne i4096 %b{i}, 0",
            f"  %s{i} = select i1 %c{i}, i32 %t{i}, i32 %k",
            f"  store i32 %s{i}, ptr %c",
        ]
    return _function(lines)


def _splats(count: int) -> str:
    lines = [*_load("v0"), "  %f = sitofp i32 %k to float"]
    for i in range(count):
        lines += [
            f"  %i{i} = insertelement {_VECTOR} poison, float %f, i32 0",
            f"  %s{i} = shufflevector {_VECTOR} %i{i}, {_VECTOR} poison, <4096 x i32> zeroinitializer",
            f"  %v{i + 1} = fadd {_VECTOR} %v{i}, %s{i}",
        ]
    return _function(lines + _store(f"v{count}"))


def _calls(text: str) -> int:
    """Calls of Python functions, and of those in C, that lowering a text takes."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        lower_text(text, target="avx512", options=Options(verify_each=False))
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "program",
    [
        _conditions,
        _insertions,
        _loads_first,
        _early_exits,
        _functions,
        _chain,
        _phis,
        _loops,
        _sums,
        _truths,
        _splats,
    ],
)
def test_twice_the_program_is_twice_the_work(program: Callable[[int], str]) -> None:
    once, twice = program(100), program(200)
    lower_text(once, target="avx512", options=Options(verify_each=False))  # what is found once and kept
    assert _calls(twice) < _MOST * _calls(once)


def test_deep_loops() -> None:
    """Fifty loops in each other."""
    count = 50
    lines, last = [*_load("x"), "  br label %l0"], count - 1
    for i in range(count):
        start, before = ("%x", "entry") if i == 0 else (f"%v{i - 1}", f"l{i - 1}")
        lines += [
            f"l{i}:",
            f"  %i{i} = phi i32 [ 0, %{before} ], [ %j{i}, %k{i} ]",
            f"  %v{i} = phi {_VECTOR} [ {start}, %{before} ], [ %w{i}, %k{i} ]",
            f"  br label %{f'l{i + 1}' if i < last else f'k{i}'}",
        ]
    for i in reversed(range(count)):
        inner, outer = f"%w{i + 1}" if i < last else f"%v{i}", f"k{i - 1}" if i else "exit"
        lines += [
            f"k{i}:",
            f"  %w{i} = fadd {_VECTOR} {inner}, %v{i}",
            f"  %j{i} = add i32 %i{i}, 1",
            f"  %d{i} = icmp eq i32 %j{i}, %k",
            f"  br i1 %d{i}, label %{outer}, label %l{i}",
        ]
    text = _function([*lines, "exit:", *_store("w0")])
    assert "llvm.tensor." not in lower_text(text, target="avx512", options=Options(verify_each=True))
