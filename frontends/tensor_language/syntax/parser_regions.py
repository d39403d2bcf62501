"""Regions and error recovery, and hints about spellings of version 1.

An instruction that does not parse is dropped, and parsing resumes where the next one seems to begin: at
`%name, ... = word`, the name of an instruction, or a word that begins a line. Skipped regions are parsed, too, so a
misspelt `for` does not hide the errors in its body.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tlx.diagnostics import Note, ParseError, Span, TlxError
from tlx.frontends.tensor_language.errors import LIMIT, did_you_mean
from tlx.frontends.tensor_language.syntax.cursor import MAX_NESTING, Cursor
from tlx.frontends.tensor_language.syntax.nodes import ATTRIBUTE_NAMES, Instruction, Name, Region

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
    found: list[Instruction] = []
    while c.kinds[c.at] != "}":
        if c.kinds[c.at] == "end" or is_function(c, c.at):
            note = Note("opened here", c.span(opening))
            c.collect(c.error(f"expected '}}' at the end of the region, found {c.shown()}", note))
            return found
        first = c.at
        try:
            found.append(instruction(c))
        except TlxError as error:
            c.collect(error)
            recover(c, first)
    c.at += 1
    return found


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
    return ParseError(f"unknown instruction {shown}" + (near and f": {near}"), span)


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
        word: The word found.
        modifier: The modifier after it, with its dot, or an empty string.
        known: The instructions of version 2.
    """
    if word in PREFIXES and modifier[1:] in known:
        return modifier[1:]
    return RENAMED.get(word + modifier) or RENAMED.get(word)


def is_old_name(word: str) -> bool:
    """Whether a word begins an instruction of the first version."""
    return word in PREFIXES or word in RENAMED
