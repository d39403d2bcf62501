"""Changing functions: uses and their replacement, splitting blocks, declarations; every LLVM accepts the result."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.support.tools import find
from tests.unit.ir.parser.modules import OPAQUE, TYPED
from tlx.evaluate import evaluate
from tlx.ir.instructions import may_read, may_write
from tlx.ir.module import Module
from tlx.ir.parser.instructions import parse_instruction_text
from tlx.ir.parser.module import parse_fully
from tlx.ir.rewrite import (
    declare_function,
    declare_intrinsic,
    definitions,
    remove_dead,
    replace_uses,
    set_operand,
    split_block,
    underlying_object,
    uses,
)
from tlx.ir.types import FLOAT, I8, I32, LABEL, VOID, FunctionType, PointerType, VectorType
from tlx.ir.values import Local, const_int
from tlx.llvm.verification import check_text

OPTS = {"opt-14": ["-enable-new-pm=0", "-verify"], "opt-19": ["-passes=verify"]}

LOOP = """\
define i32 @f(i32 %0, i32 %1) {
  %3 = icmp sgt i32 %0, 0 ; "a quote in a comment, and %3
  br i1 %3, label %4, label %11

4:                                                ; preds = %4, %2
  %5 = phi i32 [ 0, %2 ], [ %9, %4 ]
  %6 = phi i32 [ 1, %2 ], [ %10, %4 ]
  %7 = mul i32 %6, %1
  %8 = add i32 %7, 3
  %9 = add i32 %5, %8
  %10 = add i32 %6, 1
  %x = icmp sle i32 %10, %0
  br i1 %x, label %4, label %11
11: ; preds = %4, %2
  %12 = phi i32 [ 0, %2 ], [ %9, %4 ]
  ret i32 %12
}
"""


def read(text: str) -> Module:
    return parse_fully(text, "t.ll")


def f(n: int, m: int) -> int:
    """What LOOP computes."""
    return sum(i * m + 3 for i in range(1, n + 1))


def accepted(text: str, *tools: str) -> None:
    """LLVM 22 takes the text, and so do those of the tools that are installed."""
    check_text(text)
    for tool in tools:
        if path := find(tool):
            command = [path, *OPTS[tool], "-S", "-o", "/dev/null"]
            said = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
            assert said.returncode == 0, said.stderr


# Numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["4", "5", "7", "8"])
def test_numbers_close_up_after_a_deletion(name: str) -> None:
    module = read(LOOP)
    (function,) = module.functions
    if name != "4":
        definition = definitions(function)[name]
        replace_uses(function, name, const_int(I32, 3))
        for block in function.blocks:
            block.instructions = [i for i in block.instructions if i is not definition]
    else:
        function.block("4").name = "loop"
        function.block("loop").label = "\n\nloop:"
        for block in function.blocks:
            for instruction in block.instructions:
                for index, operand in enumerate(instruction.operands):
                    if operand == Local(LABEL, "4"):
                        set_operand(instruction, index, Local(LABEL, "loop"))
    text = str(module)
    accepted(text, "opt-14", "opt-19")
    numbers = sorted({int(n) for n in re.findall(r"%(\d+)", text)})
    assert numbers == list(range(12))
    assert '"a quote in a comment, and %3' in text


@pytest.mark.parametrize(
    ("text", "index", "expected"),
    [
        ("%x = add i32 %xy, %x.1", 1, "%x = add i32 %xy, %new"),
        ("%x = add i32 %x.1, %x", 1, "%x = add i32 %x.1, %new"),
        ("%y = mul i32 %x, %x", 1, "%y = mul i32 %x, %new"),
        ("%x = phi i32 [ 0, %a ], [ %x, %b ]", 2, "%x = phi i32 [ 0, %a ], [ %new, %b ]"),
        ("%y = add i32 ; of %x\n  %x, 1", 0, "%y = add i32 ; of %x\n  %new, 1"),
        ('%y = call i32 asm "mov %x, $0", "=r,r"(i32 %x)', 1, '%y = call i32 asm "mov %x, $0", "=r,r"(i32 %new)'),
    ],
)
def test_an_operand_is_replaced_where_it_is_used(text: str, index: int, expected: str) -> None:
    instruction = parse_instruction_text(text)
    instruction.spans = None  # as the builder leaves them
    set_operand(instruction, index, Local(I32, "new"))
    assert instruction.text == expected
    assert instruction.operands[index] == Local(I32, "new")


def test_numbers_follow_named_values_put_between() -> None:
    module = read(LOOP)
    (function,) = module.functions
    function.block("4").instructions.insert(2, parse_instruction_text("%new = add i32 %6, 0"))
    function.block("4").instructions[2].lead = "\n  "
    replace_uses(function, "8", Local(I32, "new"))
    accepted(str(module), "opt-14", "opt-19")
    assert str(read(str(module))) == str(module)


def test_an_unchanged_function_is_its_text() -> None:
    for text in (LOOP, OPAQUE, TYPED):
        assert str(read(text)) == text


@pytest.mark.parametrize("dialect", ["opaque", "typed"])
def test_types_named_by_numbers_keep_them(dialect: str) -> None:
    pointer = "%0*" if dialect == "typed" else "ptr"
    word = "i32*" if dialect == "typed" else "ptr"
    text = f"""\
%0 = type {{ i32, %1 }}
%1 = type {{ i32 }}

define i32 @f({pointer} %0) {{
  %2 = add i32 1, 2
  %3 = getelementptr %0, {pointer} %0, i64 0, i32 1, i32 0
  %4 = load i32, {word} %3, align 4
  br label %5

5:                                                ; preds = %1
  %6 = add i32 %4, 1
  ret i32 %6
}}
"""
    module = read(text)
    assert str(module) == text
    (function,) = module.functions
    del function.entry.instructions[0]
    lowered = str(module)
    accepted(lowered, "opt-19", *(["opt-14"] if dialect == "typed" else []))
    assert f"%2 = getelementptr %0, {pointer} %0, i64 0, i32 1, i32 0" in lowered
    assert "%5 = add i32 %3, 1" in lowered
    assert "4:                                                ; preds = %1" in lowered


def test_use_lists_leave_with_the_text_they_are_for() -> None:
    text = """\
define i32 @f(i32 %a) {
  %b = add i32 %a, %a
  %c = mul i32 %b, %a
  ret i32 %c

; uselistorder directives
  uselistorder i32 %a, { 1, 0, 2 }
}

define void @g() {
  ret void
}

; uselistorder directives
uselistorder i32 1, { 1, 0 }
"""
    module = read(text)
    assert str(module) == text
    replace_uses(module.functions[0], "b", const_int(I32, 7))
    changed = str(module)
    assert "uselistorder" not in changed
    assert changed.startswith("define i32 @f(i32 %a) {")
    accepted(changed, "opt-14", "opt-19")


# Uses --------------------------------------------------------------------------------------------------------------


def test_uses() -> None:
    (function,) = read(LOOP).functions
    actual = {name: [(u.block.name, u.instruction.opcode, u.index) for u in us] for name, us in uses(function).items()}
    assert actual["9"] == [("4", "phi", 2), ("11", "phi", 2)]
    assert actual["11"] == [("2", "br", 2), ("4", "br", 2)]
    assert actual["2"] == [("4", "phi", 1), ("4", "phi", 1), ("11", "phi", 1)]
    assert "12" in actual
    assert set(definitions(function)) == {"3", "5", "6", "7", "8", "9", "10", "x", "12"}


def test_replacement_reaches_all_operands_of_an_instruction() -> None:
    (function,) = read("define i32 @f(i32 %x) {\n  %y = add i32 %x, %x ; %x\n  ret i32 %y\n}").functions
    replace_uses(function, "x", Local(I32, "a.longer.name"))
    assert function.entry.instructions[0].text == "%y = add i32 %a.longer.name, %a.longer.name"
    replace_uses(function, "a.longer.name", const_int(I32, -1))
    assert function.entry.instructions[0].text == "%y = add i32 -1, -1"
    assert evaluate(read("define i32 @f(i32 %x) {\n  %y = add i32 -1, -1\n  ret i32 %y\n}"), "f", 0) == -2


def test_uses_in_bundles_pads_and_records() -> None:
    text = """\
declare void @llvm.assume(i1)
define void @f(ptr %p, i32 %x) {
  call void @llvm.assume(i1 true) [ "align"(ptr %p, i64 64) ]
    #dbg_value(!DIArgList(i32 %x, ptr %p), !0, !DIExpression(), !1)
  ret void
}
"""
    (function,) = read(text).functions
    replace_uses(function, "p", Local(PointerType(), "other"))
    call, record, _ = function.entry.instructions
    assert call.text == 'call void @llvm.assume(i1 true) [ "align"(ptr %other, i64 64) ]'
    assert call.args == [const_int(call.args[0].type, 1)]
    assert record.text == "#dbg_value(!DIArgList(i32 %x, ptr %other), !0, !DIExpression(), !1)"


# Blocks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", ["2", "4", "11"])
@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_splitting_a_block_changes_nothing(block: str, where: str) -> None:
    module = read(LOOP)
    (function,) = module.functions
    chosen = function.block(block)
    low, high = len(chosen.phis), len(chosen.instructions) - 1
    index = {"first": low, "middle": (low + high) // 2, "last": high}[where]
    tail = split_block(function, chosen, index, "rest")
    assert tail.name == "rest"
    branch = parse_instruction_text("br label %rest")
    branch.lead = "\n  "
    chosen.instructions.append(branch)
    accepted(str(module), "opt-14", "opt-19")
    assert [evaluate(read(str(module)), "f", n, 5) for n in range(4)] == [f(n, 5) for n in range(4)]


# Declarations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("typed", [False, True])
def test_declarations(typed: bool) -> None:
    module = read("define void @f(i8* %p) {\n  ret void\n}\n" if typed else "define void @f(ptr %p) {\n  ret void\n}\n")
    function_type = FunctionType(I32, (module.pointer_to(I8),), vararg=True)
    first = declare_function(module, "printf", function_type, "nounwind")
    assert declare_function(module, "printf", function_type) == first
    assert str(first) == "@printf"
    declare_function(module, "nothing", FunctionType(VOID, ()))
    text = str(module)
    pointer = "i8*" if typed else "ptr"
    assert text.count("declare") == 2
    assert f"declare i32 @printf({pointer}, ...) nounwind" in text
    accepted(text, "opt-19", *(["opt-14"] if typed else []))
    assert module.global_names.fresh("printf") == "printf.1"


def test_intrinsics_are_declared_under_their_names() -> None:
    module = read("")
    vector = VectorType(4, FLOAT)
    callee = declare_intrinsic(module, "llvm.fma", [vector], FunctionType(vector, (vector,) * 3))
    assert str(callee) == "@llvm.fma.v4f32"
    assert "declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)" in str(module)


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("%x = load i8, ptr %p", True, False),
        ("%x = load volatile i8, ptr %p", True, True),
        ("%x = load atomic i8, ptr %p acquire, align 1", True, True),
        ("store i8 1, ptr %p", False, True),
        ("fence seq_cst", True, True),
        ("%x = cmpxchg ptr %p, i8 0, i8 1 seq_cst seq_cst", True, True),
        ("call void @f()", True, True),
        ("%x = add i8 1, 2", False, False),
        ("br label %x", False, False),
    ],
)
def test_effects(text: str, reads: bool, writes: bool) -> None:
    instruction = parse_instruction_text(text)
    assert (may_read(instruction), may_write(instruction)) == (reads, writes)


def test_removing_dead_code_ignores_what_is_already_removed() -> None:
    module = parse_fully(
        "define i32 @f(i32 %a) {\n  %b = add i32 %a, 1\n  %c = add i32 %b, 1\n  %d = add i32 %b, 2\n  ret i32 %d\n}\n"
    )
    (function,) = module.functions
    instructions = list(function.instructions())
    remove_dead(function, instructions)
    assert [i.result for i in function.instructions()] == ["b", "d", None]
    remove_dead(function, instructions)  # %c, which is gone, is no use of %b less
    assert [i.result for i in function.instructions()] == ["b", "d", None]


def test_a_pointer_that_is_derived_from_itself_has_an_underlying_object() -> None:
    text = """define void @f(ptr %x) {
  %a = getelementptr i8, ptr %x, i64 1
  %b = getelementptr i8, ptr %a, i64 1
  ret void

unreachable:
  %c = getelementptr i8, ptr %d, i64 1
  %d = getelementptr i8, ptr %c, i64 1
  br label %unreachable
}
"""
    defined = definitions(parse_fully(text).functions[0])
    bases = {name: str(underlying_object(defined[name].value, defined, ("getelementptr",))) for name in "abcd"}
    assert bases["a"] == bases["b"] == "%x"
    assert {bases["c"], bases["d"]} <= {"%c", "%d"}
