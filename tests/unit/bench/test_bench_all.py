"""`tools/measure/bench_all.py`: what it runs and what it says is missing; what runs here measures nothing."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tlx.bench import report, workloads

SCRIPT = Path(__file__).resolve().parents[3] / "tools/measure/bench_all.py"

PROGRAM = """
import json, sys
words = dict(word[2:].split("=") for word in sys.argv[2:])
cells = [{"row": sys.argv[1], "types": words["types"], "size": s, "variant": ""} for s in words["sizes"].split(",")]
report = {"machine": "", "target": "", "threads": 1, "lanes": 16, "peers": {}, "date": "", "cpu": "", "cells": cells}
json.dump(report, open(words["json"], "w"))
"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_all", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their module
    spec.loader.exec_module(module)
    return module


def test_the_runs_cover_the_table(tool: ModuleType) -> None:
    works = list(workloads.all_workloads())
    pieces = list(tool.pieces(works))
    assert sorted(work.key for piece in pieces for work in piece.works) == sorted(work.key for work in works)
    assert all(len(piece.works) == 1 or piece.seconds <= tool.PIECE_SECONDS for piece in pieces)
    longest = max(pieces, key=lambda piece: piece.seconds)
    assert [work.size for work in longest.works] == ["4096"]


def test_finished_runs_are_not_repeated(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = tool.Piece.command

    def fake(*arguments: object) -> list[str]:
        words: list[str] = command(*arguments)
        return [words[0], "-c", PROGRAM, *words[4:]]

    monkeypatch.setattr(tool.Piece, "command", fake)
    (tmp_path / "damaged.json").write_text("{")
    words = ["batch", "--cpus=0,1", f"--out={tmp_path}"]
    assert tool.main([*words, "--minutes=0"]) == 9
    assert "missing: batch bf16: 10000x8, 10000x16, 10000x32\n9 cells are missing" in capsys.readouterr().out
    assert tool.main(words) == 0
    (tmp_path / "damaged.json").unlink()
    assert len(report.read(str(tmp_path))["cells"]) == 9
    assert tool.main([*words, "--minutes=0"]) == 0
    assert "0 cells in 0 pieces" in capsys.readouterr().out
