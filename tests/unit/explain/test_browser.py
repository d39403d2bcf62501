"""The page in a browser: no error, links between lines by mouse and keyboard, light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import Page, browser, require_chromium
from tests.unit.explain.programs import LAYER, PRODUCT, SOFTMAX, SUM, page_of

require_chromium()
HOSTILE = LAYER.replace("@layer", '@"</script><script>alert(1)</script><img src=x onerror=alert(2)>"')


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    path = tmp_path / "layer.html"
    path.write_text(page_of(LAYER), encoding="utf-8")
    return path


def lit(page: Page) -> list[str]:
    """The text of what is highlighted."""
    return page.value("[...document.querySelectorAll('.on')].map((line) => line.textContent)")


def test_pages_open_without_a_message(chromium: Page, tmp_path: Path) -> None:
    for number, program in enumerate((LAYER, SOFTMAX, HOSTILE, "")):
        path = tmp_path / f"{number}.html"
        path.write_text(page_of(program), encoding="utf-8")
        chromium.open(path, width=1280, height=800)
        assert chromium.messages == []
        assert chromium.value("document.scripts.length") == 1
        assert chromium.value("document.images.length") == 0


def test_pointing_at_a_line_shows_what_it_became(chromium: Page, layer: Path) -> None:
    chromium.open(layer, width=1400, height=900)
    chromium.move(f"#line-{PRODUCT}")
    texts = lit(chromium)
    assert any("%product = " in text for text in texts)
    assert any("@llvm.tensor.matmul.v1536f32" in text for text in texts)
    assert any("call void @tlx.matmul" in text for text in texts)
    assert not any("%sum = " in text for text in texts)


def test_clicking_pins_a_line(chromium: Page, layer: Path) -> None:
    chromium.open(layer, width=1400, height=900)
    chromium.click(f"#line-{PRODUCT}")
    before = lit(chromium)
    assert chromium.value("document.querySelector('.status').textContent") == f"Pinned to line {PRODUCT}"
    chromium.move(f"#line-{SUM}")
    assert lit(chromium) == before
    chromium.press("Escape")
    assert chromium.value("document.querySelector('.status').textContent") == ""


def test_keys_move_through_lines_and_texts(chromium: Page, layer: Path) -> None:
    chromium.open(layer, width=1400, height=900)
    chromium.value("document.querySelector('.text').focus()")
    chromium.press("ArrowDown")
    chromium.press("ArrowDown")
    assert chromium.value("document.querySelector('.at').id") == f"line-{PRODUCT - 1}"
    chromium.press("ArrowDown")
    chromium.press("Enter")
    assert chromium.value("document.querySelector('.status').textContent") == f"Pinned to line {PRODUCT}"
    chromium.press("ArrowRight")
    assert chromium.value("[...document.querySelectorAll('.text')].indexOf(document.activeElement)") == 1
    assert chromium.value("document.activeElement.querySelector('.at').classList.contains('on')")


def test_a_link_to_a_line_pins_it(chromium: Page, layer: Path) -> None:
    chromium.open(layer, width=1400, height=900)
    chromium.value(f"document.querySelector('#kernel-1 a[href=\"#line-{SUM}\"]').click()")
    chromium.value("new Promise((done) => setTimeout(done, 50))")
    assert chromium.value("location.hash") == f"#line-{SUM}"
    assert any("%sum = " in text for text in lit(chromium))


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_no_part_is_wider_than_the_window(chromium: Page, layer: Path, width: int) -> None:
    chromium.open(layer, width=width, height=800)
    assert chromium.value("document.documentElement.scrollWidth") <= width


def test_dark_mode_follows_the_system(chromium: Page, layer: Path) -> None:
    lightness: list[int] = []
    for dark in (False, True):
        chromium.open(layer, width=1280, height=800, dark=dark)
        ground = chromium.value("getComputedStyle(document.body).backgroundColor")
        lightness.append(sum(map(int, ground.removeprefix("rgb(").rstrip(")").split(","))))
    assert lightness[0] > 600
    assert lightness[1] < 150


def test_a_picture_of_the_page_is_not_blank(chromium: Page, layer: Path) -> None:
    chromium.open(layer, width=1280, height=800)
    assert len(chromium.screenshot()) > 20_000
