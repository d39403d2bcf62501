"""The parsed form of each kind of instruction."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tlx.diagnostics import ParseError
from tlx.ir.instructions import OPCODES, Instruction
from tlx.ir.parser.instructions import PARSERS, parse_instruction_text
from tlx.ir.parser.module import parse_fully
from tlx.ir.types import PointerType
from tlx.ir.values import ConstFloat, ConstInt, Local, Splat, int_elements

# Text, type of the result, operands with their types, and whatever else the record says.
FORMS: list[tuple[str, str, list[str], dict[str, Any]]] = [
    ("%r = add nuw nsw i32 %a, -1", "i32", ["i32 %a", "i32 -1"], {"flags": ("nuw", "nsw")}),
    (
        "%r = fadd fast <2 x float> %a, splat (float 1.0)",
        "<2 x float>",
        ["<2 x float> %a", "<2 x float> splat (float 1.0)"],
        {"flags": ("fast",)},
    ),
    ("%r = or disjoint i8 %a, 3", "i8", ["i8 %a", "i8 3"], {"flags": ("disjoint",)}),
    ("%r = fneg nnan float %a", "float", ["float %a"], {"flags": ("nnan",)}),
    ("%r = freeze ptr %a", "ptr", ["ptr %a"], {}),
    ("%r = trunc nuw nsw i64 %a to i32", "i32", ["i64 %a"], {"flags": ("nuw", "nsw")}),
    ("%r = zext nneg <4 x i8> %a to <4 x i32>", "<4 x i32>", ["<4 x i8> %a"], {}),
    ("%r = addrspacecast ptr addrspace(1) %a to ptr", "ptr", ["ptr addrspace(1) %a"], {}),
    ("%r = icmp samesign ult i32 %a, 5", "i1", ["i32 %a", "i32 5"], {"predicate": "ult", "flags": ("samesign",)}),
    (
        "%r = icmp eq <vscale x 4 x ptr> %a, zeroinitializer",
        "<vscale x 4 x i1>",
        ["<vscale x 4 x ptr> %a", "<vscale x 4 x ptr> zeroinitializer"],
        {"predicate": "eq"},
    ),
    ("%r = fcmp ninf une half %a, 0xH3C00", "i1", ["half %a", "half 0xH3C00"], {"predicate": "une"}),
    ("%r = select nsz i1 %c, float %a, float poison", "float", ["i1 %c", "float %a", "float poison"], {}),
    ("%r = extractelement <4 x i8> %a, i64 3", "i8", ["<4 x i8> %a", "i64 3"], {}),
    ("%r = insertelement <4 x i8> undef, i8 %b, i32 %i", "<4 x i8>", ["<4 x i8> undef", "i8 %b", "i32 %i"], {}),
    (
        "%r = shufflevector <2 x i8> %a, <2 x i8> %b, <3 x i32> <i32 0, i32 undef, i32 3>",
        "<3 x i8>",
        ["<2 x i8> %a", "<2 x i8> %b", "<3 x i32> <i32 0, i32 undef, i32 3>"],
        {},
    ),
    (
        "%r = extractvalue { i32, [2 x { i8, float }] } %a, 1, 0, 1",
        "float",
        ["{ i32, [2 x { i8, float }] } %a"],
        {"indices": (1, 0, 1)},
    ),
    ("%r = extractvalue %pair %a, 1, !dbg !7", "float", ["%pair %a"], {"indices": (1,), "trailer": ", !dbg !7"}),
    ("%r = insertvalue <{ i8, i32 }> %a, i32 1, 1", "<{ i8, i32 }>", ["<{ i8, i32 }> %a", "i32 1"], {"indices": (1,)}),
    ("%r = alloca i32", "ptr", [], {}),
    (
        "%r = alloca inalloca [4 x %pair], i64 %n, align 16, addrspace(5), !x !0",
        "ptr addrspace(5)",
        ["i64 %n"],
        {"align": 16, "flags": ("inalloca",)},
    ),
    ("%r = load i32, ptr %p, align 4, !tbaa !3", "i32", ["ptr %p"], {"align": 4, "trailer": ", align 4, !tbaa !3"}),
    (
        '%r = load atomic volatile i32, ptr %p syncscope("agent") acquire, align 8',
        "i32",
        ["ptr %p"],
        {"align": 8, "flags": ("atomic", "volatile")},
    ),
    (
        "store volatile <2 x i1> <i1 true, i1 false>, ptr %p, align 1",
        "void",
        ["<2 x i1> <i1 true, i1 false>", "ptr %p"],
        {"align": 1, "flags": ("volatile",)},
    ),
    ("store i32 %a, i32* %p, !nontemporal !0", "void", ["i32 %a", "i32* %p"], {"align": None}),
    (
        "%r = getelementptr inbounds nuw i32, ptr %p, i64 %i",
        "ptr",
        ["ptr %p", "i64 %i"],
        {"flags": ("inbounds", "nuw")},
    ),
    ("%r = getelementptr i8, ptr %p", "ptr", ["ptr %p"], {}),
    ("%r = getelementptr %pair, %pair* %p, i64 0, i32 1", "float*", ["%pair* %p", "i64 0", "i32 1"], {}),
    (
        "%r = getelementptr i8, ptr addrspace(3) %p, <2 x i64> %i",
        "<2 x ptr addrspace(3)>",
        ["ptr addrspace(3) %p", "<2 x i64> %i"],
        {},
    ),
    (
        '%r = phi i32 [ 0, %a ], [ %x, %"b c" ], !dbg !1',
        "i32",
        ["i32 0", "label %a", "i32 %x", 'label %"b c"'],
        {"trailer": ", !dbg !1"},
    ),
    ("%r = phi fast float [ undef, %0 ]", "float", ["float undef", "label %0"], {"flags": ("fast",)}),
    (
        "%r = call i32 @f(i32 noundef signext %a, ptr byval(%pair) align 8 %p)",
        "i32",
        ["i32 @f", "i32 %a", "ptr %p"],
        {"callee": "f", "arg_attributes": ("noundef signext", "byval(%pair) align 8")},
    ),
    (
        "tail call fastcc void @f() #1, !srcloc !2",
        "void",
        ["void @f"],
        {"flags": ("tail",), "trailer": " #1, !srcloc !2"},
    ),
    (
        '%r = musttail call cc 10 noundef range(i32 0, 7) i32 %f(i32 1) "a"="b"',
        "i32",
        ["i32 %f", "i32 1"],
        {"callee": None},
    ),
    (
        "%r = call spir_func i32 (i8*, ...) @printf(i8* getelementptr ([2 x i8], [2 x i8]* @s, i64 0, i64 0), i32 1)",
        "i32",
        ["i32 (i8*, ...) @printf", "i8* getelementptr ([2 x i8], [2 x i8]* @s, i64 0, i64 0)", "i32 1"],
        {},
    ),
    ("%r = call void ()* @f()", "void ()*", ["void ()* @f"], {}),
    ("%r = call i32 (i32)* (i8) %f(i8 1)", "i32 (i32)*", ["i32 (i32)* (i8) %f", "i8 1"], {}),
    (
        '%r = call fast <4 x float> asm sideeffect "nop # %", "=x,x"(float %a)',
        "<4 x float>",
        ['<4 x float> asm sideeffect "nop # %", "=x,x"', "float %a"],
        {},
    ),
    (
        'call void @llvm.assume(i1 true) [ "align"(ptr %p, i64 64), "cold"() ]',
        "void",
        ["void @llvm.assume", "i1 true", "ptr %p", "i64 64"],
        {"arg_attributes": ("",)},
    ),
    (
        "call void @llvm.dbg.value(metadata i32 %x, metadata !7, metadata !DIExpression(DW_OP_deref)), !dbg !9",
        "void",
        ["void @llvm.dbg.value", "i32 %x", "metadata !7", "metadata !DIExpression(DW_OP_deref)"],
        {"opcode": "#dbg", "debug_location": ", !dbg !9"},
    ),
    (
        "call void @llvm.dbg.value(metadata !DIArgList(i32 %x, ptr %p), metadata !7, metadata !DIExpression())",
        "void",
        ["void @llvm.dbg.value", "i32 %x", "ptr %p", "metadata !7", "metadata !DIExpression()"],
        {"opcode": "#dbg"},
    ),
    (
        '%r = invoke addrspace(1) i32 @f(i32 %a) cold [ "deopt"(i32 %b) ]\n to label %x unwind label %y, !prof !0',
        "i32",
        ["i32 @f", "i32 %a", "i32 %b", "label %x", "label %y"],
        {"successors": ["x", "y"], "trailer": ", !prof !0"},
    ),
    (
        'callbr void asm "", "r,!i"(i32 %a) to label %x [label %y, label %z]',
        "void",
        ['void asm "", "r,!i"', "i32 %a", "label %x", "label %y", "label %z"],
        {"successors": ["x", "y", "z"]},
    ),
    ("ret void", "void", [], {"successors": []}),
    ("ret { i32, float } { i32 1, float 2.0 }", "void", ["{ i32, float } { i32 1, float 2.0 }"], {}),
    ("br label %x, !llvm.loop !3", "void", ["label %x"], {"successors": ["x"]}),
    ("br i1 true, label %x, label %12", "void", ["i1 true", "label %x", "label %12"], {"successors": ["x", "12"]}),
    (
        "switch i8 %a, label %d [ i8 0, label %x\n i8 -1, label %d ]",
        "void",
        ["i8 %a", "label %d", "i8 0", "label %x", "i8 -1", "label %d"],
        {"successors": ["d", "x", "d"]},
    ),
    ("indirectbr ptr %p, [label %x, label %y]", "void", ["ptr %p", "label %x", "label %y"], {"successors": ["x", "y"]}),
    ("unreachable, !dbg !1", "void", [], {"debug_location": ", !dbg !1"}),
    ("resume { ptr, i32 } %l", "void", ["{ ptr, i32 } %l"], {"successors": []}),
    (
        "%l = landingpad { ptr, i32 }\n cleanup\n catch ptr @t\n filter [0 x ptr] undef",
        "{ ptr, i32 }",
        ["ptr @t", "[0 x ptr] undef"],
        {},
    ),
    (
        "%r = catchswitch within none [label %a, label %b] unwind to caller",
        "token",
        ["token none", "label %a", "label %b"],
        {"successors": ["a", "b"]},
    ),
    ("%r = catchswitch within %p [label %a] unwind label %u", "token", ["token %p", "label %a", "label %u"], {}),
    ("%r = catchpad within %cs [ptr null, i32 64]", "token", ["token %cs", "ptr null", "i32 64"], {}),
    ("%r = cleanuppad within none []", "token", ["token none"], {}),
    ("catchret from %p to label %x", "void", ["token %p", "label %x"], {"successors": ["x"]}),
    ("cleanupret from %p unwind label %x", "void", ["token %p", "label %x"], {"successors": ["x"]}),
    ("cleanupret from %p unwind to caller", "void", ["token %p"], {"successors": []}),
    (
        '%r = atomicrmw volatile umax ptr %p, i32 %a syncscope("x") seq_cst, align 4',
        "i32",
        ["ptr %p", "i32 %a"],
        {"predicate": "umax", "align": 4},
    ),
    (
        "%r = cmpxchg weak ptr %p, ptr %a, ptr null acq_rel monotonic",
        "{ ptr, i1 }",
        ["ptr %p", "ptr %a", "ptr null"],
        {"flags": ("weak",)},
    ),
    ('fence syncscope("singlethread") release', "void", [], {}),
    ("%r = va_arg ptr %p, <2 x i32>", "<2 x i32>", ["ptr %p"], {}),
    ("#dbg_value(i32 %x, !5, !DIExpression(), !6)", "void", ["i32 %x"], {"opcode": "#dbg"}),
    ("#dbg_value(!DIArgList(i32 %x, ptr @g), !5, !DIExpression(), !6)", "void", ["i32 %x", "ptr @g"], {}),
    ("#dbg_assign(i1 undef, !5, !DIExpression(), !8, ptr %p, !DIExpression(), !6)", "void", ["i1 undef", "ptr %p"], {}),
    ("#dbg_label(!5, !6)", "void", [], {}),
]

CONSTANTS = [
    "i64 ptrtoint (ptr getelementptr inbounds nuw (i8, ptr @g, i64 sub (i64 0, i64 4)) to i64)",
    "ptr getelementptr inrange(-16, 16) ({ [3 x ptr] }, ptr @vtable, i32 0, i32 0, i32 2)",
    "i8* getelementptr inbounds ([2 x i8], [2 x i8]* @s, i64 0, inrange i64 0)",
    'ptr blockaddress(@f, %"a b")',
    "ptr dso_local_equivalent @f",
    "ptr no_cfi @f",
    "ptr ptrauth (ptr @f, i32 2, i64 65535, ptr null)",
    "i1 icmp ult (ptr @a, ptr @b)",
    "i32 select (i1 icmp eq (i64 ptrtoint (i8* @a to i64), i64 0), i32 1, i32 2)",
    "i32 extractvalue ({ i32, i32 } { i32 1, i32 2 }, 1)",
    "i8 extractelement (<2 x i8> <i8 1, i8 2>, i32 0)",
    "<2 x i8> shufflevector (<2 x i8> undef, <2 x i8> undef, <2 x i32> zeroinitializer)",
    '[3 x i8] c"a\\22\\00"',
    "<{ i8, { i32, [0 x i64] } }> <{ i8 1, { i32, [0 x i64] } { i32 2, [0 x i64] [] } }>",
    "<2 x half> splat (half 0xH3C00)",
    'target("spirv.Image", void, 1, 0) zeroinitializer',
    'target("aarch64.svcount") poison',
    "ppc_fp128 0xM3FF00000000000000000000000000000",
    "i128 -170141183460469231731687303715884105728",
    "i1 true",
    "token none",
    "void (i32, ...)* bitcast (i32 ()* @f to void (i32, ...)*)",
    "i32 (i8*, ...)** null",
]


def read(text: str) -> Instruction:
    """The instruction in a module where `%pair` is `{ i32, float }`, and every block that it names exists."""
    known = set(re.findall(r'label %("[^"]+"|[^,\s\]]+)', text)) | set(re.findall(r", %(\"[^\"]+\"|\w+) \]", text))
    labels = "".join(f"{name}:\n  unreachable\n" for name in sorted(known))
    body = f"define void @f() {{\nstart:\n  {text}\n  unreachable\n{labels}}}\n"
    module = parse_fully(f"%pair = type {{\n i32, float }}\n{body}")
    return module.functions[0].entry.instructions[0]


@pytest.mark.parametrize(("text", "type_", "operands", "more"), FORMS, ids=[form[0][:40] for form in FORMS])
def test_form(text: str, type_: str, operands: list[str], more: dict[str, Any]) -> None:
    instruction = read(text)
    assert instruction.text == text
    assert str(instruction.type) == type_
    assert [operand.typed for operand in instruction.operands] == operands
    assert {name: getattr(instruction, name) for name in more} == more
    assert instruction.span is not None
    assert instruction.span.source.text[instruction.span.start : instruction.span.end] == text
    for operand, (start, end) in zip(instruction.operands, instruction.spans or [], strict=True):
        assert text[start:end] == str(operand)


@pytest.mark.parametrize("text", CONSTANTS)
def test_constant(text: str) -> None:
    store = parse_instruction_text(f"store {text}, ptr %p, align 1")
    assert [operand.typed for operand in store.operands] == [text, "ptr %p"]
    assert store.align == 1


def test_numbers() -> None:
    ints = parse_instruction_text("store <4 x i8> <i8 u0xFF, i8 s0xFF, i8 -3, i8 +3>, ptr %p").operands[0]
    assert int_elements(ints) == (255, -1, -3, 3)
    (splat,) = parse_instruction_text("ret <4 x i8> splat (i8 7)").operands
    assert isinstance(splat, Splat)
    assert int_elements(splat) == (7, 7, 7, 7)
    for text, number in (
        ("half 0xH3C00", 1.0),
        ("float 0x3FF8000000000000", 1.5),
        ("bfloat 0xR3F80", 1.0),
        ("double -2.5e-1", -0.25),
    ):
        (value,) = parse_instruction_text(f"ret {text}").operands
        assert isinstance(value, ConstFloat)
        assert value.value == number
    (value,) = parse_instruction_text("ret i1 true").operands
    assert value == ConstInt(value.type, 1)


def test_alloca_has_the_modules_kind_of_pointer() -> None:
    typed = parse_fully("define void @f(i8* %p) {\n  %a = alloca [4 x i8], align 4\n  ret void\n}\n")
    assert str(typed.functions[0].entry.instructions[0].type) == "[4 x i8]*"
    opaque = parse_fully("define void @f(ptr %p) {\n  %a = alloca [4 x i8]\n  ret void\n}\n")
    assert opaque.functions[0].entry.instructions[0].type == PointerType()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%x = frobnicate i32 1", "expected an instruction, found 'frobnicate'"),
        ("add i32 1", "expected ','"),
        ("ret", "expected a type, found end of text"),
        ("ret i32", "expected a value, found end of text"),
        ("br label", "expected a value"),
        ("br label 5", "expected a value of type label"),
        ("br label @f", "expected a label"),
        ("getelementptr i8", "expected ','"),
        ("call void", "expected a value"),
        ("call void @f(", "expected a type"),
        ("call void @f(i32 1 i32 2)", "expected ','"),
        ('call void @f() [ "x" ]', r"expected '\('"),
        ("store i32 1.5, ptr %p", "expected an integer constant of type i32"),
        ("store i32 1, ptr %p)", "expected the end of the instruction"),
        ("store i32 1, ptr %p %q", "expected the end of the instruction"),
        ("store i32 1, ptr %p store i32 2, ptr %p", "expected the end of the instruction"),
        ("%x = alloca i32, addrspace(%y)", "expected an integer"),
        ("switch i32 %x, label %d [ i32 1", "expected ','"),
        ("catchpad within %x", r"expected '\['"),
        (f"ret i32 {'9' * 5000}", "integer has too many digits"),
        (f"ret i{'9' * 5000} 0", "integer has too many digits"),
        (f"ret [{'9' * 5000} x i8] undef", "integer has too many digits"),
    ],
)
def test_malformed_instructions(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        parse_instruction_text(text)
    assert caught.value.span is not None


def test_result_as_operand() -> None:
    assert parse_instruction_text("%x = add i8 1, 2").value == Local(
        parse_instruction_text("%x = add i8 1, 2").type, "x"
    )
    with pytest.raises(ValueError, match="instruction has no result: ret void"):
        _ = parse_instruction_text("ret void").value


@pytest.mark.parametrize(
    ("spelling", "numbers"),
    [
        ("<i32 2, i32 -3>", [2, -3]),
        ("<i32 2,i32 3>", [2, 3]),
        ("< i32 7 >", [7]),
        ("<i32 2, ; two\n i32 3>", [2, 3]),
        ("<" + ", ".join(["i32 5"] * 100) + ">", [5] * 100),
    ],
)
def test_vectors_of_integers_are_read_in_any_spelling(spelling: str, numbers: list[int]) -> None:
    count = len(numbers)
    text = f"%v = add <{count} x i32> {spelling}, {spelling}"
    instruction = parse_instruction_text(text)
    assert [int_elements(operand) for operand in instruction.operands] == [tuple(numbers)] * 2
    assert instruction.operands[0] is not instruction.operands[1]
    assert instruction.spans is not None
    assert [text[start:end] for start, end in instruction.spans] == [spelling] * 2


def test_every_opcode_has_a_parser() -> None:
    assert PARSERS.keys() == OPCODES
