"""Parser of modules: their items in file order, and the bodies of functions that the lowering needs."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import accumulate
from typing import Final

from tlx.diagnostics import ParseError, Source, Span, did_you_mean
from tlx.intrinsics.small_floats import MARKER
from tlx.ir.functions import Argument, DuplicateFunction, Function, NameScope, Signature
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Declaration, Item, Module, UnparsedText
from tlx.ir.parser.duplicates import (
    OutlinedRegion,
    RepeatedRegion,
    RepeatedRegionFinder,
    inherited_attributes,
    split_off_name,
)
from tlx.ir.parser.instructions import parse_instruction
from tlx.ir.parser.operands import LazyTokens, ValueParser, tokenize
from tlx.ir.parser.suggestions import root_cause
from tlx.ir.prepared import CONSTANT
from tlx.ir.types import LABEL, VOID, Type, has_large_vectors
from tlx.ir.values import Local


@contextmanager
def without_collection() -> Generator[None]:
    """Suspend garbage collection in the block.

    A module consists of many objects without reference cycles: searching for cycles would take a quarter of the time of
    a lowering.
    """
    collects = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if collects:
            gc.enable()


_TENSOR: Final = re.compile(r"@\"?llvm\.(?:tensor\.|vector\.totensor)")
# A string, a comment, a quote without an end, or a `define` or `declare` that is a word of its own. The search is quick
# since each begins with a character. `(?: (?!define) ... )*+` would not do: Python before 3.11.5 matches it wrongly.
_ITEM: Final = re.compile(r""""[^"]*"|;[^\n]*|"|d(?<![\w.$@%!-]d)(?:efine|eclare)(?![\w.$-])""")
_TO_BRACE: Final = re.compile(r"""(?:[^"{};]++|"[^"]*"|;[^\n]*+)*+""")
_POINTER: Final = re.compile(r'"[^"]*"|;[^\n]*|(?<![%@\w.$!-])(ptr)(?![\w.$-])|[\w\])}>"]\s?(\*)')


def parse(
    text: str,
    filename: str = "<string>",
    is_parsed: Callable[[str], bool] | None = None,
    *,
    duplicates: bool = False,
    outline: bool = False,
) -> Module:
    """Read a module.

    Args:
        text: LLVM assembly.
        filename: Name of the text in diagnostics.
        is_parsed: Decides by the text of a function whether its body is parsed to instructions or kept as text; by
            default `needs_lowering`.
        duplicates: Whether to parse only one of several functions that differ in their names only.
        outline: Whether to outline the repeated regions of a function (`tlx.ir.parser.duplicates`).

    Raises:
        ParseError: The text is not LLVM assembly; text that is not parsed is not checked.
    """
    source = Source(filename, with_one_spelling(text))
    parser = _ModuleParser(source, is_parsed or needs_lowering, duplicates=duplicates, outline=outline)
    try:
        with without_collection():
            return parser.module()
    except ParseError as error:
        raise root_cause(error, source) from None


def parse_fully(text: str, filename: str = "<string>") -> Module:
    """Read a module with the body of each function, whether it needs lowering or not (see `parse`)."""
    return parse(text, filename, lambda _text: True)


def has_tensors(text: str) -> bool:
    """Whether a text mentions a tensor intrinsic."""
    return _TENSOR.search(text) is not None


_WORD_NAME: Final = r"[-a-zA-Z$._][-a-zA-Z$._0-9]*"
_QUOTED_NAMES: Final = re.compile(rf'[%@$]"({_WORD_NAME})"|^[ \t]*"({_WORD_NAME})":', re.MULTILINE)
_UNQUOTED_NAMES: Final = re.compile(rf"[%@$]({_WORD_NAME})|^[ \t]*({_WORD_NAME}):", re.MULTILINE)


def with_one_spelling(text: str) -> str:
    """The text with one spelling of each name: `%"x"` becomes `%x`, and two blanks, if both occur.

    Lines and columns stay as they are.
    """
    if not any(opening in text for opening in ('%"', '@"', '":')):
        return text
    quoted = {"".join(names) for names in _QUOTED_NAMES.findall(text)}
    both = quoted and quoted.intersection("".join(names) for names in _UNQUOTED_NAMES.findall(text))

    def unquoted(match: re.Match[str]) -> str:
        return match[0].replace('"', "") + "  " if (match[1] or match[2]) in both else match[0]

    return _QUOTED_NAMES.sub(unquoted, text) if both else text


_MARKS: Final = ('"tlx-stage"=', '"tlx-block"=')  # kernels, and functions for one thread of a grid


def needs_lowering(text: str) -> bool:
    """Whether a function needs lowering: it calls tensor intrinsics, kernels or conversions, or has huge vectors."""
    words = (*_MARKS, CONSTANT, MARKER)
    return has_tensors(text) or any(word in text for word in words) or has_large_vectors(text)


def uses_typed_pointers(text: str) -> bool:
    """Whether a module spells pointers as `T*`: decided by the first pointer in it."""
    return first_typed_pointer(text) is not None


def first_typed_pointer(text: str) -> tuple[int, int] | None:
    """The span of a module's first pointer if it is spelled `T*`; None if it is opaque."""
    for match in _POINTER.finditer(text):
        if match.group(1):
            return None
        if match.group(2):
            return match.span(2)
    return None


class _ModuleParser:
    """Reads one source, from top to bottom."""

    def __init__(self, source: Source, is_parsed: Callable[[str], bool], *, duplicates: bool, outline: bool) -> None:
        self._source = source
        self._text = source.text
        self._is_parsed = is_parsed
        self._module = Module(source, [], uses_typed_pointers(source.text))
        self._originals: dict[str, Function] | None = {} if duplicates else None
        """The first of the functions that differ in their names only, by the text without the name."""
        self._finder = RepeatedRegionFinder() if outline else None
        self._outlined: dict[object, tuple[Function, OutlinedRegion]] = {}
        """The outlined functions, by their attributes and the key of their regions."""
        self._types: dict[str, Type] | None = None
        self._done = 0
        """Where the last item ends."""

    def module(self) -> Module:
        position = self._next(0)
        while position < len(self._text):
            try:
                parse_item = self._declaration if self._text.startswith("declare", position) else self._definition
                position = self._next(parse_item(position))
            except RecursionError:
                span = self._source.span(position)
                raise ParseError("types or constants are nested too deeply", span) from None
        self._keep(len(self._text))
        return self._module

    def _next(self, position: int) -> int:
        """Where the next `define` or `declare` begins, or the end of the text."""
        for match in _ITEM.finditer(self._text, position):
            if match[0] == '"':
                raise ParseError("unfinished string in LLVM assembly", self._source.span(match.start()))
            if match[0].startswith("d"):
                return match.start()
        return len(self._text)

    def _keep(self, end: int) -> None:
        """Keep the text from the last item to `end` unparsed."""
        if end > self._done:
            self._module.items.append(UnparsedText(self._text[self._done : end]))
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
        if self._is_parsed(text) and not (self._finder and self._outline(self._finder, start, opening, end)):
            self._keep(self._done + len(self._text[self._done : start].rstrip(" \t")))
            self._module.items.append(self._function_or_duplicate(text, start, opening))
            self._done = end
        return end

    def _function_or_duplicate(self, text: str, start: int, opening: int) -> Function | DuplicateFunction:
        split = split_off_name(text, opening - start) if self._originals is not None else None
        if self._originals is None or split is None:
            return self._function(start, opening, start + len(text))
        name, rest = split
        if rest in self._originals:
            lead = self._text[self._done : start]
            return DuplicateFunction(self._originals[rest], name, lead, Span(self._source, start, opening))
        return self._originals.setdefault(rest, self._function(start, opening, start + len(text)))

    def _outline(self, finder: RepeatedRegionFinder, start: int, opening: int, end: int) -> bool:
        """Add a function with calls for its repeated regions, and the outlined functions; False if it has none."""
        text = self._text[start:end]
        if not finder.may_pay(text):
            return False
        header = ValueParser(self._source, tokenize(self._source, start, opening))
        signature = read_signature(header)
        attributes = inherited_attributes(self._text[header.previous_end : opening], self._text)
        lines = self._text[opening + 1 : end].split("\n")
        regions = finder.find(lines, signature.arguments) if attributes is not None else []
        if not regions or attributes is None or self._mistakes_types_for_values(regions):
            return False
        remaining = lines.copy()
        for region in regions:
            remaining[region.first : region.last + 1] = [""] * (region.last + 1 - region.first)
        if self._is_parsed(self._text[start : opening + 1].replace(CONSTANT, "") + "\n".join(remaining)):
            return False
        self._add_outlined(regions, signature.name.strip('"'), attributes, lines, Span(self._source, start, opening))
        self._done = end
        return True

    def _add_outlined(
        self, regions: list[RepeatedRegion], name: str, attributes: str, lines: list[str], header: Span
    ) -> None:
        """Add the function with calls for its regions, and a function for each region that is new."""
        opening = header.end
        offsets = list(accumulate((len(line) + 1 for line in lines), initial=opening + 1))
        added: list[Function] = []
        pieces = [self._text[self._done : opening + 1]]
        copied = 0
        for region in regions:
            outlined = self._outlined.get((attributes, region.key))
            if outlined is None:
                span = Span(self._source, offsets[region.first] + len(region.indent), offsets[region.last + 1] - 1)
                outlined = self._outlined_function(region, f"{name}.part", attributes, span), OutlinedRegion()
                outlined[0].facts[OutlinedRegion] = outlined[1]
                self._outlined[attributes, region.key] = outlined
                added.append(outlined[0])
            else:
                outlined[1].copies += 1
            pieces += [f"{line}\n" for line in lines[copied : region.first]]
            pieces.append(f"{region.indent}{region.call(outlined[0].name)}\n")
            copied = region.last + 1
        pieces.append("\n".join(lines[copied:]))
        caller = "".join(pieces)
        parsed = self._with_calls(caller, header) if CONSTANT in caller else [UnparsedText(caller)]
        self._module.items += [*parsed, *added]

    def _with_calls(self, text: str, header: Span) -> list[Item]:
        """A function with calls in place of its regions, parsed; its instructions are not in the user's file."""
        inner = _ModuleParser(Source(self._source.name, text), self._is_parsed, duplicates=False, outline=False)
        inner._types = self._named_types()
        inner._module.typed_pointers = self._module.typed_pointers
        items = inner.module().items
        for function in (item for item in items if isinstance(item, Function)):
            function.span = header
            for instruction in function.instructions():
                instruction.span = None
        return items

    def _outlined_function(self, region: RepeatedRegion, stem: str, attributes: str, span: Span) -> Function:
        """The function of a region; its instructions have spans in the user's file."""
        header = region.header(self._module.global_names.fresh(stem), attributes)
        header_source = Source(self._source.name, header)
        signature = read_signature(ValueParser(header_source, tokenize(header_source)))
        signature.attributes = attributes
        function = Function(signature, header, [], span=span)
        cursor = ValueParser(self._source, tokenize(self._source, span.start, span.end))
        block = Block("entry")
        position = span.start - len(region.indent) - 1  # the end of the line in front of it
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

    def _mistakes_types_for_values(self, regions: list[RepeatedRegion]) -> bool:
        """Whether types named by numbers could be mistaken for unnamed values that are inputs of a region."""
        is_unnamed = any(value.name[1:].isdecimal() for region in regions for value in region.inputs)
        return is_unnamed and any(name[1:].isdecimal() for name in self._named_types())

    def _named_types(self) -> dict[str, Type]:
        if self._types is None:
            self._types = named_types(self._source)
        return self._types

    def _body_end(self, start: int, opening: int) -> int:
        """Offset after the brace that closes the one at `opening`."""
        text = self._text
        depth = 1
        position = opening + 1
        while depth:
            brace = _TO_BRACE.match(text, position)
            position = brace.end() if brace else position
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


_TO_FIRST_BRACE: Final = re.compile(r'[^"{};]*+\{')
_NAMED_TYPE: Final = re.compile(r"(?m)^[ \t]*(%(?:[-a-zA-Z$._0-9]+|\"[^\"]*\"))\s*=\s*type\b")
_ITEM_WORDS: Final = frozenset(
    "define declare attributes module source_filename target uselistorder uselistorder_bb".split()
)
_CONSTANT_KEYWORDS: Final = ("prefix", "prologue", "personality")
_MOST_DIGITS: Final = 10


def find_body(source: Source, start: int) -> int:
    """Offset of a function's opening brace.

    The result type, parameters, prefix data and metadata may contain braces as well.
    """
    match = _TO_FIRST_BRACE.match(source.text, start)
    header = match.group() if match else ""
    closed = "@" in header and "\n" not in header and header.count("(") == header.count(")") > 0
    if closed and "prefix" not in header and "prologue" not in header:
        return start + len(header) - 1
    cursor = ValueParser(source, LazyTokens(source, start))
    while (kind := cursor.token.kind) != "global":
        if kind == "end":
            raise cursor.error("expected a function's name")
        skip_word(cursor)
    cursor.next()
    if not cursor.at("("):
        raise cursor.error("expected '('")
    cursor.skip_parens()
    while not cursor.at("{"):
        if starts_item(cursor):
            raise ParseError("function has no body: a '{' is missing", source.span(start, start + len("define")))
        if cursor.accept(*_CONSTANT_KEYWORDS):
            cursor.typed_value()
        else:
            skip_word(cursor)
    return cursor.token.start


def skip_word(cursor: ValueParser) -> None:
    """Skip a token, a bracketed group, or `!{...}`."""
    if cursor.token.text in ("(", "[", "{", "<"):
        cursor.skip_parens()
        return
    token = cursor.next()
    if token.kind == "meta" and (cursor.at("(") or (token.text == "!" and cursor.at("{"))):
        cursor.skip_parens()


def starts_item(cursor: ValueParser) -> bool:
    """Whether the token at the cursor begins a top-level item, rather than continues a declaration."""
    token = cursor.token
    if token.kind in ("local", "global", "comdat", "meta"):
        return cursor.at("=", 1)
    return token.kind in ("end", "label") or token.text == "^" or token.text in _ITEM_WORDS


def named_types(source: Source) -> dict[str, Type]:
    """The types of `%name = type ...`, by name with `%`."""
    types: dict[str, Type] = {}
    for match in _NAMED_TYPE.finditer(source.text):
        types[match.group(1)] = ValueParser(source, LazyTokens(source, match.end())).type()
    return types


def read_signature(cursor: ValueParser) -> Signature:
    """Parse `define ... @name(params)` or `declare ...`; the attributes after it are left to the caller."""
    cursor.next()
    prefix_start = cursor.token.start
    while not cursor.starts_type():
        if cursor.token.kind in ("meta", "number"):  # `!dbg !3`, `cc 10`
            skip_word(cursor)
        elif not cursor.attribute():
            raise cursor.error("expected a function's result type")
    prefix = cursor.source.text[prefix_start : cursor.previous_end] if cursor.token.start > prefix_start else ""
    result = cursor.type()
    name = cursor.next()
    if name.kind != "global":
        raise cursor.error("expected a function's name", name)
    arguments, vararg = _parameters(cursor)
    return Signature(name.text[1:], result, arguments, vararg, prefix, "")


def _parameters(cursor: ValueParser) -> tuple[list[Argument], bool]:
    cursor.expect("(")
    arguments: list[Argument] = []
    number = 0
    while not cursor.accept(")"):
        if cursor.accept("..."):
            cursor.expect(")")
            return arguments, True
        type_ = cursor.type()
        attributes = cursor.param_attributes()
        name = cursor.next().text[1:] if cursor.token.kind == "local" else str(number)
        number = next_number(name, number)
        arguments.append(Argument(type_, attributes, name))
        if not cursor.at(")"):
            cursor.expect(",")
    return arguments, False


def next_number(name: str, number: int) -> int:
    """LLVM's next number for an unnamed value, after a value with a name; `number` was the next one before it."""
    return int(name) + 1 if name.isdecimal() and len(name) <= _MOST_DIGITS else number


def read_body(
    cursor: ValueParser, function: Function, position: int, types: dict[str, Type], *, typed_pointers: bool
) -> None:
    """Read blocks and instructions; leaves the cursor after the last one.

    Args:
        cursor: At the first token of the body.
        function: Receives the blocks.
        position: Where the body begins.
        types: The module's named types.
        typed_pointers: Whether the module spells pointers as `T*`.
    """
    text = cursor.source.text
    block: Block | None = None
    while cursor.token.kind != "end" and not cursor.token.text.startswith("uselistorder"):
        token = cursor.token
        if token.kind == "label":
            _check_terminated(cursor, block)
            block = Block(token.text[:-1], text[position : token.end])
            function.blocks.append(block)
            position = cursor.next().end
            continue
        if block is None:  # LLVM numbers it
            block = Block("")
            function.blocks.append(block)
        position = read_instruction(cursor, block, position, types, typed_pointers=typed_pointers)
        if block.terminator.is_terminator:
            block = None
    _check_terminated(cursor, block)
    if not function.blocks:
        raise ParseError("function body has no instructions", cursor.source.span(position - 1))


def read_instruction(
    cursor: ValueParser, block: Block, position: int, types: dict[str, Type], *, typed_pointers: bool
) -> int:
    """Read an instruction and append it to a block; returns where it ends.

    Args:
        cursor: At its first token.
        block: Receives the instruction.
        position: Where the white space and comments before it begin.
        types: The module's named types.
        typed_pointers: Whether the module spells pointers as `T*`.
    """
    start = cursor.token.start
    instruction = parse_instruction(cursor, types, typed_pointers=typed_pointers)
    instruction.lead = cursor.source.text[position:start]
    block.instructions.append(instruction)
    return cursor.previous_end


def _check_terminated(cursor: ValueParser, block: Block | None) -> None:
    if block is not None:
        raise cursor.error("the block above has no terminator: expected an instruction")


def name_values(function: Function) -> None:
    """Number blocks and results without names as LLVM does, and collect all names."""
    number = 0
    taken = function.names.taken
    for argument in function.arguments:
        number = next_number(argument.name, number)
        taken.add(argument.name)
    for block in function.blocks:
        if not block.name:
            block.name = str(number)
        number = next_number(block.name, number)
        taken.add(block.name)
        for instruction in block.instructions:
            if instruction.result is None and instruction.type != VOID and instruction.opcode != "#dbg":
                _set_number(instruction, number)
            if instruction.result is not None:
                number = next_number(instruction.result, number)
                taken.add(instruction.result)


def _set_number(instruction: Instruction, number: int) -> None:
    """Name an unnamed result by its number, in the text too."""
    instruction.result = str(number)
    instruction.text = f"%{number} = {instruction.text}"
    shift = len(str(number)) + 4
    if instruction.spans is not None:
        instruction.spans = [(a + shift, b + shift) for a, b in instruction.spans]


def check_labels(function: Function) -> None:
    """Check that every block that a terminator or phi names exists."""
    names = {block.name for block in function.blocks}
    for block in function.blocks:
        for instruction in block.instructions:
            if not instruction.is_terminator and instruction.opcode != "phi":
                continue
            for index, operand in enumerate(instruction.operands):
                if operand.type == LABEL and not (isinstance(operand, Local) and operand.name in names):
                    near = did_you_mean(str(operand), [f"%{name}" for name in names])
                    raise ParseError(f"use of undefined block '{operand}'{near}", _operand_span(instruction, index))


def _operand_span(instruction: Instruction, index: int) -> Span | None:
    span = instruction.span
    if span is None or instruction.spans is None:
        return span
    shift = span.end - len(instruction.text)
    start, end = instruction.spans[index]
    return Span(span.source, start + shift, end + shift)
