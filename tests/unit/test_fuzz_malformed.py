"""Damaged texts and bitcode: a result or a clean error, and what is neither is found."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tlx import pipeline
from tlx.diagnostics import VerifyError
from tlx.fuzz import damage_worker
from tlx.fuzz.damage_worker import failure, simpler, use_bitcode, use_text
from tlx.fuzz.malformed import fuzz_malformed
from tlx.fuzz.mutate import damaged, damaged_bytes, front_end_examples, mixed, seeds
from tlx.ir.reader import parse
from tlx.pipeline import front_ends, raised, verify

_LOWER = ("lower", "--no-verify-each", "-o", "/dev/null", "--target=avx2")


def test_some_damaged_inputs(tmp_path: Path) -> None:
    lines: list[str] = []
    right = fuzz_malformed(0, 600, 1, tmp_path, None, lines.append)
    assert right, "\n".join(lines)
    assert lines[0].startswith("600 damaged inputs: 0 failed")


def test_seeds_are_right() -> None:
    assert len(seeds()) > 60
    for text in seeds()[:60]:
        verify(raised(parse(text)))


def test_every_front_end_is_damaged() -> None:
    markers = {name for front_end in front_ends() for name in getattr(front_end, "MARKERS", ())[:1]}
    texts = [text for text, suffix in front_end_examples() if suffix == ".ll"]
    assert all(any(marker in text for text in texts) for marker in markers)
    languages = [set(front_end.SUFFIXES) for front_end in front_ends() if hasattr(front_end, "SUFFIXES")]
    assert languages
    assert all(suffixes & {suffix for _, suffix in front_end_examples()} for suffixes in languages)


def test_texts_in_one_are_right() -> None:
    for seed in range(40):
        assert use_text(mixed(random.Random(seed)), ("verify",)) == ""


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


@pytest.mark.parametrize(
    ("error", "text", "key"),
    [
        (KeyError("x"), "", "KeyError"),
        (RecursionError("x"), "<{[]}>", "RecursionError"),
        (RecursionError("x"), "<" * 60, None),
        (VerifyError("LLVM rejects this; this is a bug of TLX", name="f.ll"), "", "UncleanError"),
        (VerifyError("it is wrong"), "", "UncleanError no place"),
        (VerifyError("it is wrong", name="f.ll"), "", None),
    ],
)
def test_what_is_a_failure(monkeypatch: pytest.MonkeyPatch, error: Exception, text: str, key: str | None) -> None:
    def broken(*_: object, **__: object) -> str:
        raise error

    found = _failure_with(monkeypatch, broken, text)
    assert found is None if key is None else found is not None and found.startswith(key)


def test_a_hang_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: object, **__: object) -> str:
        while True:
            pass

    monkeypatch.setattr(damage_worker, "SECONDS", 0.05)
    damage_worker.signal.signal(damage_worker.signal.SIGVTALRM, damage_worker._hang)
    assert str(_failure_with(monkeypatch, endless, "")).startswith("HangError")


def _failure_with(monkeypatch: pytest.MonkeyPatch, lower_text: Callable[..., str], text: str) -> str | None:
    monkeypatch.setattr(pipeline, "lower_text", lower_text)
    found = failure(lambda: use_text(text, _LOWER))
    return None if found is None else found[0]


def test_failing_texts_become_shorter() -> None:
    def use(text: str) -> None:
        if "bad" in text:
            raise KeyError("x")

    text = "\n".join(f"line {n}" if n != 37 else "bad" for n in range(100))
    found = failure(lambda: use(text))
    assert found is not None
    assert simpler(text, found[0], use) == "bad"
