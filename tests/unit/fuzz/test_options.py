"""Random options of a lowering besides its target: processors, features, widths, knobs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tlx.diagnostics import UsageError
from tlx.fuzz import check
from tlx.fuzz.campaign import CampaignPlan, check_on, file_text, replay, request_of
from tlx.fuzz.check import CheckSettings, check_program
from tlx.fuzz.generation.profiles import PROFILES
from tlx.fuzz.generation.programs import random_program
from tlx.fuzz.options import RandomOptions, is_runnable, random_options, without_workspace_argument
from tlx.fuzz.shrinking import shrink
from tlx.fuzz.worker import Request
from tlx.fuzz.worker_pool import CheckOutcome
from tlx.ir.parser.module import parse
from tlx.lower.knobs import NO_KNOBS, KnobQuery, parse_knobs
from tlx.lower.options import Options, Workspace
from tlx.lower.pipeline import lower
from tlx.target.lookup import find_target

TARGETS = ("generic", "avx2", "avx512", "amx", "avx2,avx512,amx")
ALL = RandomOptions("haswell", ("+avxvnni", "-f16c"), 256, "+avx2,+fma", "tile=4x16,kc=8", "tile=32x32,mc=64", 0)


@pytest.mark.parametrize("name", TARGETS)
def test_drawn_options_are_valid(name: str) -> None:
    """Processors, features and widths that the target has or may have; and half of the programs ask for none."""
    drawn = [random_options(name, seed) for seed in range(60)]
    assert drawn == [random_options(name, seed) for seed in range(60)]
    for options in drawn:
        target = find_target(name).on_cpu(options.cpu).with_attributes(options.features)
        assert not options.vector_bits or target.with_vector_bits(options.vector_bits)
        for text in filter(None, (options.knobs, options.matrix_knobs)):
            parse_knobs(text)
    assert 15 < sum(options.has_machine for options in drawn) < 45
    assert sum(bool(options.knobs) for options in drawn) > 20
    assert any(options.cpu for options in drawn)
    assert any(options.features for options in drawn)
    assert any(options.functions for options in drawn)
    assert any(options.vector_bits for options in drawn) == (name == "generic")
    assert any(options.matrix_knobs for options in drawn) == ("amx" in name)
    assert {options.workspace for options in drawn} == {"malloc", "arena", "argument"}


def test_no_options_without_a_target() -> None:
    assert random_options("", 7) == RandomOptions()


def test_halves_are_drawn_where_there_are_short_vectors_of_them() -> None:
    """LLVM 22 dies of `llvm.minnum` of 36 halves with AVX512-FP16 and without AVX512VL."""
    drawn = {
        name: {feature for seed in range(400) for feature in random_options(name, seed).features}
        for name in ("avx2", "avx512")
    }
    assert "+avx512fp16" in drawn["avx512"]
    assert "+avx512fp16" not in drawn["avx2"]


def test_knobs_for_vectors_and_for_a_matrix_unit() -> None:
    answers = RandomOptions(knobs="tile=4x16", matrix_knobs="tile=32x32").options(Options()).knobs
    amx = find_target("amx").features

    def tile(text: str, target: str, features: tuple[str, ...] = amx) -> object:
        return answers(KnobQuery(text, target, features)).tile

    assert tile("matmul 8x8x8 bfloat -> float", "amx") == (32, 32)
    assert tile("matmul 8x8x8 i8 -> i32 us", "amx") == (32, 32)
    assert tile("matmul 8x8x8 i8 i16 -> i32 us", "amx") == (4, 16)
    assert tile("matmul 8x8x8 float", "amx") == (4, 16)
    assert tile("matmul 8x8x8 half -> float", "amx") == (4, 16)
    assert tile("matmul 8x8x8 half -> float", "amx", (*amx, "+amx-fp16")) == (32, 32)
    assert tile("matmul 8x8x8 bfloat", "avx512.avx512vnni") == (4, 16)
    assert RandomOptions().options(Options()).knobs(KnobQuery("matmul 8x8x8 float", "amx", amx)) == NO_KNOBS


def test_features_of_functions_reach_their_kernels() -> None:
    options = RandomOptions(functions="+avx2,+fma,+f16c,+avxvnni")
    request = Request("small", 3, CheckSettings("avx2", drawn=options))
    assert request.text.count("define ") == request.text.count('"target-features"="+avx2,+fma,+f16c,+avxvnni" {')
    kernels = str(lower(parse(request.text), "avx2"))
    assert 'noinline "no-builtins" "target-features"="+avx2,+fma,+f16c,+avxvnni"' in kernels


def test_options_reach_the_lowering() -> None:
    options = ALL.options(Options(threads="openmp"))
    assert (options.cpu, options.features, options.vector_bits) == ("haswell", ("+avxvnni", "-f16c"), 256)
    assert (options.threads, options.weight_bytes) == ("openmp", 0)
    assert RandomOptions().options(Options()).weight_bytes == Options().weight_bytes
    with pytest.raises(UsageError, match="vectors of 512 bits"):
        check_program(
            random_program(PROFILES["small"], "small 0"),
            CheckSettings("avx2", drawn=RandomOptions(vector_bits=512)),
            print,
        )


@pytest.mark.parametrize("workspace", ["arena", "argument"])
def test_stages_are_evaluated_with_any_workspace(workspace: Workspace) -> None:
    """The evaluator does not pass memory for temporaries, as compiled code's callers do."""
    program = random_program(PROFILES["any"], "any 8")
    options = RandomOptions(workspace=workspace)
    assert options.options(Options()).workspace == workspace
    assert check_program(program, CheckSettings("generic", drawn=options), print).functions == len(program.functions)


def test_callers_without_memory_get_malloc() -> None:
    assert without_workspace_argument(Options(workspace="argument")) == Options(workspace="malloc")
    assert without_workspace_argument(RandomOptions(workspace="argument")) == RandomOptions(workspace="malloc")
    assert without_workspace_argument(RandomOptions(workspace="arena")) == RandomOptions(workspace="arena")


def test_code_runs_where_all_features_are() -> None:
    flags = frozenset({"avx2", "fma", "f16c", "avx_vnni"})
    avx2 = find_target("avx2")
    assert is_runnable(RandomOptions(), avx2, flags)
    assert is_runnable(RandomOptions("alderlake", ("+avxvnni", "+prefer-128-bit", "-f16c")), avx2, flags)
    assert is_runnable(RandomOptions(functions="+avx2,+fma"), avx2, flags)
    assert not is_runnable(RandomOptions("sierraforest"), avx2, flags)
    assert not is_runnable(RandomOptions("znver3"), avx2, flags)
    assert not is_runnable(RandomOptions(features=("+avxvnniint8",)), avx2, flags)
    assert not is_runnable(RandomOptions(functions="+avx2,+avxneconvert"), avx2, flags)


def test_campaigns_ask() -> None:
    plan = CampaignPlan(0, 20, ("generic",), Path(), opt="opt")
    checks = [request.check for request in plan.requests()]
    assert [check.drawn for check in checks] == [random_options("generic", seed) for seed in range(20)]
    assert 5 < sum(bool(check.optimise) for check in checks) < 15
    assert check_on("generic", 4).drawn == random_options("generic", 4)


def test_drawn_machines_keep_the_features_of_the_target() -> None:
    for variant in range(4):
        target = CheckSettings("avx512", variant=variant, drawn=RandomOptions(cpu="haswell")).lowering_target
        assert target.features == find_target("avx512").features


def test_options_are_shrunk() -> None:
    """Shrinking leaves what the failure needs: one of two features, one of two knobs."""

    def check(request: Request) -> CheckOutcome:
        options = request.check.drawn
        fails = "-f16c" in options.features and "kc=8" in options.knobs
        return CheckOutcome(request, "mismatch" if fails else "done", "running" if fails else "")

    first = check(Request("any", 5, CheckSettings("avx2", drawn=ALL)))
    smallest = shrink(first, check, 200)
    assert smallest.is_like(first)
    assert smallest.request.check.drawn == RandomOptions(features=("-f16c",), knobs="kc=8")


def test_file_of_a_failure_names_the_options() -> None:
    failure = CheckOutcome(
        Request("any", 7, CheckSettings("avx2", optimise="opt-19", drawn=ALL)), "mismatch", "running", "wrong"
    )
    text = file_text(failure, Path("x.ll"))
    knobs = "--knobs=tile=4x16,kc=8 (on a matrix unit: tile=32x32,mc=64)"
    machine = "--mcpu=haswell --mattr=+avxvnni,-f16c --vector-bits=256 --weight-bytes=0"
    assert f"; optimised by opt-19 -O2 first\n; lowered with {machine} {knobs}\n" in text
    assert request_of(text, "x.ll") == failure.request
    assert text.endswith(failure.request.text)
    plain = replace(failure, request=Request("any", 7, CheckSettings("avx2")))
    assert "lowered with" not in (text := file_text(plain, Path("x.ll")))
    assert "optimised by" not in text


def test_slow_checks_for_other_machines_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "STAGE_STEPS", 5)
    made = random_program(PROFILES["small"], "small 3")
    check_program(made, CheckSettings("avx2", run=False, drawn=RandomOptions(cpu="haswell")), print)


def test_a_replay_reports_missing_opt() -> None:
    failure = CheckOutcome(Request("any", 7, CheckSettings("avx2", optimise="/no/opt")), "mismatch")
    with pytest.raises(UsageError, match="was optimised by '/no/opt', which is not installed"):
        replay("x.ll", file_text(failure, Path("x.ll")), print)
