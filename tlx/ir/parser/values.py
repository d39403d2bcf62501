"""Recursive-descent parsing of values, over tokens.

value = "%name" | "@name" | number | "true" | "false" | "null" | "undef" | "poison" | "zeroinitializer" | "none"
      | "<" typed values ">" | "[" ... "]" | "{" ... "}" | "<{" ... "}>" | c"..." | "splat" "(" typed value ")"
      | opcode flags "(" ... ")"       (constant expression) | "asm" ... | blockaddress, dso_local_equivalent, ...
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from tlx.ir.parser.lexer import Token
from tlx.ir.parser.types import KEYWORDS, TypeParser, parse_integer
from tlx.ir.types import LABEL, METADATA, FloatType, IntType, Type, vector_of
from tlx.ir.values import Aggregate, ConstExpr, ConstFloat, ConstInt, Global, Keyword, Local, Splat, Text, Value

_WRAPPERS: Final = frozenset({"blockaddress", "dso_local_equivalent", "no_cfi", "ptrauth"})


@lru_cache(maxsize=4096)
def _integers(text: str) -> Aggregate:
    """`<i32 2, i32 3>`; the same few such vectors stand in a module again and again."""
    pairs = [word.split(" ") for word in text[1:-1].split(", ")]
    elements = tuple(ConstInt(parse_integer(type_), int(number)) for type_, number in pairs)
    return Aggregate(vector_of(len(elements), elements[0].type), elements, "<")


class ValueParser(TypeParser):
    """A position among tokens, with the parsers for values, too."""

    def typed_value(self) -> Value:
        """Parse `type value`."""
        return self.value(self.type())

    def operand(self, type_: Type | None = None) -> Value:
        """Parse an operand (with its type where `type_` is not given) and note its span."""
        type_ = type_ or self.type()
        if type_ is METADATA and self.starts_type():
            type_ = self.type()
        start = self.tokens[self.index].start
        value = self.value(type_)
        self.spans.append((start, self.previous_end))
        return value

    def label(self) -> Local:
        """Parse `label %name` and note its span."""
        self.expect("label")
        value = self.operand(LABEL)
        if not isinstance(value, Local):
            raise self.error("expected a label", self.tokens[self.index - 1])
        return value

    def value(self, type_: Type) -> Value:
        """Parse a value of a known type.

        Raises:
            ParseError: No value stands at the cursor.
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
            return Text(type_, text)
        if kind == "meta":
            return self._metadata_value(type_)
        if kind == "integers":
            self.next()
            found = _integers(text)
            return found.copy() if found.type is type_ else Aggregate(type_, found.elements, "<")
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

    def _asm(self, type_: Type) -> Text:
        start = self.next().start
        while self.token.kind == "word":
            self.next()
        self.next()
        self.expect(",")
        self.next()
        return Text(type_, self.source.text[start : self.previous_end])

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

    def _metadata_value(self, type_: Type) -> Text:
        start = self.next().start
        if self.at("(") or self.at("{"):
            self.skip_parens()
        return Text(type_, self.source.text[start : self.previous_end])
