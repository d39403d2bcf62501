"""Verifies modules with LLVM's parser and verifier."""

from __future__ import annotations

import _thread
import contextlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tlx.diagnostics import Note, ParseError, Source, Span, TlxError, UsageError, VerifyError
from tlx.llvm.process import LLVMCrashError, LLVMRejectedError, llvm
from tlx.llvm.upgrade import upgrade_ir

if TYPE_CHECKING:
    from tlx.ir.functions import Function
    from tlx.ir.module import Item, Module

_NUL: Final = re.compile(r'"[^"]*"|;[^\n]*|\0')


def escape_nul(text: str) -> str:
    """The text with NUL characters replaced: llvmlite ends the text at the first one.

    LLVM reads NUL as white space, except in a string.
    """
    return _NUL.sub(_nul, text) if "\0" in text else text


def _nul(match: re.Match[str]) -> str:
    piece = match.group()
    return piece.replace("\0", "\\00" if piece[0] == '"' else " ")


_PLACE: Final = re.compile(r"<string>:(\d+):(\d+): error: (.*)")
_BUG: Final = "; this is a bug in TLX: please report it with the input"
_METADATA: Final = re.compile(r", ![\w.]+ !.*$")


@dataclass(frozen=True, slots=True)
class Rejection:
    """LLVM's reason for rejecting a text.

    Attributes:
        parsing: Whether parsing failed; else verification did.
        message: LLVM's message, without locations and quoted lines.
        offsets: Offsets in the text that LLVM points to, the main one first.
    """

    parsing: bool
    message: str
    offsets: tuple[int, ...] = ()


def check_text(
    text: str, source_name: str = "<string>", user_source: Source | None = None, stage: str | None = None
) -> None:
    """Have LLVM parse and verify a text.

    Args:
        text: LLVM assembly.
        source_name: What diagnostics call the text.
        user_source: The text as the user wrote it, if `text` is a copy with the same lines and columns.
        stage: The stage that wrote the text; None for the user's text.

    Raises:
        ParseError: LLVM cannot parse the text.
        VerifyError: LLVM's verifier rejects it.
        LLVMCrashError: LLVM crashed.
    """
    rejection = _verify_named(text, source_name)
    if rejection is None:
        return
    source = user_source or Source(source_name, text)
    error = _error(rejection, [source.span(offset) for offset in rejection.offsets], source_name, stage)
    raise error if stage is not None else _cause(error, source)


def check_module(module: Module, stage: str | None = None) -> None:
    """Have LLVM parse and verify a module; errors point into the text it was read from.

    Args:
        module: The module, changed or not.
        stage: The stage that changed it last, if any.

    Raises:
        ParseError: LLVM cannot parse it.
        VerifyError: LLVM's verifier rejects it.
        LLVMCrashError: LLVM crashed.
    """
    from tlx.ir.functions import DuplicateFunction

    name = module.source.name
    if (
        any(isinstance(item, DuplicateFunction) for item in module.items)
        and _verify_named(module.without_duplicates(), name) is None
    ):
        return
    text = str(module)
    rejection = _verify_named(text, name)
    if rejection is None:
        return
    user_spans = [span for offset in rejection.offsets if (span := user_span(module, offset))]
    if stage is None:
        raise _cause(_error(rejection, user_spans, name, None), module.source)
    lowered = Source(f"{name} after {stage}", text)
    error = _error(rejection, [lowered.span(offset) for offset in rejection.offsets], name, stage)
    error.notes.extend(Note("lowered from here", span) for span in user_spans)
    raise error


class DeferredVerification:
    """LLVM's verification of a module as it is now, which a thread waits for while the caller goes on and changes it.

    Args:
        module: The module.
    """

    def __init__(self, module: Module) -> None:
        self._text = str(module)
        self._accepted = False
        self._cancelled = threading.Event()
        self._running = threading.Lock()

    def start(self) -> None:
        """Start the thread; where no thread can be started, the caller waits.

        It is not part of the constructor, so that the caller can cancel a verification whose start is interrupted.
        """
        self._running.acquire()
        try:
            _thread.start_new_thread(self._verify, ())
        except RuntimeError:
            self._verify()

    def _verify(self) -> None:
        try:
            with contextlib.suppress(Exception):  # not accepted: who verifies the text again gets the error
                self._accepted = verify(self._text, self._cancelled) is None
        finally:
            self._running.release()

    def cancel(self) -> None:
        """End the verification: the next request to LLVM need not wait for it."""
        llvm().cancel(self._cancelled)

    def is_accepted(self) -> bool:
        """Wait for the verification; whether LLVM accepts the module, without a crash.

        The caller waits for a lock: `Thread.join` may raise `RuntimeError` or end early after several interrupts
        (Python 3.11).
        """
        with self._running:
            return self._accepted


def _cause(error: TlxError, source: Source) -> TlxError:
    from tlx.ir.parser.suggestions import root_cause

    return root_cause(error, source) if isinstance(error, ParseError) else error


def verify(text: str, cancelled: threading.Event | None = None) -> Rejection | None:
    """Have LLVM verify a text: None if it accepts the text.

    Spellings of older LLVMs that the current one cannot read are replaced in a copy with the same lines.

    Args:
        text: The text.
        cancelled: Identifies the request, to cancel it.

    Raises:
        LLVMCrashError: LLVM crashed.
        LLVMCancelledError: The request was cancelled.
    """
    text = escape_nul(text)
    try:
        llvm().ask("check", text, cancelled=cancelled)
    except LLVMRejectedError as rejected:
        upgraded = upgrade_ir(text) if rejected.kind == "parse" else text
        if upgraded == text:
            return _rejection(rejected, text)
        rejection = verify(upgraded, cancelled)
        return rejection and _moved(rejection, Source("", upgraded), Source("", text))
    return None


def _moved(rejection: Rejection, source: Source, original: Source) -> Rejection:
    """A rejection of a text, in another text with the same lines."""
    places = [source.location(offset) for offset in rejection.offsets]
    return replace(rejection, offsets=tuple(original.offset(*place) for place in places))


def _verify_named(text: str, name: str) -> Rejection | None:
    try:
        return verify(text)
    except LLVMCrashError as crash:
        message = "LLVM crashed while parsing or verifying the module, which is probably malformed"
        raise LLVMCrashError(f"{message}: {crash.message}", name=name) from None


def disassemble(bitcode: bytes, name: str) -> bytes:
    """The text of a module in bitcode.

    Raises:
        UsageError: LLVM cannot read the bitcode.
    """
    try:
        return llvm().ask("disassemble", bitcode)
    except LLVMRejectedError as rejected:
        message = rejected.message.removeprefix("LLVM bitcode parsing error\n")
        raise UsageError(f"invalid bitcode: {message}", name=name) from None
    except LLVMCrashError as crash:
        raise UsageError(f"invalid bitcode: {crash.message}", name=name) from None


def user_span(module: Module, offset: int) -> Span | None:
    """The source location of the text at `offset` of `str(module)`; None for text that the lowering added."""
    from tlx.ir.functions import DuplicateFunction, Function

    for item in module.items:
        length = len(str(item))
        if offset < length:
            if isinstance(item, DuplicateFunction):
                return item.span
            return _in_function(item, offset) if isinstance(item, Function) else _in_text(module, item, offset)
        offset -= length
    return None


def _in_text(module: Module, item: Item, offset: int) -> Span | None:
    start = module.source.text.find(str(item))
    return module.source.span(start + offset) if start >= 0 else None


def _in_function(function: Function, offset: int) -> Span | None:
    if offset < len(function.header):
        return _in_header(function, offset)
    offset -= len(function.header)
    for block in function.blocks:
        offset -= len(block.label)
        for instruction in block.instructions:
            inside = offset - len(instruction.lead)
            offset = inside - len(instruction.text)
            if offset >= 0:
                continue
            span = instruction.span
            if span is None or inside <= 0:
                return span
            written = span.source.text[span.start : span.end]
            if written.startswith(instruction.text[: inside + 1]):
                return span.source.span(span.start + inside)
            rest = instruction.text[inside:]  # what is before it, such as the name of an intrinsic, may have changed
            return span.source.span(span.end - len(rest)) if written.endswith(rest) else span
    return function.span


def _in_header(function: Function, offset: int) -> Span | None:
    """The place in the source if the header, which ends with the brace, is as it was there; else the whole header."""
    span = function.span
    if span is None:
        return None
    start = span.end + 1 - len(function.header)
    is_unchanged = span.source.text.startswith(function.header, start) if start >= 0 else False
    return span.source.span(start + offset) if is_unchanged else span


def _rejection(rejected: LLVMRejectedError, text: str) -> Rejection:
    message = rejected.message.strip()
    place = _PLACE.match(message)
    if rejected.kind == "parse":
        if not place:
            return Rejection(parsing=True, message=message)
        from tlx.ir.parser.suggestions import with_suggestion

        offset = _offset(text, int(place.group(1)), int(place.group(2)))
        return Rejection(True, with_suggestion(place.group(3), text, offset), (offset,))
    description, *quoted = _first_error(message.splitlines() or [message])
    return Rejection(False, description, tuple(_places(text, quoted)))


def _first_error(lines: list[str]) -> list[str]:
    """The first error of a message, which lists all: its description, then the lines that quote the module."""
    starts = [i for i, line in enumerate(lines) if not _quotes_ir(line)]
    return lines[starts[0] : starts[1] if len(starts) > 1 else None] if starts else lines


def _offset(text: str, line: int, column: int) -> int:
    """Offset of a line and column of LLVM, which counts columns in bytes."""
    source = Source("", text)
    before = source.line(line).encode(errors="surrogatepass")[: column - 1]
    return source.offset(line, len(before.decode(errors="ignore")) + 1)


def _quotes_ir(line: str) -> bool:
    """Whether a line of a verifier's message quotes the module."""
    return line.startswith(" ") or bool(re.match(r"(?:\S+ )?[%@!]\S+$|ptr @", line))


def _places(text: str, quoted: list[str]) -> Iterator[int]:
    """Offsets of the instructions and functions that an error quotes; the last one quoted is the culprit."""
    for line in reversed(quoted[:7]):
        place = _place_of(text, line)
        if place is not None:
            yield place


def _place_of(text: str, line: str) -> int | None:
    if match := re.match(r"ptr (@\S+)", line):
        pattern = rf"(?m)^[ \t]*(?:define|declare)\b[^\n]*?(?P<at>{re.escape(match.group(1))})[ \t]*\("
    elif line.startswith("  "):
        words = _METADATA.sub("", line).split()
        spelling = r"[ \t]+".join(map(re.escape, words))
        pattern = rf"(?m)^[ \t]*(?P<at>{spelling})"
        if not re.search(pattern, text) and len(words) > 1 and words[1] == "=":
            pattern = rf"(?m)^[ \t]*(?P<at>{re.escape(words[0])}[ \t]*=)"
    else:
        return None
    match = re.search(pattern, text)
    return match.start("at") if match else None


def _error(rejection: Rejection, spans: list[Span], name: str, stage: str | None) -> TlxError:
    kind = ParseError if rejection.parsing else VerifyError
    message = rejection.message
    if stage is not None:
        message = f"LLVM rejects the output of {stage}: {message}{_BUG}"
    error = kind(message, spans[0] if spans else None, name=None if spans else name)
    error.notes.extend(Note("see also", span) for span in spans[1:])
    return error
