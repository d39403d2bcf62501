"""Reading and writing what users name on a command line: paths and `-`, text and binary, whole or not at all.

Text goes through without any translation of newlines. A file is written beside its final place and moved there when it
is complete: an error leaves no half-written file and no damage to one that was there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, TextIO

from tlx.diagnostics import UsageError

if TYPE_CHECKING:
    from tlx.openmp import Threads

_BITCODE: Final = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")  # raw, and inside the wrapper that Darwin uses
_ASSEMBLY: Final = ("", ".ll", ".bc")  # no front end is asked about these
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_CHUNK: Final = 1 << 20


def display_name(path: str) -> str:
    """What diagnostics call an input: the path, or `<stdin>`."""
    return "<stdin>" if path == "-" else path


def size(path: str) -> int:
    """Bytes in a file; 0 where that is not known before it is read."""
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
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"could not open input file '{display_name(path)}': {reason(error)}") from None
    except ValueError:  # a NUL in the path
        raise UsageError(f"could not open input file {path!r}: Invalid argument") from None


def read_ir(path: str, threads: Threads = "none") -> str:
    """The LLVM assembly in a file; bitcode is disassembled, what a front end reads is translated.

    Args:
        path: The file.
        threads: What runs at once what a front end's language has at once.

    Raises:
        UsageError: The file cannot be read, or is neither UTF-8 text nor bitcode that LLVM reads.
        TlxError: A front end finds it wrong.
    """
    data = read_bytes(path)
    if (translate := _translator(path)) is not None:
        return str(translate(decode(data, display_name(path), hint=""), display_name(path), threads))
    if data.startswith(_BITCODE):
        from tlx.judge import disassemble

        data = disassemble(data, display_name(path))
    return decode(data, display_name(path))


def ir_name(path: str) -> str:
    """What diagnostics call the LLVM assembly that `read_ir` gives."""
    return display_name(path) if _translator(path) is None else f"{path} (translated)"


def _translator(path: str) -> Callable[[str, str, Threads], object] | None:
    """What turns a file with such a name into LLVM assembly; None where it is one."""
    suffix = os.path.splitext(path)[1]  # noqa: PTH122 (a path with a NUL is a mistake that is named later)
    if suffix in _ASSEMBLY:
        return None
    from tlx.pipeline import front_ends

    return next((f.TRANSLATE for f in front_ends() if suffix in getattr(f, "SUFFIXES", ())), None)


def decode(data: bytes, name: str, *, hint: str = " (nor is the file bitcode)") -> str:
    """Bytes as UTF-8 text.

    Args:
        data: The bytes.
        name: What diagnostics call them.
        hint: What is said behind the message.

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


def write(path: str, data: str | bytes, *, force: bool = False) -> None:
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
    with _named_errors(path), opened_whole(Path(path)) as file:
        _write_chunks(file, data)


def check_writable(path: str) -> None:
    """See to it that a file can be written later; nothing is.

    Raises:
        UsageError: It cannot.
    """
    with _named_errors(path):
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path != "-" and (Path(path).is_file() or not Path(path).exists()):  # one that is there is replaced
            with tempfile.TemporaryFile(dir=Path(path).resolve().parent):
                pass


@contextlib.contextmanager
def _named_errors(path: str) -> Generator[None]:
    """What keeps an output file from being written, as an error that names it."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"could not open output file '{path}': {reason(error)}") from None
    except ValueError:
        raise UsageError(f"could not open output file {path!r}: Invalid argument") from None


@contextlib.contextmanager
def opened_whole(path: Path) -> Generator[BinaryIO]:
    """A file that appears at `path` when the block ends without an error, and never otherwise."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if path.exists() and not path.is_file():  # a pipe or a device: nothing to replace
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve()  # through a symbolic link, as any other program writes
    beside, handle = _new_file(path)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        with contextlib.suppress(FileNotFoundError):
            beside.chmod(stat.S_IMODE(path.stat().st_mode))
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def _new_file(path: Path) -> tuple[Path, int]:
    """A new file beside another one, with the permissions that the system gives new ones."""
    while True:
        beside = path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")
        with contextlib.suppress(FileExistsError):
            return beside, os.open(beside, _NEW, 0o666)


def reason(error: OSError) -> str:
    """What the system says about a failed call, without number and path."""
    return error.strerror or str(error)


def _write_standard_output(data: str | bytes, *, force: bool) -> None:
    try:
        output = _standard(sys.stdout)
        if isinstance(data, bytes) and output.isatty() and not force:
            raise UsageError("refusing to write binary output to a terminal; name a file by -o, or force it by -f")
        output.flush()
        _write_chunks(output.buffer, data)
        output.flush()
    except OSError as error:
        abandon_standard_output()
        if isinstance(error, BrokenPipeError):
            raise
        raise UsageError(f"could not write to standard output: {reason(error)}") from None


def abandon_standard_output() -> None:
    """Let what is still in the buffers of standard output go nowhere: Python would fail to write it once more."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)


def _standard(stream: TextIO | None) -> TextIO:
    """A standard stream; Python has none where the process was started with a closed one."""
    if stream is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return stream


def _write_chunks(file: BinaryIO, data: str | bytes) -> None:
    """Write without a second copy of a large text."""
    for start in range(0, len(data), _CHUNK):
        piece = data[start : start + _CHUNK]
        file.write(piece.encode() if isinstance(piece, str) else piece)
