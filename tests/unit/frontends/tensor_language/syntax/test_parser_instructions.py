"""Every instruction as text, and its tree."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest

from tests.unit.frontends.tensor_language.syntax.instruction_trees import INSTRUCTIONS, entry
from tlx.frontends.tensor_language import parse
from tlx.frontends.tensor_language.operations.control import For
from tlx.frontends.tensor_language.operations.scalars import Constant
from tlx.frontends.tensor_language.syntax.nodes import Attribute, Dictionary, Instruction, NamedAttribute
from tlx.frontends.tensor_language.syntax.parser import FORMS
from tlx.frontends.tensor_language.syntax.printer import print_instruction


def parsed(text: str) -> Instruction:
    (function,) = parse(f"func @f() {{ {text} }}").functions
    (instruction,) = function.body.instructions
    return instruction


@pytest.mark.parametrize(("text", "expected"), INSTRUCTIONS)
def test_instruction(text: str, expected: Instruction) -> None:
    actual = parsed(text)
    assert actual == expected
    assert repr(actual) == repr(expected)


@pytest.mark.parametrize(("_text", "tree"), INSTRUCTIONS)
def test_printed_text_parses_to_the_same_tree(_text: str, tree: Instruction) -> None:
    assert parsed(print_instruction(tree)) == tree


def test_every_instruction_has_a_text_here() -> None:
    words = {text.split(" = ")[-1].split(" ")[0].split(".")[0] for text, _ in INSTRUCTIONS}
    words |= {"constant", "for"}  # constants have a table of their own; `for %i=` holds an equals sign
    assert set(FORMS) <= words


CONSTANTS: list[tuple[str, bool | complex]] = [
    ("true", True),
    ("false", False),
    ("0", 0),
    ("-0", 0),
    ("+12", 12),
    ("00012", 12),
    ("9223372036854775807", 2**63 - 1),
    ("-9223372036854775807", -(2**63) + 1),
    ("0" * 5000 + "1", 1),
    ("1.0", 1.0),
    ("-0.0", -0.0),
    ("1.", 1.0),
    (".5", 0.5),
    ("+2.5e-3", 0.0025),
    ("1e5", 1e5),
    ("0x1.8p3", 12.0),
    ("-0x.8", -0.5),
    ("0xAp-1", 5.0),
    ("0X1P+4", 16.0),
    ("inf", math.inf),
    ("-inf", -math.inf),
    ("nan", math.nan),
    ("1e-999", 0.0),
    ("1.7976931348623157e308", 1.7976931348623157e308),
    ("[1.0, -2.0]", 1 - 2j),
    ("[0x1p-1,-inf]", complex(0.5, -math.inf)),
    ("[nan,-0.0]", complex(math.nan, -0.0)),
]


@pytest.mark.parametrize(("text", "value"), CONSTANTS)
def test_constant(text: str, value: bool | complex) -> None:
    actual = parsed(f"%r = constant {text} : f32")
    assert isinstance(actual, Constant)
    assert type(actual.value) is type(value)
    assert repr(actual.value) == repr(value)


def test_the_sign_of_nan_round_trips() -> None:
    actual = parsed("%r = constant -nan : f32")
    assert isinstance(actual, Constant)
    assert isinstance(actual.value, float)
    assert math.copysign(1.0, actual.value) == -1.0
    assert print_instruction(actual) == "%r = constant -nan : f32"


def test_attributes() -> None:
    text = 'func @f(%A: memref<f32x?> {alignment=8, shape_gcd=[4, [], {"x"=-1}]}, %x: f32 {}) attributes {"a b"=""} {}'
    (function,) = parse(text).functions
    first, second = function.parameters
    inner = Attribute(Dictionary((entry("x", -1, quoted=True),)))
    assert first.attributes == Dictionary((
        entry("alignment", 8),
        NamedAttribute("shape_gcd", False, Attribute((Attribute(4), Attribute(()), inner))),
    ))  # fmt: skip
    assert second.attributes == Dictionary()
    assert function.attributes == Dictionary((NamedAttribute("a b", True, Attribute("")),))


def test_repeated_attributes_round_trip() -> None:
    (function,) = parse("func @f() attributes {unroll=1, unroll=2} {}").functions
    assert [e.value.value for e in function.attributes.entries] == [1, 2]


def test_functions() -> None:
    program = parse("func @f() {} ; first\nfunc @1(%0: f32, %x: bool) { }")
    assert [f.name.text for f in program.functions] == ["f", "1"]
    assert [p.name.text for p in program.functions[1].parameters] == ["0", "x"]
    assert parse("").functions == []
    assert parse(" ; nothing").functions == []


def test_spans_are_those_of_the_text() -> None:
    text = "func @f() { %r, %s = for %i=%x,%y init(%v=%x) -> (f32) { store %x, %A[%i] } attributes {unroll=1} }"
    (function,) = parse(text).functions
    (loop,) = function.body.instructions
    assert isinstance(loop, For)
    (store,) = loop.body.instructions
    spans = [function.span, loop.span, loop.results[1].span, loop.types[0].span, loop.body.span, store.span]
    assert [text[s.start : s.end] for s in spans if s] == [
        "func @f()",
        "for %i=%x,%y init(%v=%x) -> (f32)",
        "%s",
        "f32",
        "{ store %x, %A[%i] }",
        "store %x, %A[%i]",
    ]


def test_every_name_has_a_span() -> None:
    for text, _ in INSTRUCTIONS:
        instruction = parsed(text)
        for name in instruction.operands():
            assert name.span is not None
            assert name.span.source.text[name.span.start : name.span.end] == str(name)
        assert all(getattr(instruction, f.name) is not None for f in fields(instruction) if f.name == "span")


def test_white_space_and_comments_between_all_tokens() -> None:
    plain = "%r = for %i=%x,%y init(%v=%x) -> (f32) { %s = load %A[%i] : memref<f32x4x?,strided<1,4>> }"
    tokens = plain.replace("x4x?", " x 4 x ? ")
    for mark in "=,()[]{}<>:":
        tokens = tokens.replace(mark, f" ; {mark}\n {mark} ")
    assert parsed(tokens.replace("- ; >\n >", "->")) == parsed(plain)


def test_a_list_of_results_may_be_empty() -> None:
    text = "if %x -> () { yield () } else { yield () }"
    assert parsed(text) == parsed(text.replace("-> () ", ""))
