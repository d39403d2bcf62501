"""Scalars of the first version: constants among operands, arithmetic, comparisons, casts, group ids."""

from __future__ import annotations

import pytest

from tests.unit.frontends.tensor_language.v1.texts import body, v2


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "rem"])
def test_arithmetic_on_numbers(op: str) -> None:
    assert body(f"%x = arith.{op} %a, %b : f32") == v2(f"%x = {op} %a, %b : f32")


@pytest.mark.parametrize("op", ["shl", "shr", "and", "or", "xor"])
def test_arithmetic_on_integers(op: str) -> None:
    assert body(f"%x = arith.{op} %i, %j : i32") == v2(f"%x = {op} %i, %j : i32")


@pytest.mark.parametrize(
    ("op", "operand", "type_"), [("neg", "%a", "f32"), ("neg", "%n", "index"), ("not", "%i", "i32")]
)
def test_unary_arithmetic(op: str, operand: str, type_: str) -> None:
    assert body(f"%x = arith.{op} {operand} : {type_}") == v2(f"%x = {op} {operand} : {type_}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("eq", "equal"),
        ("ne", "not_equal"),
        ("gt", "greater_than"),
        ("ge", "greater_than_equal"),
        ("lt", "less_than"),
        ("le", "less_than_equal"),
    ],
)
def test_comparisons(old: str, new: str) -> None:
    assert body(f"%x = cmp.{old} %n, %m : index") == v2(f"%x = {new} %n, %m : bool")


def test_cast_of_numbers() -> None:
    assert body("%x = cast %i : i32 -> f64") == v2("%x = cast %i : f64")
    assert body("%x = cast 7 : i64 -> f32") == v2("%c7_i64 = constant 7 : i64\n%x = cast %c7_i64 : f32")


def test_group_id_and_size_are_those_of_the_first_dimension() -> None:
    assert body("%x = group_id\n%y = group_size") == v2("%x = group_id.x : index\n%y = num_groups.x : index")


def test_barrier_keeps_its_fences() -> None:
    assert body("barrier") == v2("barrier.global.local")


@pytest.mark.parametrize(
    ("constant", "type_", "name", "value"),
    [
        ("0", "index", "c0", "0"),
        ("-1", "i32", "c_minus_1_i32", "-1"),
        ("+3", "i8", "c3_i8", "3"),
        ("true", "i16", "c1_i16", "1"),
        ("1.0", "f32", "c1_f32", "1.0"),
        ("0.5", "f64", "c0_5_f64", "0.5"),
        ("-2.25", "f32", "c_minus_2_25_f32", "-2.25"),
        ("1e-30", "f64", "c_f64", "1e-30"),
        ("0x1.8p1", "f64", "c3_f64", "3.0"),
        ("inf", "f64", "c_f64", "inf"),
    ],
)
def test_constants_become_instructions_with_names_that_say_what_they_are(
    constant: str, type_: str, name: str, value: str
) -> None:
    expected = f"%{name} = constant {value} : {type_}\n%r = add %{name}, %{name} : {type_}"
    assert body(f"%r = arith.add {constant}, {constant} : {type_}") == expected


def test_constants_are_shared_within_an_instruction_only() -> None:
    text = "%x = arith.add %i, 1 : i32\n%y = arith.mul 1, 1 : i32"
    assert body(text) == v2(
        "%c1_i32 = constant 1 : i32",
        "%x = add %i, %c1_i32 : i32",
        "%c1_i32_1 = constant 1 : i32",
        "%y = mul %c1_i32_1, %c1_i32_1 : i32",
    )


def test_zeros_of_both_signs_are_two_constants() -> None:
    assert body("%x = arith.sub 0.0, -0.0 : f32") == v2(
        "%c0_f32 = constant 0.0 : f32",
        "%c_minus_0_f32 = constant -0.0 : f32",
        "%x = sub %c0_f32, %c_minus_0_f32 : f32",
    )


def test_names_of_constants_avoid_those_of_the_text() -> None:
    text = "%c1_i32 = arith.add %i, 1 : i32\nfor %c1_i32_1=0,%n { }\n%x = arith.add 1, %c1_i32 : i32"
    assert body(text) == v2(
        "%c1_i32_2 = constant 1 : i32",
        "%c1_i32 = add %i, %c1_i32_2 : i32",
        "%c0 = constant 0 : index",
        "for %c1_i32_1=%c0,%n {}",
        "%c1_i32_3 = constant 1 : i32",
        "%x = add %c1_i32_3, %c1_i32 : i32",
    )


def test_arithmetic_on_single_bits_is_that_of_truth_values() -> None:
    for old, new in [("add", "xor"), ("sub", "xor"), ("mul", "and"), ("and", "and"), ("or", "or"), ("xor", "xor")]:
        assert body(f"%x = arith.{old} %p, %q : i1") == v2(f"%x = {new} %p, %q : bool")
    assert body("%x = arith.not %p : i1") == v2("%x = not %p : bool")


def test_constants_of_one_bit_are_truth_values() -> None:
    expected = ["%true = constant true : bool", "%false = constant false : bool", "%x = and %true, %false : bool"]
    assert body("%x = arith.and true, false : i1").splitlines() == expected
    assert body("%x = arith.and 1, 0 : i1").splitlines() == expected


def test_equality_of_single_bits() -> None:
    assert body("%x = cmp.ne %p, %q : i1") == v2("%x = xor %p, %q : bool")
    assert body("%x = cmp.eq %p, %q : i1") == v2("%differ = xor %p, %q : bool\n%x = not %differ : bool")


def test_cast_of_a_single_bit_to_a_number_is_a_choice() -> None:
    assert body("%x = cast %p : i1 -> f32") == v2(
        "%x = if %p -> (f32) {",
        "    %c1_f32 = constant 1.0 : f32",
        "    yield (%c1_f32)",
        "} else {",
        "    %c0_f32 = constant 0.0 : f32",
        "    yield (%c0_f32)",
        "}",
    )


def test_cast_of_a_number_to_a_single_bit_is_a_comparison() -> None:
    assert body("%x = cast %i : i32 -> i1") == v2("%c0_i32 = constant 0 : i32\n%x = not_equal %i, %c0_i32 : bool")
    assert body("%x = cast %d : f64 -> i1") == v2("%c0_f64 = constant 0.0 : f64\n%x = not_equal %d, %c0_f64 : bool")


def test_cast_of_a_single_bit_to_itself() -> None:
    assert body("%x = cast %p : i1 -> i1") == v2("%x = or %p, %p : bool")
