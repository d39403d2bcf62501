"""Long commands show their progress on a terminal, and nothing elsewhere."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

import pytest

from tlx.cli.progress import ProgressBars

HIDDEN_CURSOR: Final = "\x1b[?25l"
GREEN: Final = "\x1b[32m"


def everything_from(descriptor: int) -> str:
    """What a terminal shows, whose other end is closed."""
    parts: list[bytes] = []
    with suppress(OSError):  # Linux's end of file
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
    os.close(descriptor)
    return b"".join(parts).decode()


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch, **environment: str) -> Generator[list[str]]:
    """Makes the standard error a terminal; what it shows is in the list afterwards."""
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    outer, inner = pty.openpty()
    shown: list[str] = []
    with os.fdopen(inner, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        yield shown
    shown.append(everything_from(outer))


def test_a_bar_counts_steps_and_shows_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch, TERM="xterm") as shown:
        bars = ProgressBars()
        with bars.watch("tuning", 4) as step:
            step("first", 1)
            bars.echo("a result", err=True)
            step("second", 3)
    assert "tuning  [" in shown[0]
    assert "100%  second" in shown[0]
    assert GREEN in shown[0]
    assert "\r\x1b[Ka result" in shown[0]


def test_a_bar_has_no_colour_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch, TERM="xterm", NO_COLOR="1") as shown, ProgressBars().watch("models", 1) as step:
        step("resnet")
    assert "100%  resnet" in shown[0]
    assert GREEN not in shown[0]


def test_terminals_without_cursor_movement_get_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch, TERM="dumb") as shown:
        bars = ProgressBars()
        with bars.watch("tuning", 1) as step:
            step("first")
            bars.echo("a result", err=True)
    assert shown == ["a result\r\n"]


def test_a_command_shows_a_bar_on_a_terminal_alone() -> None:
    command = [sys.executable, "-c", "from tlx.cli import main; main()", "fuzz", "--count=2", "--targets=none"]
    outer, inner = pty.openpty()
    settings = os.environ | {"TERM": "xterm"}
    on_terminal = subprocess.run(command, stdout=subprocess.PIPE, stderr=inner, env=settings, check=True)
    os.close(inner)
    bar = everything_from(outer)
    assert f"{HIDDEN_CURSOR}fuzz  [" in bar
    assert "100%" in bar
    assert b"\x1b" not in on_terminal.stdout
    piped = subprocess.run(command, capture_output=True, env=settings, check=True)
    assert piped.stderr == b""
