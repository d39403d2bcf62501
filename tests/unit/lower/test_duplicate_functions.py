"""Functions that differ by their names only share what the lowering makes of the first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.bench.programs import equal_functions
from tlx.diagnostics import TlxError
from tlx.ir.functions import DuplicateFunction
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.tensors.calls import canonicalise
from tlx.llvm.judge import judge
from tlx.lower import pipeline
from tlx.lower.options import Options, Step
from tlx.lower.pipeline import lower, lower_text

_PROGRAM = equal_functions(3)


def _twins(text: str) -> list[tuple[str, str]]:
    items = parse(text, wanted=lambda _text: True, duplicates=True).items
    return [(item.name, item.original.name) for item in items if isinstance(item, DuplicateFunction)]


def test_a_module_with_twins_is_written_as_it_was_read() -> None:
    module = parse(_PROGRAM, duplicates=True)
    assert [function.name for function in module.functions] == ["product0"]
    assert _twins(_PROGRAM) == [("product1", "product0"), ("product2", "product0")]
    assert str(module) == _PROGRAM
    assert not _twins(_PROGRAM.replace("%a", "%lhs", 3))


@pytest.mark.parametrize("target", ["amx", "avx2"])
def test_every_stage_leaves_what_it_leaves_of_functions_one_by_one(target: str) -> None:
    def outputs(module: Module) -> list[str]:
        found: list[str] = []

        def note(_step: Step, module: Module) -> None:
            found.append(str(module))

        lower(module, target, options=replace(Options(verify_each=False), print_after=note))
        return found

    assert outputs(parse(_PROGRAM, duplicates=True)) == outputs(parse(_PROGRAM))


def test_a_program_of_the_c_header_is_raised_first() -> None:
    text = _PROGRAM + "\ndeclare i32 @tensor_load(ptr, ...)\n"
    assert lower_text(text, target="avx2") == str(lower(parse(text), "avx2"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("void @f(i32 %x) { ret void }", "void @g(i64 %x) { ret void }"),
        ("void @f() { ret void }", "internal void @g() { ret void }"),
        ("void @f() #0 { ret void }", "void @g() #1 { ret void }"),
        ("void @f() !dbg !1 { ret void }", "void @g() !dbg !2 { ret void }"),
        ("void @f() comdat($f) { ret void }", "void @g() comdat($g) { ret void }"),
        ('void @f() section ".text.f" { ret void }', 'void @g() section ".text.g" { ret void }'),
        ("void @f() { call void @f() ret void }", "void @g() { call void @g() ret void }"),
        ("void @f() { call void @f() ret void }", "void @g() { call void @f() ret void }"),
        ("void @f(<5000 x float> %x) { ret void }", "void @g(<5000 x float> %x) { ret void }"),
        ("<5000 x i8> @f() { ret <5000 x i8> undef }", "<5000 x i8> @g() { ret <5000 x i8> undef }"),
    ],
)
def test_other_functions_are_no_twins(first: str, second: str) -> None:
    assert not _twins(f"define {first}\ndefine {second}\n")


@pytest.mark.parametrize("name", ["g", '"a b"', "f1", "llvm.f"])
def test_a_twin_has_any_name(name: str) -> None:
    text = f"define void @f(ptr %x) {{ call void @h(ptr %x) ret void }}\n; more\n  define void @{name}"
    text += "(ptr %x) { call void @h(ptr %x) ret void }\ndeclare void @h(ptr)\n"
    assert _twins(text) == [(name, "f")]
    assert str(parse(text, wanted=lambda _text: True, duplicates=True)) == text


def test_a_name_that_is_taken_is_told_where_it_is_taken_again() -> None:
    text = _PROGRAM.replace("@product2(", "@product1(")
    with pytest.raises(TlxError, match="invalid redefinition of function 'product1'") as found:
        lower_text(text, target="avx2")
    assert found.value.span is not None
    assert found.value.span.start == text.rindex("define")


def test_a_mistake_is_told_of_the_first() -> None:
    text = _PROGRAM.replace("<1024 x float> @llvm.tensor.matmul", "<1023 x float> @llvm.tensor.matmul")
    with pytest.raises(TlxError) as found:
        lower_text(text, target="avx2")
    assert found.value.span is not None
    assert found.value.span.start < text.index("@product1")


def test_remarks_name_the_twins() -> None:
    options = Options()
    pipeline.lower_text(_PROGRAM, target="avx2", options=options)
    said = [remark.message for remark in options.remarks if "lowered once" in remark.message]
    assert [message.split()[0] for message in said] == ["@product1", "@product2"]


def test_llvm_judges_declarations_of_twins() -> None:
    module = parse(_PROGRAM, duplicates=True)
    canonicalise(module)
    text = module.without_duplicates()
    assert (text.count("define "), text.count("declare void @product")) == (1, 2)
    assert judge(text) is None


@pytest.mark.parametrize("verify", [None, True])
def test_what_needs_the_definition_of_a_twin_is_judged_as_well(verify: bool | None) -> None:
    alias = "@other = alias void (ptr, ptr, ptr), ptr @product2\n"
    lowered = lower_text(alias + _PROGRAM, target="avx2", options=Options(verify_each=verify))
    assert alias in lowered
    with pytest.raises(TlxError, match="invalid redefinition"):
        lower_text(_PROGRAM + "\ndeclare void @product2(ptr, ptr, ptr)\n", target="avx2")
