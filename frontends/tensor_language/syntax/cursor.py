"""Tokens of a text, the cursor over them, regions and error recovery, for both versions of the language.

A token is a kind, a text and an offset, kept in three parallel lists: a text of 10,000 lines has some 150,000 of them.

    %name %0                local          0.5 1. 2e-3 0x1.8p3 -inf nan   float
    @name @0                global         "text"                         string
    word                    word           = , : ( ) [ ] { } < > ? x -> <=
    .modifier               modifier           each a kind of its own
    12 -7                   integer

Shapes are written without spaces, so two rules precede the one for words: a scalar type ends before an `x` that a size
follows, and an `x` is a token of its own unless a letter follows. `f32x4x?` gives `f32`, `x`, `4`, `x`, `?`, and `2x8`
gives `2`, `x`, `8`. Comments run from `;` to the end of the line.

Productions are functions from a cursor to a node. They raise `ParseError` where the text does not match; the enclosing
region reports it. The instruction is dropped, and parsing resumes where the next one seems to begin: at
`%name, ... = word`, the name of an instruction, or a word that begins a line. Skipped regions are parsed, too, so a
misspelt `for` does not hide the errors in its body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

from tlx.diagnostics import Note, ParseError, Source, Span, TlxError
from tlx.frontends.tensor_language.errors import LIMIT, Reports, did_you_mean
from tlx.frontends.tensor_language.syntax.nodes import ATTRIBUTE_NAMES, Instruction, Name, Region
from tlx.frontends.tensor_language.types import MAX_INTEGER

_HEX: Final = "[0-9a-fA-F]"
_PATTERN: Final = re.compile(
    rf"""
    (?:[ \t\r\n\f\v]++ | ;[^\n]*+)*+
    (?: (?P<local> %(?:\d+|[A-Za-z]\w*))
      | (?P<punctuation> -> | <= | [=,:()\[\]{{}}<>?] | x(?![A-Za-z_]))
      | (?P<type> (?:index|bool|[a-z]+\d+)(?=x[-+\d?%\s]))
      | (?P<float> [+-]? (?:
            0[xX](?: (?:{_HEX}*\.{_HEX}+ | {_HEX}+\.) (?:[pP][+-]?\d+)? | {_HEX}+[pP][+-]?\d+ )
          | (?:\d*\.\d+|\d+\.) (?:[eE][+-]?\d+)?
          | \d+[eE][+-]?\d+
          | (?:inf|nan)(?!\w) ))
      | (?P<integer> [+-]?\d+)
      | (?P<word> [A-Za-z_]\w*)
      | (?P<modifier> \.[A-Za-z_]\w*)
      | (?P<global> @(?:\d+|[A-Za-z]\w*))
      | (?P<string> "[\x20-\x21\x23-\x7e]*")
      | (?P<bad> "[^"\n]*"? | [%@] | [-+.] | [^\s\w%@"=,:()\[\]{{}}<>?;.+-]+ | .)
      | (?P<end> \Z)
    )
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)


@dataclass(slots=True)
class Tokens:
    """The tokens of a text; the last one has kind `end` and immediately follows the one before it.

    Attributes:
        kinds: The kind of each: the name of a group of the pattern, or the punctuation itself.
        texts: The texts, with `%`, `@`, `.` and quotes.
        starts: Offsets in the text.
        bad: Messages about invalid characters, by offset; these tokens have kind `bad`.
    """

    kinds: list[str] = field(default_factory=list[str])
    texts: list[str] = field(default_factory=list[str])
    starts: list[int] = field(default_factory=list[int])
    bad: dict[int, str] = field(default_factory=dict[int, str])


def tokenize(source: Source) -> Tokens:
    """The tokens of a text; never fails."""
    tokens = Tokens()
    kinds, texts, starts = tokens.kinds, tokens.texts, tokens.starts
    end = 0
    for match in _PATTERN.finditer(source.text):
        kind = match.lastgroup or "end"
        text = match[kind]
        start = match.start(kind)
        if kind == "punctuation":
            kind = text
        elif kind == "type":
            kind = "word"
        elif kind == "bad":
            tokens.bad[start] = _why_bad(text)
        elif kind == "end":
            break
        kinds.append(kind)
        texts.append(text)
        starts.append(start)
        end = start + len(text)
    kinds.append("end")
    texts.append("")
    starts.append(end)
    return tokens


def _why_bad(text: str) -> str:
    first = text[0]
    if first == '"':
        return _why_bad_string(text)
    if first in "%@":
        return f"expected a name after '{first}': a number, or a letter with letters, digits and '_' after it"
    if first.isascii() and first.isprintable():
        return f"unexpected character '{first}'" + (": comments begin with ';'" if first in "#/" else "")
    return f"unexpected character U+{ord(first):04X}"


def _why_bad_string(text: str) -> str:
    if len(text) == 1 or text[-1] != '"':
        return "expected '\"' at the end of the string: strings end on the line they begin on"
    other = next(c for c in text[1:-1] if not " " <= c <= "~")
    return f"a string holds printable ASCII characters only, found U+{ord(other):04X}"


MAX_NESTING: Final = 64  # regions, or attributes, inside each other
_Item = TypeVar("_Item")
_SHOWN: Final = 40  # characters of a token in a message

Results = Literal["none", "one", "many"]
"""How many results an instruction has: `many` is the number of types after the arrow."""


@dataclass(frozen=True, slots=True)
class InstructionForm:
    """How an instruction is read.

    Attributes:
        production: Parser of the text after its name.
        results: How many results it has.
    """

    production: Callable[[Cursor], Instruction]
    results: Results


class Cursor:
    """The position of a parser in the tokens of a text.

    Attributes:
        source: The text.
        reports: Collects errors.
        forms: The instructions of the language, by name.
        kinds: Kind of each token.
        texts: Text of each token.
        starts: Offset of each token.
        at: Index of the next token.
        keyword: Name of the instruction that is read, for messages.
        depth: Number of open regions.
        head_end: Offset of the end of the instruction's text before its first region, None if it had no region yet.
        region_end: Index of the token after the last region that was closed.
        function: Index of the first token of the last function, None before the first.
    """

    def __init__(self, source: Source, reports: Reports, forms: Mapping[str, InstructionForm]) -> None:
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
        """Offset of the end of the previous token."""
        return self._end_before(self.at)

    def span(self, first: int, last: int | None = None) -> Span:
        """The span from one token to another, inclusive."""
        last = first if last is None else last
        return Span(self.source, self.starts[first], self.starts[last] + max(1, len(self.texts[last])))

    def span_from(self, first: int) -> Span:
        """The span from a token to the previous one."""
        last = self.at - 1
        return Span(self.source, self.starts[first], self.starts[last] + len(self.texts[last]))

    def shown(self, at: int | None = None) -> str:
        """A token, as shown in messages."""
        at = self.at if at is None else at
        if self.kinds[at] == "end":
            return "the end of the text"
        text = self.texts[at]
        return f"'{text}'" if len(text) <= _SHOWN else f"'{text[:_SHOWN]}...'"

    def error(self, message: str, *notes: Note, at: int | None = None) -> ParseError:
        """An error at a token, by default the next one."""
        return ParseError(message, self.span(self.at if at is None else at), list(notes))

    def expected(self, what: str, hint: str = "", known: Sequence[str] = ()) -> ParseError:
        """The error that the next token is unexpected; at the end of the previous line if the text ends early.

        Args:
            what: What is expected.
            hint: A hint that is added.
            known: Legal words; without another hint, the one most similar to the next token is suggested.
        """
        is_name = self.kind in ("word", "modifier")
        after = f": {hint}" if hint else did_you_mean(self.text, known) if is_name else ""
        if not self._follows_unfinished():
            return self.error(f"expected {what}, found {self.shown()}{after}")
        return ParseError(f"expected {what}, found the end of the line{after}", self.source.span(self.previous_end))

    def begins_line(self, at: int) -> bool:
        """Whether a token is the first of its line."""
        return at == 0 or self.source.text.find("\n", self._end_before(at), self.starts[at]) >= 0

    def begins_assignment(self, at: int) -> bool:
        """Whether `%name = word` begins at a token."""
        return self.kinds[at : at + 3] == ["local", "=", "word"]

    def location(self, at: int) -> tuple[int, int]:
        """Line and column of a token, both from 1."""
        return self.source.location(self.starts[at])

    def _end_before(self, at: int) -> int:
        """Offset of the end of the token before another."""
        return self.starts[at - 1] + len(self.texts[at - 1]) if at else 0

    def _follows_unfinished(self) -> bool:
        """Whether the next token seems to begin a new instruction or to end a region."""
        if not self.at or not self.begins_line(self.at):
            return False
        return self.kind in ("}", "word") or self.begins_assignment(self.at)

    def collect(self, error: TlxError) -> None:
        """Report an error, unless it is at a character that the lexer has reported."""
        if error.span is None or error.span.start not in self._bad:
            self.reports.add(error.message, error.span, *error.notes)

    def accept(self, kind: str) -> bool:
        """Consume a token of a kind, if it is next."""
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
        """Consume punctuation.

        Raises:
            ParseError: Another token is next.
        """
        if self.kinds[self.at] != kind:
            raise self.expected(f"'{kind}'{where and ' ' + where}")
        self.at += 1

    def is_word(self, word: str) -> bool:
        """Whether the next token is a certain word."""
        return self.texts[self.at] == word and self.kinds[self.at] == "word"

    def accept_word(self, word: str) -> bool:
        """Consume a word, if it is next."""
        if not self.is_word(word):
            return False
        self.at += 1
        return True

    def expect_word(self, word: str, where: str = "") -> None:
        """Consume a word.

        Raises:
            ParseError: Another token is next.
        """
        if not self.accept_word(word):
            raise self.expected(f"'{word}'{where and ' ' + where}", known=(word,))

    def identifier(self, kind: Literal["local", "global"], what: str) -> Name:
        """A name with its `%` or `@`.

        Raises:
            ParseError: Another token is next.
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
            ParseError: Another token is next, or the integer is too large.
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


# Words that begin a line inside an instruction.
_INNER_WORDS = frozenset({"init", "else", "attributes", "as", "true", "false"})

_BEFORE_REGIONS: Final = {"for": ("init",), "func": ("attributes",)}
_AFTER_REGIONS: Final = ("else", "attributes")


def region(c: Cursor) -> Region:
    """`region = "{" *instruction "}"`."""
    head_end = c.previous_end if c.head_end is None else c.head_end
    keyword = c.keyword
    first = c.at
    if c.kind != "{":
        raise c.expected(f"'{{' and the region of '{keyword}'", known=_BEFORE_REGIONS.get(keyword, ()))
    c.depth += 1
    if c.depth <= MAX_NESTING:
        c.at += 1
        instructions = _instructions(c, first)
    else:
        c.collect(c.error(f"regions nested too deeply: at most {MAX_NESTING} levels"))
        instructions: list[Instruction] = []
        c.at = _after_closing(c, first, ("end",))
    c.depth -= 1
    c.region_end = c.at
    c.head_end = head_end
    c.keyword = keyword
    return Region(instructions, c.span_from(first))


def _instructions(c: Cursor, opening: int) -> list[Instruction]:
    instructions: list[Instruction] = []
    while c.kinds[c.at] != "}":
        if c.kinds[c.at] == "end" or is_function(c, c.at):
            note = Note("opened here", c.span(opening))
            c.collect(c.error(f"expected '}}' at the end of the region, found {c.shown()}", note))
            return instructions
        first = c.at
        try:
            instructions.append(instruction(c))
        except TlxError as error:
            c.collect(error)
            recover(c, first)
    c.at += 1
    return instructions


def instruction(c: Cursor) -> Instruction:
    """`instruction = [local-identifier *("," local-identifier) "="] instruction-name ...`."""
    first = c.at
    results = _results(c)
    word_at = c.at
    if c.kinds[word_at] != "word":
        hint = "a value needs no second name" if results and c.kind == "local" and not c.begins_line(word_at) else ""
        raise c.expected("an instruction", hint)
    form = c.forms.get(c.texts[word_at])
    if form is None:
        raise _unknown(c)
    c.keyword = c.texts[word_at]
    c.head_end = None
    if form.results != "many":
        _check_results(c, form.results == "one", first, results)
    c.at += 1
    node = form.production(c)
    if form.results == "none" and c.kind == ":":
        raise c.error(f"'{c.keyword}' gives no value, so no type follows it: remove ': ...'")
    node.results = results
    end = c.previous_end if c.head_end is None else c.head_end
    node.span = Span(c.source, c.starts[word_at], end)
    return node


def recover(c: Cursor, first: int) -> None:
    """Skip to the next instruction, or to the end of the region.

    Args:
        c: The cursor, anywhere.
        first: The first token of the text that does not parse.
    """
    at = max(first + 1, c.region_end)
    while c.kinds[at] not in ("}", "end"):
        if c.kinds[at] == "{":
            at = after_braces(c, at)
            continue
        if begins_instruction(c, at) or is_function(c, at):
            break
        at += 1
    c.at = at


def begins_instruction(c: Cursor, at: int) -> bool:
    """Whether a token seems to begin an instruction."""
    kind = c.kinds[at]
    if kind == "word" and c.kinds[at + 1] == "global":  # a misspelt `func @name`
        return False
    if kind == "local":
        if c.kinds[at + 1] != ",":
            return c.begins_assignment(at)
        # A list of results: no comma precedes it, and it begins a line.
        if c.kinds[at - 1] == "," or not c.begins_line(at):
            return False
        last = at
        while c.kinds[last + 1] == "," and c.kinds[last + 2] == "local":
            last += 2
        return c.begins_assignment(last)
    if kind != "word" or c.kinds[at - 1] in ("=", ":", "<", "(", "->"):
        return False
    word = c.texts[at]
    return word in c.forms or is_old_name(word) or (word not in _INNER_WORDS and c.begins_line(at))


def after_braces(c: Cursor, at: int) -> int:
    """The token after the braces that open here; a region is parsed for its errors."""
    if is_dictionary(c, at):
        return after_dictionary(c, at)
    c.at = at
    region(c)
    return c.at


def is_dictionary(c: Cursor, at: int) -> bool:
    """Whether a brace seems to open attributes."""
    kind = c.kinds[at + 1]
    if kind != "word":
        return kind in ("string", "}")
    return c.kinds[at + 2] == "=" or c.texts[at + 1] in ATTRIBUTE_NAMES


def after_dictionary(c: Cursor, at: int) -> int:
    """The token after the attributes that open here, or the first that cannot belong to them."""
    return _after_closing(c, at, ("end", "local"))


def is_function(c: Cursor, at: int) -> bool:
    """Whether a token begins a function."""
    return c.texts[at] == "func" and c.kinds[at] == "word"


def _results(c: Cursor) -> tuple[Name, ...]:
    if c.kinds[c.at] != "local":
        return ()
    names = [c.name()]
    while c.accept(","):
        names.append(c.identifier("local", "a result"))
    c.expect("=", "after the name of a result")
    return tuple(names)


def _check_results(c: Cursor, gives_value: bool, first: int, results: tuple[Name, ...]) -> None:
    if len(results) == gives_value:
        return
    if not gives_value:
        error = ParseError(f"'{c.keyword}' gives no value: remove '{results[0]} ='", c.span_from(first))
    elif results:
        error = ParseError(f"'{c.keyword}' gives one value, found {len(results)} names", c.span_from(first))
    else:
        error = c.error(f"'{c.keyword}' gives a value: write '%name = {c.keyword} ...'")
    c.collect(error)


def _unknown(c: Cursor) -> ParseError:
    word = c.text
    if word == "else":
        return c.error("expected an instruction, found 'else': it comes right after the region of an 'if'")
    modifier = c.texts[c.at + 1] if c.kinds[c.at + 1] == "modifier" else ""
    is_dotted = bool(modifier) and word in PREFIXES
    span = c.span(c.at, c.at + is_dotted)
    shown = f"'{word}{modifier[:40]}'" if is_dotted else c.shown()
    new = new_spelling(word, modifier, c.forms)
    if new is not None:
        return ParseError(f"{shown} is a spelling of version 1: write '{new}'", span)
    known = c.forms if is_dotted or not c.at or c.kinds[c.at - 1] != "}" else (*c.forms, *_AFTER_REGIONS)
    near = did_you_mean(modifier[1:] if is_dotted else word, known) if len(c.reports.errors) < LIMIT else ""
    return ParseError(f"unknown instruction {shown}{near}", span)


def _after_closing(c: Cursor, at: int, stops: tuple[str, ...]) -> int:
    """The token after the matching brace, or an earlier one that begins a function or has a kind in `stops`."""
    depth = 0
    while c.kinds[at] not in stops and not is_function(c, at):
        depth += (c.kinds[at] == "{") - (c.kinds[at] == "}")
        at += 1
        if depth == 0:
            break
    return at


RENAMED: Final = {
    "cmp.eq": "equal",
    "cmp.ne": "not_equal",
    "cmp.gt": "greater_than",
    "cmp.ge": "greater_than_equal",
    "cmp.lt": "less_than",
    "cmp.le": "less_than_equal",
    "hadamard_product": "hadamard",
    "group_size": "num_groups.x",
}
PREFIXES: Final = ("arith", "math", "cmp")  # of names like `arith.add`


def new_spelling(word: str, modifier: str, known: Iterable[str]) -> str | None:
    """The name in version 2 of an instruction of version 1.

    Args:
        word: The unknown word.
        modifier: The modifier after it, with its dot, or an empty string.
        known: The instructions of version 2.
    """
    if word in PREFIXES and modifier[1:] in known:
        return modifier[1:]
    return RENAMED.get(word + modifier) or RENAMED.get(word)


def is_old_name(word: str) -> bool:
    """Whether a word begins an instruction of the first version."""
    return word in PREFIXES or word in RENAMED
