"""The manual pages are those of today's commands, and roff reads them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import click
import pytest

from tests.support.tools import find
from tlx.cli.group import group

ROOT: Final = Path(__file__).parents[3]
FOLDER: Final = ROOT / "docs" / "man"


def test_pages_are_current(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "tools/make_manual.py", tmp_path], check=True)
    for name in ("tlx.1", "tlx-lower.1"):
        current = (tmp_path / name).read_text(encoding="utf-8")
        assert (FOLDER / name).read_text(encoding="utf-8") == current, "run `make docs`"


def test_every_command_has_a_section() -> None:
    context = click.Context(group)
    page = (FOLDER / "tlx.1").read_text(encoding="utf-8")
    for name in group.list_commands(context):
        assert f".SS tlx {name}\n" in page


@pytest.mark.parametrize("name", ["tlx.1", "tlx-lower.1"])
def test_roff_reads_the_pages(name: str) -> None:
    groff = find("groff")
    if groff is None:
        pytest.skip("groff is missing")
    done = subprocess.run(
        [groff, "-man", "-Tutf8", "-ww", str(FOLDER / name)], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert "--target NAME" in re.sub(".\x08", "", done.stdout)  # each bold letter is struck twice
