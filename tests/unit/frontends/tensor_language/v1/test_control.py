"""Loops, choices and functions of the first version."""

from __future__ import annotations

import pytest

from tests.unit.frontends.tensor_language.v1.texts import body, converted, read, v2
from tlx.diagnostics import Source
from tlx.frontends.tensor_language.signature import c_parameters
from tlx.frontends.tensor_language.syntax import parser
from tlx.frontends.tensor_language.syntax.nodes import Attribute, NamedAttribute
from tlx.frontends.tensor_language.syntax.printer import print_program


def test_for_has_bounds_that_are_values() -> None:
    assert body("for %k=0,%n { }") == v2("%c0 = constant 0 : index\nfor %k=%c0,%n {}")


def test_for_with_a_step_and_a_type() -> None:
    text = "for %k=1,%i,2 : i32 { %x = arith.add %k, 1 : i32 }"
    assert body(text) == v2(
        "%c1_i32 = constant 1 : i32",
        "%c2_i32 = constant 2 : i32",
        "for %k=%c1_i32,%i,%c2_i32 {",
        "    %c1_i32_1 = constant 1 : i32",
        "    %x = add %k, %c1_i32_1 : i32",
        "}",
    )


def test_foreach_has_lists_of_one() -> None:
    text = "foreach %k=%n,8 : index { store %a, %v[%k] : memref<f32x8> }"
    assert body(text) == v2(
        "%c8 = constant 8 : index",
        "foreach (%k)=(%n),(%c8) {",
        "    store %a, %v[%k]",
        "}",
    )


def test_foreach_over_index_by_default() -> None:
    assert body("foreach %k=0,8 : i32 { }").splitlines()[0] == "%c0_i32 = constant 0 : i32"
    assert body("foreach %k=0,8 { }").splitlines()[0] == "%c0 = constant 0 : index"


def test_if_gives_what_its_regions_yield() -> None:
    text = """
        %c = cmp.lt %i, 16 : i32
        %x, %y = if %c -> (i32, i1) { yield %i, true : i32, i1 } else { yield 16, %p : i32, i1 }
    """
    assert body(text) == v2(
        "%c16_i32 = constant 16 : i32",
        "%c = less_than %i, %c16_i32 : bool",
        "%x, %y = if %c -> (i32,bool) {",
        "    %true = constant true : bool",
        "    yield (%i, %true)",
        "} else {",
        "    %c16_i32_1 = constant 16 : i32",
        "    yield (%c16_i32_1, %p)",
        "}",
    )


def test_if_without_values() -> None:
    assert body("if %p { barrier }") == v2("if %p { barrier.global.local }")
    assert body("if true { } else { barrier }") == v2(
        "%true = constant true : bool",
        "if %true {} else {",
        "    barrier.global.local",
        "}",
    )


def test_yield_of_nothing() -> None:
    assert body("if %p { yield : } else { }") == v2("if %p { yield () } else { }")


def test_names_of_regions_that_have_ended_may_come_again() -> None:
    text = "if %p { %x = group_id } else { %x = load %v[0] : memref<f32x8> %y = arith.neg %x : f32 }"
    assert "%y = neg %x : f32" in body(text)


def test_attributes_of_functions_become_a_dictionary() -> None:
    old = "func @f() work_group_size(32,4) subgroup_size(16) { } func @g() subgroup_size(8) { }"
    new = (
        "func @f() attributes {work_group_size=[32,4],subgroup_size=16} { } func @g() attributes {subgroup_size=8} { }"
    )
    assert converted(old) == print_program(parser.parse(Source("v2.tl", new)))


def test_types_of_parameters() -> None:
    text = "func @f(%p: i1, %a: f64, %A: memref<i8x4x?,strided<1,?>>, %0: index) { }"
    types = [str(p.type) for p in read(text).functions[0].parameters]
    assert types == ["bool", "f64", "memref<i8x4x?,strided<1,?>>", "index"]


def test_groups_have_no_size_that_is_passed() -> None:
    text = "func @f(%G: group<memref<f32x?>, offset: ?>, %H: group<memref<f32x4>>, %n: index) { }"
    (function,) = read(text).functions
    names = [c.name for c in c_parameters(function, one_group=False) if c.role != "launch"]
    assert names == ["G", "G_shape0", "G_offset", "H", "n"]
    assert function.attributes.entries[-1] == NamedAttribute("groups_without_size", quoted=True, value=Attribute(True))


def test_functions_without_groups_say_nothing_of_their_sizes() -> None:
    assert "groups_without_size" not in converted("func @f(%A: memref<f32x4>) { }")


def test_many_functions_and_comments() -> None:
    text = "; nothing\nfunc @f() { } ; one\nfunc @g(%n: index) { %x = arith.add %n, 1 : index }"
    assert [f.name.text for f in read(text).functions] == ["f", "g"]


@pytest.mark.parametrize("ending", ["yield ()", "yield :", "yield () :", ""])
def test_if_may_say_that_it_gives_nothing(ending: str) -> None:
    written = "yield ()" if ending else ""
    assert body(f"if %p -> () {{ {ending} }} else {{ }}") == v2(f"if %p -> () {{ {written} }} else {{ }}")
