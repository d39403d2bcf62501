"""`tlx bench`: what it prints, writes and refuses. Nothing here depends on how fast anything is."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.unit.bench.expected import expected, nothing
from tlx.bench import command, measure, peaks, plot, report, user_workload
from tlx.bench.peaks import Peak, peak
from tlx.bench.peers.base import Attempt
from tlx.bench.workloads import products
from tlx.diagnostics import UsageError
from tlx.intrinsics.numpy_types import Array
from tlx.lower.knobs import FixedKnobs, KnobOrigin, parse_knobs
from tlx.lower.remarks import ArithmeticUnit
from tlx.target.host import cpu_flags, missing_features
from tlx.target.lookup import find_target
from tlx.target.target import Target
from tlx.tuning import timing
from tlx.tuning.timing import Contestant, Rates
from tlx.tuning.workload import F16, F32, S8, S32, U8, ElementwiseCheck, MemoryTraffic, Workload

pytestmark = pytest.mark.usefixtures("short_samples")

ROOT = Path(__file__).resolve().parents[3]


GENERIC = "generic"


MLP = str(ROOT / "examples/ir/mlp.ll")


class Copier:
    """A peer that writes what is right, or something else."""

    version = "1"

    def __init__(self, name: str, *, right: bool) -> None:
        self.name = name
        self._right = right

    def attempts(self, work: Workload, arrays: dict[str, Array]) -> Iterator[Attempt]:
        values = expected(work, arrays).values.astype(work.output.element.dtype) if self._right else 0

        def repeat(count: int) -> None:
            for _ in range(count):
                arrays[work.output.name][...] = values

        yield Attempt(repeat, "from memory")


@pytest.fixture(scope="module")
def cell() -> measure.Cell:
    peers = [Copier("fine", right=True), Copier("wrong", right=False)]
    return measure.Bench(find_target(GENERIC), peers, rounds=3).measure(products.product("f32", 4, 5, 6))


@pytest.fixture(scope="module")
def record(cell: measure.Cell) -> dict[str, Any]:
    return report.record(cell)


def made(ours: float, peer: float, **changes: Any) -> dict[str, Any]:
    """A record: shares of a peak of 100."""
    rates = {"peak": 100.0, "tlx": ours, "mkl": peer}
    plain: dict[str, Any] = {
        "row": "gemm",
        "types": "f32",
        "size": "512",
        "variant": "",
        "unit": "GFLOP/s",
        "operations": 1 << 28,
        "traffic": 1 << 20,
        "peak_loop": "multiply-add of float",
        "best_peer": "mkl",
        "to_best": ours / peer,
        "to_peers": {"mkl": ours / peer},
        "predicted": None,
        "error": "",
        "rates": {n: {"best": r, "median": r, "spread": 0.0, "of_peak": r / 100} for n, r in rates.items()},
    }
    return plain | changes


def test_the_order_of_contestants_changes_each_round() -> None:
    calls: list[str] = []

    def noted(name: str) -> timing.Contestant:
        return timing.Contestant(lambda _count: calls.append(name), 1, seconds_estimate=1.0)

    rates = timing.interleaved({name: noted(name) for name in "abcd"}, rounds=8).rates
    rounds = ["".join(calls[i : i + 4]) for i in range(len(calls) - 32, len(calls), 4)]
    assert all(sorted(order) == list("abcd") for order in rounds)
    assert len({order[0] for order in rounds}) > 1
    assert {len(r.rounds) for r in rates.values()} == {8}


def test_a_peer_with_wrong_results_is_left_out(cell: measure.Cell) -> None:
    assert list(cell.rates) == ["peak", "tlx", "fine"]
    assert cell.best_peer == "fine"
    assert "elements are wrong" in cell.notes["wrong"]


def test_records(record: dict[str, Any]) -> None:
    assert json.loads(json.dumps(record)) == record
    assert (record["row"], record["types"], record["size"], record["unit"]) == ("gemm", "f32", "4x5x6", "GFLOP/s")
    assert record["operations"] == 2 * 4 * 5 * 6
    assert set(record["rates"]["tlx"]) == {"best", "median", "spread", "of_peak"}
    assert record["rates"]["peak"]["of_peak"] == 1
    assert record["to_best"] == record["to_peers"]["fine"]


def test_bars() -> None:
    assert report.shortfall(made(97.5, 99), 16) == ""
    assert "bar 97.0%; 0.96 of mkl" in report.shortfall(made(95, 99), 16)
    assert report.shortfall(made(60, 60), 16) == ""
    assert "bar 60.0%" in report.shortfall(made(50, 60), 16)
    assert report.shortfall(made(90, 50, size="64"), 16) == ""
    assert "bar 85.0%" in report.shortfall(made(84, 50, size="64"), 16)
    assert report.shortfall(made(46, 40, size="13x17x19"), 16) == ""
    assert "0.90 of libxsmm" in report.shortfall(
        made(90, 100, size="64", best_peer="libxsmm", to_peers={"libxsmm": 0.9}), 16
    )
    assert report.shortfall(made(91, 95, unit="GB/s"), 16) == ""
    assert "bar 90.0%" in report.shortfall(made(89, 95, unit="GB/s"), 16)
    assert report.shortfall(made(49, 50, peak_loop="tdpbf16ps"), 16) == ""
    assert "bar 48.5%" in report.shortfall(made(48, 50, peak_loop="tdpbf16ps"), 16)
    assert report.shortfall(made(48, 50, peak_loop="tdpbf16ps", best_peer=None, to_best=None), 16) == ""


def test_summary() -> None:
    lines: list[str] = []
    report.summarise([made(50, 60), made(98, 49, size="1024")], 16, lines.append)
    text = "\n".join(lines)
    assert "1 of 2 cells reach their bar" in text
    assert "below: gemm f32 512" in text
    assert "gemm        f32          2   70.0%      1.29" in text


def test_summary_of_cells_without_a_bar() -> None:
    lines: list[str] = []
    alone = made(48, 50, peak_loop="tdpbf16ps", best_peer=None, to_best=None)
    report.summarise([alone, made(98, 49, size="1024")], 16, lines.append)
    assert lines[0] == "\n1 of 1 cells reach their bar; 1 has none, as no peer was measured"


def test_chosen_cells_of_reports() -> None:
    cells = [made(50, 60), made(98, 49, size="1024"), made(98, 49, types="f64")]
    assert report.select_cells(cells, ((), (), (), ())) == cells
    assert report.select_cells(cells, (("gemm",), ("f32",), ("1024",), ("plain",))) == [cells[1]]
    with pytest.raises(UsageError, match="the report has no cells of types 'f16'; it has f32, f64"):
        report.select_cells(cells, ((), ("f16",), (), ()))


def reported(*cells: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A report with these cells."""
    facts: dict[str, Any] = {"machine": "M", "cpu": "1", "threads": 1, "target": "avx512", "lanes": 16}
    facts |= {"peers": {"mkl": "2026"}, "date": "2026-11-22 06:00 UTC", "cells": list(cells)}
    return facts | changes


def test_tables_in_markdown() -> None:
    wrong = made(1, 1, size="100", error="wrong", rates={}, to_peers={}, best_peer=None, to_best=None)
    text = report.markdown_tables(reported(made(50, 60), made(98, 49, size="1024", predicted=0.93), wrong))
    assert "- machine: M\n" in text
    assert "| gemm | f32 | 3 | 1 | 70% | 1.29 | gemm f32 512 | 0.83 |" in text
    assert "| types | size | variant | peak | ours | of peak | predicted | / mkl | bar | of bar |" in text
    assert "| f32 | 512 |  | 100 | 50 | 50% |  | 0.83 | 60% | **0.83** |" in text
    assert "| f32 | 1024 |  | 100 | 98 | 98% | 93% | 2.00 | 49% | met |" in text
    assert "| f32 | 100 |  |  |  |  |  |  |  | wrong |" in text


def test_reports_are_put_together(tmp_path: Path) -> None:
    parts = [
        reported(made(9, 9, size="1024"), cpu="2"),
        reported(made(50, 60), made(80, 60, size="1024"), date="later"),
    ]
    for name, part in zip("ab", parts, strict=True):
        report.write(str(tmp_path / f"{name}.json"), part)
    whole = report.read(str(tmp_path))
    assert [(cell["size"], cell["rates"]["tlx"]["median"]) for cell in whole["cells"]] == [("512", 50), ("1024", 80)]
    assert (whole["cpu"], whole["date"]) == ("1,2", "2026-11-22 06:00 UTC to later")
    report.write(str(tmp_path / "c.json"), reported(made(50, 60), target="amx"))
    with pytest.raises(UsageError, match=r"c\.json' is for target amx, '.*a\.json' for avx512"):
        report.read(str(tmp_path))


def test_comparing() -> None:
    lines: list[str] = []
    report.compare([made(80, 60), made(9, 9, size="8")], [made(40, 60)], lines.append)
    assert "1 cells in both; geometric mean of the ratios of shares 2.000" in lines[-1]


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_plots(tmp_path: Path, suffix: str, record: dict[str, Any]) -> None:
    pytest.importorskip("matplotlib")
    cells = [record, made(50, 60), made(60, 60, size="64"), made(20, 30, row="add", unit="GB/s", size="1M")]
    path = tmp_path / f"plot.{suffix}"
    facts = {"machine": "M", "target": "generic", "date": "today", "memory": {"triad": 10.0}, "cells": cells}
    plot.draw(str(path), facts)
    start = path.read_bytes()[:100]
    assert b"<?xml" in start if suffix == "svg" else start.startswith(b"\x89PNG")


def test_panels_of_a_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyplot: Any = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(pyplot, "close", Mock())
    layer = made(40, 30, row="convolution", size="64-64.56.3s1")
    cells = [made(50, 60), made(60, 60, size="64"), made(20, 10, size="1x1024x1024"), layer]
    facts = {"machine": "M", "target": "generic", "date": "today", "cells": cells}
    plot.draw(str(tmp_path / "plot.svg"), facts)
    squares, named, roof = pyplot.gcf().axes
    joined, apart = squares.lines[:2]
    assert list(joined.get_xdata()) == pytest.approx([64, 512])
    assert apart.get_linestyle() == "None"
    assert [label.get_text() for label in named.get_xticklabels()] == ["64-64.56.3s1"]
    assert roof.get_title() == "roofline"
    plot.draw(str(tmp_path / "plot.svg"), facts | {"cells": [made(20, 30, row="add", unit="GB/s", size="1M")]})
    assert [axis.get_title() for axis in pyplot.gcf().axes] == ["add f32"]


def test_a_plot_needs_a_known_format() -> None:
    with pytest.raises(UsageError, match=r"end in \.png, \.svg, \.pdf, not in '\.gif'"):
        plot.pyplot("speed.gif")


def test_a_function_of_the_user() -> None:
    work = user_workload.user_workload(MLP, None, {})
    assert work.operations == 2 * 512 * 256 * 256
    assert work.peak is not None
    assert [(b.name, b.element.name, b.output) for b in work.buffers] == [
        ("x", "bf16", False),
        ("w", "bf16", False),
        ("bias", "f32", False),
        ("y", "bf16", True),
    ]
    assert user_workload.user_workload(str(ROOT / "examples/ir/int8.ll"), "int8", {}).peak == (U8, S8, S32)


@pytest.mark.parametrize(("target", "instruction"), [("amx+amx-fp16", "tdpfp16ps"), ("amx", "multiply-add of float")])
def test_the_peak_of_halves_is_that_of_the_best_instruction(target: str, instruction: str) -> None:
    ceiling = peak((F16, F16, F32), find_target(target))
    assert ceiling.instruction == instruction
    assert (f"@llvm.x86.{instruction}.internal(" in ceiling.text) == (target != "amx")


def test_the_peak_is_the_faster_of_dot_products_and_multiply_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    """VDPBF16PS executes every fourth cycle on processors that run multiply-adds of floats twice a cycle."""
    speeds = {"dot product (avx512bf16)": 0.5, "multiply-add of float": 1.0}

    def untimed(loop: Peak, _target: Target) -> Contestant:
        return Contestant(lambda _: None, 1, speeds[loop.instruction])

    monkeypatch.setattr(peaks, "contestant", untimed)
    monkeypatch.setattr(measure, "rate", attrgetter("seconds_estimate"))
    bench = measure.Bench(find_target("avx512"), [], rounds=1)
    work = products.product("bf16", 512, 512, 512)
    loop, instruction = bench.limit(work)
    assert instruction == "multiply-add of float"
    assert bench.share_of_limit(work, "fma", loop, Rates((1.0,))) == 1.0
    assert bench.share_of_limit(work, "dot", loop, Rates((1.0,))) == 0.5


def test_arguments_of_the_users_function(tmp_path: Path) -> None:
    path = tmp_path / "f.ll"
    path.write_text("define void @f(ptr %x, i64 %n) {\n  ret void\n}\n")
    work = user_workload.user_workload(str(path), None, user_workload.parse_arguments(("x=f32:8x4", "n=32")))
    assert work.buffers[0].shape == (8, 4)
    assert work.buffers[0].element is F32
    assert isinstance(work.peak, MemoryTraffic)
    assert work.order == ("x", ("i64", 32))
    for given, message in (
        ({}, "does not say what %x points to; give it with --args=x=f32:64x64"),
        ({"x": "f99:8"}, "'f99:8' is not an array for %x"),
        ({"x": "f32:8"}, r"takes i64 %n; give it with --args=n=1"),
        ({"x": "f32:8", "n": "many"}, "'many' is not a number for %n"),
        ({"z": "1"}, "has no parameter 'z'; it has x, n"),
    ):
        with pytest.raises(UsageError, match=message):
            user_workload.user_workload(str(path), "f", given)
    with pytest.raises(UsageError, match="defines no function @g; it defines @f"):
        user_workload.user_workload(str(path), "g", {})


def test_run_time_extents_do_not_say_how_large_an_array_is(tmp_path: Path) -> None:
    path = tmp_path / "f.ll"
    dense = "<1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer"
    path.write_text(
        "define void @f(ptr %x, i32 %n) {\n  %s = insertelement <1 x i32> poison, i32 %n, i32 0\n"
        f"  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> %s, {dense})\n"
        "  call void @llvm.tensor.store(ptr %x, token %a, <1 x i32> zeroinitializer)\n  ret void\n}\n"
    )
    with pytest.raises(UsageError, match="@f does not say how many elements of f32 %x points to"):
        user_workload.user_workload(str(path), "f", {"n": "80"})
    assert user_workload.user_workload(str(path), "f", {"n": "80", "x": "f32:80"}).buffers[0].output


def test_arrays_that_are_too_small_are_refused() -> None:
    assert user_workload.user_workload(MLP, None, {"bias": "f32:256"}).buffers[2].shape == (256,)
    for given in ("f32:255", "f64:256", "f32:0"):
        with pytest.raises(UsageError, match=f"'{given}' does not fit %bias: @mlp needs 256 elements of f32 there"):
            user_workload.user_workload(MLP, None, {"bias": given})


def test_a_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_setaffinity", nothing)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE"):
        monkeypatch.setenv(name, "1")
    choice = command.WorkloadSelection(("gemm",), ("f32",), ("8",), ("plain",))
    path = tmp_path / "r.json"
    lines: list[str] = []
    setting = command.BenchSettings(GENERIC, (), rounds=1, report=str(path), folder=str(tmp_path / "texts"))
    assert command.run(choice, setting, lines.append)
    assert any(line.startswith("gemm        f32        8 ") for line in lines)
    written = report.read(str(path))
    assert set(written) >= {"machine", "cpu", "target", "features", "peers", "memory", "date", "cells"}
    assert "llvm.tensor.matmul" in (tmp_path / "texts" / "gemm_f32_8.ll").read_text()
    again: list[str] = []
    command.run(choice, command.BenchSettings(sources=(str(path),), compare=str(path)), again.append)
    assert again[-1] == "1 cells in both; geometric mean of the ratios of shares 1.000"


def test_knobs_reach_the_kernels() -> None:
    answers = FixedKnobs(parse_knobs("tile=99x96", KnobOrigin("from --tile")))
    bench = measure.Bench(find_target(GENERIC), [], rounds=1, knobs=answers)
    assert "tile 99x96 needs" in bench.measure(products.product("f32", 4, 5, 6)).error


@pytest.mark.parametrize("types", ["f32", "bf16"])
def test_prepared_weights_are_packed_before_the_timing(types: str) -> None:
    cell = measure.Bench(find_target(GENERIC), [], rounds=1).measure(
        products.product(types, 1, 2048, 128, prepared=True)
    )
    assert not cell.error
    assert measure.OURS in cell.rates
    assert cell.work.name == f"gemm {types} 1x2048x128 prepared B"


class Slow:
    """A peer with several variants, one of them much faster; counts the calls of each."""

    name, version = "slow", "1"

    def __init__(self, naps: tuple[float, ...], clock: list[int]) -> None:
        self._naps = naps
        self._clock = clock
        self.done = [0] * len(naps)

    def attempts(self, work: Workload, arrays: dict[str, Array]) -> Iterator[Attempt]:
        values = expected(work, arrays).values.astype(work.output.element.dtype)

        def repeat(count: int, index: int) -> None:
            self.done[index] += count
            arrays[work.output.name][...] = values
            self._clock[0] += int(count * self._naps[index] * 1e9)

        for index in range(len(self._naps)):
            yield Attempt(partial(repeat, index=index))


def test_slow_variants_of_a_peer_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0]
    monkeypatch.setattr(time, "thread_time_ns", lambda: clock[0])
    timing.use_clock(1)
    work = products.product("f32", 4, 5, 6)
    peer = Slow((1.0, 0.5, 2.0), clock)
    arrays = work.arrays()
    actual = measure.correct_attempts(peer, work, arrays, expected(work, arrays), 1.0, {})
    assert [one.seconds_estimate for one, _ in actual] == [1.0, 0.5]
    assert peer.done == [1, 1, 1]
    assert timing.fastest([one for one, _ in actual]) == 1
    assert peer.done == [1, 1, 1]
    monkeypatch.undo()
    timing.use_clock(1)


def test_wrong_code_is_not_measured() -> None:
    work = products.product("f32", 4, 5, 6)

    def other(arrays: dict[str, Array]) -> ElementwiseCheck:
        right = expected(work, arrays)
        return ElementwiseCheck(right.values + 1, right.magnitude, right.terms)

    cell = measure.Bench(find_target(GENERIC), [], rounds=1).measure(replace(work, expected=other))
    assert list(cell.rates) == ["peak"]
    assert "gemm f32 4x5x6 by tlx: element (0, 0) is" in report.record(cell)["error"]


def test_a_target_that_this_machine_does_not_support(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_features(find_target("avx512"), frozenset())
    monkeypatch.setattr(measure, "cpu_flags", lambda: cpu_flags() - {"avx512f"})
    with pytest.raises(UsageError, match="this machine cannot run the code of avx512: it lacks avx512f"):
        measure.runnable("avx512")


def test_starting_imports_nothing_heavy() -> None:
    code = "import sys, tlx.cli.bench; print(sorted({'numpy', 'llvmlite', 'matplotlib', 'json'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"


def test_a_prediction_is_a_share_of_what_bounds_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where multiplications are 3 G/s, a work that memory bounds at 2 G/s should reach half as much more of that."""

    def speed(loop: Contestant) -> float:
        return 2.0 if loop.operations == work.operations else 3.0

    monkeypatch.setattr(measure, "rate", speed)
    bench, work = measure.Bench(find_target(GENERIC), [], rounds=1), products.product("f32", 4, 5, 6)
    memory, _ = bench.limit(work)
    assert memory.operations == work.operations
    assert bench.share_of_limit(work, "fma", memory, Rates((2.0, 2.0, 4.0))) == 1.5
    large = products.product("f32", 512, 512, 512)
    loop, _ = bench.limit(large)
    assert bench.share_of_limit(large, "fma", loop, Rates((2.0,))) == 1.0


@pytest.mark.parametrize(("unit", "of_tiles"), [("matrix", 1.0), ("dot", 1 / 16), ("fma", 1 / 32)])
def test_a_prediction_for_vectors_is_scaled_to_the_peak_of_tiles(
    unit: ArithmeticUnit, of_tiles: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where tile products are 16 times as fast as dot products of vectors, and those twice as fast as multiply-add."""
    speeds = {"tdpbf16ps": 16.0, "dot product (avx512bf16)": 1.0}

    def untimed(loop: Peak, _target: Target) -> Contestant:
        return Contestant(lambda _: None, 1, speeds.get(loop.instruction, 0.5))

    monkeypatch.setattr(peaks, "contestant", untimed)
    monkeypatch.setattr(measure, "rate", attrgetter("seconds_estimate"))
    bench = measure.Bench(find_target("amx"), [], rounds=1)
    work = products.product("bf16", 512, 512, 512)
    loop, _ = bench.limit(work)
    assert bench.share_of_limit(work, unit, loop, Rates((15.0, 16.0, 16.0))) == of_tiles
