"""Assertions of LLVM that fail on valid code: the code is compiled by other options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tlx.llvm import codegen
from tlx.llvm.codegen import CodegenError, emit_code
from tlx.llvm.process import LLVMCrashError, LLVMProcess, llvm

if TYPE_CHECKING:
    from collections.abc import Sequence

_TEXT = "define void @f() {\n  ret void\n}\n"
_HINT = "LLVM died of SIGABRT in 'emit'; it said: Assertion `...' \"Target hint is outside allocation order.\"' failed."


class _CrashingLLVM:
    """Crashes at each request."""

    def __init__(self, message: str) -> None:
        self._message = message

    def ask(self, *_: Any, **__: Any) -> bytes:
        raise LLVMCrashError(self._message)


def _crash(
    monkeypatch: pytest.MonkeyPatch, message: str, *, enough: int = 1, always: bool = False
) -> list[Sequence[str]]:
    """Have LLVM crash with fewer options than enough, or always; returns those of the processes that are asked for."""
    asked: list[Sequence[str]] = []

    def process(options: tuple[str, ...] = ()) -> LLVMProcess | _CrashingLLVM:
        asked.append(options)
        return _CrashingLLVM(message) if always or len(options) < enough else llvm()

    monkeypatch.setattr(codegen, "llvm", process)
    return asked


def test_hint_outside_allocation_order(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _crash(monkeypatch, _HINT)
    assert emit_code(_TEXT, "obj").startswith(b"\x7fELF")
    assert asked == [(), ("-enable-misched=0",)]


def test_hint_outside_allocation_order_without_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _crash(monkeypatch, _HINT, enough=2)
    assert emit_code(_TEXT, "obj").startswith(b"\x7fELF")
    assert asked == [(), ("-enable-misched=0",), ("-enable-misched=0", "-regalloc=pbqp")]


def test_other_crashes_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _crash(monkeypatch, "LLVM died of SIGSEGV in 'emit'")
    with pytest.raises(CodegenError, match="SIGSEGV"):
        emit_code(_TEXT, "obj")
    assert asked == [()]


def test_repeated_crash_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _crash(monkeypatch, _HINT, always=True)
    with pytest.raises(CodegenError, match="allocation order"):
        emit_code(_TEXT, "obj")
