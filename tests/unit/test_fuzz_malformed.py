"""Damaged texts and bitcode: a result or a clean error, and what is neither is found."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tlx.fuzz import damage_worker
from tlx.fuzz.damage_worker import failure, simpler, use_bitcode, use_text
from tlx.fuzz.malformed import fuzz_malformed
from tlx.fuzz.mutate import damaged, damaged_bytes, seeds
from tlx.ir.reader import parse
from tlx.pipeline import verify


def test_some_damaged_inputs(tmp_path: Path) -> None:
    lines: list[str] = []
    right = fuzz_malformed(0, 600, 1, tmp_path, None, lines.append)
    assert right, "\n".join(lines)
    assert lines[0].startswith("600 damaged inputs: 0 failed")


def test_seeds_are_right() -> None:
    assert len(seeds()) > 60
    for text in seeds()[:40]:
        verify(parse(text))


def test_damage_is_the_same_each_time_and_does_something() -> None:
    made = [damaged(random.Random(seed)) for seed in range(40)]
    assert made == [damaged(random.Random(seed)) for seed in range(40)]
    assert len(set(made) - set(seeds())) > 30
    assert damaged_bytes(random.Random(1), b"BC" * 50) != b"BC" * 50


def test_bitcode_that_crashes_or_confuses_llvm_is_a_clean_error() -> None:
    bitcodes = damage_worker._bitcodes()
    for seed in range(60):
        choose = random.Random(seed)
        data = damaged_bytes(choose, choose.choice(bitcodes))
        assert failure(lambda data=data: use_bitcode(data, "avx2")) is None


def test_tracebacks_and_hangs_are_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_text: str, *_: object, **__: object) -> None:
        raise KeyError("x")

    def endless(_text: str, *_: object, **__: object) -> None:
        while True:
            pass

    monkeypatch.setattr(damage_worker, "SECONDS", 0.05)
    monkeypatch.setattr(damage_worker, "lower_text", broken)
    found = failure(lambda: use_text("", "avx2", judged=False))
    assert found is not None
    assert found[0].startswith("KeyError")
    damage_worker.signal.signal(damage_worker.signal.SIGVTALRM, damage_worker._hang)
    monkeypatch.setattr(damage_worker, "lower_text", endless)
    found = failure(lambda: use_text("", "avx2", judged=False))
    assert found is not None
    assert found[0].startswith("HangError")


def test_failing_texts_become_shorter() -> None:
    def use(text: str) -> None:
        if "bad" in text:
            raise KeyError("x")

    text = "\n".join(f"line {n}" if n != 37 else "bad" for n in range(100))
    found = failure(lambda: use(text))
    assert found is not None
    assert simpler(text, found[0], use) == "bad"
