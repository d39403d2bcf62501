"""Parses modules: their items in file order, and the bodies of functions that the lowering reads."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import accumulate
from typing import Final

from tlx.diagnostics import Note, ParseError, Source, Span, did_you_mean
from tlx.intrinsics import INTRINSICS
from tlx.ir.functions import Argument, DuplicateFunction, Function, NameScope, Signature
from tlx.ir.instructions import OPCODES, TAIL_MARKERS, Block, Instruction
from tlx.ir.module import Declaration, Module, Raw
from tlx.ir.parser.duplicates import (
    OutlinedRegion,
    RepeatedRegion,
    RepeatedRegionFinder,
    inherited_attributes,
    split_off_name,
)
from tlx.ir.parser.instructions import parse_instruction
from tlx.ir.parser.operands import TYPE_WORDS, LazyTokens, ValueParser, tokenize
from tlx.ir.types import LABEL, VOID, Type, has_large_vectors
from tlx.ir.values import Local


@contextmanager
def without_collection() -> Generator[None]:
    """Suspend garbage collection in the block.

    A module consists of many objects without reference cycles: searching them for cycles would take a quarter of the
    time of a lowering.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
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
    wanted: Callable[[str], bool] | None = None,
    *,
    duplicates: bool = False,
    outline: bool = False,
) -> Module:
    """Read a module.

    Args:
        text: LLVM assembly.
        filename: What diagnostics call the text.
        wanted: Decides by the text of a function whether its body is parsed to instructions; by default
            `needs_lowering`. The text of the others is kept.
        duplicates: Whether functions that differ from another one in their names only are not parsed.
        outline: Whether equal parts of a function become calls of one function (`tlx.ir.parser.duplicates`).

    Raises:
        ParseError: The text is not LLVM assembly; text that is not parsed is not checked.
    """
    source = Source(filename, text)
    reader = _ModuleParser(source, wanted or needs_lowering, twins=duplicates, parts=outline)
    try:
        with without_collection():
            return reader.module()
    except ParseError as error:
        raise root_cause(error, source) from None


def has_tensors(text: str) -> bool:
    """Whether a text mentions a tensor intrinsic."""
    return _TENSOR.search(text) is not None


def needs_lowering(text: str) -> bool:
    """Whether a function needs the lowering: it calls a tensor intrinsic or kernels, or computes with huge vectors."""
    return has_tensors(text) or '"tlx-stage"=' in text or has_large_vectors(text)


def uses_typed_pointers(text: str) -> bool:
    """Whether a module spells pointers as `T*`: decided by the first pointer in it."""
    for match in _POINTER.finditer(text):
        if match.group(1):
            return False
        if match.group(2):
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
        """Where the text that belongs to no item yet begins."""

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
        for match in _ITEM.finditer(self._text, position):
            if match[0] == '"':
                raise ParseError("unfinished string in LLVM assembly", self._source.span(match.start()))
            if match[0].startswith("d"):
                return match.start()
        return len(self._text)

    def _keep(self, end: int) -> None:
        """Keep the text up to `end` that belongs to no item."""
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
            self._keep(self._done + len(self._text[self._done : start].rstrip(" \t")))
            self._module.items.append(self._function_or_twin(text, start, opening))
            self._done = end
        return end

    def _function_or_twin(self, text: str, start: int, opening: int) -> Function | DuplicateFunction:
        split = split_off_name(text, opening - start) if self._first is not None else None
        if self._first is None or split is None:
            return self._function(start, opening, start + len(text))
        name, rest = split
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
            outlined = self._parts.get((attributes, part.key))
            if outlined is None:
                span = Span(self._source, offsets[part.first] + len(part.indent), offsets[part.last + 1] - 1)
                outlined = self._part(part, f"{name}.part", attributes, span), OutlinedRegion()
                outlined[0].facts[OutlinedRegion] = outlined[1]
                self._parts[attributes, part.key] = outlined
                added.append(outlined[0])
            else:
                outlined[1].copies += 1
            pieces += [f"{line}\n" for line in lines[copied : part.first]]
            pieces.append(f"{part.indent}{part.call(outlined[0].name)}\n")
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
        """Whether the module has types named by numbers, which look like unnamed values."""
        numbers = any(given.name[1:].isdecimal() for part in parts for given in part.inputs)
        return numbers and any(name[1:].isdecimal() for name in self._named_types())

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

    Result type, parameters, prefix data and metadata may hold braces as well.
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
    """Skip a token, or a bracket with all that is in it, or `!{...}`."""
    if cursor.token.text in ("(", "[", "{", "<"):
        cursor.skip_parens()
        return
    token = cursor.next()
    if token.kind == "meta" and (cursor.at("(") or (token.text == "!" and cursor.at("{"))):
        cursor.skip_parens()


def starts_item(cursor: ValueParser) -> bool:
    """Whether the token at the cursor begins a top-level item, and cannot belong to the declaration before it."""
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
    """Parse `define ... @name(params)` or `declare ...`; what follows is the caller's."""
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
    """The number that LLVM gives next, after a value of that name."""
    return int(name) + 1 if name.isdecimal() and len(name) <= _MOST_DIGITS else number


def read_body(
    cursor: ValueParser, function: Function, position: int, types: dict[str, Type], *, typed_pointers: bool
) -> None:
    """Read blocks and instructions; the cursor is left after the last one.

    Args:
        cursor: On the first token of the body.
        function: What gets the blocks.
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
    """Read one instruction to the end of a block; gives where it ends.

    Args:
        cursor: On its first token.
        block: What gets it.
        position: Where the white space and comments in front of it begin.
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
        raise cursor.error("expected an instruction: the block before has no terminator")


def name_values(function: Function) -> None:
    """Give blocks and results without a name the number LLVM gives them, and collect all names."""
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
                _give_number(instruction, number)
            if instruction.result is not None:
                number = next_number(instruction.result, number)
                taken.add(instruction.result)


def _give_number(instruction: Instruction, number: int) -> None:
    """Write the number of an unnamed result in front of the instruction."""
    instruction.result = str(number)
    instruction.text = f"%{number} = {instruction.text}"
    shift = len(str(number)) + 4
    if instruction.spans is not None:
        instruction.spans = [(a + shift, b + shift) for a, b in instruction.spans]


def check_labels(function: Function) -> None:
    """Every block that a terminator or phi names exists."""
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


_UNDEFINED: Final = re.compile(r"use of undefined value '(?P<sigil>[%@])(?P<name>[^']*[^'\d][^']*)'")
_INTRINSIC: Final = re.compile(r"unknown intrinsic '(?P<name>[^']+)'")
_WORD: Final = re.compile(r"[-\w.$]+")
_RESULT: Final = re.compile(r"%([-\w.$]+)[ \t]*=|^[ \t]*([-\w.$]+):", re.MULTILINE)
_GLOBAL: Final = re.compile(r'^(?:@([-\w.$]+)[ \t]*=|(?:define|declare)\b[^\n@]*@("[^"\n]*"|[-\w.$]+))', re.MULTILINE)
_PIECE: Final = re.compile(r'"[^"]*"|;[^\n]*|[{}]|^[ \t]*define\b', re.MULTILINE)
_SPACE: Final = re.compile(r"(?:\s|;[^\n]*)*")
_IN_FUNCTION: Final = re.compile(
    rf'(?:%[-\w.$"]+\s*=(?!\s*type\b)|(?:{"|".join(sorted(OPCODES | TAIL_MARKERS))})\b|[-\w.$]+:)'
)
_TOP_LEVEL: Final = "declare define source_filename target module attributes uselistorder uselistorder_bb".split()
_LLVM: Final = (
    "abs bitreverse bswap ceil copysign cos ctlz ctpop cttz exp exp2 exp10 fabs floor fma fmuladd fptosi.sat "
    "fptoui.sat fshl fshr log log10 log2 maximum maxnum memcpy memmove memset minimum minnum nearbyint pow powi rint "
    "round roundeven sadd.sat sin smax smin sqrt ssub.sat tanh trunc uadd.sat umax umin usub.sat vector.reduce.add "
    "vector.reduce.and vector.reduce.fadd vector.reduce.fmax vector.reduce.fmin vector.reduce.fmul vector.reduce.mul "
    "vector.reduce.or vector.reduce.smax vector.reduce.smin vector.reduce.umax vector.reduce.umin vector.reduce.xor "
    "matrix.multiply matrix.transpose matrix.column.major.load matrix.column.major.store"
).split()
"""Functions of LLVM that tensor programs call."""


def with_suggestion(message: str, text: str, offset: int) -> str:
    """A message of LLVM's parser, with a suggestion.

    Args:
        message: The message.
        text: What was parsed.
        offset: Where it is wrong.
    """
    if undefined := _UNDEFINED.fullmatch(message):
        names = _locals_at(text, offset) if undefined["sigil"] == "%" else _names(_GLOBAL, text)
        return message + did_you_mean(
            undefined["sigil"] + undefined["name"], [undefined["sigil"] + name for name in names]
        )
    if undefined := _INTRINSIC.fullmatch(message):
        return message + suggest_intrinsic(undefined["name"])
    word = _WORD.match(text, offset)
    if message == "expected instruction opcode":
        if text.startswith("}", offset):
            return "expected instruction opcode: the block before this '}' has no terminator"
        return message + (did_you_mean(word.group(), OPCODES) if word else "")
    if message == "expected type":
        return message + (did_you_mean(word.group(), TYPE_WORDS) if word else "")
    if message == "expected top-level entity":
        if text.startswith("}", offset):
            return "stray '}': no function is open here"
        return message + (did_you_mean(word.group(), _TOP_LEVEL) if word else "")
    return message


def suggest_intrinsic(name: str) -> str:
    """`; did you mean '...'?` for the name of an intrinsic, mangled or not; empty where none is near."""
    stems = [row.prefix + known for row in INTRINSICS for known in (row.name, *row.aliases)]
    stems += [f"llvm.{known}" for known in _LLVM]
    words = name.strip('"').split(".")
    for count in range(len(words), 1, -1):  # the part that is left out may be a suffix
        near = did_you_mean(".".join(words[:count]), stems, cutoff=0.85)
        if near:
            return near
    return ""


def root_cause(error: ParseError, source: Source) -> ParseError:
    """The root cause of a parse error: unbalanced braces before it, if there are any."""
    braces = _brace_error(source)
    if braces is None or braces.span is None:
        return error
    is_first = error.span is None or braces.span.start <= error.span.start or "undefined" in error.message
    return braces if is_first else error


def _brace_error(source: Source) -> ParseError | None:
    """The error in the braces of functions, None where they are balanced.

    An extra '}' ends a function early or is outside functions; one is missing where a function begins in another.
    """
    depth, name, text = 0, "", source.text
    for piece in _PIECE.finditer(text):
        token = piece.group().strip()
        if token == "define":
            if depth and name:
                message = f"function {name} has no end: a '}}' is missing before this"
                return ParseError(message, source.span(piece.end() - len(token)))
            match = _GLOBAL.match(text, piece.end() - len(token))
            name = f"@{match[2]}" if match else "@?"
        elif token == "{":
            depth += 1
        elif token == "}":
            depth -= 1
            if depth < 0:
                return ParseError("stray '}': no function is open here", source.span(piece.start()))
            following = _SPACE.match(text, piece.end())
            after = following.end() if following else piece.end()
            if depth == 0 and name and _IN_FUNCTION.match(text, after):
                note = Note("this is in no function", source.span(after))
                message = f"stray '}}': it ends {name}, and instructions follow"
                return ParseError(message, source.span(piece.start()), [note])
    return None


def _locals_at(text: str, offset: int) -> list[str]:
    """Names of the values and blocks of the function around a place."""
    start = max(text.rfind("\ndefine", 0, offset), 0)
    end = text.find("\n}", offset)
    body = text[start : end if end >= 0 else len(text)]
    header = body[: body.find("\n", 1)]
    return [*_names(_RESULT, body), *re.findall(r"%([-\w.$]+)", header)]


def _names(pattern: re.Pattern[str], text: str) -> list[str]:
    return [one or other for one, other in pattern.findall(text)]
