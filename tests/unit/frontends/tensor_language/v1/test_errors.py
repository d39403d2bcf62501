"""Errors in a text of the first version: the location, both operands, and the remedy."""

from __future__ import annotations

import pytest

from tests.unit.frontends.tensor_language.v1.texts import errors, read, whole_errors
from tlx.frontends.tensor_language.errors import ProgramError

_GEMM = "f32, memref<f32x16x8>, memref<f32x8x4>, f32, memref<f32x16x4>"
_OLD_GROUP = "group<memref<f32x16x8>>"

_UNDEFINED = "is not defined here: define it above, in this or an enclosing region"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("%x = arith.add %a, %b : f64", "1:25: %a is f32, but is written as f64 here"),
        ("%x = arith.not %i : index", "1:21: %i is i32, but is written as index here"),
        ("%x = cmp.lt %i, 1 : i64", "1:21: %i is i32, but is written as i64 here"),
        ("%x = cast %p : i32 -> f32", "1:16: %p is i1, but is written as i32 here"),
        ("%x = load %A[0,0] : memref<f32x16>", "1:21: %A is memref<f32x16x8>, but is written as memref<f32x16> here"),
        (
            "%x = load %G[0] : group<memref<f32x16x8>, offset: ?>",
            f"1:19: %G is {_OLD_GROUP}, but is written as group<memref<f32x16x8>,offset:?> here",
        ),
        ("%x = load %G[0] : memref<f32>", f"1:19: %G is {_OLD_GROUP}, but is written as memref<f32> here"),
        ("store %a, %s[] : memref<f64>", "1:18: %s is memref<f32>, but is written as memref<f64> here"),
        ("%x = size %A[0] : memref<f32x8x16>", "1:19: %A is memref<f32x16x8>, but is written as memref<f32x8x16> here"),
        (
            "%x = subview %A[0,0] : memref<f32x16x8,strided<1,17>>",
            "1:24: %A is memref<f32x16x8>, but is written as memref<f32x16x8,strided<1,17>> here",
        ),
        ("%x = expand %v[0->2x4] : memref<f32x16>", "1:26: %v is memref<f32x8>, but is written as memref<f32x16> here"),
        (
            "%x = fuse %A[0,1] : memref<f64x16x8>",
            "1:21: %A is memref<f32x16x8>, but is written as memref<f64x16x8> here",
        ),
        ("for %k=0,%n : i32 { }", "1:15: %n is index, but is written as i32 here"),
        ("for %k=0,8,%i { }", "1:12: %i is i32, but is written as index here"),
        ("foreach %k=%i,8 { }", "1:12: %i is i32, but is written as index here"),
        (
            f"gemm.n.n %a, %B, %B, %b, %C : {_GEMM}",
            "1:36: %B is memref<f32x8x4>, but is written as memref<f32x16x8> here",
        ),
        (f"gemm.n.n %d, %A, %B, %b, %C : {_GEMM}", "1:31: %d is f64, but is written as f32 here"),
        (
            "%x = if %p -> (f32) { yield %i : f32 } else { yield 0.0 : f32 }",
            "1:34: %i is i32, but is written as f32 here",
        ),
    ],
)
def test_types_that_operands_do_not_have(text: str, error: str) -> None:
    first, note = errors(text)
    assert first == error
    assert note.endswith("note: declared here")


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (
            "%x = arith.add %u, %w : f32",
            [
                f"1:16: %u {_UNDEFINED}",
                "1:25: %w is memref<f32x16>, but is written as f32 here",
            ],
        ),
        (
            "store %u, %A[%y,%z] : memref<f32x16x8>",
            [
                f"1:7: %u {_UNDEFINED}",
                f"1:14: %y {_UNDEFINED}",
                f"1:17: %z {_UNDEFINED}",
            ],
        ),
        (
            "if %u { lifetime_stop %y }",
            [f"1:4: %u {_UNDEFINED}", f"1:23: %y {_UNDEFINED}"],
        ),
        (
            "%x = subview %A[%u:?,%y:%z] : memref<f32x16x8>",
            [
                f"1:17: %u {_UNDEFINED}",
                f"1:22: %y {_UNDEFINED}",
                f"1:25: %z {_UNDEFINED}",
            ],
        ),
        (
            "%x = expand %v[0->%u x ?] : memref<f32x8>",
            [f"1:19: %u {_UNDEFINED}"],
        ),
        (
            "for %k=0,%n { } %x = arith.add %k, 1 : index",
            [f"1:32: %k {_UNDEFINED}"],
        ),
        (
            "%x = arith.add %x, 1 : index",
            [f"1:16: %x {_UNDEFINED}"],
        ),
    ],
)
def test_undefined_names(text: str, places: list[str]) -> None:
    assert [line for line in errors(text) if "note:" not in line] == places


def test_a_name_of_a_region_that_has_ended_is_shown() -> None:
    assert errors("if %p { %x = group_id }\n%y = arith.add %x, 1 : index") == [
        f"2:16: %x {_UNDEFINED}",
        "1:9: note: declared here, in a region that has closed",
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "%x = arith.div %p, %q : i1",
            "1:6: version 2 has no 'div' of truth values; use arith.and, arith.or or arith.xor",
        ),
        (
            "%x = arith.shl %p, 1 : i1",
            "1:6: version 2 has no 'shl' of truth values; use arith.and, arith.or or arith.xor",
        ),
        ("%x = arith.neg %p : i1", "1:6: version 2 has no 'neg' of truth values; use arith.not"),
        ("%x = cmp.lt %p, %q : i1", "1:6: version 2 has no 'cmp.lt' of truth values; use cmp.eq or cmp.ne"),
        ("%x = arith.and %p, 2 : i1", "1:20: a constant of type i1 is true, false, 0 or 1, not 2"),
        ("%x = arith.and %p, 1.0 : i1", "1:20: a constant of type i1 is true, false, 0 or 1, not 1.0"),
        (
            "%x = alloca -> memref<i1x4>",
            "1:23: version 2 has no memory of single bits: write 'i8', and compare what is loaded with 0",
        ),
    ],
)
def test_features_that_version_2_lacks(text: str, error: str) -> None:
    assert errors(text) == [error]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "%x = subview %A[1] : memref<f32x16x8>",
            "1:6: subview takes a slice for each mode, 2 for memref<f32x16x8>, got 1",
        ),
        ("%x = subview %A[1,4:0] : memref<f32x16x8>", "1:21: the size of a slice must be positive, got 0"),
        ("%x = subview %A[1,4:-3] : memref<f32x16x8>", "1:21: the size of a slice must be positive, got -3"),
        ("%x = subview %A[16:?,1] : memref<f32x16x8>", "1:17: what is left of 16 after 16 must be positive, got 0"),
        ("%x = expand %A[2->4x4] : memref<f32x16x8>", "1:6: expand takes a mode below 2 for memref<f32x16x8>, got 2"),
        ("%x = expand %A[-1->4x4] : memref<f32x16x8>", "1:6: expand takes a mode below 2 for memref<f32x16x8>, got -1"),
        (
            "%x = expand %A[0->?x?] : memref<f32x16x8>",
            "1:21: only one '?' can be inferred in an expand shape; name the other sizes",
        ),
        (
            "%x = expand %A[0->3x?] : memref<f32x16x8>",
            "1:21: the mode's size 16 is not a multiple of 3, so '?' has no value",
        ),
        (
            "%x = expand %A[0->0x?] : memref<f32x16x8>",
            "1:21: the sizes of an expand shape are positive where one is to be inferred",
        ),
        (
            "%x = fuse %A[1,0] : memref<f32x16x8>",
            "1:6: fuse takes two modes in order, below 2 for memref<f32x16x8>, got 1 and 0",
        ),
        (
            "%x = fuse %A[0,2] : memref<f32x16x8>",
            "1:6: fuse takes two modes in order, below 2 for memref<f32x16x8>, got 0 and 2",
        ),
        ("yield %a, %b : f32", "1:1: yield takes a type for each value, got 2 values and 1 type"),
        ("yield : f32", "1:1: yield takes a type for each value, got 0 values and 1 type"),
        ("%x = alloca -> memref<f32x4x4,strided<1>>", "1:31: a memref has a stride for each mode, 2, found 1"),
    ],
)
def test_types_of_results_that_cannot_be_inferred(text: str, error: str) -> None:
    assert errors(text) == [error]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (f"gemm.n %a, %A, %B, %b, %C : {_GEMM}", "1:1: version 1 names every transpose: write 'gemm.n.n' or the like"),
        (
            f"gemm.n.n, %a, %A, %B, %b, %C : {_GEMM}",
            ("1:9: expected alpha of 'gemm' (%name or a constant), found ',': no comma follows the instruction's name"),
        ),
        (
            f"gemm.atomic.n.n %a, %A, %B, %b, %C : {_GEMM}",
            "1:12: '.n' is misplaced or repeated: write 'gemm[.n|.t][.n|.t][.atomic]'",
        ),
        (f"gemm.n.n %a, %A, 1.0, %b, %C : {_GEMM}", "1:18: expected a memref of 'gemm' (%name), found '1.0'"),
        ("store 1.0, %v[0] : memref<f32x8>", "1:7: expected the value of 'store' (%name), found '1.0'"),
        (
            "%x = load %A[0.5,1] : memref<f32x16x8>",
            "1:14: expected an index of 'load' (%name or an integer), found '0.5'",
        ),
        ("%x = size %A[%n] : memref<f32x16x8>", "1:14: expected the mode (an integer), found '%n'"),
        ("%x = expand %A[0->16] : memref<f32x16x8>", "1:21: expected 'x' and another size of 'expand', found ']'"),
        ("for %k=0,%n : f32 { }", "1:15: expected an integer type (i1, i8, i16, i32, i64, index), found 'f32'"),
        ("%x = arith.add %i : i32", "1:19: expected ',' and the second operand of 'arith.add', found ':'"),
        ("%x = arith.add %i, %j : bool", "1:25: expected a scalar type, found 'bool': version 1 calls it 'i1'"),
        (
            "%x = load %G[0] : group<memref<f32>x?>",
            "1:36: groups have no size in version 1: write 'group<memref<...>>'",
        ),
        (
            "%x = arith.mod %i, %j : i32",
            (
                "1:11: expected one of .add, .sub, .mul, .div, .rem, .shl, .shr, .and, .or, .xor, .neg, "
                ".not after 'arith', found '.mod'"
            ),
        ),
        ("arith.add %i, %j : i32", "1:1: 'arith' gives a value: write '%name = arith ...'"),
        ("%x = barrier", "1:1: 'barrier' gives no value: remove '%x ='"),
    ],
)
def test_syntax_errors(text: str, error: str) -> None:
    assert errors(text) == [error]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "%x = constant 1 : i32",
            "'constant' is not an instruction of version 1: write the constant in the place of the operand",
        ),
        ("%x = add %i, %j : i32", "'add' is not an instruction of version 1: write 'arith.add'"),
        ("%x = less_than %i, %j : bool", "'less_than' is not an instruction of version 1: write 'cmp.lt'"),
        ("%x = num_groups.x : index", "'num_groups' is not an instruction of version 1: write 'group_size'"),
        ("%x = exp %a : f32", "'exp' is not an instruction of version 1: version 2 has it (--std=v2)"),
        ("%x = math.exp %a : f32", "'math' is not an instruction of version 1: version 2 has it (--std=v2)"),
    ],
)
def test_instructions_of_version_2(text: str, hint: str) -> None:
    assert errors(text) == [f"1:6: {hint}"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("func @f(%a: void) { }", "1:13: error: no value has type 'void'"),
        (
            "func @f(%a: c32) { }",
            (
                "1:13: error: expected a type (i1, i8, i16, i32, i64, index, f32, f64), found 'c32': that "
                "type is of version 2"
            ),
        ),
        ("func @f(%A: memref<f32>{alignment=4}) { }", "1:24: error: parameters have no attributes in version 1"),
        (
            "func @f() work_group_size(4) { }",
            "1:28: error: expected ',' and the second size of 'work_group_size', found ')'",
        ),
        (
            "func @f() attributes {subgroup_size=4} { }",
            (
                "1:11: error: expected 'work_group_size(m,n)', 'subgroup_size(s)' or '{', found "
                "'attributes': write 'work_group_size(m,n) subgroup_size(s)'"
            ),
        ),
        ("func f() { }", "1:6: error: expected the function's name (@name), found 'f'"),
    ],
)
def test_heads_of_functions(text: str, error: str) -> None:
    assert whole_errors(text) == [f"v1.tl:{error}"]


def test_all_errors_are_reported_and_none_twice() -> None:
    text = """
        %x = arith.bad 1 : i32
        %y = arith.add %x, 1 : i32
        %z = fuse %A[0,5] : memref<f32x16x8>
        %w = load %z[0] : memref<f32x128>
        store %unknown, %A[0,%unknown] : memref<f32x16x8>
    """
    assert [line.split(",")[0] for line in errors(text)] == [
        "2:19: expected one of .add",
        "4:14: fuse takes two modes in order",
        "6:15: %unknown is not defined here: define it above",
    ]


def test_parameters_that_cannot_be_read_are_bound() -> None:
    text = "func @f(%A: memref<bf16x4>, %n: index) { %x = load %A[%n] : memref<f32x4> %y = arith.add %n, %u : index }"
    assert [line.split("error: ")[1] for line in whole_errors(text)] == [
        "expected a scalar type (i1, i8, i16, i32, i64, index, f32, f64), found 'bf16': that type is of version 2",
        f"%u {_UNDEFINED}",
    ]


def test_the_caret_stands_under_the_type_that_is_wrong() -> None:
    with pytest.raises(ProgramError) as raised:
        read("func @f(%a: f32) {\n    %x = arith.neg %a : f64\n}\n")
    assert raised.value.render().splitlines() == [
        "v1.tl:2:25: error: %a is f32, but is written as f64 here",
        "    %x = arith.neg %a : f64",
        "                        ^~~",
        "v1.tl:1:9: note: declared here",
        "func @f(%a: f32) {",
        "        ^~",
    ]
