"""Tokens of LLVM assembly: kinds, locations, malformed tokens."""

from __future__ import annotations

import pytest

from tlx.diagnostics import ParseError, Source
from tlx.ir.parser.operands import LazyTokens, tokenize

TOKENS = [
    ("%x", "local"),
    ("%-a$._9", "local"),
    ('%"a b;{"', "local"),
    ("%12", "local"),
    ("@f", "global"),
    ('@"\\01_f"', "global"),
    ("$c", "comdat"),
    ("#0", "group"),
    ("#dbg_value", "group"),
    ("!", "meta"),
    ("!12", "meta"),
    ("!llvm.loop", "meta"),
    ('!"a }"', "meta"),
    ("entry:", "label"),
    ("12:", "label"),
    ("$x:", "label"),
    (".a:", "label"),
    ("-b:", "label"),
    ('"a b":', "label"),
    ('"text"', "string"),
    ('c"\\00;"', "string"),
    ("0", "number"),
    ("-17", "number"),
    ("1.5e+10", "number"),
    ("-0.0", "number"),
    ("0xK3FFF8000000000000000", "number"),
    ("0xH3C00", "number"),
    ("u0xFF", "number"),
    ("s0x8F", "number"),
    ("add", "word"),
    ("i32", "word"),
    ("x86_fp80", "word"),
    ("...", "dots"),
    ("^", "punct"),
    ("*", "punct"),
    ("}", "punct"),
]


@pytest.mark.parametrize(("text", "kind"), TOKENS)
def test_token(text: str, kind: str) -> None:
    before = '; a comment: @x "\n\t '
    tokens = tokenize(Source("t.ll", f"{before}{text} ;end"))
    assert [(t.kind, t.text) for t in tokens] == [(kind, text), ("end", "")]
    assert (tokens[0].start, tokens[0].end) == (len(before), len(before) + len(text))


def test_tokens_need_no_space_between_them() -> None:
    text = '%r=call<2 x i8*>@f(i32 1,[4x i8]c"a"),!dbg!7#1'
    spelled = [t.text for t in tokenize(Source("t.ll", text))]
    assert spelled == [
        *("%r", "=", "call", "<", "2", "x", "i8", "*", ">", "@f", "(", "i32", "1", ",", "[", "4", "x", "i8", "]"),
        *('c"a"', ")", ",", "!dbg", "!7", "#1", ""),
    ]


def test_a_part_of_a_text() -> None:
    source = Source("t.ll", "aa bb cc dd")
    assert [t.text for t in tokenize(source, 3, 8)] == ["bb", "cc", ""]
    assert [t.start for t in tokenize(source, 3, 8)] == [3, 6, 8]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ('add "abc', "unfinished string", "t.ll:1:5"),
        ('add c"abc', "unfinished string", "t.ll:1:5"),
        ("add\n  ?", "unexpected character", "t.ll:2:3"),
        ("%", "unexpected character", "t.ll:1:1"),
        ("; only\n  `", "unexpected character", "t.ll:2:3"),
        ("i32 \N{GREEK SMALL LETTER ALPHA}", "unexpected character", "t.ll:1:5"),
    ],
)
@pytest.mark.parametrize("lazy", [False, True])
def test_malformed_tokens(text: str, message: str, place: str, lazy: bool) -> None:
    source = Source("t.ll", text)
    if text.startswith("add c"):
        assert tokenize(Source("t.ll", "add c"))[1].kind == "word"
    with pytest.raises(ParseError, match=message) as caught:
        _ = LazyTokens(source, 0)[99] if lazy else tokenize(source)
    assert caught.value.span is not None
    assert caught.value.span.place in (place, "t.ll:1:6")


def test_lazy_tokens_are_the_same() -> None:
    source = Source("t.ll", "define void @f() { ret void } ; end")
    all_of_them = tokenize(source)
    lazy = LazyTokens(source, 0)
    assert lazy[3] == all_of_them[3]
    assert [lazy[i] for i in range(len(all_of_them))] == all_of_them
    assert lazy[99] == all_of_them[-1]


def test_lazy_tokens_are_not_read_ahead() -> None:
    assert LazyTokens(Source("t.ll", "declare ?"), 0)[0].text == "declare"
