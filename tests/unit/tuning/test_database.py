"""Results of tuning: stored in a file, used by the lowering, exported."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from tests.unit.tuning.programs import CPU, FUSED, KEY, PLAIN, SQUARE
from tlx.diagnostics import UsageError
from tlx.lower.knobs import KnobQuery, parse_knobs
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text
from tlx.lower.remarks import Remarks
from tlx.tuning.database import BestKnobs, Database, EntryKey, TunedKnobs, default_path
from tlx.tuning.knobs_file import parse_knobs_file
from tlx.tuning.session import format_database, format_knobs_file
from tlx.tuning.trial import Trial, TrialOutcome


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "cache" / "tuned.json")


def test_tuned_knobs_are_used_and_remarked(database: Database) -> None:
    database.finish(KEY, BestKnobs("tile=8x32", 1.1, 110.0, 100.0, "2026-11-22"), complete=True)
    remarks = Remarks()
    options = Options(stop_after="to-tiles", knobs=TunedKnobs(database, CPU), remarks=remarks)
    assert "phi <256 x float>" in lower_text(PLAIN, target="avx512", options=options)
    said = "tile=8x32 tuned on 2026-11-22 at 110.0 GFLOP/s, 1.10 times the model's choice"
    assert any(remark.message.endswith(said) for remark in remarks)


def test_a_fused_product_takes_the_plain_one_s_knobs_but_for_k(database: Database) -> None:
    database.finish(KEY, BestKnobs("tile=8x32,kc=32", 1.1, 110.0, 100.0, "2026-11-22"), complete=True)
    knobs = TunedKnobs(database, CPU)(KnobQuery(f"{SQUARE.text} fused", SQUARE.target, SQUARE.features))
    assert knobs == parse_knobs("tile=8x32")
    options = Options(stop_after="to-tiles", knobs=TunedKnobs(database, CPU))
    assert "phi <256 x float>" in lower_text(FUSED, target="avx512", options=options)


def test_knobs_are_stored_by_number_of_threads(database: Database) -> None:
    on_four = EntryKey(f"{SQUARE.text} openmp=4", KEY.target, KEY.features, CPU)
    database.finish(KEY, BestKnobs("tile=8x32,kc=32", 1.1, 110.0, 100.0, "2026-11-22"), complete=True)
    database.finish(on_four, BestKnobs("tile=4x32,kc=32", 1.1, 110.0, 100.0, "2026-11-22"), complete=True)
    query = KnobQuery(f"{SQUARE.text} openmp", SQUARE.target, SQUARE.features)
    fused = KnobQuery(f"{SQUARE.text} fused openmp", SQUARE.target, SQUARE.features)
    assert TunedKnobs(database, CPU, 4)(query) == parse_knobs("tile=4x32,kc=32")
    assert TunedKnobs(database, CPU, 2)(query) == parse_knobs("tile=8x32,kc=32")
    assert TunedKnobs(database, CPU, 4)(fused) == parse_knobs("tile=4x32")
    assert TunedKnobs(database, CPU, 4)(SQUARE) == parse_knobs("tile=8x32,kc=32")
    options = Options(stop_after="to-tiles", knobs=TunedKnobs(database, CPU, 4), threads="openmp")
    assert "phi <128 x float>" in lower_text(PLAIN, target="avx512", options=options)
    answers = parse_knobs_file(format_knobs_file(database.entries(), CPU), "tuned.toml")
    assert (answers(query).tile, answers(SQUARE).tile) == ((4, 32), (8, 32))


def test_a_version_of_a_target_takes_knobs_for_the_same_features(database: Database) -> None:
    database.finish(KEY, BestKnobs("tile=8x32", 1.1, 110.0, 100.0, "2026-11-22"), complete=True)
    features = tuple(reversed(SQUARE.features))
    assert TunedKnobs(database, CPU)(KnobQuery(SQUARE.text, "avx512.avx512vnni.avx512bf16", features)).tile == (8, 32)
    assert not TunedKnobs(database, CPU)(KnobQuery(SQUARE.text, "avx512.avx512vnni", features[1:]))


def test_tuned_knobs_that_do_not_fit_any_more_are_left_out(database: Database) -> None:
    database.finish(KEY, BestKnobs("tile=30x48", 1.1, 110.0, 100.0, "2026-11-22"), complete=True)
    remarks = Remarks()
    options = Options(knobs=TunedKnobs(database, CPU), remarks=remarks)
    assert lower_text(PLAIN, target="avx512", options=options) == lower_text(PLAIN, target="avx512")
    assert any("tile=30x48 tuned on" in r.message and "ignored: tile 30x48 needs" in r.message for r in remarks)


def _write(path: Path, number: int) -> None:
    database = Database(path)
    key = EntryKey(f"matmul {number}x8x8 float", "avx512", (), CPU)
    for rounds in range(1, 16):
        database.record(key, Trial(key.problem, key.target, (), "", rounds), TrialOutcome((1.0,)))


def test_writers_at_the_same_time_lose_nothing(database: Database) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(database.path, number)) for number in (1, 2, 3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
        assert writer.exitcode == 0
    assert [len(entry["trials"]) for entry in database.entries().values()] == [15, 15, 15]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1:1: error: the tuning database is damaged: expecting value"),
        ('{"schema" 1}', ":1:11: error: the tuning database is damaged: expecting ':' delimiter"),
        (
            '{"schema": ' + "9" * 5000 + "}",
            ":1:12: error: the tuning database is damaged: a number has too many digits",
        ),
        ("[]", "there is no schema"),
        ('{"schema": 1}', "there are no entries"),
        (
            '{"schema": 1, "entries": {"x": {}}}',
            ":1:27: error: the tuning database is damaged: the entry 'x' is not valid",
        ),
        ('{"schema": 99, "entries": {}}', "has schema 99, this TLX supports 1: update TLX"),
    ],
)
def test_a_damaged_database_is_an_error_and_stays(database: Database, text: str, message: str) -> None:
    database.path.parent.mkdir()
    database.path.write_text(text)
    with pytest.raises(UsageError) as caught:
        database.record(KEY, Trial(SQUARE.text, "avx512", (), "", 1), TrialOutcome())
    assert message in caught.value.render()
    assert database.path.read_text() == text
    assert not database.clear()
    assert [path.read_text() for path in database.path.parent.glob("*damaged*")] == [text]
    assert database.entries() == {}


def test_a_malformed_best_is_an_error(database: Database) -> None:
    database.finish(KEY, BestKnobs("tile=8x32", 1.1, 110.0, 100.0, "2026-11-22"), complete=True)
    database.path.write_text(database.path.read_text().replace("tile=8x32", "tile=8"))
    with pytest.raises(UsageError, match="is not valid"):
        database.entries()


def test_a_malformed_trial_is_an_error(database: Database) -> None:
    database.record(KEY, Trial(SQUARE.text, "avx512", (), "", 1), TrialOutcome())
    database.path.write_text(database.path.read_text().replace("best_ratio", "ratio"))
    with pytest.raises(UsageError, match="is not valid"):
        database.entries()


def test_the_database_is_in_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_path() == Path("/somewhere/tlx/tuned.json")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert default_path() == Path.home() / ".cache" / "tlx" / "tuned.json"


def test_a_database_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="could not write the tuning database"):
        Database(tmp_path / "file" / "tuned.json").finish(KEY, None, complete=True)


def test_clear_counts(database: Database) -> None:
    database.finish(KEY, None, complete=True)
    assert database.clear() == 1
    assert database.clear() == 0


def test_exported_knobs_are_read_again(database: Database) -> None:
    other = EntryKey("matmul 64x64x64 float nt", "avx512", SQUARE.features, CPU)
    database.finish(KEY, BestKnobs("tile=8x32,pack_b=false", 1.1, 110.0, 100.0, "2026-11-22"), complete=True)
    database.finish(other, BestKnobs("tile=4x32", 1.1, 110.0, 100.0, "2026-11-22"), complete=True)
    answers = parse_knobs_file(format_knobs_file(database.entries(), CPU), "tuned.toml")
    assert answers(SQUARE) == parse_knobs("tile=8x32,pack_b=false")
    assert answers(KnobQuery(other.problem, "avx512", ())) == parse_knobs("tile=4x32")
    assert "avx512: matmul 64x64x64 float: tile=8x32,pack_b=false, tuned on" in format_database(
        database.entries(), database.path
    )
    assert "tile" not in format_knobs_file(database.entries(), "another")
