"""Tuning: which candidates are tried, which results are stored, and that nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from tests.support.tools import HANG_S, child_processes, kill, require_openmp
from tests.unit.tuning.programs import AVX512, CPU, FUSED, KEY, PLAIN, SQUARE
from tlx.diagnostics import UsageError
from tlx.lower.knobs import NO_KNOBS, KnobQuery, Knobs
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text
from tlx.lower.to_tiles.select.selection import select
from tlx.target.lookup import find_target
from tlx.tuning.database import Database, TunedKnobs
from tlx.tuning.pools import LocalPool
from tlx.tuning.product import parse_product, products_of_file, products_of_shapes, with_threads
from tlx.tuning.search import Candidates
from tlx.tuning.session import Budget, TuningSession
from tlx.tuning.trial import Trial, TrialOutcome, run_trial


@dataclass
class FakePool:
    """Reports given speeds for some knobs; records the requests."""

    speeds: dict[str, float]
    kinds: Sequence[str] = (CPU,)
    trials: list[Trial] = field(default_factory=list[Trial])
    error: str = ""
    dies_after: int = 1 << 30

    def run(self, kind: str, trials: Sequence[Trial]) -> Iterator[tuple[Trial, TrialOutcome]]:
        for trial in trials:
            if len(self.trials) >= self.dies_after:
                raise KeyboardInterrupt
            self.trials.append(trial)
            ratio = max((v for k, v in self.speeds.items() if k in trial.knobs), default=0.9)
            yield trial, TrialOutcome((ratio,) * trial.rounds, ratio, 100 * ratio, 100.0, kind, self.error)

    def close(self) -> None:
        pass


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "cache" / "tuned.json")


@pytest.mark.parametrize(
    "words",
    [
        "matmul 3x4x5 float",
        "matmul 3x4x5 double tt",
        "matmul 3x4x5 half -> float nt",
        "matmul 3x4x5 bfloat",
        "matmul 3x4x5 i8 -> i32 us tn",
        "matmul 3x4x5 i8 -> i32 su",
        "matmul 3x4x5 i8 -> i32 ss lda=8 ldb=9",
        "matmul 3x4x5 float tt lda=8 ldb=9",
        "matmul 16x32x64 bfloat -> float nv2",
        "matmul 16x32x64 i8 -> i32 us nv4 fused",
        "matmul 16x32x64 bfloat fused",
        "matmul 16x32x64 float fused openmp=2",
        "matmul 16x32x4*64 float",
        "matmul 16x32x4*64 bfloat -> float nt",
        "matmul 16x16x4*16 i8 -> i32 ss fused",
        "matmul 3x4x2*5 float lda=8 ldb=9",
    ],
)
def test_the_lowered_product_matches_its_words(words: str) -> None:
    product = parse_product(words)
    queries: list[str] = []

    def note(question: KnobQuery) -> Knobs:
        queries.append(with_threads(question.text, product.threads))
        return NO_KNOBS

    options = Options(stop_after="to-tiles", knobs=note, threads="openmp" if product.threads > 1 else "none")
    lower_text(product.workload.text(), target="amx", options=options)
    assert queries == [words]
    assert product.gemm.knob_key == words.partition(" fused")[0]


@pytest.mark.parametrize(
    "words", ["", "matmul", "matmul 3x4 float", "matmul 0x4x4 float", "matmul 4x4x4 i64", "matmul 4x4x4 i8 ss",
              "matmul 4x4x4 float nope", "conv 3x3x3 float", "matmul 4x4x4 i8 -> float ss",
              "matmul 4x4x2*4 i8 -> i32 us", "matmul 4x4x2*4 i8 -> i32 su", "matmul 4x4x2*4 i8 -> i32 uu",
              "matmul 4x4x2*4 float nv2", "matmul 4x4x0*4 float"]
)  # fmt: skip
def test_malformed_words(words: str) -> None:
    with pytest.raises(UsageError):
        parse_product(words)


@pytest.mark.parametrize("words", [
    "matmul 7x9x5 float nt", "matmul 7x9x5 i8 -> i32 us ldb=12", "matmul 7x9x5 bfloat",
    "matmul 7x9x5 float fused", "matmul 7x9x5 bfloat fused", "matmul 7x9x5 i8 -> i32 us fused",
    "matmul 64x64x64 float openmp=2", "matmul 7x9x3*5 float", "matmul 16x16x4*16 i8 -> i32 ss fused",
])  # fmt: skip
def test_a_trial_checks_and_measures(words: str) -> None:
    if "openmp" in words:
        require_openmp()
    outcome = run_trial(Trial(words, "generic", (), "", 2))
    assert not outcome.error
    assert len(outcome.ratios) == 2
    assert outcome.rate > 0
    assert outcome.cpu


def test_a_failing_trial_gives_the_reason() -> None:
    assert "whole registers" in run_trial(Trial("matmul 8x8x8 float", "generic", (), "tile=1x3", 1)).error


def test_candidates_fit_and_differ() -> None:
    candidates = Candidates(parse_product("matmul 100x100x300 float"), AVX512)
    tiles = candidates.tiles(12)
    tried = [*tiles, *candidates.blocks(tiles[0])]
    gemm = parse_product("matmul 100x100x300 float").gemm
    recipes = [select(gemm, AVX512, knobs) for knobs in tried]
    assert len(tiles) == 12
    assert len(set(recipes)) == len(recipes)
    assert candidates.default not in recipes
    shares = [recipe.efficiency for knobs, recipe in zip(tiles, recipes, strict=False) if knobs.pack_b is None]
    assert shares == sorted(shares, reverse=True)
    assert any(recipe.blocks.kc < 300 for recipe in recipes)


def test_a_fused_product_keeps_k_whole() -> None:
    product = parse_product("matmul 64x64x4096 float fused")
    candidates = Candidates(product, AVX512)
    assert all(knobs.kc is None for knobs in candidates.blocks(NO_KNOBS))


def test_the_fastest_is_stored(database: Database) -> None:
    pool = FakePool({"tile=8x32": 1.05, "tile=8x32,mc=16": 1.2})
    (report,) = TuningSession(database, pool).run([SQUARE])
    assert report.best is not None
    assert report.best.knobs.startswith("tile=8x32,mc=16")
    assert report.best.ratio == 1.2
    assert report.complete
    knobs = TunedKnobs(database, CPU)(SQUARE)
    assert (knobs.tile, knobs.mc) == ((8, 32), 16)


def test_small_gains_are_not_stored(database: Database) -> None:
    (report,) = TuningSession(database, FakePool({"tile=8x32": 1.005})).run([SQUARE])
    assert report.best is None
    assert report.complete
    assert not TunedKnobs(database, CPU)(SQUARE)


def test_noise_is_not_a_gain() -> None:
    assert TrialOutcome((1.5, 1.4, 1.0), best_ratio=1.0).ratio == 1.0
    assert TrialOutcome((1.0, 1.0, 1.0), best_ratio=1.4).ratio == 1.0
    assert TrialOutcome((1.1, 1.2, 1.0), best_ratio=1.1).ratio == 1.1
    assert TrialOutcome().ratio == 0.0


def test_stored_results_are_not_measured_again(database: Database) -> None:
    first = FakePool({"tile=8x32": 1.1})
    (one,) = TuningSession(database, first).run([SQUARE])
    again = FakePool({})
    (two,) = TuningSession(database, again).run([SQUARE])
    assert first.trials
    assert not again.trials
    assert two.known
    assert one.best == two.best
    anew = FakePool({})
    (three,) = TuningSession(database, anew, remeasure=True).run([SQUARE])
    assert three.best is None
    assert anew.trials


def test_an_interrupted_run_continues(database: Database) -> None:
    whole = FakePool({"tile=8x32": 1.1})
    list(TuningSession(Database(database.path.with_name("other.json")), whole).run([SQUARE]))
    killed = FakePool({"tile=8x32": 1.1}, dies_after=7)
    with pytest.raises(KeyboardInterrupt):
        list(TuningSession(database, killed).run([SQUARE]))
    rest = FakePool({"tile=8x32": 1.1})
    (report,) = TuningSession(database, rest).run([SQUARE])
    assert killed.trials + rest.trials == whole.trials
    assert report.best is not None


def test_a_budget_of_trials(database: Database) -> None:
    pool = FakePool({"tile=8x32": 1.1})
    (report,) = TuningSession(database, pool, Budget(trials=9)).run([SQUARE])
    assert len(pool.trials) == 9
    assert not report.complete
    pool = FakePool({"tile=8x32": 1.1})
    (report,) = TuningSession(database, pool).run([SQUARE])
    assert report.complete


def test_a_budget_of_time(database: Database) -> None:
    (report,) = TuningSession(database, FakePool({}), Budget(seconds=0)).run([SQUARE])
    assert not report.complete


def test_a_machine_that_cannot_measure_leaves_no_result(database: Database) -> None:
    (report,) = TuningSession(database, FakePool({}, error="no such instruction")).run([SQUARE])
    assert report.error == "no such instruction"
    assert not database.entry(KEY)["complete"]


def test_kinds_of_machines_do_not_mix(database: Database) -> None:
    pool = FakePool({"tile=8x32": 1.1}, kinds=("one", "two"))
    reports = list(TuningSession(database, pool).run([SQUARE]))
    assert {report.key.cpu for report in reports} == {"one", "two"}
    assert len(database.entries()) == 2
    assert not TunedKnobs(database, "three")(SQUARE)


def test_products_of_a_file_once_each(tmp_path: Path) -> None:
    path = tmp_path / "a.ll"
    path.write_text(PLAIN + FUSED.replace("@f", "@g") + PLAIN.replace("@f", "@h"))
    actual = products_of_file(str(path), AVX512)
    assert [question.text for question in actual] == [SQUARE.text, f"{SQUARE.text} fused"]
    actual = products_of_file(str(path), AVX512, threads=4)
    assert [question.text for question in actual] == [f"{SQUARE.text} openmp=4", f"{SQUARE.text} fused openmp=4"]


def test_products_of_parts_are_no_products_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.ll"
    path.write_text(PLAIN.replace("float", "half").replace("i32 64", "i32 512").replace("4096", "262144"))
    actual = products_of_file(str(path), find_target("amx"))
    assert [question.text for question in actual] == ["matmul 512x512x512 half"]


def test_products_of_shapes() -> None:
    actual = products_of_shapes(["3x4x5"], ["f32", "u8s8"], "nt", AVX512)
    assert [question.text for question in actual] == ["matmul 3x4x5 float nt", "matmul 3x4x5 i8 -> i32 us nt"]
    actual = products_of_shapes(["3x4x5"], ["f32"], "nn", AVX512, 2, fused=True)
    assert [question.text for question in actual] == ["matmul 3x4x5 float fused openmp=2"]
    with pytest.raises(UsageError, match="unknown type 'f33'"):
        products_of_shapes(["3x4x5"], ["f33"], "nn", AVX512)


def test_a_local_process_measures_and_survives_a_crash() -> None:
    before, pool = child_processes(), LocalPool()
    trials = [Trial("matmul 8x8x8 float", "generic", (), "", rounds) for rounds in (1, 2)]
    try:
        ((_, outcome),) = pool.run(pool.kinds[0], trials[:1])
        assert not outcome.error
        kill(child_processes() - before)
        ((_, outcome),) = pool.run(pool.kinds[0], trials[:1])
        assert "ended with status -9" in outcome.error
        ((_, outcome),) = pool.run(pool.kinds[0], trials[1:])
        assert len(outcome.ratios) == 2
    finally:
        pool.close()
    assert child_processes() <= before


def test_a_broken_pipe_ends_the_process_silently() -> None:
    command = [sys.executable, "-m", "tlx.tuning.worker", str(min(os.sched_getaffinity(0))), "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        trial = asdict(Trial("matmul 8x8x8 float", "generic", (), "", 1))
        _, said = process.communicate(json.dumps(trial).encode() + b"\n", timeout=HANG_S)
    assert (process.returncode, said) == (0, b"")


def test_unknown_processors_are_refused() -> None:
    with pytest.raises(UsageError, match="there is no processor 4096"):
        LocalPool(4096)


def _tlx(*arguments: str, cache: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-c", "from tlx.cli import main; main()", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=HANG_S)


def test_the_command_tunes_and_the_lowering_uses_it(tmp_path: Path) -> None:
    source = tmp_path / "a.ll"
    source.write_text(PLAIN)
    done = _tlx("tune", str(source), "--target=generic", "--budget=3", cache=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "generic: matmul 64x64x64 float: " in done.stdout
    path = tmp_path / "tlx" / "tuned.json"
    content = json.loads(path.read_text())
    (entry,) = content["entries"].values()
    assert len(entry["trials"]) == 3
    entry["best"] = {"knobs": "tile=2x8", "ratio": 1.5, "rate": 9.0, "default_rate": 6.0, "date": "2026-11-22"}
    path.write_text(json.dumps(content))
    lowered = _tlx("lower", str(source), "--target=generic", "--tuned", "--remarks", "-o", "/dev/null", cache=tmp_path)
    assert "register tile 2x8" in lowered.stderr
    assert "tile=2x8 tuned on 2026-11-22 at 9.0 GFLOP/s" in lowered.stderr
    assert "tile=2x8, tuned on" in _tlx("tune", "--show", cache=tmp_path).stdout
    exported = tmp_path / "k.toml"
    assert _tlx("tune", "--export", str(exported), cache=tmp_path).returncode == 0
    assert 'tile = "2x8"' in exported.read_text()
    assert _tlx("tune", "--clear", cache=tmp_path).stderr == "deleted 1 product\n"
    assert not path.exists()
