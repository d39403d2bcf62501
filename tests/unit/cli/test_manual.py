"""The manual pages are those of today's commands, and roff reads them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import click
import pytest

from tests.tools import find
from tlx.cli.group import group
from tlx.cli.manual import pages

FOLDER: Final = Path(__file__).parents[3] / "docs" / "man"


@pytest.mark.parametrize("name", ["tlx.1", "tlx-lower.1"])
def test_pages_are_current(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == pages()[name], "run `make docs`"


def test_every_command_has_a_section() -> None:
    context = click.Context(group)
    page = pages()["tlx.1"]
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
