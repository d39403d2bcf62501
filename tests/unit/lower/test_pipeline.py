"""The pipeline: steps, options, what passes through."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from tlx.bench.workloads import convolutions
from tlx.diagnostics import LoweringError, ParseError, UsageError, VerifyError
from tlx.ir.module import Module, UnparsedText
from tlx.ir.parser.module import parse
from tlx.llvm.verification import DeferredVerification
from tlx.lower import options, pipeline
from tlx.lower.context import LoweringContext, PipelineStep
from tlx.lower.options import Options, Step
from tlx.lower.pipeline import lower, lower_text
from tlx.lower.remarks import Remarks

PLAIN = "define void @f() {\n  ret void\n}\n"
SQUARE = """
define void @square(ptr %x, ptr %y) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <9 x float> @llvm.tensor.matmul(token %t, token %t)
  store <9 x float> %v, ptr %y
  ret void
}
"""  # noqa: E501


def test_the_stages_are_those_that_options_know() -> None:
    from tlx.lower.pipeline import STAGES

    assert tuple(stage.name for stage in STAGES) == options.STAGE_NAMES
    assert [step.name for step in pipeline.steps()] == ["raise", "verify", "canonicalise", *options.STAGE_NAMES]


def test_text_without_tensors_passes_through() -> None:
    assert lower_text(PLAIN) is PLAIN


def test_text_without_tensors_is_verified() -> None:
    with pytest.raises(ParseError):
        lower_text("define garbage")
    assert lower_text("define garbage", options=Options(verify_each=False)) == "define garbage"


def test_large_text_without_tensors_is_verified_only_on_request() -> None:
    text = "define garbage\n".ljust(pipeline.UNVERIFIED_SIZE, ";")
    with pytest.raises(ParseError):
        lower_text(text)
    text += ";"
    remarks = Remarks()
    assert lower_text(text, "large.ll", options=Options(remarks=remarks)) is text
    (said,) = [remark.render() for remark in remarks]
    assert said.startswith("large.ll:1:1: remark: 4.2 MB without tensor operations returned unchecked")
    assert said.endswith("[verify]\ndefine garbage\n^")
    with pytest.raises(ParseError):
        lower_text(text, options=Options(verify_each=True))
    silent = Remarks()
    lower_text(text, options=Options(verify_each=False, remarks=silent))
    assert not list(silent)


def test_large_text_with_tensors_is_verified() -> None:
    with pytest.raises(ParseError):
        lower_text(SQUARE + "define void @garbage() {\n  nonsense\n}\n".ljust(pipeline.UNVERIFIED_SIZE, ";"))


def test_a_module_without_tensors_passes_through() -> None:
    assert str(lower(parse(PLAIN))) == PLAIN


def test_every_step_can_be_printed() -> None:
    seen: list[tuple[str, bool]] = []

    def look(step: Step, module: Module) -> None:
        seen.append((step.name, "llvm.tensor.matmul.v9f32" in str(module)))

    lower(parse(SQUARE), "generic", options=Options(print_after=look))
    assert [name for name, _ in seen] == [step.name for step in pipeline.steps()]
    assert dict(seen)["verify"] is False
    assert dict(seen)["canonicalise"] is True
    assert dict(seen)["legalize"] is False


@pytest.mark.parametrize("stage", options.STAGE_NAMES)
def test_the_output_of_a_stage_can_be_lowered(stage: str) -> None:
    halfway = lower_text(SQUARE, target="generic", options=Options(stop_after=stage))
    assert ("llvm.tensor." in halfway) == (stage != "legalize")
    assert "llvm.tensor." not in lower_text(halfway, target="generic")


@pytest.mark.parametrize("stage", options.STAGE_NAMES[:-1])
def test_two_runs_give_the_same_as_one(stage: str) -> None:
    """The second run recognises rows that the first one interleaved in strips; a program's own are not."""
    text = convolutions.convolution("bf16", 64, 64, 8, 3, 1).text()
    halfway = lower_text(text, target="amx", options=Options(stop_after=stage, verify_each=False))
    once, twice = (
        lower_text(source, target="amx", options=Options(start_after=start, verify_each=False))
        for source, start in ((text, None), (halfway, stage))
    )
    assert [line for line in twice.splitlines() if line] == [line for line in once.splitlines() if line]


def test_metadata_of_loops_disappears_in_the_second_run() -> None:
    """The loop over a batch of products that are not worth threads: it calls a kernel, and no tensor operations."""
    text = (Path(__file__).parents[3] / "examples/ir/matmul.ll").read_text()
    serial = Options(threads="openmp", thread_cycles=10**9)
    halfway = lower_text(text, target="avx2", options=replace(serial, stop_after="to-tiles"))
    assert "!tlx.independent" in halfway
    lowered = lower_text(halfway, target="avx2", options=replace(serial, start_after="to-tiles"))
    assert "!tlx.independent" not in lowered


@pytest.mark.parametrize("stage", options.STAGE_NAMES[:-1])
def test_input_that_is_no_stages_output_is_refused(stage: str) -> None:
    with pytest.raises(LoweringError, match=f"the input is not the output of {stage}|not lowered to tiles here"):
        lower_text(SQUARE, target="generic", options=Options(start_after=stage))


def test_at_least_one_stage_runs() -> None:
    assert Options(start_after="to-2d", stop_after="to-tiles").stages == ("to-tiles",)
    for start, stop in (("to-tiles", "to-2d"), ("to-2d", "to-2d")):
        with pytest.raises(
            UsageError, match=f"no stage is left to run: --start-after={start} with --stop-after={stop}"
        ):
            Options(start_after=start, stop_after=stop)


def test_broken_rules_point_at_the_input() -> None:
    with pytest.raises(VerifyError) as error:
        lower_text(SQUARE.replace("i32 3>", "i32 4>", 1), "square.ll")
    assert error.value.span
    assert error.value.span.place.startswith("square.ll:4:")


def test_errors_in_a_stages_output_name_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(module: Module, _context: object) -> Module:
        module.functions[0].entry.terminator.text = "ret i32 %nothing"
        return module

    steps = [*pipeline.steps()[:3], PipelineStep("to-2d", "LowerTensorsTo2D", spoil)]
    monkeypatch.setattr(pipeline, "steps", lambda: steps)
    with pytest.raises(ParseError, match=r"LLVM rejects the output of to-2d: .*please report"):
        lower_text(SQUARE)


def test_tensors_that_are_left_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "steps", list)
    with pytest.raises(LoweringError, match=r"@llvm\.tensor\.load is left after lowering"):
        lower_text(SQUARE)


def test_front_ends_raise_text_with_their_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    def to_square(module: Module) -> Module:
        return parse(SQUARE, module.source.name)

    monkeypatch.setattr(pipeline, "front_ends", lambda: (SimpleNamespace(MARKERS=("@my_square",), RAISE=to_square),))
    assert not pipeline.has_work(PLAIN)
    assert pipeline.has_work("declare void @my_square()")
    assert str(pipeline.raise_front_ends(parse("declare void @my_square()"))) == SQUARE
    assert str(pipeline.raise_front_ends(parse(PLAIN))) == PLAIN


def test_unknown_stages_and_features_are_refused() -> None:
    with pytest.raises(
        UsageError, match="'stop_after': 'tiles' is not one of 'to-2d', 'to-tiles', 'legalize'; did you mean 'to-tiles'"
    ):
        Options(stop_after="tiles")
    with pytest.raises(UsageError, match="feature 'avx2' needs a '\\+'"):
        Options(features=("avx2",))


def test_features_change_the_target() -> None:
    text = lower_text(SQUARE, target="avx512", options=Options(features=("-avx512bf16", "+amx-fp16")))
    (features,) = set(re.findall('"target-features"="([^"]*)"', text))
    assert "+avx512bf16" not in features
    assert "+amx-fp16" in features


@pytest.mark.parametrize("stage", ["to-2d", "to-tiles"])
def test_a_compilation_blames_the_stage_whose_output_is_invalid(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = pipeline.steps()

    def run_wrongly(step: PipelineStep, module: Module, context: LoweringContext) -> Module:
        module = step.run(module, context) or module
        module.append(UnparsedText("\n\ndefine void @wrong() {\n  ret i32 0\n}"))
        return module

    wrong = [replace(s, run=partial(run_wrongly, s)) if s.name == stage else s for s in steps]
    monkeypatch.setattr(pipeline, "steps", lambda: wrong)
    with pytest.raises(ParseError, match=rf"LLVM rejects the output of {stage}: .*this is a bug in TLX"):
        lower_text(SQUARE, is_compiled=True)


def test_a_compilation_blames_the_stage_before_one_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def write_garbage(module: Module, _context: LoweringContext) -> None:
        module.append(UnparsedText("\n\nno LLVM IR"))

    def fail(_module: Module, _context: LoweringContext) -> None:
        raise AssertionError

    first, *others = pipeline.steps()
    garbage, failing = PipelineStep("to-2d", "Garbage", write_garbage), PipelineStep("to-tiles", "Failing", fail)
    monkeypatch.setattr(pipeline, "steps", lambda: [first, *others[:2], garbage, failing])
    with pytest.raises(ParseError, match="LLVM rejects the output of to-2d"):
        lower_text(SQUARE, is_compiled=True)


def test_a_compilation_that_runs_again_has_each_remark_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(_verification: DeferredVerification) -> bool:
        return False

    first, second = Remarks(), Remarks()
    expected = lower_text(SQUARE, options=Options(remarks=first), is_compiled=True)
    monkeypatch.setattr(DeferredVerification, "is_accepted", reject)
    assert lower_text(SQUARE, options=Options(remarks=second), is_compiled=True) == expected
    assert [str(remark) for remark in second] == [str(remark) for remark in first]
    assert list(first)


def test_a_compilation_needs_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        message = "can't start new thread"
        raise RuntimeError(message)

    expected = lower_text(SQUARE)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert lower_text(SQUARE, is_compiled=True) == expected
