"""Tokens of the tensor language: kinds, shapes written without spaces, malformed tokens."""

from __future__ import annotations

import pytest

from tlx.diagnostics import Source
from tlx.frontends.tensor_language.syntax.cursor import tokenize

TOKENS = [
    ("%x", "local"),
    ("%x_1", "local"),
    ("%007", "local"),
    ("@f", "global"),
    ("@0", "global"),
    ("gemm", "word"),
    ("_word", "word"),
    (".atomic", "modifier"),
    (".n", "modifier"),
    ("12", "integer"),
    ("-7", "integer"),
    ("+7", "integer"),
    ("1.5", "float"),
    (".5", "float"),
    ("1.", "float"),
    ("-1.e5", "float"),
    ("1e-5", "float"),
    ("2E+3", "float"),
    ("0x1.8p3", "float"),
    ("0x.8", "float"),
    ("0xFp-2", "float"),
    ("-0x1p0", "float"),
    ("inf", "float"),
    ("-inf", "float"),
    ("+nan", "float"),
    ("infx", "word"),
    ("nan_1", "word"),
    ('""', "string"),
    ('"a ; b"', "string"),
    ("x", "x"),
    ("->", "->"),
    ("<=", "<="),
    ("?", "?"),
    ("{", "{"),
]


@pytest.mark.parametrize(("text", "kind"), TOKENS)
def test_token(text: str, kind: str) -> None:
    tokens = tokenize(Source("t", text))
    assert tokens.kinds == [kind, "end"]
    assert tokens.texts == [text, ""]
    assert tokens.starts == [0, len(text)]


CUTS = [
    ("f32x4x?x8", "f32 x 4 x ? x 8"),
    ("bf16x-4", "bf16 x -4"),
    ("indexx3", "index x 3"),
    ("indexx3x?", "index x 3 x ?"),
    ("f32x%n", "f32 x %n"),
    ("memref<f32x4>x?>", "memref < f32 x 4 > x ? >"),
    ("f32 x 4", "f32 x 4"),
    ("[1->2x8]", "[ 1 -> 2 x 8 ]"),
    ("[0->0x8]", "[ 0 -> 0 x 8 ]"),
    ("[1 -> %1 x 2]", "[ 1 -> %1 x 2 ]"),
    ("%1x2x%n", "%1 x 2 x %n"),
    ("%ax2", "%ax2"),
    ("xor", "xor"),
    ("exp2 %x", "exp2 %x"),
    ("max", "max"),
    ("gemm.atomic.n.t", "gemm .atomic .n .t"),
    ("(%i)<=(32,-1)", "( %i ) <= ( 32 , -1 )"),
    ("%i=%a,%b", "%i = %a , %b"),
    ("4:8,%1:0", "4 : 8 , %1 : 0"),
    ("strided<1,?>>", "strided < 1 , ? > >"),
    ("1-2", "1 -2"),
    ("[-inf,+1.0]", "[ -inf , +1.0 ]"),
]


@pytest.mark.parametrize(("text", "cut"), CUTS)
def test_cut(text: str, cut: str) -> None:
    assert tokenize(Source("t", text)).texts[:-1] == cut.split()


def test_comments_and_white_space_stand_between_tokens() -> None:
    tokens = tokenize(Source("t", "; a %b\n\t%c\r\n;é\0\n  @d ; end"))
    assert tokens.texts == ["%c", "@d", ""]
    assert tokens.starts == [8, 18, 20]
    assert not tokens.bad


BAD = [
    ("#", 0, "unexpected character '#': comments begin with ';'"),
    ("%x // y", 3, "unexpected character '/': comments begin with ';'"),
    ("%x\0%y", 2, "unexpected character U+0000"),
    ("éé", 0, "unexpected character U+00E9"),
    ("\udc80", 0, "unexpected character U+DC80"),
    ("- 1", 0, "unexpected character '-'"),
    ("% x", 0, "expected a name after '%': a number, or a letter with letters, digits and '_' after it"),
    ("@_x", 0, "expected a name after '@': a number, or a letter with letters, digits and '_' after it"),
    ('"abc\n', 0, "expected '\"' at the end of the string: strings end on the line they begin on"),
    ('"', 0, "expected '\"' at the end of the string: strings end on the line they begin on"),
    ('"a\tb"', 0, "a string holds printable ASCII characters only, found U+0009"),
]


@pytest.mark.parametrize(("text", "start", "why"), BAD)
def test_bad_token(text: str, start: int, why: str) -> None:
    tokens = tokenize(Source("t", text))
    assert tokens.bad[start] == why
    assert tokens.kinds[tokens.starts.index(start)] == "bad"


@pytest.mark.parametrize("piece", ["%a,", "a1", "0x", '"', "1.", " ", ";", "ax1", "{", "\0"])
def test_long_texts_take_linear_time(piece: str) -> None:
    # Backtracking would take hours here.
    assert tokenize(Source("t", piece * 200_000)).kinds[-1] == "end"
