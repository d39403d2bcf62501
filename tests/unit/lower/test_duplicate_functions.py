"""Functions that differ only in their names share the lowered code of the first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.bench.programs import equal_functions
from tlx.diagnostics import TlxError
from tlx.ir.functions import DuplicateFunction
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.tensors.calls import canonicalise
from tlx.llvm.verification import verify
from tlx.lower import pipeline
from tlx.lower.options import Options, Step
from tlx.lower.pipeline import lower, lower_text

_PROGRAM = equal_functions(3)


def _twins(text: str) -> list[tuple[str, str]]:
    items = parse(text, is_parsed=lambda _text: True, duplicates=True).items
    return [(item.name, item.original.name) for item in items if isinstance(item, DuplicateFunction)]


def test_a_module_with_duplicates_round_trips() -> None:
    module = parse(_PROGRAM, duplicates=True)
    assert [function.name for function in module.functions] == ["product0"]
    assert _twins(_PROGRAM) == [("product1", "product0"), ("product2", "product0")]
    assert str(module) == _PROGRAM
    assert not _twins(_PROGRAM.replace("%a", "%lhs", 3))


@pytest.mark.parametrize("target", ["amx", "avx2"])
def test_every_stage_gives_the_same_as_for_single_functions(target: str) -> None:
    def outputs(module: Module) -> list[str]:
        actual: list[str] = []

        def note(_step: Step, module: Module) -> None:
            actual.append(str(module))

        lower(module, target, options=replace(Options(verify_each=False), print_after=note))
        return actual

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
def test_different_functions_are_not_merged(first: str, second: str) -> None:
    assert not _twins(f"define {first}\ndefine {second}\n")


@pytest.mark.parametrize("name", ["g", '"a b"', "f1", "llvm.f"])
def test_a_duplicate_may_have_any_name(name: str) -> None:
    text = f"define void @f(ptr %x) {{ call void @h(ptr %x) ret void }}\n; more\n  define void @{name}"
    text += "(ptr %x) { call void @h(ptr %x) ret void }\ndeclare void @h(ptr)\n"
    assert _twins(text) == [(name, "f")]
    assert str(parse(text, is_parsed=lambda _text: True, duplicates=True)) == text


def test_a_redefinition_is_reported_at_its_second_place() -> None:
    text = _PROGRAM.replace("@product2(", "@product1(")
    with pytest.raises(TlxError, match="invalid redefinition of function 'product1'") as error:
        lower_text(text, target="avx2")
    assert error.value.span is not None
    assert error.value.span.start == text.rindex("define")


def test_an_error_is_reported_for_the_first() -> None:
    text = _PROGRAM.replace("<1024 x float> @llvm.tensor.matmul", "<1023 x float> @llvm.tensor.matmul")
    with pytest.raises(TlxError) as error:
        lower_text(text, target="avx2")
    assert error.value.span is not None
    assert error.value.span.start < text.index("@product1")


def test_remarks_name_the_duplicates() -> None:
    options = Options()
    pipeline.lower_text(_PROGRAM, target="avx2", options=options)
    said = [remark.message for remark in options.remarks if "lowered once" in remark.message]
    assert [message.split()[0] for message in said] == ["@product1", "@product2"]


def test_llvm_verifies_declarations_of_duplicates() -> None:
    module = parse(_PROGRAM, duplicates=True)
    canonicalise(module)
    text = module.without_duplicates()
    assert (text.count("define "), text.count("declare void @product")) == (1, 2)
    assert verify(text) is None


@pytest.mark.parametrize("verify", [None, True])
def test_users_of_a_duplicate_are_verified(verify: bool | None) -> None:
    alias = "@other = alias void (ptr, ptr, ptr), ptr @product2\n"
    lowered = lower_text(alias + _PROGRAM, target="avx2", options=Options(verify_each=verify))
    assert alias in lowered
    with pytest.raises(TlxError, match="invalid redefinition"):
        lower_text(_PROGRAM + "\ndeclare void @product2(ptr, ptr, ptr)\n", target="avx2")
