"""Parser of modules: LLVM assembly text to the lossless model.

Top level first: a scan for `define` and `declare` that knows strings, comments and braces. A body is parsed to
instructions only where the caller wants it (`wanted`); all else stays text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate
from typing import Final

from tlx.diagnostics import ParseError, Source, Span
from tlx.ir.analysis.large_vectors import has_large_vectors
from tlx.ir.functions import DuplicateFunction, Function, NameScope
from tlx.ir.garbage_collection import without_collection
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Declaration, Module, Raw
from tlx.ir.parser.duplicates import (
    OutlinedRegion,
    RepeatedRegion,
    RepeatedRegionFinder,
    inherited_attributes,
    split_off_name,
)
from tlx.ir.parser.functions import (
    check_labels,
    find_body,
    name_values,
    named_types,
    read_body,
    read_instruction,
    read_signature,
    skip_word,
    starts_item,
)
from tlx.ir.parser.lexer import LazyTokens, tokenize
from tlx.ir.parser.values import ValueParser
from tlx.ir.types import VOID, Type

_TENSOR: Final = re.compile(r"@\"?llvm\.(?:tensor\.|vector\.totensor)")
# Everything up to a `define` or `declare` that is a word of its own, outside strings and comments.
_TO_ITEM: Final = re.compile(
    r"""(?: [^\w";.$@%!-]++ | "[^"]*" | ;[^\n]*+ | (?!(?:define|declare)(?![\w.$-])) [\w.$@%!-]++ )*+""", re.VERBOSE
)
_TO_BRACE: Final = re.compile(r"""(?:[^"{};]++|"[^"]*"|;[^\n]*+)*+""")
_POINTER: Final = re.compile(r'"[^"]*"|;[^\n]*|(?<![%@\w.$!-])(ptr)(?![\w.$-])|[\w\])}>"]\s?(\*)')


def parse(
    text: str,
    filename: str = "<string>",
    wanted: Callable[[str], bool] | None = None,
    *,
    twins: bool = False,
    parts: bool = False,
) -> Module:
    """Read a module.

    Args:
        text: LLVM assembly.
        filename: What diagnostics call the text.
        wanted: Tells from the text of a function whether its body is parsed to instructions; by default those
            that `needs_lowering` names. The text of the others is kept.
        twins: Whether the body of a function is left out that differs from another one by its name only.
        parts: Whether equal parts of a function become calls of one function (`tlx.ir.parser.duplicates`).

    Raises:
        ParseError: The text is not LLVM assembly; only what is parsed is looked at closely.
    """
    source = Source(filename, text)
    reader = _ModuleParser(source, wanted or needs_lowering, twins=twins, parts=parts)
    try:
        with without_collection():
            return reader.module()
    except ParseError as error:
        from tlx.ir.parser.suggestions import root_cause

        raise root_cause(error, source) from None


def has_tensors(text: str) -> bool:
    """Whether a text mentions a tensor intrinsic."""
    return _TENSOR.search(text) is not None


def needs_lowering(text: str) -> bool:
    """Whether a function is for the lowering: it calls a tensor intrinsic or kernels, or works on huge vectors."""
    return has_tensors(text) or '"tlx-stage"=' in text or has_large_vectors(text)


def uses_typed_pointers(text: str) -> bool:
    """Whether a module spells pointers as `T*`: decided by the first pointer in it."""
    for found in _POINTER.finditer(text):
        if found.group(1):
            return False
        if found.group(2):
            return True
    return False


class _ModuleParser:
    """Reads one source, from top to bottom."""

    def __init__(self, source: Source, wanted: Callable[[str], bool], *, twins: bool, parts: bool) -> None:
        self._source = source
        self._text = source.text
        self._wanted = wanted
        self._module = Module(source, [], uses_typed_pointers(source.text))
        self._first: dict[str, Function] | None = {} if twins else None
        """The first function of each text without its name."""
        self._finder = RepeatedRegionFinder() if parts else None
        self._parts: dict[object, tuple[Function, OutlinedRegion]] = {}
        """The functions that parts became, by what the parts have in common."""
        self._types: dict[str, Type] | None = None
        self._done = 0
        """Where the text begins that is in no item yet."""

    def module(self) -> Module:
        position = self._next(0)
        while position < len(self._text):
            try:
                read = self._declaration if self._text.startswith("declare", position) else self._definition
                position = self._next(read(position))
            except RecursionError:
                span = self._source.span(position)
                raise ParseError("types or constants are nested too deeply", span) from None
        self._keep(len(self._text))
        return self._module

    def _next(self, position: int) -> int:
        """Where the next `define` or `declare` begins, or the end of the text."""
        position = _end_of_match(_TO_ITEM, self._text, position)
        if self._text.startswith('"', position):
            raise ParseError("unfinished string in LLVM assembly", self._source.span(position))
        return position

    def _keep(self, end: int) -> None:
        """What is in no item up to `end` stays text."""
        if end > self._done:
            self._module.items.append(Raw(self._text[self._done : end]))
        self._done = end

    def _declaration(self, start: int) -> int:
        cursor = ValueParser(self._source, LazyTokens(self._source, start))
        signature = read_signature(cursor)
        after = cursor.previous_end
        while not starts_item(cursor):
            skip_word(cursor)
        end = cursor.previous_end
        signature.attributes = self._text[after:end].strip()
        self._keep(_lead_start(self._text, self._done, start))
        item = Declaration(self._text[self._done : end], signature, Span(self._source, start, end))
        self._module.items.append(item)
        self._done = end
        return end

    def _definition(self, start: int) -> int:
        opening = find_body(self._source, start)
        end = self._body_end(start, opening)
        text = self._text[start:end]
        if self._wanted(text) and not (self._finder and self._with_parts(self._finder, start, opening, end)):
            self._keep(self._line_lead(start))
            self._module.items.append(self._function_or_twin(text, start, opening))
            self._done = end
        return end

    def _function_or_twin(self, text: str, start: int, opening: int) -> Function | DuplicateFunction:
        found = split_off_name(text, opening - start) if self._first is not None else None
        if self._first is None or found is None:
            return self._function(start, opening, start + len(text))
        name, rest = found
        if rest in self._first:
            return DuplicateFunction(
                self._first[rest], name, self._text[self._done : start], Span(self._source, start, opening)
            )
        return self._first.setdefault(rest, self._function(start, opening, start + len(text)))

    def _with_parts(self, finder: RepeatedRegionFinder, start: int, opening: int, end: int) -> bool:
        """Add a function whose equal parts are calls, and the functions that are called; False if it has none."""
        text = self._text[start:end]
        if not finder.may_pay(text):
            return False
        header = ValueParser(self._source, tokenize(self._source, start, opening))
        signature = read_signature(header)
        attributes = inherited_attributes(self._text[header.previous_end : opening], self._text)
        lines = self._text[opening + 1 : end].split("\n")
        parts = finder.find(lines, signature.arguments) if attributes is not None else []
        if not parts or attributes is None or self._mistakes_types_for(parts):
            return False
        remaining = lines.copy()
        for part in parts:
            remaining[part.first : part.last + 1] = [""] * (part.last + 1 - part.first)
        if self._wanted(self._text[start : opening + 1] + "\n".join(remaining)):
            return False
        self._write_parts(parts, signature.name.strip('"'), attributes, lines, opening)
        self._done = end
        return True

    def _write_parts(
        self, parts: list[RepeatedRegion], name: str, attributes: str, lines: list[str], opening: int
    ) -> None:
        """Add the function with calls for its parts, and the functions of those parts that are new."""
        offsets = list(accumulate((len(line) + 1 for line in lines), initial=opening + 1))
        added: list[Function] = []
        pieces = [self._text[self._done : opening + 1]]
        copied = 0
        for part in parts:
            found = self._parts.get((attributes, part.key))
            if found is None:
                span = Span(self._source, offsets[part.first] + len(part.indent), offsets[part.last + 1] - 1)
                found = self._part(part, f"{name}.part", attributes, span), OutlinedRegion()
                found[0].facts[OutlinedRegion] = found[1]
                self._parts[attributes, part.key] = found
                added.append(found[0])
            else:
                found[1].more += 1
            pieces += [f"{line}\n" for line in lines[copied : part.first]]
            pieces.append(f"{part.indent}{part.call(found[0].name)}\n")
            copied = part.last + 1
        pieces.append("\n".join(lines[copied:]))
        self._module.items += [Raw("".join(pieces)), *added]

    def _part(self, part: RepeatedRegion, stem: str, attributes: str, span: Span) -> Function:
        """The function that a part becomes; its instructions are read where they stand."""
        header = part.header(self._module.global_names.fresh(stem), attributes)
        made_up = Source(self._source.name, header)
        signature = read_signature(ValueParser(made_up, tokenize(made_up)))
        signature.attributes = attributes
        function = Function(signature, header, [], span=span)
        cursor = ValueParser(self._source, tokenize(self._source, span.start, span.end))
        block = Block("entry")
        position = span.start - len(part.indent) - 1  # the end of the line in front of it
        while cursor.token.kind != "end":
            position = read_instruction(
                cursor, block, position, self._named_types(), typed_pointers=self._module.typed_pointers
            )
        function.names.taken.update(argument.name for argument in signature.arguments)
        function.names.taken.update(i.result for i in block.instructions if i.result is not None)
        block.instructions.append(Instruction("ret", VOID, [], "ret void"))
        block.name = function.names.fresh(block.name)
        block.label = f"\n{block.name}:"
        function.blocks.append(block)
        return function

    def _mistakes_types_for(self, parts: list[RepeatedRegion]) -> bool:
        """Whether numbers that name values, which count anew in each function, may be names of types as well."""
        numbers = any(given.name[1:].isdecimal() for part in parts for given in part.inputs)
        return numbers and any(name[1:].isdecimal() for name in self._named_types())

    def _named_types(self) -> dict[str, Type]:
        if self._types is None:
            self._types = named_types(self._source)
        return self._types

    def _line_lead(self, start: int) -> int:
        """Where the blanks in front of `start` begin."""
        while start > self._done and self._text[start - 1] in " \t":
            start -= 1
        return start

    def _body_end(self, start: int, opening: int) -> int:
        """Offset behind the brace that closes the one at `opening`."""
        text = self._text
        depth = 1
        position = opening + 1
        while depth:
            position = _end_of_match(_TO_BRACE, text, position)
            if position == len(text) or text[position] == '"':
                span = self._source.span(start, start + len("define"))
                raise ParseError("function body has no end: a '}' is missing", span)
            depth += 1 if text[position] == "{" else -1
            position += 1
        return position

    def _function(self, start: int, opening: int, end: int) -> Function:
        source = self._source
        types = self._named_types()
        header = ValueParser(source, tokenize(source, start, opening))
        signature = read_signature(header)
        signature.attributes = self._text[header.previous_end : opening].strip()
        span = Span(source, start, opening)
        function = Function(signature, self._text[self._done : opening + 1], [], span=span, names=NameScope())
        function.numbered_types = any(name[1:].isdecimal() for name in types)
        cursor = ValueParser(source, tokenize(source, opening + 1, end - 1))
        read_body(cursor, function, opening + 1, types, typed_pointers=self._module.typed_pointers)
        function.footer = self._text[cursor.previous_end if cursor.index else opening + 1 : end]
        name_values(function)
        check_labels(function)
        return function


def _end_of_match(pattern: re.Pattern[str], text: str, position: int) -> int:
    """The end of a pattern that matches everywhere."""
    found = pattern.match(text, position)
    return found.end() if found else position


def _lead_start(text: str, floor: int, start: int) -> int:
    """Where the blank space and comment lines directly in front of a declaration begin."""
    line = start
    while line > floor:
        previous = text.rfind("\n", floor, line - 1) + 1
        previous = max(previous, floor)
        content = text[previous:line].strip()
        if content and not content.startswith("; Function Attrs"):
            break
        line = previous
    return line
