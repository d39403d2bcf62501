"""Parsing whole modules: nothing is lost, and blocks and instructions are those that LLVM reads."""

from __future__ import annotations

import re

import pytest

from tests.unit.ir.parser.modules import OPAQUE, TYPED, read_by_llvm, shape
from tlx.diagnostics import ParseError
from tlx.ir.functions import Function
from tlx.ir.module import Declaration, Module, UnparsedText
from tlx.ir.parser.instructions import parse_instruction_text
from tlx.ir.parser.module import parse, parse_fully, uses_typed_pointers
from tlx.ir.rewrite import set_operand, uses

MODULES = {"opaque": OPAQUE, "typed": TYPED}
VARIANTS = ("as it is", "CRLF", "no last newline", "tabs", "comments")
_TYPES_AND_STRINGS = re.compile(
    r'%(?:pair|multi|"quoted type"|struct\.node)|store %0|blockaddress\([^)]*\)|(?<!%)"[^"]*"'
)


def varied(text: str, variant: str) -> str:
    match variant:
        case "CRLF":
            return text.replace("\n", "\r\n")
        case "no last newline":
            return text.rstrip()
        case "tabs":
            return re.sub(r"(?m)^  ", "\t", text)
        case "comments":
            return re.sub(r"(?m)$", ' ; define void @"x() {', text.replace("\n\n", "\n;}\n"))
        case _:
            return text


def read_all(text: str) -> Module:
    return parse_fully(text, "t.ll")


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", MODULES)
def test_reading_loses_nothing(name: str, variant: str) -> None:
    text = varied(MODULES[name], variant)
    assert str(parse(text)) == text
    module = read_all(text)
    assert str(module) == text
    assert shape(module) == read_by_llvm(text)


@pytest.mark.parametrize("name", MODULES)
def test_an_instruction_is_a_text_of_its_own(name: str) -> None:
    for function in read_all(MODULES[name]).functions:
        for instruction in function.instructions():
            again = parse_instruction_text(instruction.text)
            for part in ("opcode", "operands", "result", "spans", "flags", "align", "trailer", "arg_attributes"):
                assert getattr(again, part) == getattr(instruction, part), instruction.text


@pytest.mark.parametrize("name", MODULES)
def test_operands_can_be_written_back(name: str) -> None:
    text = MODULES[name].replace("u0xFF", "255").replace("s0xFF", "-1")  # one spelling of several
    module = read_all(text)
    for function in module.functions:
        for instruction in function.instructions():
            for index, operand in enumerate(instruction.operands):
                set_operand(instruction, index, operand)
    assert str(module) == text


@pytest.mark.parametrize("name", MODULES)
def test_all_uses_are_recorded(name: str) -> None:
    """Each `%name` in a text of an instruction, types aside, is an operand or the result."""
    for function in read_all(MODULES[name]).functions:
        known = uses(function)
        names = {a.name for a in function.arguments} | {b.name for b in function.blocks} | set(known)
        for instruction in function.instructions():
            without = _TYPES_AND_STRINGS.sub("", instruction.text)
            mentioned = {n for n in re.findall(r'%("[^"]+"|[-\w.$]+)', without) if n in names}
            mentioned.discard(instruction.result or "")
            actual = {name for name, places in known.items() if any(u.instruction is instruction for u in places)}
            if "metadata !DIArgList" not in instruction.text:
                assert mentioned == actual, instruction.text


def test_only_requested_functions_are_parsed() -> None:
    module = parse(OPAQUE, is_parsed=lambda text: "@vectors" in text or "musttail call" in text)
    assert [f.name for f in module.functions] == ["vectors", "fast"]
    assert all(isinstance(item, UnparsedText | Declaration) for item in parse(OPAQUE).items)


def test_functions_and_declarations() -> None:
    module = read_all(OPAQUE)
    declared = module.declarations
    assert list(declared)[:5] == ["__gxx_personality_v0", "may_throw", "on_the_same_line", "printf", "several_lines"]
    assert declared["printf"].signature.vararg
    assert declared["printf"].signature.attributes == "#1"
    assert declared["several_lines"].signature.attributes == "nounwind"
    assert [str(a.type) for a in declared["several_lines"].signature.arguments] == ["i32", "{ i32, i32 }"]
    assert declared["on_the_same_line"].signature.arguments[0].attributes == "noundef"
    assert str(declared["on_the_same_line"]).strip() == "declare void @on_the_same_line(i32 noundef %x)"
    byval = module.function("byval")
    assert byval.signature.attributes == "prefix { i32, i8 } { i32 1, i8 2 }"
    assert [a.name for a in byval.arguments] == ["0", "1"]
    assert module.function("convention").signature.result_attributes == "cc 10"
    fast = module.function("fast")
    assert fast.signature.result_attributes == "internal fastcc"
    assert fast.signature.attributes == "unnamed_addr #0 comdat($folded) align 16"
    assert str(module.function("struct_result").signature.type) == "{ i32, i32 } ({ i32, i32 }, ptr)"
    with pytest.raises(KeyError):
        module.function("not_a_function")


def test_unnamed_blocks_and_values_get_llvms_numbers() -> None:
    jumps = read_all(OPAQUE).function("jumps")
    assert [b.name for b in jumps.blocks] == [
        "2",
        "3",
        '"a block"',
        "5",
        "there",
        "6",
        "$odd",
        "8",
        ".dots",
        "9",
        "10",
        "-lands",
    ]
    assert jumps.block('"a block"').phis[0].incoming[0][1] == "2"
    with pytest.raises(KeyError):
        jumps.block("nowhere")


def test_unnamed_results_are_printed() -> None:
    module = read_all(
        "declare i8 @g(i8)\ndefine i8 @f(i8, i8 %x) {\n  call i8 @g(i8 %0)\n  %3 = add i8 %x, %2\n  ret i8 %3\n}\n"
    )
    (function,) = module.functions
    assert [a.name for a in function.arguments] == ["0", "x"]
    assert function.entry.name == "1"
    call = function.entry.instructions[0]
    assert call.text == "%2 = call i8 @g(i8 %0)"
    assert call.spans is not None
    assert [call.text[a:b] for a, b in call.spans] == ["@g", "%0"]


def test_numbers_may_have_gaps() -> None:
    """LLVM 20 and later accept them; what is written has none."""
    module = read_all("define i8 @f(i8 %3) {\n5:\n  %8 = add i8 %3, 1\n  ret i8 %8\n}\n")
    (function,) = module.functions
    assert [a.name for a in function.arguments] == ["3"]
    assert function.entry.name == "5"
    assert str(module) == "define i8 @f(i8 %0) {\n1:\n  %2 = add i8 %0, 1\n  ret i8 %2\n}\n"


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("define void @f(ptr %p) {", False),
        ("define void @f(i8* %p) {", True),
        ("define void @f({ i32 }* %p) {", True),
        ('; i8* in a comment\nsource_filename = "i8*"\n@ptr = global i32 0\n%ptr.t = type { ptr }', False),
        ('@"i8*" = global void ()* @ptr', True),
        ("define i32 @f(i32 %x) {", False),
    ],
)
def test_kind_of_pointers(text: str, typed: bool) -> None:
    assert uses_typed_pointers(text) is typed


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("define void @f() {\n  ret void\n", "function body has no end: a '}' is missing", "t.ll:1:1"),
        ('define void @f() {\n  call void asm "}", ""()\n  ret void\n', "function body has no end", "t.ll:1:1"),
        ("define void @f()\ndefine void @g() {\n ret void\n}", "function has no body: a '{' is missing", "t.ll:1:1"),
        ("define void @f()", "function has no body", "t.ll:1:1"),
        ("define void f() { ret void }", "expected a function's name", "t.ll:1:29"),
        ("define void @f( { ret void }", "unbalanced brackets", "t.ll:1:29"),
        ("define void @f() { }", "function body has no instructions", "t.ll:1:18"),
        (
            "define void @f() {\n  %x = add i8 1, 2\n}",
            "the block above has no terminator: expected an instruction, found '}'",
            "t.ll:3:1",
        ),
        (
            "define void @f() {\na:\nb:\n  ret void\n}",
            "the block above has no terminator: expected an instruction, found 'b:'",
            "t.ll:3:1",
        ),
        ("define void @f() {\n  br label %a\n}", "use of undefined block '%a'", "t.ll:2:12"),
        ("define void @f() {\na:\n  %x = phi i8 [ 0, %b ]\n  ret void\n}", "undefined block '%b'", "t.ll:3:20"),
        ("define void @f() {\n  %x = what i8 1\n  ret void\n}", "expected an instruction, found 'what'", "t.ll:2:8"),
        ("define void @f(i8 %x i8 %y) {\n  ret void\n}", "expected ','", "t.ll:1:22"),
        ("declare void @f(i8 %x", "expected ','", "t.ll:1:22"),
        ("declare @f()", "expected a function's result type", "t.ll:1:9"),
        ("declare void %f()", "expected a function's name", "t.ll:1:14"),
        ('@x = global i8 0 "unfinished', "unfinished string", "t.ll:1:18"),
        ("%t = type { i32\ndefine void @f() {\n  ret void\n}", "expected ','", "t.ll:2:1"),
        (f"declare {'[1 x ' * 5000}i8{']' * 5000} @f()", "nested too deeply", "t.ll:1:1"),
    ],
)
def test_malformed_modules(text: str, message: str, place: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_all(text)
    assert message in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.place == place


def test_attribute_groups() -> None:
    module = read_all(OPAQUE)
    assert module.attribute_groups["#0"] == 'nounwind "a"="}" "min-legal-vector-width"="0"'
    fast = module.function("fast").signature
    assert module.function_attributes(fast) == {"a": "}", "min-legal-vector-width": "0"}
    assert module.function_attributes(module.function("struct_result").signature)["odd"] == "{;}"


def test_fresh_names() -> None:
    module = read_all(OPAQUE)
    assert module.global_names.fresh("table") == "table.1"
    assert module.global_names.fresh("free") == "free"
    names = module.function("jumps").names
    assert [names.fresh("there"), names.fresh("there"), names.fresh("9")] == ["there.1", "there.2", "v9"]


def test_changing_attributes() -> None:
    module = read_all(OPAQUE)
    for name in ("fast", "byval", "struct_result", "arithmetic"):
        function = module.function(name)
        function.replace_attributes("nounwind")
        again = read_all(str(function).lstrip())
        assert [f.signature.attributes for f in again.functions] == ["nounwind"]
        assert str(again.functions[0].signature.type) == str(function.signature.type)
    plain = read_all("define void @f() {\n  ret void\n}").functions[0]
    plain.replace_attributes("cold")
    assert str(plain) == "define void @f() cold {\n  ret void\n}"


def test_items_can_be_added_and_removed() -> None:
    module = parse("@a = global i8 0\ndeclare void @f()\n@b = global i8 1\n")
    (declaration,) = module.declarations.values()
    module.append(UnparsedText("\n; behind"))
    assert str(module) == "@a = global i8 0\ndeclare void @f()\n; behind\n@b = global i8 1\n"
    module.remove(declaration)
    assert str(module) == "@a = global i8 0\n\n; behind\n@b = global i8 1\n"
    assert isinstance(read_all("define void @g() { ret void }").items[0], Function)


def test_labels_may_have_quotes_where_branches_have_none() -> None:
    text = 'define void @f() {\n  br label %next\n"next":\n  ret void\n}\n'
    (function,) = parse(text, is_parsed=lambda _: True).functions
    assert function.blocks[1].name == "next"
