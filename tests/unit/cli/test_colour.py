"""Diagnostics have colours on a terminal, unless NO_COLOR is set."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tlx.cli.program import coloured

ESCAPE: Final = "\x1b["
COMMAND: Final = [sys.executable, "-c", "from tlx.cli import lower_main; lower_main()"]
WRONG: Final = "define i32 @f() { ret i33 0 }\n"


def stderr_on_terminal(path: Path, **environment: str) -> str:
    """What `tlx-lower` prints on a terminal for a file."""
    outer, inner = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    settings = clean | {"TERM": "xterm"} | environment
    subprocess.run([*COMMAND, str(path)], stdout=subprocess.DEVNULL, stderr=inner, env=settings, check=False)
    os.close(inner)
    text = os.read(outer, 1 << 16).decode()
    os.close(outer)
    return text


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    path = tmp_path / "wrong.ll"
    path.write_text(WRONG, encoding="utf-8")
    return path


def test_errors_are_coloured_on_a_terminal(wrong: Path) -> None:
    text = stderr_on_terminal(wrong)
    assert f"{ESCAPE}1;31merror: {ESCAPE}0m" in text
    assert f"{ESCAPE}1;32m^" in text


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_turned_off(wrong: Path, environment: dict[str, str]) -> None:
    text = stderr_on_terminal(wrong, **environment)
    assert "error: " in text
    assert ESCAPE not in text


def test_an_empty_no_color_does_not_count(wrong: Path) -> None:
    assert ESCAPE in stderr_on_terminal(wrong, NO_COLOR="")


def test_pipes_get_no_colour(wrong: Path) -> None:
    done = subprocess.run([*COMMAND, str(wrong)], capture_output=True, text=True, check=False)
    assert ESCAPE not in done.stderr


def test_only_the_parts_of_a_diagnostic_are_coloured() -> None:
    text = "a.ll:3:7: remark: fused a into b [to-2d]\n  %x = call @error: no ; note: this\n      ^~~~\nx: note: y\n"
    lines = coloured(text).split("\n")
    assert lines[0] == "\x1b[1ma.ll:3:7: \x1b[0m\x1b[1;34mremark: \x1b[0m\x1b[1mfused a into b [to-2d]\x1b[0m"
    assert lines[1] == "  %x = call @error: no ; note: this"
    assert lines[2] == "      \x1b[1;32m^~~~\x1b[0m"
    assert lines[3].startswith("\x1b[1mx: \x1b[0m\x1b[1;36mnote: ")
