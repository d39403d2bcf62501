"""Tokens of LLVM assembly, and the parser of types and values.

One regular expression matches all tokens and skips comments and white space. Each token has its offset in the text. A
plain vector type (`<4 x i32>`) and a constant vector of integers (`<i32 1, i32 2>`), both
frequent in calls to tensor intrinsics, are one token each if they are spelled as LLVM prints them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Final, NamedTuple, cast

from tlx.diagnostics import ParseError, Source, Span, did_you_mean
from tlx.ir.types import (
    BFLOAT,
    DOUBLE,
    FLOAT,
    FLOAT_BITS,
    HALF,
    I1,
    I8,
    I16,
    I32,
    I64,
    LABEL,
    METADATA,
    PTR,
    TOKEN,
    VOID,
    X86_AMX,
    ArrayType,
    FloatType,
    FunctionType,
    IntType,
    NamedType,
    PointerType,
    SimpleType,
    StructType,
    TargetType,
    Type,
    VectorType,
    vector_of,
)
from tlx.ir.values import (
    Aggregate,
    ConstExpr,
    ConstFloat,
    ConstInt,
    Global,
    Keyword,
    Local,
    OpaqueConstant,
    Splat,
    Value,
)

_NAME: Final = r"(?:[-a-zA-Z$._0-9\x80-\U0010ffff]+|\"[^\"]*\")"

# A label looks like another token up to its colon (`$x:`, `7:`, `"a b":`), so it is tried before those.
_TOKEN: Final = re.compile(
    rf"""
    (?:[ \t\r\n\f\v]+|;[^\n]*)*+
    (?:
      (?P<local>%{_NAME})
    | (?P<label>(?:[-a-zA-Z$._0-9]++|\"[^\"]*\"):(?!:))
    | (?P<number>[us]?0x[KLMHR]?[0-9a-fA-F]+|[-+]?\d+(?:\.\d*(?:[eE][-+]?\d+)?)?)
    | (?P<string>c?\"[^\"]*\")
    | (?P<word>[a-zA-Z_][a-zA-Z0-9_.]*)
    | (?P<vector><\d{{1,10}}[ ]x[ ](?:i\d{{1,8}}|half|bfloat|float|double)>)
    | (?P<integers><i\d{{1,8}}[ ]-?\d{{1,20}}(?:,[ ]i\d{{1,8}}[ ]-?\d{{1,20}})*>)
    | (?P<punct>[=,*()\[\]{{}}<>|^:])
    | (?P<global>@{_NAME})
    | (?P<meta>!(?:[-a-zA-Z$._\\][-a-zA-Z$._0-9\\]*|\d+|\"[^\"]*\")?)
    | (?P<group>\#(?:\d+|[a-z_]+))
    | (?P<comdat>\${_NAME})
    | (?P<dots>\.\.\.)
    | (?P<end>\Z)
    | (?P<wrong>)
    )
    """,
    re.VERBOSE,
)
_KINDS: Final = ("", *_TOKEN.groupindex)
_END: Final = _TOKEN.groupindex["end"]
_WRONG: Final = _TOKEN.groupindex["wrong"]
_BLANK: Final = re.compile(r"(?:[ \t\r\n\f\v]+|;[^\n]*)*+")


class Token(NamedTuple):
    """A token: its kind, its spelling, where it starts."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Offset after the last character."""
        return self.start + len(self.text)


# What `Token(...)` does, in half the time.
_token: Final = cast("Callable[[tuple[str, str, int]], Token]", partial(tuple.__new__, Token))  # pyright: ignore[reportUnknownMemberType]


def tokenize(source: Source, start: int = 0, end: int | None = None) -> list[Token]:
    """All tokens of `source.text[start:end]`, with a last token of kind `end`.

    Raises:
        ParseError: A character that begins no token, such as an unfinished string.
    """
    stop = len(source.text) if end is None else end
    tokens: list[Token] = []
    append = tokens.append
    for match in _TOKEN.finditer(source.text, start, stop):
        group = match.lastindex or 0
        append(_token((_KINDS[group], match[group], match.start(group))))
        if group >= _END:
            break
    if tokens[-1].kind == "wrong":
        raise _no_token(source, tokens[-1].start, stop)
    return tokens


class LazyTokens:
    """Tokens from an offset on, scanned on demand: for text whose end is known only after it is parsed."""

    def __init__(self, source: Source, start: int) -> None:
        self._source = source
        self._position = start
        self._tokens: list[Token] = []

    def __getitem__(self, index: int) -> Token:
        """The token at an index.

        Raises:
            ParseError: A character up to there begins no token.
        """
        tokens = self._tokens
        while index >= len(tokens):
            if tokens and tokens[-1].kind == "end":
                return tokens[-1]
            match = _TOKEN.match(self._source.text, self._position)
            group = (match.lastindex or 0) if match is not None else _WRONG
            if match is None or group == _WRONG:
                raise _no_token(self._source, self._position, len(self._source.text))
            tokens.append(Token(_KINDS[group], match[group], match.start(group)))
            self._position = match.end()
        return tokens[index]


def _no_token(source: Source, position: int, stop: int) -> ParseError:
    blank = _BLANK.match(source.text, position, stop)
    offset = blank.end() if blank else position
    problem = "unfinished string" if '"' in source.text[offset : offset + 2] else "unexpected character"
    return ParseError(f"{problem} in LLVM assembly", source.span(offset))


_SIMPLE: Final[dict[str, Type]] = {
    "void": VOID,
    "token": TOKEN,
    "label": LABEL,
    "metadata": METADATA,
    "x86_amx": X86_AMX,
    "x86_mmx": SimpleType("x86_mmx"),
    "opaque": SimpleType("opaque"),
    **{name: FloatType(name) for name in FLOAT_BITS},
    **{str(type_): type_ for type_ in (HALF, BFLOAT, FLOAT, DOUBLE)},
}
_INTEGERS: Final = {str(type_): type_ for type_ in (I1, I8, I16, I32, I64)}
TYPE_WORDS: Final = (*_SIMPLE, *_INTEGERS, "ptr")
_SUFFIXES: Final = frozenset({"*", "addrspace", "("})
_ATTRIBUTE_KINDS: Final = frozenset({"word", "string"})
_LONG: Final = 100
KEYWORDS: Final = frozenset({"zeroinitializer", "null", "undef", "poison", "none"})
_VALUE_WORDS: Final = KEYWORDS | frozenset(
    "true false splat asm blockaddress dso_local_equivalent no_cfi ptrauth getelementptr bitcast inttoptr ptrtoint "
    "addrspacecast trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp add sub mul shl xor and or lshr ashr "
    "icmp fcmp select extractelement insertelement shufflevector extractvalue insertvalue fneg fadd fsub fmul fdiv "
    "sdiv udiv srem urem frem".split()
)


@lru_cache(maxsize=4096)
def parse_integer(text: str) -> IntType:
    """The type that a word such as `i32` names."""
    return _INTEGERS.get(text) or IntType(int(text[1:]))


@lru_cache(maxsize=4096)
def _plain_vector(text: str) -> VectorType:
    """The type that a token such as `<4 x i32>` names."""
    count, element = text[1:-1].split(" x ")
    return vector_of(int(count), _SIMPLE.get(element) or parse_integer(element))


class TypeParser:
    """A position among tokens, with the parsers for types and attributes."""

    def __init__(self, source: Source, tokens: list[Token] | LazyTokens) -> None:
        self.source = source
        self.tokens = tokens
        self.index: int = 0
        self.spans: list[tuple[int, int]] = []
        """Start and end in the source of each value read by `operand`, in order."""

    @property
    def token(self) -> Token:
        """The token at the cursor."""
        return self.tokens[self.index]

    @property
    def previous_end(self) -> int:
        """Where the last consumed token ends."""
        return self.tokens[self.index - 1].end

    def next(self) -> Token:
        """Consume a token."""
        token = self.tokens[self.index]
        if token.kind != "end":
            self.index += 1
        return token

    def at(self, text: str, ahead: int = 0) -> bool:
        """Whether the token `ahead` (0 or 1) is spelled `text`."""
        if ahead and self.token.kind == "end":
            return False
        return self.tokens[self.index + ahead].text == text

    def accept(self, *texts: str) -> str | None:
        """Consume the token if it is one of `texts`."""
        token = self.tokens[self.index]
        if token.text in texts and token.kind != "end":
            self.index += 1
            return token.text
        return None

    def expect(self, text: str) -> Token:
        """Consume the token `text`.

        Raises:
            ParseError: The token at the cursor is another one.
        """
        if self.token.text != text or self.token.kind == "end":
            raise self.error(f"expected '{text}'")
        return self.next()

    def error(self, message: str, token: Token | None = None, known: Iterable[str] = ()) -> ParseError:
        """A parse error at a token (the current one by default).

        Args:
            message: What was expected.
            token: The token that was found instead.
            known: Words that are allowed there, for a suggestion.
        """
        token = token or self.token
        at_end = "'}'" if self.source.text.startswith("}", token.start) else "end of text"
        actual = at_end if token.kind == "end" else f"'{token.text}'{did_you_mean(token.text, known)}"
        return ParseError(f"{message}, found {actual}", Span(self.source, token.start, max(token.end, token.start + 1)))

    def skip_parens(self) -> str:
        """Consume a bracketed group that opens at the cursor; returns its text."""
        start = self.token.start
        depth = 0
        while True:
            token = self.next()
            if token.kind == "end":
                raise self.error("unbalanced brackets", token)
            if token.text in ("(", "[", "{", "<"):
                depth += 1
            elif token.text in (")", "]", "}", ">"):
                depth -= 1
                if depth == 0:
                    return self.source.text[start : token.end]

    def integer(self) -> int:
        """Consume an integer literal."""
        token = self.token
        if token.kind == "number" and token.text.lstrip("+-").isdecimal():
            self.index += 1
            return self._int(token)
        raise self.error("expected an integer")

    def _int(self, token: Token, digits: str | None = None) -> int:
        try:
            return int(token.text if digits is None else digits)
        except ValueError:  # Python's limit is 4300 digits
            raise ParseError("integer has too many digits", Span(self.source, token.start, token.end)) from None

    # Types -----------------------------------------------------------------------------------------------------

    def starts_type(self) -> bool:
        """Whether a type can begin at the cursor."""
        token = self.token
        if token.kind in ("local", "vector", "integers"):
            return True
        if token.kind == "punct":
            return token.text in ("<", "[", "{")
        text = token.text
        return token.kind == "word" and (
            text in _SIMPLE or text in ("ptr", "target") or (text[0] == "i" and text[1:].isdecimal())
        )

    def type(self) -> Type:
        """Parse a type.

        Raises:
            ParseError: There is no type at the cursor.
        """
        return self._suffixes(self._base_type())

    def _base_type(self) -> Type:
        token = self.next()
        text = token.text
        if token.kind == "word":
            if text in _SIMPLE:
                return _SIMPLE[text]
            if text == "ptr":
                return PointerType(None, self.addrspace()) if self.at("addrspace") else PTR
            if text[0] == "i" and text[1:].isdecimal():
                return parse_integer(text) if len(text) < _LONG else IntType(self._int(token, text[1:]))
            if text == "target":
                return TargetType("target" + self.skip_parens())
        elif token.kind == "vector":
            return _plain_vector(text)
        elif token.kind == "local":
            return NamedType(text)
        elif text == "<":
            return self._vector_or_packed()
        elif text == "[":
            count = self.integer()
            self.expect("x")
            element = self.type()
            self.expect("]")
            return ArrayType(count, element)
        elif text == "{":
            return StructType(self._types("}"))
        raise self.error("expected a type", token, TYPE_WORDS)

    def _vector_or_packed(self) -> Type:
        if self.accept("{"):
            elements = self._types("}")
            self.expect(">")
            return StructType(elements, packed=True)
        scalable = self.accept("vscale") is not None
        if scalable:
            self.expect("x")
        count = self.integer()
        self.expect("x")
        element = self.type()
        self.expect(">")
        return VectorType(count, element, scalable)

    def _types(self, closing: str) -> tuple[Type, ...]:
        elements: list[Type] = []
        while not self.accept(closing):
            elements.append(self.type())
            if not self.at(closing):
                self.expect(",")
        return tuple(elements)

    def addrspace(self) -> int:
        """Consume `addrspace(N)`, if it is at the cursor; symbolic address spaces, such as `"A"`, count as 0."""
        if not self.at("addrspace"):
            return 0
        self.next()
        self.expect("(")
        if self.token.kind == "string":
            self.next()
            self.expect(")")
            return 0
        space = self.integer()
        self.expect(")")
        return space

    def _suffixes(self, type_: Type) -> Type:
        while self.tokens[self.index].text in _SUFFIXES:
            if self.at("*"):
                self.next()
                type_ = PointerType(type_)
            elif self.at("addrspace") and type_ != VOID:
                space = self.addrspace()
                self.expect("*")
                type_ = PointerType(type_, space)
            elif self.at("("):
                type_ = self._function_type(type_)
            else:
                break
        return type_

    def _function_type(self, result: Type) -> FunctionType:
        self.expect("(")
        params: list[Type] = []
        vararg = False
        while not self.accept(")"):
            if self.accept("..."):
                vararg = True
                self.expect(")")
                break
            params.append(self.type())
            self.param_attributes()
            if not self.at(")"):
                self.expect(",")
        return FunctionType(result, tuple(params), vararg)

    def attribute(self) -> bool:
        """Consume one attribute of a parameter, argument or result, if one is at the cursor."""
        token = self.token
        if token.kind == "string" and not token.text.startswith("c"):
            self.next()
            if self.accept("="):
                self.next()
            return True
        if token.kind != "word" or token.text in _VALUE_WORDS:
            return False
        self.next()
        if self.at("("):
            self.skip_parens()
        elif token.text == "align" and self.token.kind == "number":
            self.next()
        return True

    def param_attributes(self) -> str:
        """Consume the attributes of a parameter, argument or result; returns their text."""
        if self.tokens[self.index].kind not in _ATTRIBUTE_KINDS:
            return ""
        start = self.token.start
        first = self.index
        while self.attribute():
            pass
        return self.source.text[start : self.previous_end] if self.index > first else ""


_WRAPPERS: Final = frozenset({"blockaddress", "dso_local_equivalent", "no_cfi", "ptrauth"})


@lru_cache(maxsize=4096)
def _integers(text: str) -> Aggregate:
    """The vector that a token such as `<i32 2, i32 3>` spells; cached, as modules repeat a few of them."""
    pairs = [word.split(" ") for word in text[1:-1].split(", ")]
    elements = tuple(ConstInt(parse_integer(type_), int(number)) for type_, number in pairs)
    return Aggregate(vector_of(len(elements), elements[0].type), elements, "<")


class ValueParser(TypeParser):
    """A position among tokens, with the parsers for values, too."""

    def typed_value(self) -> Value:
        """Parse `type value`."""
        return self.value(self.type())

    def operand(self, type_: Type | None = None) -> Value:
        """Parse an operand, preceded by its type unless that is passed, and record its span."""
        type_ = type_ or self.type()
        if type_ is METADATA and self.starts_type():
            type_ = self.type()
        start = self.tokens[self.index].start
        value = self.value(type_)
        self.spans.append((start, self.previous_end))
        return value

    def label(self) -> Local:
        """Parse `label %name` and record its span."""
        self.expect("label")
        value = self.operand(LABEL)
        if not isinstance(value, Local):
            raise self.error("expected a label", self.tokens[self.index - 1])
        return value

    def value(self, type_: Type) -> Value:
        """Parse a value of a known type.

        Raises:
            ParseError: There is no value at the cursor.
        """
        token = self.token
        kind, text = token.kind, token.text
        if kind == "local":
            self.next()
            return Local(type_, text[1:])
        if kind == "global":
            self.next()
            return Global(type_, text[1:])
        if kind == "number":
            self.next()
            return self._number(type_, token)
        if kind == "word":
            return self._word_value(type_)
        if kind == "string":
            self.next()
            return OpaqueConstant(type_, text)
        if kind == "meta":
            return self._metadata_value(type_)
        if kind == "integers":
            self.next()
            vector = _integers(text)
            return vector.copy() if vector.type == type_ else Aggregate(type_, vector.elements, "<")
        if text in ("<", "[", "{"):
            return self._aggregate(type_)
        raise self.error("expected a value")

    def _number(self, type_: Type, token: Token) -> Value:
        text = token.text
        if isinstance(type_, IntType):
            if text[:3] in ("u0x", "s0x"):
                number = int(text[3:], 16)
                if text[0] == "s" and number >> (type_.bits - 1) & 1:
                    number -= 1 << type_.bits
                return ConstInt(type_, number)
            if not text.lstrip("+-").isdecimal():
                raise self.error(f"expected an integer constant of type {type_}", token)
            return ConstInt(type_, self._int(token))
        if isinstance(type_, FloatType):
            return ConstFloat(type_, text)
        raise self.error(f"expected a value of type {type_}", token)

    def _word_value(self, type_: Type) -> Value:
        token = self.token
        text = token.text
        if text in ("true", "false"):
            self.next()
            return ConstInt(type_, int(text == "true"))
        if text in KEYWORDS:
            self.next()
            return Keyword(type_, text)
        if text == "splat":
            self.next()
            self.expect("(")
            element = self.typed_value()
            self.expect(")")
            return Splat(type_, element)
        if text == "asm":
            return self._asm(type_)
        return self._const_expr(type_)

    def _asm(self, type_: Type) -> OpaqueConstant:
        start = self.next().start
        while self.token.kind == "word":
            self.next()
        self.next()
        self.expect(",")
        self.next()
        return OpaqueConstant(type_, self.source.text[start : self.previous_end])

    def _const_expr(self, type_: Type) -> Value:
        opcode = self.next()
        if opcode.text in _WRAPPERS:
            operands: list[Value] = []
            if self.at("("):
                self.skip_parens()
            else:
                operands.append(self.value(type_))
            return ConstExpr(type_, opcode.text, tuple(operands), self.source.text[opcode.start : self.previous_end])
        while self.token.kind == "word" and not self.at("("):
            self.next()
            if self.tokens[self.index - 1].text == "inrange" and self.at("("):
                self.skip_parens()
        if not self.at("("):
            raise self.error("expected a value", opcode)
        return self._const_expr_body(type_, opcode)

    def _const_expr_body(self, type_: Type, opcode: Token) -> ConstExpr:
        self.expect("(")
        operands: list[Value] = []
        source_type: Type | None = None
        if opcode.text == "getelementptr":
            source_type = self.type()
            self.expect(",")
        while True:
            self.accept("inrange")
            operands.append(self.typed_value())
            if self.accept("to"):
                self.type()
            if self.accept(")"):
                break
            self.expect(",")
            while self.token.kind == "number" and opcode.text in ("extractvalue", "insertvalue"):
                self.next()
                self.accept(",")
            if self.accept(")"):
                break
        spelling = self.source.text[opcode.start : self.previous_end]
        return ConstExpr(type_, opcode.text, tuple(operands), spelling, source_type)

    def _aggregate(self, type_: Type) -> Aggregate:
        opening = self.next().text
        if opening == "<" and self.accept("{"):
            opening = "<{"
        closing = {"<": ">", "[": "]", "{": "}", "<{": "}"}[opening]
        elements: list[Value] = []
        while not self.accept(closing):
            elements.append(self.typed_value())
            if not self.at(closing):
                self.expect(",")
        if opening == "<{":
            self.expect(">")
        return Aggregate(type_, tuple(elements), opening)

    def _metadata_value(self, type_: Type) -> OpaqueConstant:
        start = self.next().start
        if self.at("(") or self.at("{"):
            self.skip_parens()
        return OpaqueConstant(type_, self.source.text[start : self.previous_end])
