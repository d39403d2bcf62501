"""The page: complete, alone, escaped, and the same for the same input."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.unit.explain.programs import BATCH, LAYER, SOFTMAX, page_of, report_of
from tlx.explain.assembly import Analysis, AssemblyLoop, Resource, find_mca, likely_processor, main_loops
from tlx.explain.charts import memory_chart, roofline_chart
from tlx.explain.figures import figures
from tlx.explain.html import Markup, join, tag
from tlx.explain.page import MachineCode, Measurement, page
from tlx.explain.trees import tree
from tlx.target.lookup import find_target

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
QUOTED = HOSTILE.replace('"', "")


class Elements(HTMLParser):
    """The names of all elements, and all attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def elements(text: str) -> Elements:
    parser = Elements()
    parser.feed(text)
    parser.close()
    assert not parser.open
    return parser


@pytest.mark.parametrize("program", [LAYER, SOFTMAX, BATCH, "define i32 @f() {\n  ret i32 0\n}\n", ""])
def test_elements_are_closed_and_ids_unique(program: str) -> None:
    parsed = elements(page_of(program))
    identifiers = [value for name, value in parsed.attributes if name == "id"]
    assert len(identifiers) == len(set(identifiers))
    links = {value[1:] for name, value in parsed.attributes if name == "href" and value and value.startswith("#")}
    assert links <= set(identifiers)


def test_nothing_is_loaded() -> None:
    parsed = elements(page_of(LAYER))
    sources = [value for name, value in parsed.attributes if name in ("src", "href", "data", "action")]
    assert all(value is not None and value.startswith(("#", "data:")) for value in sources)
    assert "http:" not in page_of(LAYER)
    assert "https:" not in page_of(LAYER)


def test_the_same_input_gives_the_same_bytes() -> None:
    assert page_of(SOFTMAX) == page_of(SOFTMAX)


def test_sets_are_written_in_order(tmp_path: Path) -> None:
    """Two processes with different hashes of strings write the same page."""
    (tmp_path / "program.ll").write_text(SOFTMAX, encoding="utf-8")
    pages = set[str]()
    for seed in ("1", "2"):
        command = [sys.executable, "-c", "from tlx.cli import main; main()", "explain", "program.ll", "--target=avx2"]
        done = subprocess.run(
            command, cwd=tmp_path, env={"PYTHONHASHSEED": seed, "PATH": ""}, capture_output=True, text=True, check=True
        )
        pages.add(done.stdout)
    assert len(pages) == 1


@pytest.mark.parametrize(
    "program",
    [
        LAYER.replace("@layer", f'@"{QUOTED}"').replace("%product", f'%"{QUOTED}"').replace("%sum", f'%"{QUOTED}2"'),
        SOFTMAX.replace("%exp", f'%"{QUOTED}"'),
        f"; {HOSTILE}\n{BATCH}",
    ],
)
def test_hostile_names_are_text(program: str) -> None:
    text = page_of(program, name=f"{HOSTILE}.ll")
    parsed = elements(text)
    assert parsed.names.count("script") == 1
    assert "img" not in parsed.names
    assert not [name for name, _ in parsed.attributes if name.startswith("on")]
    assert HOSTILE not in text


def test_control_characters_are_replaced() -> None:
    assert tag("p", "a\x00b\u202ec") == "<p>a\ufffdb\ufffdc</p>"


def test_markup_is_not_escaped_twice() -> None:
    inner = tag("b", "<", title='"')
    assert inner == '<b title="&quot;">&lt;</b>'
    assert tag("p", inner, "&") == '<p><b title="&quot;">&lt;</b>&amp;</p>'
    assert join(["<", Markup("<br>")], ", ") == "&lt;, <br>"


def test_the_page_shows_what_was_decided() -> None:
    report = report_of(SOFTMAX)
    text = page(report, MachineCode({}, {}))
    for remark in report.remarks:
        assert str(tag("p", remark.message))[3:-4] in text
    for name in ("reduce.max", "keep in cache", "fdiv", "Memory plan of @softmax"):
        assert name in text


def test_a_measured_function_is_on_the_roofline() -> None:
    measured = Measurement("layer", 2e-6, 196608, 0.8, "multiply-add of float")
    text = page(report_of(LAYER), MachineCode({}, {}), measured)
    assert "Measured: @layer takes 2 us and computes 98.3 billion operations a second, 80 % of the peak" in text
    assert 'class="point measured"' in text


def test_figures_of_a_product() -> None:
    (kernel,) = report_of(LAYER).kernels
    values = figures(kernel.facts)
    assert values.operations == 2 * 48 * 64 * 32
    assert values.bytes == 4 * (48 * 64 + 64 * 32 + 48 * 32 + 32)
    recipe = kernel.facts.recipe
    assert recipe is not None
    assert values.rate == pytest.approx(values.peak * recipe.efficiency)


def test_a_tree_has_each_operation_once() -> None:
    (kernel,) = report_of(SOFTMAX).kernels
    drawn = tree(kernel.facts)
    assert drawn.count(">exp<") == 1
    assert drawn.count(">load<") == 1


def test_charts_of_extreme_values() -> None:
    assert "<svg" in roofline_chart([], [])
    assert "<svg" in memory_chart([], [], "none")


ASSEMBLY = """\
f:
\tmovl\t$4, %eax
.LBB0_1:
\tincq\t%rcx
.LBB0_2:
\tvfmadd231ps\t(%rdi), %ymm1, %ymm0
\taddq\t$32, %rdi
\tcmpq\t%rdi, %rsi
\tjne\t.LBB0_2
\tdecl\t%eax
\tjne\t.LBB0_1
.LBB0_3:
\tincq\t%rdx
\tincq\t%rdx
\tincq\t%rdx
\tincq\t%rdx
\tincq\t%rdx
\tjne\t.LBB0_3
\tretq
g:
\tretq
"""


def test_the_main_loop_is_the_innermost_one_with_products() -> None:
    loops = main_loops(ASSEMBLY, ["f", "g"])
    assert list(loops) == ["f"]
    assert [line.split()[0] for line in loops["f"].instructions] == ["vfmadd231ps", "addq", "cmpq", "jne"]


def test_shares_stand_beside_their_instructions() -> None:
    (kernel,) = report_of(LAYER).kernels
    loop = AssemblyLoop(["loop:", "\tfirst\ta", "\tsecond\tb"])
    analysis = Analysis("a-processor", 2.0, 1.0, [Resource("port", 1.0)], [0.25, 0.75])
    text = page(report_of(LAYER), MachineCode({kernel.home: loop}, {kernel.home: analysis}))
    assert re.search(r"first +a</td><td class=\"num\">25.0 %", text)
    assert re.search(r"second +b</td><td class=\"num\">75.0 %", text)
    assert "busy 50 %" in text


def test_without_llvm_mca_there_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert find_mca() is None
    assert "llvm-mca is missing" in page(report_of(LAYER), MachineCode({}, {}, "llvm-mca is missing"))


@pytest.mark.parametrize("name", ["avx2", "avx512", "amx", "generic"])
def test_a_likely_processor_has_the_features_of_the_target(name: str) -> None:
    target = find_target(name)
    known = {feature for processor in target.cpus.values() for feature in processor.features}
    needed = {feature[1:] for feature in target.features} & known
    assert needed <= set(target.cpus[likely_processor(target)].features)
