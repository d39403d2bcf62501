"""A place in the tokens of a text, and the steps every production takes from it.

The productions of both versions are functions from a cursor to a node; they raise `ParseError` where the text does not
fit, and the region around them goes on at the next instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from tlx.diagnostics import Note, ParseError, Source, Span, TlxError
from tlx.frontends.tensor_language.errors import Reports, did_you_mean
from tlx.frontends.tensor_language.syntax.lexer import tokenize
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name
from tlx.frontends.tensor_language.types import MAX_INTEGER

MAX_NESTING: Final = 64  # regions, or attributes, inside each other
_Item = TypeVar("_Item")
_SHOWN: Final = 40  # characters of a token in a message

Results = Literal["none", "one", "many"]
"""How many values an instruction gives: `many` is as many as the types behind the arrow."""


@dataclass(frozen=True, slots=True)
class Form:
    """How an instruction is read.

    Attributes:
        production: Reads what stands behind its name.
        results: How many values it gives.
    """

    production: Callable[[Cursor], Instruction]
    results: Results


class Cursor:
    """Where a parser stands.

    Attributes:
        source: The text.
        reports: Where errors go.
        forms: The instructions of the language, by name.
        kinds: Kind of each token.
        texts: Text of each token.
        starts: Offset of each token.
        at: Index of the next token.
        keyword: Name of the instruction that is read, for messages.
        depth: Regions open around the next token.
        head_end: Offset behind the instruction's text before its first region, None as long as there was none.
        region_end: Index of the token behind the last region that was closed.
        function: Index of the token that the last function begins with, None before the first.
    """

    def __init__(self, source: Source, reports: Reports, forms: Mapping[str, Form]) -> None:
        tokens = tokenize(source)
        self.source = source
        self.reports = reports
        self.forms = forms
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.starts = tokens.starts
        self.at = 0
        self.keyword = ""
        self.depth = 0
        self.head_end: int | None = None
        self.region_end = 0
        self.function: int | None = None
        self._bad = tokens.bad
        for offset, why in tokens.bad.items():
            reports.add(why, source.span(offset))

    @property
    def kind(self) -> str:
        """Kind of the next token."""
        return self.kinds[self.at]

    @property
    def text(self) -> str:
        """Text of the next token."""
        return self.texts[self.at]

    @property
    def previous_end(self) -> int:
        """Offset behind the token before the next one."""
        return self._end_before(self.at)

    def span(self, first: int, last: int | None = None) -> Span:
        """The span from one token to another, both included."""
        last = first if last is None else last
        return Span(self.source, self.starts[first], self.starts[last] + max(1, len(self.texts[last])))

    def span_from(self, first: int) -> Span:
        """The span from a token to the one before the next."""
        last = self.at - 1
        return Span(self.source, self.starts[first], self.starts[last] + len(self.texts[last]))

    def shown(self, at: int | None = None) -> str:
        """A token as messages name it."""
        at = self.at if at is None else at
        if self.kinds[at] == "end":
            return "the end of the text"
        text = self.texts[at]
        return f"'{text}'" if len(text) <= _SHOWN else f"'{text[:_SHOWN]}...'"

    def error(self, message: str, *notes: Note, at: int | None = None) -> ParseError:
        """An error at a token, the next one unless said otherwise."""
        return ParseError(message, self.span(self.at if at is None else at), list(notes))

    def expected(self, what: str, hint: str = "", known: Sequence[str] = ()) -> ParseError:
        """The error that something else stands at the next token; behind the line before where that looks finished.

        Args:
            what: What is expected.
            hint: What is said about it.
            known: Words that may stand there: the nearest to the one that does is the hint where there is no other.
        """
        if not hint and self.kind == "word":
            hint = did_you_mean(self.text, known)
        behind = f": {hint}" if hint else ""
        if not self._follows_unfinished():
            return self.error(f"expected {what}, found {self.shown()}{behind}")
        return ParseError(f"expected {what}, found the end of the line{behind}", self.source.span(self.previous_end))

    def begins_line(self, at: int) -> bool:
        """Whether a token is the first of its line."""
        return at == 0 or self.source.text.find("\n", self._end_before(at), self.starts[at]) >= 0

    def begins_assignment(self, at: int) -> bool:
        """Whether `%name = word` stands at a token."""
        return self.kinds[at : at + 3] == ["local", "=", "word"]

    def location(self, at: int) -> tuple[int, int]:
        """Line and column of a token, both from 1."""
        return self.source.location(self.starts[at])

    def _end_before(self, at: int) -> int:
        """Offset behind the token before another."""
        return self.starts[at - 1] + len(self.texts[at - 1]) if at else 0

    def _follows_unfinished(self) -> bool:
        """Whether the next token seems to begin, or end, something else than what stands before it."""
        if not self.at or not self.begins_line(self.at):
            return False
        return self.kind in ("}", "word") or self.begins_assignment(self.at)

    def collect(self, error: TlxError) -> None:
        """Report an error, unless it is about characters that were reported when the text was cut into tokens."""
        if error.span is None or error.span.start not in self._bad:
            self.reports.add(error.message, error.span, *error.notes)

    def accept(self, kind: str) -> bool:
        """Step over a token of a kind, if there is one."""
        if self.kinds[self.at] != kind:
            return False
        self.at += 1
        return True

    def separated(self, production: Callable[[Cursor], _Item]) -> tuple[_Item, ...]:
        """`item *("," item)`."""
        items = [production(self)]
        while self.kinds[self.at] == ",":
            self.at += 1
            items.append(production(self))
        return tuple(items)

    def expect(self, kind: str, where: str = "") -> None:
        """Step over punctuation.

        Raises:
            ParseError: Something else stands here.
        """
        if self.kinds[self.at] != kind:
            raise self.expected(f"'{kind}'{where and ' ' + where}")
        self.at += 1

    def is_word(self, word: str) -> bool:
        """Whether the next token is a certain word."""
        return self.texts[self.at] == word and self.kinds[self.at] == "word"

    def accept_word(self, word: str) -> bool:
        """Step over a word, if it is there."""
        if not self.is_word(word):
            return False
        self.at += 1
        return True

    def expect_word(self, word: str, where: str = "") -> None:
        """Step over a word.

        Raises:
            ParseError: Something else stands here.
        """
        if not self.accept_word(word):
            raise self.expected(f"'{word}'{where and ' ' + where}", known=(word,))

    def identifier(self, kind: Literal["local", "global"], what: str) -> Name:
        """A name with its `%` or `@`.

        Raises:
            ParseError: Something else stands here.
        """
        if self.kinds[self.at] != kind:
            raise self.expected(f"{what} ({'%' if kind == 'local' else '@'}name)")
        return self.name()

    def name(self) -> Name:
        """The name that the next token is."""
        at = self.at
        self.at = at + 1
        start = self.starts[at]
        text = self.texts[at]
        return Name(text[1:], Span(self.source, start, start + len(text)))

    def integer_constant(self, what: str) -> int:
        """`integer-constant = [sign] 1*DIGIT`, of 64 bits.

        Raises:
            ParseError: Something else stands here, or it is too large.
        """
        if self.kinds[self.at] != "integer":
            raise self.expected(f"{what} (an integer)")
        text = self.texts[self.at]
        if len(text) < 19:
            self.at += 1
            return int(text)
        digits = text.lstrip("+-0") or "0"
        value = int(digits) if len(digits) < 20 else MAX_INTEGER + 1
        if value > MAX_INTEGER:
            raise self.error(f"integer out of range: {self.shown()} is not in -(2^63-1) ... 2^63-1")
        self.at += 1
        return -value if text[0] == "-" else value
