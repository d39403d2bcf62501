"""Suggestions in error messages: the name that was probably meant, and the brace that is missing."""

from __future__ import annotations

import re
from typing import Final

from tlx.diagnostics import Note, ParseError, Source, did_you_mean
from tlx.intrinsics import INTRINSICS
from tlx.ir.instructions import OPCODES, TAIL_MARKERS
from tlx.ir.parser.operands import TYPE_WORDS

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
"""Intrinsics of LLVM that tensor programs call, for suggestions."""


def with_suggestion(message: str, text: str, offset: int) -> str:
    """Add a suggestion to a message of LLVM's parser.

    Args:
        message: The message.
        text: The text that was parsed.
        offset: Where the message points.
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
    """`; did you mean '...'?` for the name of an intrinsic, mangled or not; empty if no name is similar."""
    stems = [row.prefix + known for row in INTRINSICS for known in (row.name, *row.aliases)]
    stems += [f"llvm.{known}" for known in _LLVM]
    words = name.strip('"').split(".")
    for count in range(len(words), 1, -1):  # drop words from the end: they may be type suffixes
        near = did_you_mean(".".join(words[:count]), stems, cutoff=0.85)
        if near:
            return near
    return ""


def root_cause(error: ParseError, source: Source) -> ParseError:
    """The root cause of a parse error: unbalanced braces before it, or else the error itself."""
    braces = _brace_error(source)
    if braces is None or braces.span is None:
        return error
    is_first = error.span is None or braces.span.start <= error.span.start or "undefined" in error.message
    return braces if is_first else error


def _brace_error(source: Source) -> ParseError | None:
    """The first unbalanced brace of a function; None if all are balanced.

    An extra '}' ends a function early or is outside all functions; a '}' is missing if `define` is inside a function.
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
                note = Note("this instruction is outside all functions", source.span(after))
                message = f"stray '}}': it ends {name}, and instructions follow"
                return ParseError(message, source.span(piece.start()), [note])
    return None


def _locals_at(text: str, offset: int) -> list[str]:
    """Names of the values and blocks of the function around an offset."""
    start = max(text.rfind("\ndefine", 0, offset), 0)
    end = text.find("\n}", offset)
    body = text[start : end if end >= 0 else len(text)]
    header = body[: body.find("\n", 1)]
    return [*_names(_RESULT, body), *re.findall(r"%([-\w.$]+)", header)]


def _names(pattern: re.Pattern[str], text: str) -> list[str]:
    return [first or second for first, second in pattern.findall(text)]
