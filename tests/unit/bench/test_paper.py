"""`tlx bench paper`: its workloads, tables, plots and processes; nothing here depends on how fast anything is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.support.tools import require
from tests.unit.bench.expected import expected
from tlx.api.compiler import compile as compile_module
from tlx.bench.paper import command, plots, sweep, tables, workloads
from tlx.bench.paper.workloads import FUSED, PRODUCT, UNFUSED
from tlx.bench.peers import libxsmm
from tlx.cli.group import group
from tlx.diagnostics import UsageError
from tlx.lower.options import Options
from tlx.lower.remarks import Remarks
from tlx.tuning.timing import NativeCall, call_loop, compile_loop, function_address
from tlx.tuning.workload import Workload, WrongResultError

TINY = list(workloads.paper_workloads([64], rows=64))


def computed(work: Workload, target: str) -> dict[str, Any]:
    """The arrays of a workload after a run of its code."""
    arrays = work.arrays()
    compiled = compile_module(work.text(), target, entry=work.function)
    work.reset_output(arrays)
    call_loop([NativeCall(function_address(compiled.entry.code), work.arguments(arrays))], compiled)(1)
    return arrays


@pytest.mark.parametrize("work", TINY, ids=lambda work: work.name.replace(" ", "_"))
def test_results_are_right(work: Workload) -> None:
    arrays = work.arrays()
    truth = expected(work, arrays)
    out = computed(work, "native")[work.output.name]
    work.check(out, truth, "native")
    out.reshape(-1)[3] = work.output.element.narrow(np.array([99.0]))[0]
    with pytest.raises(WrongResultError, match="1 of"):
        work.check(out, truth, "native")


def test_layouts_hold_the_same_matrices() -> None:
    """The blocked and interleaved layer of the same values has the result of the row-major one, block by block."""
    flat, blocked = (workloads.layer("bf16", 64, 96, layout, FUSED) for layout in ("flat", "blocked vnni"))
    arrays = flat.arrays()
    others: dict[str, Any] = dict(zip(("c", "a", "b", "bias"), blocked.arrays().values(), strict=True))
    others["a"][...] = arrays["a"].reshape(2, 32, 3, 32).swapaxes(1, 2).reshape(others["a"].shape)
    others["b"][...] = arrays["b"].reshape(3, 16, 2, 3, 32).transpose(3, 0, 1, 4, 2)
    others["bias"][...] = arrays["bias"].reshape(3, 32)
    values = expected(flat, arrays).values.reshape(2, 32, 3, 32).swapaxes(1, 2)
    assert np.allclose(expected(blocked, others).values, values)


def test_only_the_unfused_layer_writes_its_product() -> None:
    remarks: dict[str, str] = {}
    for epilogue in (FUSED, UNFUSED):
        lines = Remarks()
        compile_module(workloads.layer("f32", 64, 64, "flat", epilogue).text(), options=Options(remarks=lines))
        remarks[epilogue] = " ".join(remark.message for remark in lines)
    assert "epilogue: fadd, relu" in remarks[FUSED]
    assert "epilogue" not in remarks[UNFUSED]


def test_selection() -> None:
    names = [work.name for work in workloads.select(["mlp"], ["f32"], ["96"], ["blocked"])]
    assert names == [f"mlp f32 96 blocked {epilogue}" for epilogue in (PRODUCT, FUSED, UNFUSED)]
    listing = [w.variant for w in workloads.select([], ["bf16"], ["4x32x192x32"], [])]
    assert listing == ["flat", "flat accumulated", "vnni", "vnni accumulated"]
    assert [w.variant for w in workloads.select(["brgemm"], ["bf16"], ["2x64x64x64"], ["vnni"])] == ["vnni"]
    assert {w.variant for w in workloads.select([], ["f32"], [], ["accumulated"])} == {"flat accumulated"}
    assert {w.size for w in workloads.select(["mlp"], [], [], [FUSED])} == {"1024", "2048", "4096"}
    with pytest.raises(UsageError, match="--sizes=100: layers have sizes that are multiples of 32"):
        workloads.select([], [], ["100"], [])
    with pytest.raises(UsageError, match="unknown variant 'packed'; choose from flat, "):
        workloads.select(["mlp"], [], [], ["packed"])


def made(share: float, **changes: Any) -> dict[str, Any]:
    """A record of a cell with a peak of 100, at a share of libxsmm's speed of 80."""
    rates = {"peak": 100.0, "tlx": 80 * share, "libxsmm": 80.0}
    plain: dict[str, Any] = {
        "row": "mlp",
        "types": "f32",
        "size": "1024",
        "variant": "blocked fused",
        "unit": "GFLOP/s",
        "peak_loop": "multiply-add of float",
        "rates": {n: {"best": r, "median": r, "spread": 0.0, "of_peak": r / 100} for n, r in rates.items()},
        "best_peer": "libxsmm",
        "to_best": share,
        "to_peers": {"libxsmm": share},
        "error": "",
    }
    return plain | changes


def reported(*cells: dict[str, Any], target: str = "avx2", threads: int = 1) -> dict[str, Any]:
    facts = {"machine": "M", "cpu": "1", "target": target, "threads": threads, "peers": {"libxsmm": "2"}}
    return {**facts, "date": "2026-11-29", "cells": list(cells)}


REPORT = {
    tables.RUNS: [
        reported(made(1.0), made(1.21, size="2048"), made(1.1, types="bf16", variant="blocked fused")),
        reported(made(0.81), made(1.0, size="2048"), threads=2),
        reported(made(0.5, variant="blocked unfused", to_peers={}), made(1.0), target="avx512"),
    ]
}


def test_tables() -> None:
    text = "\n".join(tables.terminal_tables(REPORT))
    assert re.search(r"size +avx2 f32 blocked +avx2 bf16 blocked +avx512 f32 blocked", text)
    assert re.search(r"1024 +90% +110% +100%", text), "the geometric mean of 100 % and 81 %"
    assert re.search(r"2048 +110%", text)
    assert re.search(r"avx2 +f32 blocked +110% +90%", text), "over sizes, for one and two threads"
    assert re.search(r"avx512 +f32 blocked +1024 +2.000", text), "the fused layer is twice as fast"
    assert "4 of 6 cells reach what is expected; geometric mean of the ratios to libxsmm 1.013" in text
    assert "- below: avx2 2 threads mlp f32 1024 blocked fused: 81%, expected 97%" in text
    assert "- below: avx2 1 threads mlp bf16 1024 blocked fused: 110%, expected 120%" in text


def test_markdown() -> None:
    text = tables.markdown(REPORT)
    assert "| 1024 | 90% | 110% | 100% |" in text
    assert "| avx2 | 2 | mlp | f32 | 1024 | blocked fused | 100 | 64.8 | 65% | 81% |" in text


def test_expectations() -> None:
    bf16 = made(1.0, types="bf16", variant="blocked vnni fused")
    flat = {**bf16, "variant": "flat fused"}
    for target in ("avx2", "avx512", "amx"):
        assert tables.expectation(target, made(1.0)) == 0.97
    assert tables.expectation("avx2", bf16) == 0.97
    assert tables.expectation("avx2", flat) == 1.2
    assert tables.expectation("avx512", flat) == 0.97, "it has dot products"
    for cell in (bf16, flat, {**bf16, "peak_loop": "2 read, 1 written"}):
        assert tables.expectation("amx", cell) == 1.0, "tile products, whatever bounds a cell"


def test_reports_are_merged(tmp_path: Path) -> None:
    for name, report in (("a", REPORT), ("b", {tables.RUNS: [reported(made(0.9))]})):
        (tmp_path / f"{name}.json").write_text(json.dumps(report))
    merged = tables.read([str(tmp_path)])
    assert [(run["target"], run["threads"]) for run in merged["paper"]] == [("avx2", 1), ("avx2", 2), ("avx512", 1)]
    assert merged["paper"][0]["cells"][0]["to_best"] == 0.9
    assert len(merged["paper"][0]["cells"]) == 3
    (tmp_path / "c.json").write_text(json.dumps({tables.RUNS: [{**reported(made(1.0)), "machine": "N"}]}))
    with pytest.raises(UsageError, match=r"c.json' is for machine N, '.*a.json' for M"):
        tables.read([str(tmp_path)])


def test_plots(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plots.draw(str(tmp_path / "p.svg"), REPORT)
    assert "<?xml" in (tmp_path / "p.svg").read_text()[:100]
    with pytest.raises(UsageError, match="no layers beside libxsmm"):
        plots.draw(str(tmp_path / "p.svg"), {tables.RUNS: [reported()]})


def test_all_points_are_in_the_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Panels of a row share an axis, and the second one has higher points: means over sizes, not over threads."""
    pytest.importorskip("matplotlib")
    runs = [reported(made(share), made(share, size="2048"), threads=n) for n, share in ((1, 1.0), (2, 9.0))]
    figures: list[Any] = []

    def keep(figure: Any, path: str) -> None:
        del path
        figures.append(figure)

    monkeypatch.setattr(plots.plot, "save", keep)
    plots.draw(str(tmp_path / "p.svg"), {tables.RUNS: runs})
    for axis in figures[0].axes:
        heights = [height for line in axis.lines for height in line.get_ydata()]
        lowest, highest = axis.get_ylim()
        assert axis.get_yscale() == "log"
        assert lowest < min(heights)
        assert max(heights) < highest
        assert 100 in axis.get_yticks()
    assert [text.get_text() for text in figures[0].legends[0].get_texts()] == ["f32 blocked"]


def test_libraries_are_limited_to_the_target() -> None:
    assert command.library_limits(["+avx2", "+fma"])["LIBXSMM_TARGET"] == "hsw"
    assert command.library_limits(["+avx512f", "+avx512bf16"])["ONEDNN_MAX_CPU_ISA"] == "AVX512_CORE_BF16"
    assert command.library_limits(["+avx512f", "+avx512bf16", "+amx-tile"])["LIBXSMM_TARGET"] == "spr"
    assert command.library_limits([]) == {}


def test_measuring(tmp_path: Path) -> None:
    """Small products beside loops of clang, in a process of their own."""
    require("clang-19")
    path, markdown = tmp_path / "r.json", tmp_path / "r.md"
    words = [
        "bench",
        "paper",
        "--types=f32",
        "--sizes=2x4x96x32,64",
        "--variants=flat,flat product",
        "--target=generic",
    ]
    words += ["--peers=clang", "--rounds=1", "--threads=1", f"--json={path}", f"--markdown={markdown}"]
    result = CliRunner().invoke(group, words)
    assert result.exit_code == 0, result.output
    assert re.search(
        r"generic +1 brgemm +f32 +2x4x96x32 +flat +[\d.]+ +[\d.]+ +[\d.]+% +\(\d+% of clang\)", result.output
    )
    assert re.search(r"generic +f32 flat +64 +\d\.\d+", result.output), "of fusion"
    assert "libxsmm was not measured, so there are no ratios to it" in result.output
    (run,) = json.loads(path.read_text())["paper"]
    assert (run["target"], run["threads"]) == ("generic", 1)
    assert [(c["size"], c["variant"]) for c in run["cells"]] == [
        ("2x4x96x32", "flat"),
        *(("64", f"flat {epilogue}") for epilogue in (PRODUCT, FUSED, UNFUSED)),
    ]
    again = CliRunner().invoke(group, ["bench", "paper", "brgemm", "--sizes=2x4x96x32", f"--from={path}"])
    assert again.exit_code == 0
    assert "libxsmm was not measured" in again.output


def test_a_sweep(tmp_path: Path) -> None:
    path, markdown = tmp_path / "s.json", tmp_path / "s.md"
    words = ["paper", "brgemm", "--types=f32", "--sizes=2x4x96x32", "--variants=flat", "--target=generic"]
    words += ["--rounds=1", "--sweep"]
    result = CliRunner().invoke(group, ["bench", *words, f"--json={path}", f"--markdown={markdown}"])
    assert result.exit_code == 0, result.output
    assert re.search(r"generic +brgemm +f32 +2x4x96x32 +flat +\d+ +[\d.]+% +\d+x\d+ +\d\.\d+", result.output)
    (cell,) = json.loads(path.read_text())["paper"][0]["cells"]
    assert len(cell["tiles"]) > 5
    assert cell["chosen"] > 0
    assert "| M \\ N |" in markdown.read_text()
    assert re.search(r"has \d\.\d+ times the speed", "\n".join(sweep.terminal_tables({"paper": [{"cells": [cell]}]})))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["paper", "--threads=1,x"], "--threads=x: write numbers of threads, such as 1,2,4"),
        (["paper", "--threads=999"], "999 threads need as many processors"),
        (["paper", "--target=avx3"], "avx3"),
        (["paper", "--target=generic,generic"], "target 'generic' is named twice"),
        (["paper", "--scaling=1,2"], "measures numbers of threads by --threads=1,2,4, not by --scaling"),
        (["paper", "--tile=8x48"], "measurements of the paper do not take --tile"),
        (["paper", "gemm"], "unknown row 'gemm'; choose from brgemm, mlp"),
        (["paper", "--sweep", "--peers=libxsmm"], "--sweep measures register tiles only, and does not take --peers"),
        (["gemm", "--sweep"], "other measurements do not take --sweep"),
        (["gemm", "--threads=1,2"], "only 'tlx bench paper' takes several numbers of threads"),
        (["paper", "--target=generic", "--peers=cublas", "--threads=1"], "unknown peer 'cublas'"),
    ],
)
def test_wrong_options(options: list[str], message: str) -> None:
    result = CliRunner().invoke(group, ["bench", *options])
    assert result.exit_code
    assert message in str(result.exception) + result.output


def test_lists() -> None:
    result = CliRunner().invoke(group, ["bench", "paper", "--list", "--types=f32", "--variants=flat", "--sizes=1024"])
    assert result.output.splitlines() == [f"mlp f32 1024 flat {end}" for end in (PRODUCT, FUSED, UNFUSED)]


_KERNEL = f"""
define void @kernel(ptr %p) {{
  %pn = getelementptr i64, ptr %p, i64 {libxsmm.COUNT_WORD}
  %pa = getelementptr i64, ptr %p, i64 {libxsmm.A_WORD}
  %pb = getelementptr i64, ptr %p, i64 {libxsmm.B_WORD}
  %pc = getelementptr i64, ptr %p, i64 {libxsmm.C_WORD}
  %pd = getelementptr i64, ptr %p, i64 {libxsmm.BIAS_WORD}
  %count = load ptr, ptr %pn
  %n = load i64, ptr %count
  %a = load i64, ptr %pa
  %b = load i64, ptr %pb
  %c = load ptr, ptr %pc
  %d = load i64, ptr %pd
  %times = load i64, ptr %c
  %more = add i64 %times, %n
  store i64 %more, ptr %c
  %c1 = getelementptr i64, ptr %c, i64 1
  store i64 %a, ptr %c1
  %c2 = getelementptr i64, ptr %c, i64 2
  store i64 %b, ptr %c2
  %c3 = getelementptr i64, ptr %c, i64 3
  store i64 %d, ptr %c3
  ret void
}}
"""


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_loops_around_a_kernel(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 3x5 blocks of C is computed once, from its operands; threads share the blocks."""
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    kernel = compile_module(_KERNEL, entry="kernel")
    c = np.zeros((3, 5, 4), np.int64)
    loops = libxsmm.BlockLoops(function_address(kernel.entry.code), 3, 5, 7, (10, 200, c.strides[0], c.strides[1], 16))
    repeat = compile_loop(loops.text({"a": 1000, "b": 2000, "c": c.ctypes.data, "bias": 3000}), (kernel, c))
    repeat(2)
    rows, columns = np.indices((3, 5))
    # libxsmm's A is our B
    wanted = (2 * 7 + 0 * rows, 2000 + 200 * columns, 1000 + 10 * rows, 3000 + 4 * 16 * columns)
    assert (c == np.stack(wanted, axis=-1)).all()
