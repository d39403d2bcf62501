"""Syntax errors: message, location and carets of each; all errors of a text at once."""

from __future__ import annotations

from typing import get_args

import pytest

from tests.unit.frontends.tensor_language.syntax.parser_errors import errors_of
from tlx.frontends.tensor_language import Standard, check_program, parse
from tlx.frontends.tensor_language.errors import ProgramError
from tlx.frontends.tensor_language.operations.core import Scope, Semantics
from tlx.frontends.tensor_language.operations.subgroups import Checked
from tlx.frontends.tensor_language.syntax.nodes import ATTRIBUTE_NAMES
from tlx.frontends.tensor_language.syntax.parser import FORMS
from tlx.frontends.tensor_language.types import NUMBERS

MODIFIERS: tuple[str, ...] = (*get_args(Checked), *get_args(Scope), *get_args(Semantics))

# An instruction with a mark `«...»` around what the carets point at, and the message.
INSTRUCTIONS = [
    # Spellings of version 1.
    ("%x = «cmp.lt» %a, %b : i32", "'cmp.lt' is a spelling of version 1: write 'less_than'"),
    ("%x = «cmp.ne» %a, %b : i32", "'cmp.ne' is a spelling of version 1: write 'not_equal'"),
    ("%x = «arith.add» %a, %b : f32", "'arith.add' is a spelling of version 1: write 'add'"),
    ("%x = «arith.not» %a : bool", "'arith.not' is a spelling of version 1: write 'not'"),
    ("%x = «math.native_exp» %a : f32", "'math.native_exp' is a spelling of version 1: write 'native_exp'"),
    ("%x = «math.foo» %a : f32", "unknown instruction 'math.foo'; did you mean 'for'?"),
    ("«hadamard_product» %a, %A, %B, %b, %C", "'hadamard_product' is a spelling of version 1: write 'hadamard'"),
    ("«hadamard_product».atomic %a", "'hadamard_product' is a spelling of version 1: write 'hadamard'"),
    ("%x = «group_size»", "'group_size' is a spelling of version 1: write 'num_groups.x'"),
    ("%x = group_id «:» index", "expected '.x', '.y' or '.z' after 'group_id', found ':'"),
    (
        "%x = alloca «->» memref<f32x4>",
        (
            "expected ':' and the type of the result of 'alloca', found '->': version 2 writes the type of the result "
            "after ':'"
        ),
    ),
    (
        "gemm.n.t«.atomic» %a, %A, %B, %b, %C",
        "'.atomic' is misplaced or repeated: write 'gemm[.atomic][.n|.t][.n|.t]'",
    ),
    (
        "gemm.n.t«,» %a, %A, %B, %b, %C",
        "expected alpha of 'gemm', found ',': no comma follows the instruction's name",
    ),
    (
        "gemm «1.0», %A, %B, %b, %C",
        (
            "expected alpha of 'gemm' (%name), found '1.0': write '%c = constant 1.0 : f32' before it, with the type "
            "it needs, and use %c"
        ),
    ),
    (
        "gemm %a, %A, %B, %b, %C «:» f32, memref<f32>",
        "'gemm' gives no value, so no type follows it: remove ': ...'",
    ),
    (
        "store %a, %A[] «:» memref<f32>",
        "'store' gives no value, so no type follows it: remove ': ...'",
    ),
    (
        "%x = load %A[«5», %i] : f32",
        (
            "expected an index of 'load' (%name), found '5': write '%c = constant 5 : index' before it, with the type "
            "it needs, and use %c"
        ),
    ),
    (
        "if «true» {}",
        (
            "expected the condition of 'if' (%name), found 'true': write '%c = constant true : bool' before it, with "
            "the type it needs, and use %c"
        ),
    ),
    (
        "%x = neg «[»1.0, 2.0] : c32",
        (
            "expected the operand of 'neg' (%name), found a constant: write '%c = constant [...] : c32' before it, "
            "with the type it needs, and use %c"
        ),
    ),
    (
        "%x = size %A[0] : «memref»<f32x4>",
        "expected the type (index), found 'memref': version 2 writes the type of the result, not of the operands",
    ),
    (
        "%x = less_than %a, %b : «i32»",
        "expected the type (bool), found 'i32': version 2 writes the type of the result, not of the operands",
    ),
    ("%x = cast %a : i32 «->» f32", "version 2 writes the type of the result only: 'cast %a : type'"),
    ("yield «%a» : f32", "expected '(' around the values of 'yield', found '%a'"),
    (
        "for %i=%a,%b «:» i32 {}",
        "version 2 writes no type of the loop variable (it has that of the range): remove ': ...'",
    ),
    ("foreach «%i»=%a,%b {}", "expected '(' and the loop variables of 'foreach', found '%i': write '(%i)'"),
    (
        "%x = expand %A[0->4x«?»] : memref<f32>",
        (
            "expected the size of a new mode (an integer or %name), found '?': sizes that are found by themselves are "
            "of version 1"
        ),
    ),
    (
        "%x = subview %A[«:», %i] : memref<f32>",
        "expected an offset (an integer or %name), found ':': sizes that are found by themselves are of version 1",
    ),
    # Names of instructions, results, modifiers.
    ("«stor» %a, %A[]", "unknown instruction 'stor'; did you mean 'store'?"),
    ("%x = «lod» %A[] : f32", "unknown instruction 'lod'; did you mean 'load'?"),
    ("%x = «zzzzzzzz» %A", "unknown instruction 'zzzzzzzz'"),
    (f"«{'z' * 1000}» %A", f"unknown instruction '{'z' * 40}...'"),
    ("«%x =» store %a, %A[]", "'store' gives no value: remove '%x ='"),
    ("«add» %a, %b : f32", "'add' gives a value: write '%name = add ...'"),
    ("«%x, %y =» add %a, %b : f32", "'add' gives one value, found 2 names"),
    ("%x = «%a»", "expected an instruction, found '%a': a value needs no second name"),
    ("%x «add» %a, %b : f32", "expected '=' after the name of a result, found 'add'"),
    ("%x, «add» %a, %b : f32", "expected a result (%name), found 'add'"),
    ("«:»", "expected an instruction, found ':'"),
    ("«else» {}", "expected an instruction, found 'else': it comes right after the region of an 'if'"),
    ("%x = load«.n» %A[] : f32", "'load' has no modifiers, found '.n'"),
    (
        "axpby.n«.t» %a, %A, %b, %B",
        "'.t' is misplaced or repeated: write 'axpby[.atomic][.n|.t]'",
    ),
    ("barrier.local«.global»", "'.global' is misplaced or repeated: write 'barrier[.global][.local]'"),
    (
        "axpby«.atmic» %a, %A, %b, %B",
        "unknown modifier '.atmic' of 'axpby' (known: .atomic, .n, .t); did you mean '.atomic'?",
    ),
    (
        "%x = cooperative_matrix_load«.device» %A[%i,%i] : coopmatrix<f32x4x4,matrix_a>",
        (
            "unknown modifier '.device' of 'cooperative_matrix_load' (known: .n, .t, .rows_checked, .cols_checked, "
            ".both_checked): 'cooperative_matrix_atomic_load' has it"
        ),
    ),
    (
        "%x = cooperative_matrix_reduce_add «%v» : coopmatrix<f32x4x1,matrix_a>",
        "expected '.row' or '.column' after 'cooperative_matrix_reduce_add', found '%v'",
    ),
    # Operands.
    ("%x = add %a «%b» : f32", "expected ',' and the second operand of 'add', found '%b'"),
    ("%x = add %a, «:» f32", "expected the second operand of 'add' (%name), found ':'"),
    ("%x = add %a, %b «f32»", "expected ':' and the type of the result of 'add', found 'f32'"),
    ("%x = load %A «:» f32", "expected '[' after '%A' in 'load', found ':'"),
    ("%x = load %A[%i «:» f32", "expected ',' or ']', found ':'"),
    ("cumsum %a, %A, «%m», %b, %B", "expected the mode of 'cumsum' (an integer), found '%m'"),
    ("cooperative_matrix_prefetch «%l», %A[%i,%i], 8, 8", "expected the cache level (an integer), found '%l'"),
    (
        "cooperative_matrix_store %v, %A[%i«]»",
        "expected ',' and the column index of 'cooperative_matrix_store', found ']'",
    ),
    ("%x = expand %A[0->4«]» : memref<f32>", "expected 'x' and the size of a second new mode, found ']'"),
    ("%x = fuse %A[0«:»1] : memref<f32>", "expected ',' and the last mode of 'fuse', found ':'"),
    # Constants.
    (
        "%x = constant «1e999» : f64",
        "floating-point number out of range: '1e999' is too large for f64; infinity is 'inf'",
    ),
    (
        "%x = constant «-0x1p1024» : f64",
        "floating-point number out of range: '-0x1p1024' is too large for f64; infinity is 'inf'",
    ),
    (
        "%x = constant «-9223372036854775808» : i64",
        "integer out of range: '-9223372036854775808' is not in -(2^63-1) ... 2^63-1",
    ),
    (
        f"%x = constant «{'9' * 5000}» : i64",
        f"integer out of range: '{'9' * 40}...' is not in -(2^63-1) ... 2^63-1",
    ),
    ("%x = constant [«1», 2] : c32", "expected a floating-point number, found '1': write '1.0'"),
    (
        "%x = constant «%a» : f32",
        "expected a constant (true, false, an integer, a floating-point number or '[real, imaginary]'), found '%a'",
    ),
    # Attributes.
    (
        "%x = alloca {«aligment»=4} : memref<f32,local>",
        (
            "unknown attribute 'aligment' (known: alignment, shape_gcd, stride_gcd, subgroup_size, unroll, "
            "work_group_size; names of others are written in quotes); did you mean 'alignment'?"
        ),
    ),
    (
        "%x = alloca {«colour»=4} : memref<f32,local>",
        (
            "unknown attribute 'colour' (known: alignment, shape_gcd, stride_gcd, subgroup_size, unroll, "
            "work_group_size; names of others are written in quotes)"
        ),
    ),
    (
        "%x = alloca {alignment=«4.0»} : memref<f32,local>",
        "expected an attribute's value (true, false, an integer, a string, '[...]' or '{...}'), found '4.0'",
    ),
    ("%x = alloca {alignment=4 «:» memref<f32,local>", "expected ',' or '}' after an attribute, found ':'"),
    ('%x = alloca {"a"=[4 «}» : memref<f32,local>', "expected ',' or ']' after a value of the list, found '}'"),
    ("%x = alloca {alignment«:»4} : memref<f32,local>", "expected '=' after the attribute 'alignment', found ':'"),
    # Loops and branches.
    ("if %a -> «f32» {}", "expected '(' before the types of the results, found 'f32': write '(f32)'"),
    ("for %i=%a,%b «->» (f32) {}", "types of results come after 'init(%carried=%first, ...)'"),
    ("for %i=%a,%b init(%x«,»%y) -> (f32) {}", "expected '=' after the carried value's name, found ','"),
    ("for %i=%a,%b init(%x=%y) «{» yield () }", "expected '->' and the types of the results, found '{'"),
    ("foreach (%i)=(%a)«{» yield () }", "expected ',' and the upper bounds of 'foreach', found '{'"),
    ("foreach «()»=(),() {}", "expected the loop variables of 'foreach', found '()'"),
    ("foreach_tile (%i)=(%a),(%b) as (%t)«=»(32) {}", "expected '<=' after the sizes of the tile, found '='"),
    ("foreach_tile (%i)=(%a),(%b) as (%t)<=(«%c») {}", "expected the tile shape (an integer), found '%c'"),
    ("parallel «yield» ()", "expected '{' and the region of 'parallel', found 'yield'"),
    # Characters.
    ("%x = add %a «#» %b : f32", "unexpected character '#': comments begin with ';'"),
    ("%x = add %a«\0»,%b : f32", "unexpected character U+0000"),
    ("«é»", "unexpected character U+00E9"),
    ("«\udcff»", "unexpected character U+DCFF"),
]


@pytest.mark.parametrize(("marked", "message"), INSTRUCTIONS)
def test_an_instruction_that_does_not_parse(marked: str, message: str) -> None:
    start, width = marked.index("«"), marked.index("»") - marked.index("«") - 1
    line = f"    {marked.replace('«', '').replace('»', '')}"
    error = errors_of(f"func @f() {{\n{line}\n    %ok = constant 1 : index\n}}\n").errors[0]
    assert error.message == message
    assert error.span is not None
    assert error.span.place == f"k.tl:2:{start + 5}"
    assert error.span.end - error.span.start == width


@pytest.mark.parametrize(("marked", "_message"), [c for c in INSTRUCTIONS if "cumsum" not in c[0]])
def test_parsing_continues_after_an_error(marked: str, _message: str) -> None:
    wrong = marked.replace("«", "").replace("»", "")
    actual = errors_of(f"func @f() {{ {wrong}\n %x = neg %y : nothing }}\nfunc @g() {{ foobarbaz }}").errors
    assert actual[-2].message.endswith("found 'nothing'")
    assert actual[-1].message == "unknown instruction 'foobarbaz'"


@pytest.mark.parametrize(("marked", "_message"), INSTRUCTIONS)
def test_one_error_is_reported_once(marked: str, _message: str) -> None:
    wrong = marked.replace("«", "").replace("»", "")
    assert len(errors_of(f"func @f() {{\n%ok = constant 1 : index\n{wrong}\n%no = neg %ok : index\n}}").errors) == 1


_TOO_MANY = "'}' ends the function, but more follows: one '}' too many?"

FUNCTIONS = [
    ("func «f»() {}", "expected the function's name (@name), found 'f'"),
    ("func @f «{»}", "expected '(' after the function's name, found '{'"),
    ("func @f(%a «f32») {}", "expected ':' and the type of the parameter, found 'f32'"),
    ("func @f(«a»: f32) {}", "expected a parameter (%name), found 'a'"),
    ("func @f(%a: f32 «%b»: f32) {}", "expected ',' or ')' after a parameter, found '%b'"),
    ("func @f(%a: f32 «{» yield () }", "expected ',' or ')' after a parameter, found '{'"),
    ("func @f() «%a»", "expected '{' and the region of 'func', found '%a'"),
    ("func @f() attributes «[»]", "expected '{' before the attributes, found '['"),
    (
        "func @f() «work_group_size»(8,4) subgroup_size(8) {}",
        "'work_group_size(...)' is a spelling of version 1: write 'attributes {work_group_size=[m,n]}'",
    ),
    (
        "func @f() «subgroup_size»(8) {}",
        "'subgroup_size(...)' is a spelling of version 1: write 'attributes {subgroup_size=s}'",
    ),
    ("func @f() {} «}»", "expected 'func', found '}': one '}' too many?"),
    ("func @f() {\n} «}»", "expected 'func', found '}': one '}' too many?"),
    ("func @f() {\n}\n«}»", "expected 'func', found '}': one '}' too many?"),
    ("«}» func @f() {}", "expected 'func', found '}': one '}' too many?"),
    ("func @f() {\n  if %a {\n  }\n  «}»\n}", _TOO_MANY),
    ("func @f() {\n  if %a {\n  }«}»\n}", _TOO_MANY),
    ("func @f() {\n  if %a {\n  }\n«}»\n  barrier\n}", _TOO_MANY),
    ("func @f() {\n  %b = neg %a : f32 «}»\n  %c = neg %a : f32\n}", _TOO_MANY),
    ("func @f() {\n  barrier «}» .local\n}", _TOO_MANY),
    ("func @f() {}\n«fun» @g() {}", "expected 'func', found 'fun'; did you mean 'func'?"),
    ("«kernel» @f() {}", "expected 'func', found 'kernel': instructions belong in functions"),
    ("«%x» = neg %a : f32", "expected 'func', found '%x': instructions belong in functions"),
    ("«gemm»", "expected 'func', found 'gemm': instructions belong in functions"),
    ("func @f() { yield ()« »", "expected '}' at the end of the region, found the end of the text"),
    ("func« »", "expected the function's name (@name), found the end of the text"),
    ("func @f() {\n«func» @g() {}", "expected '}' at the end of the region, found 'func'"),
]


@pytest.mark.parametrize(("marked", "message"), FUNCTIONS)
def test_a_function_that_does_not_parse(marked: str, message: str) -> None:
    start, end = marked.index("«"), marked.index("»") - 1
    (error,) = errors_of(marked.replace("«", "").replace("»", "")).errors
    assert error.message == message
    assert error.span is not None
    assert (error.span.start, error.span.end) == (start, end)


def test_all_errors_of_a_text_are_shown_with_lines_and_carets() -> None:
    text = """\
func @f(%a: f33, %A: memref<f32x4>) {
    %x = ad %a, %a : f32
    for %i=%a,5 {
        %y = load %A[%i : f32
        stor %y, %A[%i]
    }
    %z = add %x
    if %z {
        %w = cmp.lt %x, %x : f32
"""
    assert (
        errors_of(text).render()
        == """\
k.tl:1:13: error: expected a type (bool, i8, i16, i32, i64, index, bf16, f16, f32, f64, c32, c64, memref, group or \
coopmatrix), found 'f33'; did you mean 'f32'?
func @f(%a: f33, %A: memref<f32x4>) {
            ^~~
k.tl:2:10: error: unknown instruction 'ad'; did you mean 'add'?
    %x = ad %a, %a : f32
         ^~
k.tl:3:15: error: expected the upper bound of 'for' (%name), found '5': write '%c = constant 5 : index' before it, \
with the type it needs, and use %c
    for %i=%a,5 {
              ^
k.tl:4:25: error: expected ',' or ']', found ':'
        %y = load %A[%i : f32
                        ^
k.tl:5:9: error: unknown instruction 'stor'; did you mean 'store'?
        stor %y, %A[%i]
        ^~~~
k.tl:7:16: error: expected ',' and the second operand of 'add', found the end of the line
    %z = add %x
               ^
k.tl:9:14: error: 'cmp.lt' is a spelling of version 1: write 'less_than'
        %w = cmp.lt %x, %x : f32
             ^~~~~~
k.tl:9:33: error: expected '}' at the end of the region, found the end of the text
        %w = cmp.lt %x, %x : f32
                                ^
k.tl:8:11: note: opened here
    if %z {
          ^"""
    )


def test_the_region_of_a_misspelt_instruction_is_read() -> None:
    text = "func @f() { fro %i=%a,%b { %x = foobarbaz } attributes {unroll=1} %y = quuxquux }"
    actual = [e.message for e in errors_of(text).errors]
    assert [m.split(";")[0] for m in actual] == [
        "unknown instruction 'fro'",
        "unknown instruction 'foobarbaz'",
        "unknown instruction 'quuxquux'",
    ]


def test_errors_after_a_region_do_not_repeat_those_in_it() -> None:
    text = "func @f() { for %i=%a,%b { %x = foobarbaz } attributes [] if %a {} else 3 %y = quuxquux }"
    actual = [e.message for e in errors_of(text).errors]
    assert [m.split(",")[0] for m in actual] == [
        "unknown instruction 'foobarbaz'",
        "expected '{' before the attributes",
        "expected '{' and the region of 'if'",
        "unknown instruction 'quuxquux'",
    ]


def misspelt() -> list[tuple[str, str, bool]]:
    """Words of the language, texts with their last letter doubled, and whether version 1 has them."""
    texts = [(word, f"func @f() {{ {word}{word[-1]} }}", False) for word in FORMS]
    texts += [
        (word, f"func @f() {{ {word}{word[-1]} }}", True) for word in ("alloca", "gemm", "yield", "lifetime_stop")
    ]
    texts += [(word, f"func @f(%a: {word}{word[-1]}) {{}}", False) for word in (*NUMBERS, "bool", "memref", "group")]
    texts += [(word, f"func @f(%a: {word}{word[-1]}) {{}}", True) for word in ("i1", "i32", "f32", "index")]
    texts += [(word, f"func @f(%a: memref<f32x4> {{{word}{word[-1]}=1}}) {{}}", False) for word in ATTRIBUTE_NAMES]
    texts += [
        (word, f"func @f() {{ %x = cooperative_matrix_atomic_load.{word}{word[-1]} }}", False) for word in MODIFIERS
    ]
    texts += [
        ("coopmatrix", "func @f(%a: coopmatrixx<f32x4x4,matrix_a>) {}", False),
        ("matrix_acc", "func @f(%a: coopmatrix<f32x4x4,matrix_accc>) {}", False),
        ("local", "func @f(%a: memref<f32x4,locall>) {}", False),
        ("strided", "func @f(%a: memref<f32x4,stridedd<1>>) {}", False),
        ("strided", "func @f(%a: memref<f32x4,stridedd<1>>) {}", True),
        ("offset", "func @f(%a: group<memref<f32x4>x2,offsett:4>) {}", False),
        ("attributes", "func @f() attributess {} {}", False),
        ("work_group_size", "func @f() work_group_sizee(4,4) {}", True),
        ("attributes", "func @f() { for %i=%a,%b {} attributess {unroll=true} }", False),
        ("else", "func @f() { if %a {} elsee {} }", False),
        ("init", "func @f() { for %i=%a,%b initt(%c=%d) -> (f32) {} }", False),
        ("as", "func @f() { foreach_tile (%i)=(%a),(%b) ass (%c)<=(16) {} }", False),
        ("true", "func @f() { %a = constant truee : bool }", False),
        ("false", 'func @f() attributes {"a"=falsee} {}', False),
        (".add", "func @f() { %a = arith.addd 1, 1 : i32 }", True),
    ]
    return texts


@pytest.mark.parametrize(("word", "text", "old"), misspelt())
def test_misspelt_words_are_suggested(word: str, text: str, old: bool) -> None:
    with pytest.raises(ProgramError) as caught:
        parse(text, std="v1" if old else "v2")
    dot = "." if word in MODIFIERS else ""
    assert f"did you mean '{dot}{word}'?" in caught.value.errors[0].message


@pytest.mark.parametrize("std", ["v1", "v2"])
def test_misspelt_names_are_suggested(std: Standard) -> None:
    old = " : memref<f32x4>" if std == "v1" else ""
    text = f"func @f(%alpha: f32, %A: memref<f32x4>, %n: index) {{ store %alhpa, %A[%n]{old} store %b, %A[%n]{old} }}"
    with pytest.raises(ProgramError) as caught:
        check_program(parse(text, std=std))
    first = "%alhpa is not defined here; did you mean '%alpha'?"
    assert [e.message for e in caught.value.errors] == [
        first,
        "%b is not defined here: define it above, in this or an enclosing region",
    ]


def test_names_of_closed_regions_are_not_suggested() -> None:
    text = "func @f(%beta: bool, %a: f32) { if %beta { %bete = neg %a : f32 } %c = neg %bete : f32 }"
    with pytest.raises(ProgramError, match="%bete is not defined here: define it above, in this or"):
        check_program(parse(text))
