"""What the documents show is true: their commands run, their programs compile, their links are valid.

A comment before a fenced block says what the block is:

    <!-- file NAME -->              its text is written to a file of that name; `pyproject.toml` installs the folder
    <!-- run -->                    a console block: each `$ command` prints what stands below it
    <!-- output of COMMAND -->      it is what the command prints
    <!-- run, needs clang-19 -->    as above, where there is such a tool or Python package

The blocks of a document run in order, in a folder of their own that has `examples` in it. `...` stands for anything:
within a line for a part of it, alone for any number of lines. `python -m tests.docs.test_docs` writes what the commands
print today into the documents.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from tests.docs.test_examples import announce, python_path
from tests.support.tools import HANG_S, find
from tlx.target.installed import targets

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = sorted(
    str(path.relative_to(ROOT))
    for path in (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
    )
)
_BLOCK: Final = re.compile(r"(?ms)^<!-- (?P<mark>[^\n]*) -->\n```\w*\n(?P<text>.*?)^```$")
_LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block with a comment before it."""

    document: str
    line: int
    mark: str
    text: str
    start: int

    @property
    def needs(self) -> list[str]:
        return self.mark.partition(", needs ")[2].split()

    @property
    def can_run(self) -> bool:
        return all(find_spec(need) is not None or find(need) is not None for need in self.needs)

    def output(self, box: Path) -> str:
        """The text that the block should have."""
        what = self.mark.partition(", needs ")[0]
        if what.startswith("file "):
            (box / what.removeprefix("file ")).write_text(self.text, encoding="utf-8")
            if what == "file pyproject.toml":
                announce(box, box / ".packages")
            return self.text
        if what.startswith("output of "):
            return _printed(what.removeprefix("output of "), box)
        assert what == "run", f"{self.document}:{self.line}: unknown comment '{self.mark}'"
        commands = re.findall(r"^\$ (.*(?:\\\n.*)*)$", self.text, re.MULTILINE)
        return "".join(f"$ {command}\n{_printed(command, box)}" for command in commands)


def blocks(document: str) -> Iterator[Block]:
    text = (ROOT / document).read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Block(document, line, match["mark"], match["text"], match.start("text"))


def fits(shown: str, printed: str) -> bool:
    """Whether a block matches what was printed; `...` matches anything."""
    pattern = ""
    for line in shown.splitlines():
        parts = [re.escape(part) for part in line.rstrip().split("...")]
        pattern += "(?:.*\n)*?" if line.strip() == "..." else ".*?".join(parts) + "\n"
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in printed.splitlines())) is not None


def make_box(box: Path, document: str) -> None:
    """Fill the folder that a document's commands run in."""
    (box / "examples").symlink_to(ROOT / "examples")
    (box / ".bin").mkdir()
    for name in ("clang", "opt", "llc"):
        if tool := shutil.which(f"{name}-19"):
            (box / ".bin" / name).symlink_to(tool)
    folder = (ROOT / document).parent
    if (folder / "pyproject.toml").is_file() and folder != ROOT:
        announce(folder, box / ".packages")


def _printed(command: str, box: Path) -> str:
    path = os.pathsep.join([str(box / ".bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "PYTHONPATH": python_path(box / ".packages"), "COLUMNS": "80"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=box,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    return done.stdout


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if next(blocks(d), None)])
def test_blocks_match_what_commands_print(document: str, tmp_path: Path) -> None:
    make_box(tmp_path, document)
    for block in blocks(document):
        if block.can_run:
            printed = block.output(tmp_path)
            assert fits(block.text, printed), f"{document}:{block.line}: this is printed today:\n{printed}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_are_valid(document: str) -> None:
    path = ROOT / document
    text = re.sub(r"(?s)```.*?```", "", path.read_text(encoding="utf-8"))
    links = [link.partition("#") for link in _LINK.findall(text) if "://" not in link]
    missing = [file for file, _, _ in links if file and not (path.parent / file).exists()]
    assert not missing
    headings = {
        file: _anchors(path.parent / file if file else path)
        for file, mark, _ in links
        if mark and (file.endswith(".md") or not file)
    }
    assert not [f"{file}#{anchor}" for file, mark, anchor in links if mark and anchor not in headings[file]]


def _anchors(path: Path) -> set[str]:
    """The anchors that a Markdown viewer gives to headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


_RUN_GRAM: Final = """
import numpy as np
import tlx
from tlx.evaluate import Machine
from tlx.lower.options import STAGE_NAMES, Options
from tlx.lower.pipeline import lower

x = np.random.default_rng(3).integers(-128, 128, (2, 5, 7), np.int8)
columns = x[:, :4].astype(np.int32)  # 2 x K x M in memory; the last K is padding
for stage in (None, *STAGE_NAMES):
    module = tlx.parse(open("gram.ll").read())
    if stage:
        module = lower(module, "generic", options=Options(stop_after=stage))
    result = np.zeros((2, 7, 7), np.int32)
    Machine(module).call("f", x, result)
    np.testing.assert_array_equal(result, columns.transpose(0, 2, 1) @ columns)
print(tlx.__file__)
"""


def test_the_recipe_for_an_intrinsic_works(tmp_path: Path) -> None:
    """The intrinsic is added to a copy of the package, file by file as the page says."""
    texts = {block.mark.removeprefix("file "): block.text for block in blocks("docs/development/add_an_intrinsic.md")}
    package = tmp_path / "tlx"
    shutil.copytree(ROOT / "tlx", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "intrinsics/gram.py").write_text(texts["row.py"], encoding="utf-8")
    (package / "lower/to_2d/rules/gram.py").write_text(texts["gram.py"], encoding="utf-8")
    _add_entry(package / "intrinsics/__init__.py", "from tlx.intrinsics.gram import GRAM", "INTRINSICS", "GRAM,")
    rule = '"gram": lower_gram,'
    _add_entry(
        package / "lower/to_2d/rules/__init__.py", "from tlx.lower.to_2d.rules.gram import lower_gram", "RULES", rule
    )
    (tmp_path / "gram.ll").write_text(texts["gram.ll"], encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", _RUN_GRAM]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == str(package / "__init__.py")


def _add_entry(path: Path, imports: str, table: str, entry: str) -> None:
    """Add an import before the first of TLX, and an entry to a table."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"(?m)^from tlx\.", f"{imports}\nfrom tlx.", text, count=1)
    text, count = re.subn(rf"(?m)^({table}: .*[({{])$", rf"\1\n    {entry}", text)
    assert count == 1
    path.write_text(text, encoding="utf-8")


def test_messages_occur_in_the_code() -> None:
    """Three words of each message in the table, one after the other, stand in the code."""
    code = "".join(path.read_text(encoding="utf-8") for folder in ("tlx", "frontends") for path in _python(folder))
    text = (ROOT / "docs/commands/troubleshooting.md").read_text(encoding="utf-8")
    messages: list[str] = re.findall(r"(?m)^\| `(.*?)` \|", text)
    assert len(messages) > 10
    words = {message: message.split() for message in messages}
    threes = {message: [" ".join(w[i : i + 3]) for i in range(len(w) - 2)] for message, w in words.items()}
    assert not [message for message in messages if not any(three in code for three in threes[message])]


def test_tables_list_all_targets() -> None:
    """One row a target, and one a kind of machine."""
    page = (ROOT / "docs/machines/targets.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| [^`|]+ \| ((?:`\w+` )+)\| results ", page)
    for named in (re.findall(r"(?m)^\| `(\w+)` \|", page), re.findall(r"\w+", " ".join(rows))):
        assert sorted({*named} - {"native"}) == sorted(targets())


def test_the_readme_fits_on_a_page() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 60


def _python(folder: str) -> Iterator[Path]:
    return (path for path in (ROOT / folder).rglob("*.py") if not path.is_symlink())


def main() -> int:
    """Write what the commands print today into the documents."""
    for document in DOCUMENTS:
        path = ROOT / document
        text = path.read_text(encoding="utf-8")
        all_blocks = list(blocks(document))
        with tempfile.TemporaryDirectory() as folder:
            make_box(Path(folder), document)
            printed = [block.output(Path(folder)) if block.can_run else block.text for block in all_blocks]
        for block, now in reversed(list(zip(all_blocks, printed, strict=True))):
            if not fits(block.text, now):
                text = text[: block.start] + now + text[block.start + len(block.text) :]
                sys.stdout.write(f"{document}:{block.line}: written anew\n")
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
