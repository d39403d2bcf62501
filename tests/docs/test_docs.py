"""What the documents show is so: their commands run, their files are read, their links lead somewhere.

A comment before a fenced block says what the block is:

    <!-- file NAME -->              its text is written to a file of that name
    <!-- run -->                    a console block: each `$ command` prints what stands below it
    <!-- output of COMMAND -->      it is what the command prints
    <!-- run, needs clang-19 -->    as above, where there is such a tool

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
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from tests.docs.test_examples import announce, python_path
from tests.tools import find
from tlx import intrinsics
from tlx.evaluate import Machine
from tlx.ir.parser.module import parse
from tlx.lower.options import STAGE_NAMES, Options
from tlx.lower.pipeline import lower
from tlx.lower.to_2d import rules
from tlx.target.target import targets

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = sorted(
    str(path.relative_to(ROOT))
    for path in (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("docs/reference/*.md"),
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
        return all(find(need) is not None for need in self.needs)

    def output(self, box: Path) -> str:
        """What the block would say today."""
        what = self.mark.partition(", needs ")[0]
        if what.startswith("file "):
            (box / what.removeprefix("file ")).write_text(self.text, encoding="utf-8")
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
    """Whether a block says what was printed, `...` being anything."""
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
        timeout=120,
    )
    return done.stdout


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if next(blocks(d), None)])
def test_blocks_are_so(document: str, tmp_path: Path) -> None:
    make_box(tmp_path, document)
    for block in blocks(document):
        if block.can_run:
            printed = block.output(tmp_path)
            assert fits(block.text, printed), f"{document}:{block.line}: this is printed today:\n{printed}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
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
    found = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_the_recipe_for_an_intrinsic_works(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {block.mark.removeprefix("file "): block.text for block in blocks("docs/add_an_intrinsic.md")}
    row, rule = dict[str, Any](__name__="row"), dict[str, Any](__name__="gram")
    exec(texts["row.py"], row)
    exec(texts["gram.py"], rule)
    monkeypatch.setitem(intrinsics._BY_NAME, "llvm.tensor.gram", row["GRAM"])
    monkeypatch.setitem(rules.RULES, "gram", rule["lower_gram"])
    x = np.random.default_rng(3).integers(-128, 128, (2, 5, 7), np.int8)
    columns = x[:, :4].astype(np.int32)  # 2 x K x M in memory; the last K is padding
    expected = columns.transpose(0, 2, 1) @ columns
    for stage in (None, *STAGE_NAMES):
        module = parse(texts["gram.ll"])
        module = lower(module, "generic", options=Options(stop_after=stage)) if stage else module
        result = np.zeros((2, 7, 7), np.int32)
        Machine(module).call("f", x, result)
        np.testing.assert_array_equal(result, expected)


def test_messages_are_those_of_the_code() -> None:
    """Three words of each message in the table, one after the other, stand in the code."""
    code = "".join(path.read_text(encoding="utf-8") for folder in ("tlx", "frontends") for path in _python(folder))
    text = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    messages: list[str] = re.findall(r"(?m)^\| `(.*?)` \|", text)
    assert len(messages) > 10
    words = {message: message.split() for message in messages}
    threes = {message: [" ".join(w[i : i + 3]) for i in range(len(w) - 2)] for message, w in words.items()}
    assert not [message for message in messages if not any(three in code for three in threes[message])]


def test_targets_of_the_tables_are_those_that_exist() -> None:
    for document in ("README.md", "docs/targets.md"):
        named = re.findall(r"(?m)^\| `(\w+)` \|", (ROOT / document).read_text(encoding="utf-8"))
        assert sorted({*named} - {"native"}) == sorted(targets())


def _python(folder: str) -> Iterator[Path]:
    return (path for path in (ROOT / folder).rglob("*.py") if not path.is_symlink())


def main() -> int:
    """Write what the commands print today into the documents."""
    for document in DOCUMENTS:
        path = ROOT / document
        text = path.read_text(encoding="utf-8")
        found = list(blocks(document))
        with tempfile.TemporaryDirectory() as folder:
            make_box(Path(folder), document)
            printed = [block.output(Path(folder)) if block.can_run else block.text for block in found]
        for block, now in reversed(list(zip(found, printed, strict=True))):
            if not fits(block.text, now):
                text = text[: block.start] + now + text[block.start + len(block.text) :]
                sys.stdout.write(f"{document}:{block.line}: written anew\n")
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
