"""Types as text: each kind of them, white space, defaults."""

from __future__ import annotations

import pytest

from tlx.frontends.tensor_language import parse
from tlx.frontends.tensor_language.errors import ProgramError
from tlx.frontends.tensor_language.types import (
    BF16,
    BOOL,
    C64,
    F32,
    F64,
    I8,
    INDEX,
    NUMBERS,
    CoopMatrixType,
    GroupType,
    MemrefType,
    Type,
)

TYPES: list[tuple[str, Type]] = [
    *((name, type_) for name, type_ in NUMBERS.items()),
    ("bool", BOOL),
    ("memref<f32>", MemrefType(F32, (), ())),
    ("memref<f32,strided<>>", MemrefType(F32, (), ())),
    ("memref<f32x4x8>", MemrefType(F32, (4, 8), (1, 4))),
    ("memref<f32x4x8,strided<1,4>>", MemrefType(F32, (4, 8), (1, 4))),
    ("memref<f32x5x6x7>", MemrefType(F32, (5, 6, 7), (1, 5, 30))),
    ("memref<c64x?x?>", MemrefType(C64, (None, None), (1, None))),
    ("memref<bf16x4x?x8,strided<1,?,32>>", MemrefType(BF16, (4, None, 8), (1, None, 32))),
    ("memref<i8x4,local>", MemrefType(I8, (4,), (1,), "local")),
    ("memref<i8x4,global>", MemrefType(I8, (4,), (1,), "global")),
    ("memref<i8x4,strided<2>,local>", MemrefType(I8, (4,), (2,), "local")),
    ("memref < index x 4 x ? , strided < 1 , 4 > , local >", MemrefType(INDEX, (4, None), (1, 4), "local")),
    ("memref<f32 ; a comment\n x4>", MemrefType(F32, (4,), (1,))),
    ("group<memref<f32x16x16>x?>", GroupType(MemrefType(F32, (16, 16), (1, 16)), None)),
    ("group<memref<f32>x8>", GroupType(MemrefType(F32, (), ()), 8)),
    ("group<memref<f32x?>x?,offset:?>", GroupType(MemrefType(F32, (None,), (1,)), None, None)),
    ("group<memref<f32x42> x 3, offset: 21>", GroupType(MemrefType(F32, (42,), (1,)), 3, 21)),
    ("coopmatrix<f32x8x16,matrix_acc>", CoopMatrixType(F32, 8, 16, "matrix_acc")),
    ("coopmatrix<f64x8x1, matrix_a>", CoopMatrixType(F64, 8, 1, "matrix_a")),
    ("coopmatrix<i8x16x8,matrix_b>", CoopMatrixType(I8, 16, 8, "matrix_b")),
]


@pytest.mark.parametrize(("text", "expected"), TYPES)
def test_type(text: str, expected: Type) -> None:
    (function,) = parse(f"func @f(%x: {text}) {{}}").functions
    reference = function.parameters[0].type
    assert reference.type == expected
    assert reference.span is not None
    assert (reference.span.start, reference.span.end) == (12, 12 + len(text))


@pytest.mark.parametrize(("_text", "type_"), TYPES)
def test_the_spelling_of_a_type_parses_to_it(_text: str, type_: Type) -> None:
    (function,) = parse(f"func @f(%x: {type_}) {{}}").functions
    assert function.parameters[0].type.type == type_


NUMBER_TYPES = "i8, i16, i32, i64, index, bf16, f16, f32, f64, c32 or c64"
ALL_TYPES = "bool, i8, i16, i32, i64, index, bf16, f16, f32, f64, c32, c64, memref, group or coopmatrix"
ERRORS = [
    ("f33", "f33", f"expected a type ({ALL_TYPES}), found 'f33'; did you mean 'f32'?"),
    ("i1", "i1", f"expected a type ({ALL_TYPES}), found 'i1': the boolean type is 'bool'"),
    ("void", "void", f"expected a type ({ALL_TYPES}), found 'void': no value has type 'void'"),
    ("4", "4", f"expected a type ({ALL_TYPES}), found '4'"),
    ("memref", ")", "expected '<' after 'memref', found ')'"),
    ("memref<bool>", "bool", f"expected a number type ({NUMBER_TYPES}), found 'bool'"),
    ("memref<memref<f32>>", "memref<f32>>", f"expected a number type ({NUMBER_TYPES}), found 'memref'"),
    ("memref<f32xMxN>", "f32xMxN", f"expected a number type ({NUMBER_TYPES}), found 'f32xMxN'; did you mean 'f32'?"),
    ("memref<f32x%n>", "%n>", "expected a size (an integer or '?'), found '%n': sizes of types are known, or '?'"),
    ("memref<f32x4.0>", "4.0>", "expected a size (an integer or '?'), found '4.0'"),
    ("memref<f32x4,strided<1,>>", ">>", "expected a stride (an integer or '?'), found '>'"),
    ("memref<f32x4,strided<1 4>>", "4>>", "expected '>' at the end of 'strided<...', found '4'"),
    ("memref<f32x4,constant>", "constant", "expected 'strided<...>', 'global' or 'local', found 'constant'"),
    ("memref<f32x4,strided<1>,x>", "x>", "expected 'global' or 'local', found 'x'"),
    (
        "memref<f32x4,local,strided<1>>",
        ",strided",
        "expected '>' after the address space, found ',': a layout 'strided<...>' comes before it",
    ),
    (
        "memref<f32x9223372036854775808>",
        "9223",
        "integer out of range: '9223372036854775808' is not in -(2^63-1) ... 2^63-1",
    ),
    (
        "memref<f32x4294967296x4294967296x2>",
        "x4294967296x4294967296x2",
        "sizes too large: the strides of a packed memref must be less than 2^63",
    ),
    (f"memref<f32{'x2' * 64}x5>", "5>", "too many modes: a memref has at most 64"),
    (
        "group<memref<f32>>",
        ">)",
        "expected 'x' and the size of the group, found '>': write 'group<memref<...>x?>' where it is not known",
    ),
    ("group<f32x4>", "f32", "expected a memref type (memref), found 'f32'"),
    ("group<memref<f32>x4,shift:2>", "shift", "expected 'offset' after the size of the group, found 'shift'"),
    ("group<memref<f32>x4,offset=2>", "=2", "expected ':' after 'offset', found '='"),
    ("coopmatrix<f32x4,matrix_a>", ",", "expected 'x' and the columns of the matrix, found ','"),
    ("coopmatrix<f32x4x?,matrix_a>", "?", "expected the columns of the matrix (an integer), found '?'"),
    (
        "coopmatrix<f32x4x4,matrix_c>",
        "matrix_c",
        "expected 'matrix_a', 'matrix_b' or 'matrix_acc', found 'matrix_c'; did you mean 'matrix_acc'?",
    ),
    ("coopmatrix<f32x4x4>", ">", "expected ',' and the use of the matrix, found '>'"),
]


@pytest.mark.parametrize(("type_", "at", "message"), ERRORS)
def test_error(type_: str, at: str, message: str) -> None:
    text = f"func @f(%x: {type_}) {{}}"
    with pytest.raises(ProgramError) as caught:
        parse(text)
    (error,) = caught.value.errors
    assert error.message == message
    assert error.span is not None
    assert error.span.start == text.index(at, 12)
