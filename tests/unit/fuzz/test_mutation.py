"""Damaged texts and bitcode give a result or a clean error; anything else is detected."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from tlx.cli.group import group
from tlx.diagnostics import VerifyError
from tlx.fuzz import mutation_worker
from tlx.fuzz.mutation import (
    KINDS,
    SETTINGS,
    combined_text,
    damaged_models,
    front_end_examples,
    fuzz_malformed,
    mutated_bytes,
    mutated_text,
    seed_texts,
)
from tlx.fuzz.mutation_worker import HangError, failure_of, run_command, shrink_text, try_input
from tlx.ir.parser.module import parse
from tlx.llvm.codegen import emit_code
from tlx.lower import pipeline
from tlx.lower.pipeline import front_ends, raise_front_ends, verify

PLAIN = "define i32 @g(i32 %x, ptr %p) {\n  %y = load i32, ptr %p\n  %z = add i32 %x, %y\n  ret i32 %z\n}\n"
_LOWER = ("lower", "--no-verify-each", "-o", "/dev/null", "--target=avx2")


def test_some_corrupted_inputs(tmp_path: Path) -> None:
    lines: list[str] = []
    log = tmp_path / "log"
    right = fuzz_malformed("tlx.cli.group:group", 0, 600, 1, tmp_path, None, lines.append, resume=log)
    assert right, "\n".join(lines)
    assert lines[0].startswith("600 corrupted inputs: 0 failed")
    assert lines[-1] == f"{log}: any: 600 malformed inputs: 600 passed, 0 refused, 0 failed; seeds 0-599"
    fuzz_malformed("tlx.cli.group:group", 0, 600, 1, tmp_path, None, lines.append, resume=log)
    assert lines[2].startswith("0 corrupted inputs")


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_of_one_kind(kind: str, tmp_path: Path) -> None:
    lines: list[str] = []
    log = tmp_path / "log"
    right = fuzz_malformed("tlx.cli.group:group", 0, 40, 1, tmp_path, None, lines.append, resume=log, kind=kind)
    assert right, "\n".join(lines)
    expected = f"any: 40 malformed inputs: 40 passed, 0 refused, 0 failed; seeds 0-39; --profile={kind}"
    assert lines == [lines[0], f"{log}: {expected}"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_inputs_is_what_it_says(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the inputs themselves are intact: the suffix of each file is recorded."""
    suffixes: set[str] = set()

    def record(arguments: list[str], **_: object) -> None:
        suffixes.update(Path(argument.rpartition("=")[2]).suffix for argument in arguments)

    command = click.Command("tlx")
    monkeypatch.setattr(command, "main", record)
    for seed in range(60):
        try_input(command, seed, kind)
    languages = {suffix for _, suffix in front_end_examples()} - {".ll"}
    expected = {
        "programs": {".ll"},
        "languages": languages,
        "models": {suffix for _, suffix in damaged_models()},
        "settings": {".ll", ".toml", ".json"},
        "bitcode": {".bc"},
    }
    assert suffixes - {""} == expected[kind]


def test_the_time_ends_a_campaign_at_once(tmp_path: Path) -> None:
    """A batch may take longer than that: what it has tried by then counts."""
    lines: list[str] = []
    begun = time.monotonic()
    assert fuzz_malformed("tlx.cli.group:group", 0, 10**6, 1, tmp_path, 0.2, lines.append, resume=tmp_path / "log")
    assert time.monotonic() - begun < 5
    assert lines == [lines[0]]
    assert lines[0].startswith("0 corrupted inputs: 0 failed")


def test_files_of_settings_are_read() -> None:
    for option, suffix, text in SETTINGS:
        command = ("lower", "--no-verify-each", "-o", "/dev/null", "--target=avx2", option)
        assert run_command(group, text, command, suffix) == ""
        assert f"damaged{suffix}:1:" in run_command(group, "{", command, suffix)


def test_seeds_are_right() -> None:
    assert len(seed_texts()) > 60
    for text in seed_texts()[:60]:
        verify(raise_front_ends(parse(text)))


def test_examples_of_every_front_end_are_mutated() -> None:
    markers = {name for front_end in front_ends() for name in getattr(front_end, "MARKERS", ())[:1]}
    texts = [text for text, suffix in front_end_examples() if suffix == ".ll"]
    assert all(any(marker in text for text in texts) for marker in markers)
    assert {".onnx", ".mlirbc"} <= {suffix for _, suffix in damaged_models()}
    languages = [set(front_end.SUFFIXES) for front_end in front_ends() if hasattr(front_end, "TRANSLATE")]
    assert languages
    assert all(suffixes & {suffix for _, suffix in front_end_examples()} for suffixes in languages)


def test_texts_in_one_are_right() -> None:
    for seed in range(40):
        assert run_command(group, combined_text(random.Random(seed)), ("verify",)) == ""


def test_mutation_is_deterministic_and_changes_the_text() -> None:
    made = [mutated_text(random.Random(seed)) for seed in range(40)]
    assert made == [mutated_text(random.Random(seed)) for seed in range(40)]
    assert len(set(made) - set(seed_texts())) > 30
    assert mutated_bytes(random.Random(1), b"BC" * 50) != b"BC" * 50


def raised(text: str) -> str:
    """A text that LLVM accepts, with tensor intrinsics for what a front end wrote."""
    module = raise_front_ends(parse(text))
    verify(module)
    return str(module)


def test_bitcode_that_crashes_or_confuses_llvm_is_a_clean_error() -> None:
    bitcodes = [emit_code(text, "bc") for text in (PLAIN, *map(raised, seed_texts()[-6:]))]
    for seed in range(60):
        choose = random.Random(seed)
        data = mutated_bytes(choose, choose.choice(bitcodes))
        assert failure_of(lambda data=data: run_command(group, data, _LOWER, ".bc")) is None


@pytest.mark.parametrize(
    ("error", "text", "key"),
    [
        (KeyError("x"), "", "KeyError"),
        (RecursionError("x"), "<{[]}>", "RecursionError"),
        (RecursionError("x"), "<" * 60, None),
        (VerifyError("LLVM rejects this; this is a bug in TLX", name="f.ll"), "", "UncleanError"),
        (VerifyError("it is wrong"), "", "UncleanError no location"),
        (VerifyError("it is wrong", name="f.ll"), "", None),
    ],
)
def test_what_is_a_failure(monkeypatch: pytest.MonkeyPatch, error: Exception, text: str, key: str | None) -> None:
    def broken(*_: object, **__: object) -> str:
        raise error

    actual = _failure_with(monkeypatch, broken, text)
    assert actual is None if key is None else actual is not None and actual.startswith(key)


def test_a_hang_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*_: object) -> None:
        raise HangError

    def endless(*_: object, **__: object) -> str:
        while True:
            pass

    monkeypatch.setattr(mutation_worker, "SECONDS", 0.05)
    signal.signal(signal.SIGVTALRM, hang)
    assert str(_failure_with(monkeypatch, endless, "")).startswith("HangError")


def _failure_with(monkeypatch: pytest.MonkeyPatch, lower_text: Callable[..., str], text: str) -> str | None:
    monkeypatch.setattr(pipeline, "lower_text", lower_text)
    result = failure_of(lambda: run_command(group, text, _LOWER))
    return None if result is None else result[0]


def test_failing_texts_become_shorter() -> None:
    def use(text: str) -> None:
        if "bad" in text:
            raise KeyError("x")

    text = "\n".join(f"line {n}" if n != 37 else "bad" for n in range(100))
    actual = failure_of(lambda: use(text))
    assert actual is not None
    assert shrink_text(text, actual[0], use) == "bad"
