"""The tools of `tlx fuzz`: the same seed makes the same program, wrong stages are detected, failures are shrunk."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.tools import child_processes, kill
from tlx.diagnostics import UsageError
from tlx.fuzz import campaign
from tlx.fuzz.campaign import CampaignPlan, CampaignReport, check_on, file_text, fuzz, request_of
from tlx.fuzz.check import CheckSettings, MismatchError, RefusedError, check_program
from tlx.fuzz.generation.model import ArrayParameter, ChoiceNode, Choices, InitialContents, difference
from tlx.fuzz.generation.profiles import PROFILES
from tlx.fuzz.generation.programs import OPERATIONS, is_available, parse_operations, random_program
from tlx.fuzz.options import RandomOptions
from tlx.fuzz.shrinking import shrink
from tlx.fuzz.worker import Request
from tlx.fuzz.worker_pool import CheckOutcome, Worker
from tlx.intrinsics.numpy_types import dtype_of
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I32, Type
from tlx.target.installed import targets

FLOATS = (HALF, BFLOAT, FLOAT, DOUBLE)


def quiet(_: str) -> None:
    pass


# Checks


_REFUSED = (
    "define void @refused(ptr %p) { %v = load <5000 x i8>, ptr %p store volatile <5000 x i8> %v, ptr %p ret void }"
)


def test_a_program_that_is_refused_only_after_opt_is_a_failure(tmp_path: Path) -> None:
    opt = tmp_path / "opt"
    opt.write_text(f"#!/bin/sh\ncat\necho '{_REFUSED}'\n", encoding="utf-8")
    opt.chmod(0o755)
    made, check = random_program(PROFILES["small"], "small 3"), CheckSettings("generic", run=False, optimise=str(opt))
    with pytest.raises(MismatchError, match="a program is refused only after -O2 has optimised it: store of <5000 x"):
        check_program(made, check, quiet)
    with pytest.raises(RefusedError):
        check_program(replace(made, text=f"{made.text}\n{_REFUSED}"), replace(check, optimise=""), quiet)


def test_small_products_are_multiplied_on_tiles_too() -> None:
    worker = Worker()
    options = RandomOptions(matrix_knobs="tile=32x32")
    outcome = worker.check(
        Request("tiles", 1, CheckSettings("amx", emulate=True, evaluate=False, variant=1, drawn=options))
    )
    worker.close()
    assert outcome.kind == "done"
    assert outcome.tile_kernels > 0


# Choices


def test_same_seed_same_choices_and_the_tree_repeats_them() -> None:
    for seed in range(10):
        made = random_program("any", seed)
        assert random_program("any", seed).text == made.text
        assert random_program("any", made.node).text == made.text
        assert random_program("any", ChoiceNode.of_json(made.node.as_json())).text == made.text


def test_empty_tree_is_a_simple_program() -> None:
    made = random_program("any", ChoiceNode(parts=[ChoiceNode(parts=[ChoiceNode()])]))
    assert made.text.count("define") == 1
    assert len(made.text) < 1500


def test_choices_of_a_tree_that_ends_are_zero() -> None:
    choose = Choices(ChoiceNode([3, 1000]))
    assert [choose.below(5), choose.below(7), choose.below(9)] == [3, 6, 0]
    assert choose.choice("abc") == "a"
    assert choose.sample([1, 2, 3], 3) == [1, 2, 3]
    assert not choose.chance(0.99)


def test_parts_draw_independently() -> None:
    """Dropping one leaves what the others draw."""
    made = random_program("any", 12)
    assert len(made.node.parts) == 3
    fewer = made.node.copy()
    del fewer.parts[-1]
    shorter = random_program("any", fewer)
    assert [f.text for f in shorter.functions] == [f.text for f in made.functions[:2]]


def test_names_of_operations() -> None:
    assert parse_operations("matmul,fadd") == ("matmul", "fadd")
    assert parse_operations("reduce") == tuple(f"reduce.{op}" for op in "add mul max min and or xor".split())
    assert "loop" not in parse_operations("-loop")
    assert set(parse_operations("-loop")) | {"loop"} == set(OPERATIONS)
    assert parse_operations("") == ()
    with pytest.raises(UsageError, match="unknown operation 'matmull'"):
        parse_operations("matmull")


# Programs


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if is_available(name)])
def test_each_operation_alone_is_valid(operation: str) -> None:
    """LLVM accepts what it makes, and the evaluator finds nothing undefined in it."""
    profile = replace(PROFILES["any"], operations=(operation,))
    programs = (random_program(profile, f"any {seed}") for seed in range(10))
    made = next((program for program in programs if operation in program.operations), None)
    assert made is not None or operation in NEEDS_OTHERS
    if made is not None:
        check_program(made, CheckSettings(), quiet)


NEEDS_OTHERS = ("call",)
"""Operations that do nothing alone."""


# Contents


@pytest.mark.parametrize("element", FLOATS)
def test_differences(element: Type) -> None:
    buffer = ArrayParameter("b", element, 4, zeros=True)
    buffer.written[:2] = True
    dtype = dtype_of(element)
    zeros = np.zeros(4, dtype)

    def other(at: int, value: float) -> str | None:
        changed = zeros.copy()
        changed[at] = value
        return difference(changed, zeros, buffer)

    assert difference(zeros.copy(), zeros, buffer) is None
    assert "element 1 is 1" in (other(1, 1.0) or "")
    assert other(0, -0.0) is not None, "the sign is determined"
    assert other(3, -0.0) is not None, "nothing is written there"
    buffer.zeros = False
    assert other(0, -0.0) is None
    assert other(3, -0.0) is not None


@pytest.mark.parametrize("element", FLOATS)
def test_units_in_the_last_place(element: Type) -> None:
    buffer = ArrayParameter("b", element, 3, ulps=2.0)
    buffer.written[:] = True
    dtype = dtype_of(element)
    expected = np.array([1.0, -0.1, np.inf], dtype)

    def moved(steps: int) -> str | None:
        bits = expected.view(f"u{dtype.itemsize}").copy()
        bits[:2] += np.array(steps).astype(bits.dtype)
        return difference(bits.view(dtype), expected, buffer)

    assert [moved(steps) is None for steps in (-2, 0, 2, 3)] == [True, True, True, False]


def test_wild_contents_have_everything() -> None:
    for element in FLOATS:
        buffer = ArrayParameter("b", element, 4000, InitialContents(wild=True))
        buffer.data[:] = True
        values = buffer.fill(np.random.default_rng(1), 0).astype(np.float64)
        tiny = np.finfo(np.float16).smallest_normal if element == HALF else 2.0**-126
        assert np.isnan(values).any()
        assert np.isinf(values).any()
        assert (np.signbit(values) & (values == 0)).any()
        if element != DOUBLE:
            assert ((np.abs(values) < tiny) & (values != 0)).any()


# Failures


def test_wrong_results_are_detected_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage 1 that reads another row: the smallest program that shows it is a few lines."""
    request = Request("any", 5, CheckSettings("avx2", run=False), ("add", "fadd", "xor", "relu", "concat"))

    def check(candidate: Request) -> CheckOutcome:
        wrong = "add <" in candidate.program().text
        return (
            CheckOutcome(candidate, "mismatch", "evaluating to-2d", "wrong")
            if wrong
            else CheckOutcome(candidate, "done")
        )

    first = check(request)
    assert first.is_failure
    smallest = shrink(first, check, 300)
    text = smallest.request.program().text
    assert smallest.is_like(first)
    assert " add <1 x i32>" in text or " fadd <1 x float>" in text
    assert text.count("define") == 1
    assert len(text) < len(request.program().text) / 3
    monkeypatch.undo()


def test_worker_survives_a_crash_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    before, worker = child_processes(), Worker()
    request = Request("small", 3, CheckSettings())
    try:
        assert worker.check(request).kind == "done"
        kill(child_processes() - before)
        assert worker.check(request).kind == "crash"
        assert worker.check(request).kind == "done"
    finally:
        worker.close()
    monkeypatch.undo()


def test_file_of_a_failure_says_how_to_run_it(tmp_path: Path) -> None:
    report = CampaignReport(tmp_path)
    node = random_program("any", "any 7").node
    failure = CheckOutcome(Request("any", 7, CheckSettings("avx2")), "mismatch", "running", "b0 of @f0: wrong")
    assert report.note(failure)
    smallest = CheckOutcome(Request("any", node, CheckSettings("avx2")), "mismatch", "running", "b0 of @f0: wrong")
    path = report.write(failure, smallest)
    text = path.read_text()
    assert text == file_text(smallest, path)
    assert request_of(text, str(path)).program().text == smallest.request.program().text
    assert f"tlx fuzz --replay {path}" in text
    assert any("mismatch running" in line for line in report.summary(1.0))


def test_campaign(tmp_path: Path) -> None:
    lines: list[str] = []
    assert fuzz(CampaignPlan(0, 4, ("generic",), tmp_path, "any", ("add", "concat", "fadd", "relu")), lines.append)
    assert lines[0].startswith("4 programs: 4 passed")


def test_processors_and_features_are_drawn_for_this_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert not any(check_on("vsx", seed).drawn.has_machine for seed in range(20))
    assert any(check_on("avx2", seed).drawn.has_machine for seed in range(20))


@pytest.mark.parametrize("has_amx", [False, True])
def test_matrix_units_are_emulated_on_request(has_amx: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = frozenset(flag for target in targets().values() for flag in target.requires)
    without = frozenset(flag for flag in flags if not flag.startswith("amx"))
    monkeypatch.setattr(campaign, "cpu_flags", lambda: flags if has_amx else without)
    assert check_on("amx", 0).emulate != has_amx
    plan = CampaignPlan(0, 6, ("amx", "generic"), Path(), emulate_matrix=True)
    checks = [request.check for request in plan.requests()]
    assert [check.emulate for check in checks] == [check.target == "amx" for check in checks]
    assert any(check.run for check in checks if check.emulate)


def test_emulated_matrix_units_multiply_tiles(tmp_path: Path) -> None:
    lines: list[str] = []
    plan = CampaignPlan(0, 2, ("amx",), tmp_path, "tiles", emulate_matrix=True)
    assert fuzz(plan, lines.append)
    assert re.search(r"\d+ kernels use a matrix unit", "\n".join(lines))


def test_integers_are_compared_bit_by_bit() -> None:
    buffer = ArrayParameter("b", I32, 2)
    assert difference(np.array([1, 2], np.int32), np.array([1, 3], np.int32), buffer) is not None


def test_each_level_of_optimisation_meets_each_kind_of_machine() -> None:
    """What a variant chooses besides (features, caches, teams) says nothing about the level."""
    drawn = {(variant % 12, CheckSettings("generic", variant=variant).opt_level) for variant in range(1000)}
    assert drawn == {(rest, level) for rest in range(12) for level in range(4)}


def test_the_time_ends_programs_that_still_run(tmp_path: Path) -> None:
    """A program may run for minutes. What has run by then is in the log and in the summary."""
    lines: list[str] = []
    before, log = child_processes(), tmp_path / "log"
    begun = time.monotonic()
    plan = CampaignPlan(0, 1_000_000, ("generic",), tmp_path, "small", jobs=2, seconds=2, log=log)
    assert fuzz(plan, lines.append)
    assert 2 <= time.monotonic() - begun < 10
    assert child_processes() == before
    ran = int(lines[0].split()[0])
    assert not ran or lines[-1].startswith(f"{log}: generic: {ran} programs: ")


def test_a_search_that_has_to_end_keeps_what_it_has() -> None:
    failure = CheckOutcome(Request("small", 3, CheckSettings()), "mismatch", "running")

    def check(request: Request) -> CheckOutcome:
        raise TimeoutError(request)

    assert shrink(failure, check) == failure
