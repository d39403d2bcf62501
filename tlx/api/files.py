"""Reading and writing files named on a command line: paths and `-`, text and binary.

Newlines are not translated. A file is written next to its final place and moved there when it is complete: an error
leaves no half-written file and does not damage an existing one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TextIO

from tlx.diagnostics import UsageError

if TYPE_CHECKING:
    from tlx.llvm.openmp import Threads
    from tlx.target.grid_unit import GridUnit

_BITCODE: Final = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")  # raw, and inside the wrapper that Darwin uses
_ASSEMBLY: Final = ("", ".ll", ".bc")  # extensions of LLVM IR alone
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_LLVM: Final = ("ll", "ir")  # LLVM assembly and bitcode for `-x`; clang has the second
_SHARED: Final = (".ir",)  # extensions of LLVM IR and of front ends' languages: the first word of the text decides
_FIRST: Final = re.compile(r"(?:\s|;[^\n]*+)*+(\w+|.)?", re.ASCII)
_TOP_LEVEL: Final = frozenset(
    "declare define source_filename target module attributes uselistorder uselistorder_bb @ % ! $ ^".split()
)
_CHUNK: Final = 1 << 20
EXHAUSTED: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writing that tell about the disk."""


def user_cache_directory() -> Path:
    """`tlx` in the user's cache: in `XDG_CACHE_HOME` if that is an absolute path, else in `~/.cache`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path(os.path.expanduser("~")) / ".cache") / "tlx"  # noqa: PTH111 (Path.home fails without a home)


def display_name(path: str) -> str:
    """The name of an input in diagnostics: the path, or `<stdin>`."""
    return "<stdin>" if path == "-" else path


def file_size(path: str) -> int:
    """Size of a file in bytes; 0 if it is only known once the file has been read."""
    try:
        return 0 if path == "-" else Path(path).stat().st_size
    except (OSError, ValueError):
        return 0


def read_bytes(path: str) -> bytes:
    """The contents of a file, or of standard input for `-`.

    Raises:
        UsageError: There is no such file, or it cannot be read.
    """
    try:
        if path == "-":
            return _standard(sys.stdin).buffer.read()
        with open(path, "rb") as file:  # noqa: PTH123 (Path("") is the working directory)
            return file.read()
    except OSError as error:
        raise UsageError(f"could not open input file '{display_name(path)}': {os_error_text(error)}") from None
    except ValueError:  # a NUL in the path
        raise UsageError(f"could not open input file {path!r}: Invalid argument") from None


@dataclass(frozen=True, slots=True)
class InputFormat:
    """How an input is read.

    Attributes:
        language: Its language: `ll` or `ir` for LLVM IR, or the language of a front end; empty to go by the file's
            extension.
        std: Version of a front end's language; empty for its default.
    """

    language: str = ""
    std: str = ""


FORMAT_BY_NAME: Final = InputFormat()


def read_ir(path: str, threads: Threads | GridUnit = "none", input_format: InputFormat = FORMAT_BY_NAME) -> str:
    """The LLVM assembly in a file; bitcode is disassembled, languages of front ends are translated.

    Args:
        path: The file.
        threads: What runs the work-groups of a front end's language.
        input_format: The file's language.

    Raises:
        UsageError: The file cannot be read, is neither UTF-8 text nor valid bitcode, or the language is unknown.
        TlxError: A front end rejects it.
    """
    return ir_of(read_bytes(path), path, threads, input_format)


def ir_of(
    data: bytes, path: str, threads: Threads | GridUnit = "none", input_format: InputFormat = FORMAT_BY_NAME
) -> str:
    """The LLVM assembly in the contents of a file; see `read_ir`.

    Raises:
        UsageError: They are neither UTF-8 text nor valid bitcode, or the language is unknown.
        TlxError: A front end rejects them.
    """
    name = display_name(path)
    if (translated := translate(data, path, threads, input_format)) is not None:
        return str(translated)
    if data.startswith(_BITCODE):
        from tlx.llvm.verification import disassemble

        data = disassemble(data, name)
    text = decode(data, name)
    _check_assembly(text, name)
    return text


def assembly_of(
    text: str, name: str, threads: Threads | GridUnit = "none", input_format: InputFormat = FORMAT_BY_NAME
) -> str:
    """The LLVM assembly of a text: the text itself unless `input_format` names a front end's language.

    Raises:
        UsageError: The language is unknown, or the text is clearly in another one.
        TlxError: A front end rejects it.
    """
    if (front_end := _front_end("-", b"", input_format)) is not None:
        if hasattr(front_end, "READ"):
            return str(_call_front_end(front_end, "READ", text.encode(), name))
        return str(_translated(front_end, text, name, threads, input_format))
    _check_assembly(text, name)
    return text


def translate(
    data: bytes, path: str, threads: Threads | GridUnit = "none", input_format: InputFormat = FORMAT_BY_NAME
) -> object | None:
    """A front end's translation of the contents of a file; None if they are LLVM IR.

    Its `str` is LLVM assembly. If it is a `Module`, its instructions have spans in the file's text.

    Raises:
        UsageError: The contents are not UTF-8 text where they should be, or the language is unknown.
        TlxError: The front end rejects them.
    """
    front_end, name = _front_end(path, data, input_format), display_name(path)
    if front_end is None:
        return None
    if hasattr(front_end, "READ"):
        return _call_front_end(front_end, "READ", data, name)
    return _translated(front_end, decode(data, name, hint=""), name, threads, input_format)


def translation_of_other_language(
    language: str, data: bytes, path: str, threads: Threads | GridUnit, input_format: InputFormat = FORMAT_BY_NAME
) -> str | None:
    """The TLX IR of a file in another language, or of a model; None if the file is in this language, or is LLVM IR.

    Raises:
        UsageError: The language is unknown.
        TlxError: The front end rejects the file.
    """
    front_end = _front_end(path, data, input_format)
    if front_end is None or language == front_end.LANGUAGE:
        return None
    return str(translate(data, path, threads, input_format))


def ir_name(path: str, input_format: InputFormat = FORMAT_BY_NAME) -> str:
    """The name in diagnostics of the LLVM assembly that `read_ir` returns."""
    name = display_name(path)
    return name if _front_end(path, None, input_format) is None else f"{name} (translated)"


def check_translatable(text: str, name: str, language: str) -> None:
    """Reject a text that is clearly LLVM assembly where another language is expected.

    Raises:
        UsageError: It is.
    """
    word = _first_word(text)
    if word.isidentifier() and word in _TOP_LEVEL:
        raise UsageError(f"this is LLVM IR, not {language}", name=name)


def _first_word(text: str) -> str:
    """The first word or character after spaces and comments, which have one syntax in all languages."""
    match = _FIRST.match(text)
    return (match and match[1]) or ""


def _front_end(path: str, data: bytes | None, input_format: InputFormat) -> ModuleType | None:
    """The front end that turns a file into LLVM assembly; None if it is LLVM IR.

    Args:
        path: The file; `-` for an input without an extension.
        data: Its contents; None to read them if the extension is not enough.
        input_format: The user's choice of language.

    Raises:
        UsageError: The language or its version is unknown.
    """
    suffix = os.path.splitext(path)[1]  # noqa: PTH122 (a path with a NUL is reported later)
    if suffix in _ASSEMBLY and input_format == FORMAT_BY_NAME:
        return None
    from tlx.lower.pipeline import front_ends

    translators = [f for f in front_ends() if hasattr(f, "LANGUAGE")]
    if input_format.std and all(input_format.std not in f.STANDARDS for f in translators):
        known = "; ".join(f"{', '.join(f.STANDARDS)} of {f.TITLE}" for f in translators if f.STANDARDS)
        raise UsageError(f"unknown version '{input_format.std}'; choose from {known}")
    if input_format.language:
        front_end = next((f for f in translators if input_format.language == f.LANGUAGE), None)
        if front_end is None and input_format.language not in _LLVM:
            known = ", ".join([*_LLVM, *(f.LANGUAGE for f in translators)])
            raise UsageError(f"unknown language '{input_format.language}'; choose from {known}")
    elif suffix == "":
        front_end = next((f for f in translators if input_format.std in f.STANDARDS), None)
    else:
        front_end = next((f for f in translators if suffix in f.SUFFIXES), None)
        if front_end is not None and suffix in _SHARED and _is_llvm(_first_bytes(path) if data is None else data):
            front_end = None
    if input_format.std and (front_end is None or input_format.std not in front_end.STANDARDS):
        language = "LLVM IR" if front_end is None else front_end.TITLE
        raise UsageError(f"there is no version '{input_format.std}' of {language}", name=display_name(path))
    return front_end


def _is_llvm(data: bytes) -> bool:
    return data.startswith(_BITCODE) or _first_word(data.decode(errors="replace")) in _TOP_LEVEL


def _first_bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError):
        return b""


def _translated(
    front_end: ModuleType, text: str, name: str, threads: Threads | GridUnit, input_format: InputFormat
) -> object:
    check_translatable(text, name, front_end.TITLE)
    return _call_front_end(front_end, "TRANSLATE", text, name, threads, input_format.std or front_end.STANDARDS[-1])


def _call_front_end(front_end: ModuleType, function: str, *arguments: object) -> Any:
    from tlx.lower.pipeline import call_front_end

    return call_front_end(front_end, function, *arguments)


def _check_assembly(text: str, name: str) -> None:
    """Reject a text that is not LLVM assembly, but clearly a front end's language.

    Raises:
        UsageError: It is.
    """
    word = _first_word(text)
    if not word.isalpha() or word in _TOP_LEVEL:
        return
    from tlx.lower.pipeline import front_ends

    for front_end in front_ends():
        if word in getattr(front_end, "OPENINGS", ()):
            how = f"read it with -x {front_end.LANGUAGE}, or call the file *{front_end.SUFFIXES[0]}"
            raise UsageError(f"this is {front_end.TITLE}, not LLVM IR: {how}", name=name)


def decode(data: bytes, name: str, *, hint: str = " (nor is the file bitcode)") -> str:
    """Bytes as UTF-8 text.

    Args:
        data: The bytes.
        name: Their name in diagnostics.
        hint: Text appended to the message.

    Raises:
        UsageError: They are not UTF-8; the message says where.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        message = f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8 text{hint}"
        raise UsageError(message, name=f"{name}:{line}:{column}") from None


def write_output(path: str, data: str | bytes, *, force: bool = False) -> None:
    """Write a whole file, or to standard output for `-`.

    Args:
        path: Where to; an existing file is replaced once the new contents are complete.
        data: Text, written as UTF-8, or binary.
        force: Write binary data to a terminal.

    Raises:
        UsageError: The file cannot be written, or binary data would go to a terminal.
    """
    if path == "-":
        _write_standard_output(data, force=force)
        return
    with _named_errors(path), atomic_file(Path(path)) as file:
        _write_in_chunks(file, data)


def check_writable(path: str) -> None:
    """Check that a file can be written later, without writing it.

    Raises:
        UsageError: It cannot.
    """
    from tempfile import TemporaryFile

    with _named_errors(path):
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path != "-" and (Path(path).is_file() or not Path(path).exists()):  # an existing file is replaced
            with TemporaryFile(dir=_resolve_output(Path(path)).parent):
                pass


@contextlib.contextmanager
def _named_errors(path: str) -> Generator[None]:
    """Turns a failure to write an output file into an error that names the file."""
    try:
        yield
    except OSError as error:
        what = "write" if error.errno in EXHAUSTED else "open"
        raise UsageError(f"could not {what} output file '{path}': {os_error_text(error)}") from None
    except ValueError:
        raise UsageError(f"could not open output file {path!r}: Invalid argument") from None


@contextlib.contextmanager
def atomic_file(path: Path) -> Generator[BinaryIO]:
    """A file that appears at `path` when the block ends without an error, and never otherwise.

    Other processes may create, replace or remove the file meanwhile.
    """
    mode = _file_mode(path)
    if mode is not None and stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if mode is not None and not stat.S_ISREG(mode):  # a pipe or a device
        with path.open("wb") as file:
            yield file
        return
    path = _resolve_output(path)
    temporary, handle = _new_file(path)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        mode = _file_mode(path)
        if mode is not None:
            temporary.chmod(stat.S_IMODE(mode))
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _file_mode(path: Path) -> int | None:
    """The type and the permissions of a file; None if there is none."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _resolve_output(path: Path) -> Path:
    """The file that a path leads to through symbolic links, which may be replaced or created.

    Raises:
        OSError: The links form a loop, or the file may not be written.
    """
    path = Path(os.path.realpath(path))  # `Path.resolve` raises another error for a loop
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    # Replacing a file takes the permission of its folder alone, so its own is checked. The attempt tells a file that
    # another process has just removed from one that may not be written; `os.access` does not.
    try:
        os.close(os.open(path, os.O_WRONLY))
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno != errno.ETXTBSY:  # a program that runs can be replaced, but not written
            raise
    return path


def _new_file(path: Path) -> tuple[Path, int]:
    """A new file in the folder of another one, with default permissions; returns its path and descriptor."""
    while True:
        temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")
        with contextlib.suppress(FileExistsError):
            return temporary, os.open(temporary, _NEW, 0o666)


def os_error_text(error: OSError) -> str:
    """The system's message about a failed call, without number and path."""
    return error.strerror or str(error)


def _write_standard_output(data: str | bytes, *, force: bool) -> None:
    try:
        output = _standard(sys.stdout)
        if isinstance(data, bytes) and output.isatty() and not force:
            raise UsageError("refusing to write binary output to a terminal; name a file with -o, or force it with -f")
        output.flush()
        _write_in_chunks(output.buffer, data)
        output.flush()
    except OSError as error:
        abandon_standard_output()
        if isinstance(error, BrokenPipeError):
            raise
        raise UsageError(f"could not write to standard output: {os_error_text(error)}") from None


def abandon_standard_output() -> None:
    """Discard what is left in the buffers of standard output: Python would fail again when flushing it."""
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)


def _standard(stream: TextIO | None) -> TextIO:
    """A standard stream; Python has none where the process was started with a closed one."""
    if stream is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return stream


def _write_in_chunks(file: BinaryIO, data: str | bytes) -> None:
    """Write without a second copy of a large text."""
    for start in range(0, len(data), _CHUNK):
        chunk = data[start : start + _CHUNK]
        file.write(chunk.encode() if isinstance(chunk, str) else chunk)
