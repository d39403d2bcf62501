"""Translation validation: correct stages pass, wrong ones are errors, and notes name what cannot be checked."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tlx.api.validation import ValidationError, validate
from tlx.diagnostics import Note
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.lower import pipeline
from tlx.lower.context import LoweringContext, PipelineStep
from tlx.lower.options import Options

MATMUL = """\
define void @product(ptr %a, ptr %b, ptr %c) {
  %x = call token @llvm.tensor.load(ptr %a, <2 x i32> <i32 5, i32 7>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 9>)
  %y = call token @llvm.tensor.load(ptr %b, <2 x i32> <i32 7, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <30 x TYPE> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<30 x TYPE> %p, <2 x i32> <i32 5, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> <i32 0, i32 8>)
  ret void
}
"""  # noqa: E501
LOOP = """\
define i32 @rows(ptr %a, i64 %back, ptr %c, i32 %n) {
entry:
  %start = getelementptr i8, ptr %a, i64 -16
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr i32, ptr %start, i32 %i
  %t = call token @llvm.tensor.load(ptr elementtype(i32) %from, <2 x i32> <i32 2, i32 3>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <6 x i32> @llvm.tensor.transpose(token %t, <2 x i32> <i32 0, i32 1>)
  %u = call token @llvm.tensor.typeinfo(<6 x i32> %v, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %row = mul i32 %i, 6
  %to = getelementptr i32, ptr %c, i32 %row
  call void @llvm.tensor.store(ptr %to, token %u, <2 x i32> zeroinitializer)
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret i32 %next
}
"""  # noqa: E501


def matmul(element: str) -> str:
    return MATMUL.replace("TYPE", element).replace("load(ptr ", f"load(ptr elementtype({element}) ")


def after(monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[str], str]) -> None:
    """Make a stage give a wrong output."""

    def wrong(stage: PipelineStep) -> PipelineStep:
        def run(module: Module, context: LoweringContext) -> None:
            stage.run(module, context)
            vars(module).update(vars(parse(change(str(module)))))

        return PipelineStep(stage.name, stage.title, run) if stage.name == name else stage

    monkeypatch.setattr(pipeline, "STAGES", tuple(wrong(stage) for stage in pipeline.STAGES))


@pytest.mark.parametrize("element", ["float", "i8", "bfloat", "double"])
@pytest.mark.parametrize("target", ["generic", "avx512"])
def test_correct_stages_pass(element: str, target: str) -> None:
    assert validate(matmul(element), target) == []


def test_memory_in_front_of_a_pointer() -> None:
    assert validate(LOOP, "avx2") == []


@pytest.mark.parametrize(
    ("stage", "pattern", "replacement"),
    [
        ("to-2d", r"<i32 0, i32 9>", "<i32 0, i32 10>"),
        ("to-tiles", r"sext <8 x i8>", "zext <8 x i8>"),
        ("to-tiles", r"<i32 0, i32 8>", "<i32 0, i32 7>"),
    ],
)
def test_wrong_stages_are_detected(monkeypatch: pytest.MonkeyPatch, stage: str, pattern: str, replacement: str) -> None:
    def change(text: str) -> str:
        changed = re.sub(pattern, replacement, text)
        assert changed != text
        return changed

    after(monkeypatch, stage, change)
    with pytest.raises(ValidationError) as caught:
        validate(WIDE if "sext" in pattern else matmul("i32"), "avx2", options=Options(verify_each=False))
    assert f"after {stage} @product does not have the same meaning as the input" in caught.value.message
    assert caught.value.span is not None


WIDE = matmul("i32").replace("load(ptr elementtype(i32)", "load(ptr elementtype(i8)")


OPEN = """\
define i1 @f(ptr noalias %a, ptr noalias %c) {
  %v = load <600 x float>, ptr %a, align 4
  %w = fadd <600 x float> %v, %v
  %s = shufflevector <600 x float> %w, <600 x float> poison, <600 x i32> MASK
  store <600 x float> %s, ptr %c, align 4
  %t = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> <i32 1>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  ret i1 RESULT
}
"""  # noqa: E501


def test_undefined_results_may_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    lanes = ", ".join(f"i32 {7 * i % 600}" for i in range(1, 600))
    text = OPEN.replace("MASK", f"<i32 poison, {lanes}>").replace("RESULT", "undef")
    assert validate(text, "avx2") == []
    after(monkeypatch, "to-2d", lambda text: text.replace("fadd", "fsub"))
    with pytest.raises(ValidationError, match=r"element [1-9]\d* of %c \(float\) is 0\.0, expected"):
        validate(text, "avx2")


CANCELLING = """\
define void @f(ptr noalias %x, ptr noalias %c) {
  %a = load <300 x bfloat>, ptr %x
  %e = call <300 x bfloat> @llvm.exp.v300bf16(<300 x bfloat> %a)
  %l = call <300 x bfloat> @llvm.log.v300bf16(<300 x bfloat> %e)
  %d = fsub <300 x bfloat> %l, %a
  store <300 x bfloat> %d, ptr %c
  ret void
}
"""


def test_where_numbers_cancel_their_rounding_may_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the logarithm of an exponential, computed in float, a unit in the last place of 1 is left."""
    options = Options(bf16_intermediates="float")
    validate(CANCELLING, "avx512", options=options)
    after(monkeypatch, "legalize", lambda text: text.replace("fsub <16 x float>", "fadd <16 x float>"))
    with pytest.raises(ValidationError, match=r"after legalize @f .* element \d+ of %c \(bfloat\) is"):
        validate(CANCELLING, "avx512", options=options)


def test_message_names_argument_element_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    after(monkeypatch, "to-2d", lambda text: text.replace("<i32 0, i32 9>", "<i32 0, i32 8>"))
    with pytest.raises(ValidationError, match=r"element 8 of %c \(i32\) is -?\d+, expected -?\d+"):
        validate(matmul("i32"), "avx2")


def test_notes_name_what_cannot_be_checked() -> None:
    text = matmul("float").replace("  ret void", "  call void @elsewhere()\n  ret void") + "declare void @elsewhere()\n"
    (note,) = validate(text, "avx2")
    assert isinstance(note, Note)
    assert "define" not in repr(note)  # a place in a file does not print the file
    assert note.message.startswith("@product was not checked: call to @elsewhere")
    assert note.span is not None


def test_large_vectors_in_signatures_are_checked_where_they_are_called() -> None:
    text = """
define internal <6400 x float> @twice(<6400 x float> %x) {
  %y = fadd <6400 x float> %x, %x
  ret <6400 x float> %y
}

define void @f(ptr noalias %p, ptr noalias %q) {
  %x = load <6400 x float>, ptr %p, align 4
  %y = call <6400 x float> @twice(<6400 x float> %x)
  store <6400 x float> %y, ptr %q, align 4
  ret void
}
"""
    notes = validate(text, "generic")
    assert any("@twice was not checked: its large vectors are passed by pointer" in str(note) for note in notes)
    assert not any("@f was not checked:" in str(note) for note in notes)
