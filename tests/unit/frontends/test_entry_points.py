"""Other packages provide front ends by entry points of the group `tlx.frontends`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, STDOUT, run
from typing import Final

import pytest

from tests.support.tools import HANG_S
from tlx.diagnostics import UsageError
from tlx.fuzz.mutation import front_end_examples
from tlx.lower.pipeline import front_ends, lower_text, provided_front_ends
from tlx.target.discovery import provided_entry_points

NUMBER: Final = """
LANGUAGE = "number"
TITLE = "numbers"
STANDARDS = ("1",)
SUFFIXES = (".number",)
OPENINGS = ("number",)

def TRANSLATE(text, filename, threads, std):
    return f"define i32 @f() {{\\n  ret i32 {int(text.split()[-1])}\\n}}\\n"
"""
RAISING: Final = """
from tlx.ir.parser.module import parse

MARKERS = ("@answer",)

def RAISE(module):
    return parse(str(module).replace("call i32 @answer()", "add i32 42, 0"))
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package, the folder of which has the modules `outside_number` and `outside_raising`."""
    (tmp_path / "outside_number.py").write_text(NUMBER)
    (tmp_path / "outside_raising.py").write_text(RAISING)
    (information := tmp_path / "outside-1.0.dist-info").mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    entries = "[tlx.frontends]\nnumber = outside_number\nraising = outside_raising\n"
    (information / "entry_points.txt").write_text(entries)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    _forget_front_ends()
    yield tmp_path
    for name in ("outside_number", "outside_raising"):
        sys.modules.pop(name, None)
    _forget_front_ends()


def _forget_front_ends() -> None:
    for known in (provided_entry_points, provided_front_ends, front_ends):
        known.cache_clear()


def printed(package: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(package)}
    words = [Path(sys.executable).with_name(command[0]), *command[1:]]
    return run(words, env=environment, stdout=PIPE, stderr=STDOUT, text=True, timeout=HANG_S, check=False).stdout


def test_commands_read_the_files_of_another_packages_language(package: Path) -> None:
    (path := package / "seven.number").write_text("number 7\n")
    assert printed(package, "tlx-lower", str(path)) == "define i32 @f() {\n  ret i32 7\n}\n"
    (other := package / "seven.ll").write_text("number 7\n")
    assert "this is numbers, not LLVM IR: read it with -x number" in printed(package, "tlx-lower", str(other))
    assert "ret i32 7" in printed(package, "tlx", "translate", "-x", "number", str(other))


@pytest.mark.usefixtures("package")
def test_the_pipeline_raises_by_another_packages_front_end() -> None:
    text = "declare i32 @answer()\n\ndefine i32 @f() {\n  %x = call i32 @answer()\n  ret i32 %x\n}\n"
    assert "%x = add i32 42, 0" in lower_text(text, target="generic")


@pytest.mark.usefixtures("package")
def test_a_module_without_examples_is_not_fuzzed() -> None:
    front_end_examples.cache_clear()
    assert not any(suffix == ".number" for _, suffix in front_end_examples())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "import tlx.nothing",
            "front end 'number' of package outside 1.0 cannot be loaded: No module named",
        ),
        ("TRANSLATE = str\nSTANDARDS = ()", "front end outside_number: STANDARDS is empty; name the versions"),
        ("x = 1", "front end outside_number defines none of RAISE, TRANSLATE and READ"),
    ],
)
def test_a_wrong_front_end_is_an_error(package: Path, text: str, said: str) -> None:
    (package / "outside_number.py").write_text(text)
    with pytest.raises(UsageError, match=said):
        front_ends()


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("x", "raises ValueError: invalid literal for int() with base 10: 'x' ({package}/outside_number.py:9)"),
        ("nothing", "returns NoneType, not Module or str"),
    ],
)
def test_an_exception_in_a_translation_is_the_packages_fault(package: Path, word: str, said: str) -> None:
    text = "return None if 'nothing' in text else " + NUMBER.partition("return ")[2]
    (package / "outside_number.py").write_text(NUMBER.replace(NUMBER[NUMBER.index("return ") :], text))
    (path := package / "seven.number").write_text(f"number {word}\n")
    expected = f"front end 'number' of package outside 1.0: TRANSLATE {said.format(package=package)}"
    remedy = "this is a bug in the package, not in TLX: report it to its authors"
    assert printed(package, "tlx-lower", str(path)) == f"tlx-lower: error: {expected}; {remedy}\n"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise KeyError('x')", r"raises KeyError: 'x' \(.*/outside_raising.py:7\)"),
        ("return str(module)", "returns str, not Module or None"),
    ],
)
def test_an_exception_in_raising_is_the_packages_fault(package: Path, body: str, said: str) -> None:
    (package / "outside_raising.py").write_text(RAISING.partition("    return")[0] + f"    {body}\n")
    text = "declare i32 @answer()\n\ndefine i32 @f() {\n  %x = call i32 @answer()\n  ret i32 %x\n}\n"
    with pytest.raises(UsageError, match=f"front end 'raising' of package outside 1.0: RAISE {said}; this is a bug in"):
        lower_text(text, target="generic")


def test_a_change_of_the_front_end_changes_the_key_of_the_cache(package: Path) -> None:
    program = "from tlx.api.cache_key import cache_key; from tlx.lower.options import Options; "
    program += "print(cache_key(b'x', 'avx2', Options(), {}))"
    first = printed(package, "python", "-c", program)
    assert first != printed(package / "elsewhere", "python", "-c", program)
    (package / "outside_raising.py").write_text(RAISING + "\n")
    assert printed(package, "python", "-c", program) not in (first, "None\n")
