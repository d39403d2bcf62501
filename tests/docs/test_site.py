"""The site is built without a warning, has all public names, and its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from fnmatch import fnmatch
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.browser import Page, browser
from tests.support.tools import HANG_S

ROOT: Final = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", "docs/site", ".", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert built.returncode == 0, built.stderr
    return folder


class _Links(HTMLParser):
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
    pages = {path: _Links(path) for path in site.rglob("*.html")}
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
    pages = {str(path.relative_to(ROOT).with_suffix("")) for path in (ROOT / "docs").rglob("*.md")}
    globs = re.findall(r"glob: (\S+)", contents)
    assert {page for page in pages if not any(fnmatch(page, glob) for glob in globs)} <= named


def test_the_python_api_has_all_public_names() -> None:
    text = (ROOT / "docs/front_ends/python_reference.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"(?m)^\.\. auto\w+:: (\w+)", text.split("tlx.graph\n")[0]))
    exported = re.findall(
        r"(?m)^    from tlx\.\S+ import (\w+) as \1\b", (ROOT / "tlx/__init__.py").read_text(encoding="utf-8")
    )
    assert listed | {"Target"} == set(exported)


def test_the_search_knows_the_intrinsics(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert "llvm.tensor.contract" in index


PHONE: Final = (390, 844)
DESKTOP: Final = (1280, 800)
FOCUSED: Final = "document.activeElement"


def _open(page: Page, path: Path, window: tuple[int, int]) -> None:
    """Open a page: nothing may be written to the console, nor lie beside the window."""
    page.open(path, width=window[0], height=window[1])
    widths = page.value("[innerWidth, document.scrollingElement.scrollWidth]")
    assert widths == [window[0], window[0]], path
    assert not page.messages, (path, page.messages)


def test_pages_fit_a_phone(site: Path, tmp_path: Path) -> None:
    with browser(tmp_path) as page:
        for path in [*sorted(site.glob("*.html")), *sorted(site.glob("docs/**/*.html"))]:
            if path.name != "index.html":  # it goes on to another
                _open(page, path, PHONE)
        _open(page, site / "docs/performance/benchmarks.html", DESKTOP)
        _open(page, site / "docs/ir/intrinsics/llvm.tensor.contract.html", DESKTOP)


@pytest.mark.parametrize("window", [PHONE, DESKTOP])
def test_the_keyboard_is_enough(site: Path, tmp_path: Path, window: tuple[int, int]) -> None:
    """From the top of a page to what a search finds; what has the focus can be seen."""
    with browser(tmp_path) as page:
        _open(page, site / "README.html", window)
        page.press("Tab")
        assert page.value(f"{FOCUSED}.textContent.trim()") == "Skip to content"
        for _ in range(6):
            page.press("Tab")
            if page.value(f"{FOCUSED}.name") == "q":
                break
        page.value("Promise.all(document.getAnimations().map(animation => animation.finished))")
        left, right = page.value(f"(box => [box.left, box.right])({FOCUSED}.getBoundingClientRect())")
        assert 0 <= left < right <= window[0]
        page.send("Input.insertText", text="contraction")
        page.events.clear()
        page.press("Enter")
        page.wait("Page.loadEventFired")
        found = "Array.from(document.querySelectorAll('#search-results li a'), link => link.href).join(' ')"
        finished = f"""new Promise(done => {{
            const look = () => document.querySelector('#search-results li') ? done({found}) : setTimeout(look, 50);
            look();
        }})"""
        assert "llvm.tensor.contract.html" in page.value(finished)
        assert page.value("document.scrollingElement.scrollWidth") == window[0]
        assert not page.messages
