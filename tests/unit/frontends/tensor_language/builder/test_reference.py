"""Each method of the builder is documented, and the reference page agrees with the docstrings."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Final

import pytest

from tlx.frontends import tensor_language as tl
from tlx.frontends.tensor_language.builder import reference
from tlx.frontends.tensor_language.builder.kernel import instruction_methods

PAGE: Final = Path(__file__).parents[5] / "docs/front_ends/tensor_language/builder.md"
ALWAYS_RIGHT: Final = {"subgroup_size"}  # takes nothing, and may stand anywhere


@pytest.mark.parametrize("name", instruction_methods())
def test_every_method_documents_arguments_and_errors(name: str) -> None:
    method = inspect.unwrap(getattr(tl.Kernel, name))
    doc = inspect.getdoc(method) or ""
    assert doc.startswith("`")
    documented = [line.strip().partition(": ")[0] for line in doc.partition("Args:\n")[2].splitlines()]
    parameters = [p for p in inspect.signature(method).parameters if p != "self"]
    assert [p for p in documented if p in parameters] == parameters
    assert "Raises:\n    TlxError: " in doc or name in ALWAYS_RIGHT


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference.page(), "run: make docs"


def test_the_page_has_every_method() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in instruction_methods() if f"### `k.{name}(" not in text] == []
    assert max(map(len, text.splitlines())) <= 200


def test_the_page_is_written(tmp_path: Path) -> None:
    assert reference.main([str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == reference.page()
    assert reference.main([]) == 2
    assert reference.main(["--help"]) == 0
    assert reference.main([str(tmp_path / "none" / "page.md")]) == 1
