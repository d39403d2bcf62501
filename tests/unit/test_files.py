"""Reading and writing files: whole or not at all."""

from __future__ import annotations

import io
import os
import stat
import sys
from pathlib import Path

import pytest

from tlx import files
from tlx.diagnostics import UsageError


def test_text_keeps_its_newlines(tmp_path: Path) -> None:
    path = tmp_path / "x.ll"
    data = b"; one\r\n; two\n; three\r; four"
    path.write_bytes(data)
    text = files.read_ir(str(path))
    files.write(str(path), text)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.ll", "No such file or directory"),
        ("", "Is a directory"),
        ("a\0b", "Invalid argument"),
        ("x" * 300, "File name too long"),
    ],
)
def test_unreadable_inputs(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"could not open input file '.*: {said}"):
        files.read_bytes(f"{tmp_path}/{name}")


def test_sizes(tmp_path: Path) -> None:
    path = tmp_path / "x.ll"
    path.write_bytes(b"12345")
    assert files.size(str(path)) == 5
    assert [files.size(name) for name in ("-", "none.ll", "a\0b")] == [0, 0, 0]


def test_what_is_not_utf8_is_pointed_at(tmp_path: Path) -> None:
    path = tmp_path / "x.ll"
    path.write_bytes(b"; one\n; caf\xe9\n")
    with pytest.raises(UsageError) as error:
        files.read_ir(str(path))
    assert error.value.render() == (
        f"{path}:2:6: error: byte 0xe9 at offset 11 is not UTF-8 text (nor is the file bitcode)"
    )


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "x.ll"
    path.write_text("old")
    with pytest.raises(TypeError), files.opened_whole(path) as file:
        file.writelines([b"half of the new", None])  # pyright: ignore[reportCallIssue, reportArgumentType]
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_of_a_new_file_follow_the_mask(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        files.write(str(tmp_path / "x"), "text")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


def test_the_mask_of_the_process_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one for all threads: who changes it for a moment changes the files that others make meanwhile."""

    def changed(mask: int) -> int:
        pytest.fail(f"the mask is changed to {mask:o}")

    monkeypatch.setattr(os, "umask", changed)
    files.write(str(tmp_path / "x"), "text")
    files.write(str(tmp_path / "x"), "again")
    assert (tmp_path / "x").read_text() == "again"


def test_large_text_of_many_bytes_a_character(tmp_path: Path) -> None:
    text = "é" * (3 << 20)
    files.write(str(tmp_path / "x"), text)
    assert (tmp_path / "x").read_bytes() == text.encode()


def test_binary_goes_to_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    terminal = Terminal(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", terminal)
    with pytest.raises(UsageError, match="refusing to write binary output to a terminal"):
        files.write("-", b"BC")
    files.write("-", b"BC", force=True)
    assert isinstance(terminal.buffer, io.BytesIO)
    assert terminal.buffer.getvalue() == b"BC"
