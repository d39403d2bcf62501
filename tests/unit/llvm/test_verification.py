"""Verification by LLVM: rejections, locations, old spellings, crashes."""

from __future__ import annotations

import pytest

import tlx
from tlx.diagnostics import ParseError, Source, TlxError, UsageError, VerifyError
from tlx.ir.parser.module import parse
from tlx.llvm import verification
from tlx.llvm.process import LLVMCrashError, LLVMProcess
from tlx.llvm.upgrade import upgrade_ir
from tlx.llvm.verification import escape_nul


def rendered(text: str, **arguments: str) -> str:
    with pytest.raises(TlxError) as error:
        verification.check_text(text, "f.ll", **arguments)  # pyright: ignore[reportArgumentType]
    return error.value.render()


def test_right_text_passes() -> None:
    verification.check_text("define void @f() {\n  ret void\n}\n")


def test_parse_errors_have_llvms_location() -> None:
    assert rendered("define i32 @f() {\n  ret i32 %x\n}") == (
        "f.ll:2:11: error: use of undefined value '%x'\n  ret i32 %x\n          ^"
    )


def test_columns_count_characters() -> None:
    assert rendered('@"éé" = global i32 %x').startswith("f.ll:1:20: error:")


def test_the_verifiers_instructions_are_located() -> None:
    text = (
        "define i32 @f(i1 %b) {\n  br i1 %b, label %t, label %e\nt:\n  %x = add i32 1, 2\n  br label %e\ne:\n"
        "  %y = add   i32 %x, 1 ; why\n  ret i32 %y\n}\n"
    )
    with pytest.raises(VerifyError) as error:
        verification.check_text(text, "f.ll")
    assert error.value.span
    assert error.value.span.place == "f.ll:7:3"
    assert [note.span.place for note in error.value.notes if note.span] == ["f.ll:4:3"]


def test_errors_name_the_stage() -> None:
    said = rendered("foo", stage="to-tiles")
    assert "LLVM rejects the output of to-tiles: expected top-level entity" in said
    assert "this is a bug in TLX: please report it" in said


def test_locations_are_those_of_the_users_text() -> None:
    source = Source("user.ll", "bar")
    with pytest.raises(ParseError) as error:
        verification.check_text("foo", user_source=source)
    assert error.value.render() == "user.ll:1:1: error: expected top-level entity\nbar\n^"


def test_locations_in_a_changed_module_are_those_of_its_source() -> None:
    text = "; first\ndefine void @f() {\n  %x = add i32 1, %u ; no @llvm.tensor.x\n  ret void\n}\n@g = global i32 %z\n"
    module = parse(text, "f.ll")
    module.functions[0].entry.instructions[0].lead = "\n\n\n  "
    with pytest.raises(ParseError) as error:
        verification.check_module(module)
    assert error.value.span
    assert error.value.span.place == "f.ll:3:19"


def test_locations_between_functions() -> None:
    text = "define void @f() {\n  ret void ; @llvm.tensor.x\n}\n@g = global i32 %z\n"
    module = parse(text, "f.ll")
    module.functions[0].entry.instructions[0].lead = "\n\n\n  "
    with pytest.raises(ParseError) as error:
        verification.check_module(module)
    assert error.value.span
    assert error.value.span.place == "f.ll:4:17"


def test_errors_of_a_stage_show_its_text_and_the_source() -> None:
    module = parse("define void @f() {\n  ret void ; @llvm.tensor.x\n}\n", "f.ll")
    module.functions[0].entry.instructions[0].text = "br label %u"
    with pytest.raises(ParseError) as error:
        verification.check_module(module, "to-2d")
    assert error.value.render().splitlines()[0].startswith("f.ll after to-2d:2:12: error: LLVM rejects")
    assert [note.span.place for note in error.value.notes if note.span] == ["f.ll:2:3"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("void (i8* byval)", "void (i8* byval(i8))"),
        ("(%S* noalias byval align 8 %x)", "(%S* noalias byval(%S) align 8 %x)"),
        ('(%"a b"* sret %x)', '(%"a b"* sret(%"a b") %x)'),
        ("(<{ i8, [2 x i32*] }>* byval %x)", "(<{ i8, [2 x i32*] }>* byval(<{ i8, [2 x i32*] }>) %x)"),
        ("(i8** inalloca %x)", "(i8** inalloca(i8*) %x)"),
        ("(i8* byval(i8) %x)", "(i8* byval(i8) %x)"),
        ("(ptr byval %x)", "(ptr byval %x)"),
        ("(i32 0, inrange i32 1)", "(i32 0,         i32 1)"),
        ("(i32 0, inrange(-8, 8) i32 1)", "(i32 0, inrange(-8, 8) i32 1)"),
        ('"x, inrange i32 1"', '"x, inrange i32 1"'),
        ("; x, inrange i32 1", "; x, inrange i32 1"),
        ('[11 x i8] c"i8* byval)\\00"', '[11 x i8] c"i8* byval)\\00"'),
    ],
)
def test_old_spellings(old: str, new: str) -> None:
    assert upgrade_ir(old) == new


REMOVED = """\
@w = extern_weak global i8
define i64 @f(i1 %x) {
  br i1 icmp ne (ptr @w, ptr null), label %a, label %b, !prof !0
a:
  switch i1 %x, label %b [ i1 0, label %c i1 1, label %c ]
b:
  br label %c
c:
  %y = phi i1 [ icmp ne (ptr @w, ptr null), %a ], [ icmp ne (ptr @w, ptr null), %a ], [ false, %b ]
  %z = select i1 %y, i64 add (i64 mul (i64 ptrtoint (ptr @w to i64), i64 3), i64 1), i64 sext (i32 7 to i64)
  ret i64 %z
}
!0 = !{!"branch_weights", i32 1, i32 2}
"""


def test_removed_constant_expressions_become_instructions() -> None:
    verification.check_text(REMOVED)
    upgraded = upgrade_ir(REMOVED).splitlines()
    assert len(upgraded) == len(REMOVED.splitlines())
    assert upgraded[2] == "  %constant = icmp ne ptr @w, null br i1 %constant, label %a, label %b, !prof !0"
    assert upgraded[4].startswith("  %constant.1 = icmp ne ptr @w, null switch i1 %x")
    assert upgraded[8] == "  %y = phi i1 [ %constant.1, %a ], [ %constant.1, %a ], [ false, %b ]"
    assert upgraded[9].startswith(
        "  %constant.2 = mul i64 ptrtoint (ptr @w to i64), 3 %constant.3 = add i64 %constant.2, 1"
    )


def test_errors_beside_removed_constant_expressions_have_their_places() -> None:
    wrong = REMOVED.replace("ret i64 %z", "ret i64 %u")
    assert rendered(wrong).startswith("f.ll:11:11: error:")


def test_text_after_a_nul_is_read() -> None:
    verification.check_text('; \0\n@g =\0global [3 x i8] c"a\0b" ; \0\n')
    assert rendered("@g = global i8 0 \0\nfoo").startswith("f.ll:2:1: error:")
    assert escape_nul('c"a\0b"\0; "\0') == 'c"a\\00b" ; " '


def test_crashes_name_the_file() -> None:
    text = "define void @f(ptr %q) {\n  call void @llvm.memset.p0i8.i64(ptr %q, i8 0, i8 0, i64 4, i1 false)\n"
    text += "  ret void\n}\ndeclare void @llvm.memset.p0i8.i64(ptr, i8, i64, i1)\n"
    assert rendered(text).startswith("f.ll: error: LLVM crashed")


def test_bitcode_is_disassembled_or_refused() -> None:
    from tlx.llvm.codegen import emit_code

    bitcode = emit_code("define void @f() {\n  ret void\n}\n", "bc")
    assert b"define void @f()" in verification.disassemble(bitcode, "f.bc")
    with pytest.raises(UsageError, match=r"f\.bc: error: invalid bitcode"):
        verification.disassemble(bitcode[:64], "f.bc")


def test_llvm_may_crash_and_the_next_question_is_answered() -> None:
    process = LLVMProcess()
    deep = f"@g = global {'[1 x ' * 200_000}i8{']' * 200_000} zeroinitializer"
    with pytest.raises(LLVMCrashError, match="LLVM died of SIG"):
        process.ask("check", deep)
    assert process.ask("check", "@g = global i8 0") == b""
    process.close()


def test_large_texts_reach_llvm_whole() -> None:
    filler = "; é\n" * 2_000_000
    verification.check_text(f"{filler}@g = global i8 0\n")
    with pytest.raises(ParseError) as error:
        verification.check_text(f"{filler}@g = global i8 %x\n", "f.ll")
    assert error.value.span
    assert error.value.span.place == "f.ll:2000001:16"


def test_errors_in_a_parsed_header_have_their_places() -> None:
    text = 'define void @f() comdat section "a" {\n  ret void ; @llvm.tensor.x\n}\n'
    with pytest.raises(ParseError) as error:
        verification.check_module(parse(text, "f.ll"))
    assert error.value.render().startswith("f.ll:1:25: error: expected '{' in function body")


def test_errors_behind_a_completed_name_have_their_places() -> None:
    shape, zeros = "<1 x i32> <i32 4>", "<1 x i32> zeroinitializer"
    call = f"call token @llvm.tensor.typeinfo(<4 x float> %x, {shape}, {zeros}, {zeros})"
    text = f"define void @f(i8 %x) {{\n  %t = {call}\n  ret void\n}}\n"
    with pytest.raises(ParseError) as error:
        tlx.lower_text(text, "f.ll")
    assert error.value.render().startswith("f.ll:2:53: error: '%x' defined with type 'i8'")


def test_the_first_of_two_errors_is_reported_with_its_places() -> None:
    message = rendered(
        "define i32 @f(i32 %x, i1 %b) {\n  br i1 %b, label %a, label %c\na:\n  %u = add i32 %x, 1\n  br label %c\n"
        "c:\n  %v = add i32 %u, 2\n  br label %d\nd:\n  %w = phi i32 [ %u, %a ]\n  ret i32 %w\n}\n"
    )
    assert message.startswith("f.ll:7:3: error: Instruction does not dominate all uses!\n  %v = add i32 %u, 2\n")
    assert [line for line in message.splitlines() if "note:" in line] == ["f.ll:4:3: note: see also"]
