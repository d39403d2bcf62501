"""Logs of `tlx fuzz --resume`: counts add up over runs, programs are not run twice, a damaged log is an error."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tlx.cli.fuzz import fuzz as command
from tlx.diagnostics import UsageError
from tlx.fuzz import campaign
from tlx.fuzz.campaign import CampaignPlan, fuzz
from tlx.fuzz.log import BATCH, FuzzLog, Result, Series
from tlx.fuzz.worker import Request
from tlx.fuzz.worker_pool import CheckOutcome, Worker

NEON = Series("neon", "programs", "--code-only")
LINE = {"target": "neon", "kind": "programs", "options": "", "passed": "0-3,5", "refused": "4", "failed": ""}


def run(*arguments: str) -> tuple[int, str]:
    """A run of `tlx fuzz`, which may not use colours."""
    result = CliRunner().invoke(command, [*arguments], standalone_mode=False)
    return result.exit_code, result.output


def test_runs_add_up(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    options = ("--targets=generic", "--ops=add,fadd", "--profile=small", f"--resume={log}")
    _, first = run(*options, "--count=2")
    assert "2 programs: 2 passed" in first
    _, second = run(*options, "--seed=1", "--count=2")
    assert "1 programs: 1 passed" in second
    assert f"{log}: generic: 3 programs: 3 passed, 0 refused, 0 failed; seeds 0-2; --profile=small --ops=" in second


def test_other_options_are_counted_apart(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    plans = (
        CampaignPlan(0, 1, ("generic",), tmp_path),
        CampaignPlan(0, 1, ("generic",), tmp_path, code_only=True),
        CampaignPlan(0, 1, ("generic",), tmp_path, emulator="qemu-aarch64 -cpu max", features=("+sve", "-dotprod")),
        CampaignPlan(0, 1, ("generic",), tmp_path, profile="graphs"),
        CampaignPlan(0, 1, ("generic",), tmp_path, threads=True),
    )
    series = [plan.series("generic") for plan in plans]
    assert len(set(series)) == len(plans)
    assert series[2].options == "--emulator='qemu-aarch64 -cpu max' --mattr=+sve,-dotprod"
    assert series[3].kind == "graphs"
    assert not Path(log).exists()


def test_a_batch_is_written_when_it_is_complete(tmp_path: Path) -> None:
    """A run that is killed then loses what follows only."""
    path = tmp_path / "log"
    log = FuzzLog.read(path)
    for seed in range(BATCH + 1):
        assert path.exists() == (seed == BATCH)
        log.note(NEON, seed, "refused" if seed == 3 else "passed")
    found = FuzzLog.read(path)
    assert [found.has_run(NEON, seed) for seed in (0, 3, BATCH - 1, BATCH)] == [True, True, True, False]
    log.flush()
    log.flush()
    line = f"neon: {BATCH + 1} programs: {BATCH} passed, 1 refused, 0 failed; seeds 0-{BATCH}; --code-only"
    assert list(FuzzLog.read(path).totals()) == list(log.totals()) == [line]
    assert len(path.read_text().splitlines()) == 2


def test_failed_programs_are_run_again(tmp_path: Path) -> None:
    results: tuple[Result, Result] = ("failed", "passed")
    path = tmp_path / "log"
    for result in results:
        log = FuzzLog.read(path)
        assert not log.has_run(NEON, 7)
        log.note(NEON, 7, result)
        log.flush()
    assert list(FuzzLog.read(path).totals()) == [
        "neon: 1 programs: 1 passed, 0 refused, 0 failed; seeds 7; --code-only"
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (json.dumps(LINE), "it is incomplete"),
        (json.dumps(LINE)[:30] + "\n", "it is not JSON"),
        ("\n", "it is not JSON"),
        ("[]\n", "it is not an object of JSON"),
        (json.dumps({**LINE, "passed": 3}) + "\n", "it has no text 'passed'"),
        (json.dumps({**LINE, "target": None}) + "\n", "it has no text 'target'"),
        (json.dumps({**LINE, "failed": "1-"}) + "\n", "'1-' is not a list of seeds"),
        (json.dumps({**LINE, "failed": "9-3"}) + "\n", "'9-3' is not a range"),
        (json.dumps({**LINE, "failed": "0-999999999999"}) + "\n", "is not a range of at most"),
        ("\x00\xff\n", "it is not JSON"),
    ],
)
def test_damaged_logs(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "log"
    path.write_bytes((json.dumps(LINE) + "\n" + line).encode("latin-1"))
    with pytest.raises(UsageError) as raised:
        FuzzLog.read(path)
    assert message in raised.value.message
    assert "line 2 of the log is damaged" in raised.value.message
    assert "remove the line" in raised.value.message
    assert str(path) in raised.value.render()


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Is a directory"):
        FuzzLog.read(tmp_path)
    with pytest.raises(UsageError, match="No such file"):
        FuzzLog.read(tmp_path / "missing" / "log")


def test_arrays_of_bfloat16_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(UsageError, match=r"pip install 'tlx-ir\[bfloat16\]'"):
        CliRunner().invoke(command, ["--count=1"], standalone_mode=False, catch_exceptions=False)


def test_failures_of_machine_code_are_located(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `--code-only`, the stages of a program are evaluated if its machine code fails."""

    def check(_worker: Worker, request: Request) -> CheckOutcome:
        stage = "evaluating to-2d" if request.check.evaluate else "running"
        return CheckOutcome(request, "mismatch" if request.source == 1 else "done", stage, "wrong")

    monkeypatch.setattr(campaign.Worker, "check", check)
    plan = CampaignPlan(
        0, 3, ("neon",), tmp_path, trials=0, emulator="qemu-aarch64", code_only=True, log=tmp_path / "log"
    )
    lines: list[str] = []
    assert not fuzz(plan, lines.append)
    assert "mismatch evaluating to-2d" in lines[0]
    assert "3 programs: 2 passed, 0 refused, 1 failed" in lines[-1]


def test_programs_that_cannot_run_are_evaluated() -> None:
    """Code for processors that this machine is not."""
    plan = CampaignPlan(0, 40, ("amx",), Path(), code_only=True)
    assert all(request.check.evaluate != request.check.run for request in plan.requests())


def test_features_are_added_to_the_targets() -> None:
    plan = CampaignPlan(0, 3, ("vsx",), Path(), emulator="qemu-ppc64le", features=("+power9-vector",))
    for request in plan.requests():
        assert Request.of_json(request.as_json()) == request
        assert request.check.options.features == ("+power9-vector",)
