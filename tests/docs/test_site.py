"""The site is built without a warning, has all public names, and its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import pytest

from tests.tools import HANG_S

ROOT: Final = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", "docs/site", ".", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert built.returncode == 0, built.stderr
    return folder


class _Page(HTMLParser):
    """The anchors of a page, and what it links to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            if (tag, name) in {("a", "href"), ("img", "src"), ("link", "href"), ("script", "src")} and value:
                self.links.append(value)


def test_links_lead_somewhere(site: Path) -> None:
    pages = {path: _Page(path) for path in site.rglob("*.html")}
    assert len(pages) > 60
    dead: list[str] = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[target].anchors if target in pages else set[str]()
            missing = parts.fragment and target in pages and unquote(parts.fragment) not in anchors
            if not target.exists() or missing:
                dead.append(f"{path.relative_to(site)}: {link}")
    assert not dead


def test_pages_are_in_the_contents() -> None:
    """Sphinx warns of a page that is in no contents; here, that all pages are pages of the site."""
    contents = (ROOT / "docs/site/contents.yml").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:file|root): (\S+)", contents))
    assert {f"docs/{path.stem}" for path in (ROOT / "docs").glob("*.md")} <= named


def test_the_python_api_has_all_public_names() -> None:
    text = (ROOT / "docs/python_reference.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"(?m)^\.\. auto\w+:: (\w+)", text.split("tlx.graph\n")[0]))
    exported = re.findall(
        r"(?m)^    from tlx\.\S+ import (\w+) as \1\b", (ROOT / "tlx/__init__.py").read_text(encoding="utf-8")
    )
    assert listed | {"Target"} == set(exported)


def test_the_search_knows_the_intrinsics(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert "llvm.tensor.contract" in index
