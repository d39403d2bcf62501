"""The steps of `tlx-cc` and `tlx-c++`.

    for each source     does it use tensors?                  clang -E
      that does         LLVM IR                               clang -S -emit-llvm
                        lowered                               TLX
    at last             the command line itself, with the     clang
                        lowered modules in place of sources

The last step writes what `-c`, `-S`, `-emit-llvm`, `-o` or linking asks for, under the names that it would have
anyway. A command line without tensors is clang's alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NoReturn

from tlx.cli.driver.arguments import INCLUDING, SOURCES, CommandArgument, Role, expanded, parse, words_of
from tlx.cli.driver.clang import (
    MOST_BYTES,
    NAMES,
    VARIABLE,
    Clang,
    SignalledError,
    end_by,
    exit_status,
    fatal_signals,
    find_clang,
)

if TYPE_CHECKING:
    from tlx.cli.driver.locations import Message
    from tlx.cli.driver.settings import Settings
    from tlx.cli.driver.source import SourceFile

_OPTION: Final = "--tlx-"
_CLANG: Final = f"{_OPTION}clang="
_NATIVE: Final = ("-march=native", "-mcpu=native")
_UNUSED: Final = "-Qunused-arguments"
_FRONT_ENDS: Final = "frontends"
_TEXT: Final = {"encoding": "utf-8", "errors": "surrogateescape"}


def run_driver(name: str, *, cxx: bool) -> NoReturn:
    """Run the driver with the arguments of this process, and end the process."""
    words = expanded(sys.argv[1:])
    own = [word for word in words if word.startswith(_OPTION)]
    words = [word for word in words if not word.startswith(_OPTION)]
    try:
        with fatal_signals():
            status = _run(name, words, own, cxx=cxx)
    except SignalledError as error:
        end_by(error.number)
    except Exception as error:  # noqa: BLE001 (a user must never see a traceback)
        from tlx.cli.program import report

        report(error, name)
        status = 1
    sys.exit(status)


def _run(name: str, words: list[str], own: list[str], *, cxx: bool) -> int:
    requested = next((word.removeprefix(_CLANG) for word in reversed(own) if word.startswith(_CLANG)), "")
    settings = None
    if any(not word.startswith(_CLANG) for word in own) and (settings := _settings(own, name)) is None:
        return 1
    requested = requested or os.environ.get(VARIABLE, "")
    path = find_clang(requested)
    if path is None:
        what = (
            f"there is no '{requested}'"
            if requested
            else f"neither {NAMES[0]} nor {NAMES[1]} to {NAMES[-1]} is on PATH"
        )
        return _fail(name, f"{what}: name a clang with {VARIABLE} or {_CLANG}PATH")
    clang = Clang(path, cxx=cxx)
    arguments = parse(words, cxx=cxx)
    sources = [a for a in arguments if a.role is Role.INPUT and a.language in SOURCES]
    include = _include_options() if any(a.role is Role.INPUT and a.language in INCLUDING for a in arguments) else []
    if not sources or any(a.role is Role.NO_CODE for a in arguments):
        clang.become([*include, *words])
    from tempfile import TemporaryDirectory

    with (
        TemporaryDirectory(prefix=f"{name}-", ignore_cleanup_errors=True) as folder,
        _dependency_options() as dependencies,
    ):
        return _compile(name, clang, words, arguments, sources, include, settings, own, folder, dependencies)


def _settings(own: list[str], name: str) -> Settings | None:
    """The driver's own options; None after an error, which is printed."""
    from tlx.cli.driver.settings import parse_settings
    from tlx.diagnostics import TlxError

    try:
        return parse_settings(own, name)
    except TlxError as error:
        _fail(name, error.message)
        return None


def _include_options() -> list[str]:
    """Options for the folders of front ends' headers, which come after all others."""
    root = os.path.join(os.path.dirname(sys.modules["tlx"].__file__ or ""), _FRONT_ENDS)  # noqa: PTH118, PTH120 (quicker)
    folders = sorted(entry.path for entry in os.scandir(root) if entry.is_dir())
    with_headers = [f for f in folders if any(name.endswith(".h") for name in os.listdir(f))]  # noqa: PTH208
    return [word for folder in with_headers for word in ("-idirafter", os.path.realpath(folder))]


def _compile(
    name: str,
    clang: Clang,
    words: list[str],
    arguments: list[CommandArgument],
    sources: list[CommandArgument],
    include: list[str],
    settings: Settings | None,
    own: list[str],
    folder: str,
    dependencies: list[str],
) -> int:
    from tlx.cli.driver.source import SourceFile

    text = sys.stdin.buffer.read() if any(a.value == "-" for a in sources) else None
    lowered: dict[int, str] = {}
    remarks: list[Message] = []
    for number, argument in enumerate(sources):
        source = SourceFile(clang, argument, arguments, include, folder, text if argument.value == "-" else None)
        if not source.uses_tensors():
            continue
        settings = settings or _settings(own, name)
        assert settings is not None
        status, module, said = _lowered(name, source, settings, f"{folder}{os.sep}{number}", dependencies)
        if status:
            return status
        if module:
            lowered[id(argument)] = module
            remarks += said
    if settings is not None and settings.remarks is not None and lowered:
        from tlx.cli.driver.lowering import write_remarks

        write_remarks(settings.remarks, remarks)
    if not lowered and text is None and sum(map(len, words)) < MOST_BYTES:
        _remove(folder)
        clang.become([*include, *words])
    database = f"{folder}{os.sep}database" if lowered and any(a.role is Role.DATABASE for a in arguments) else ""
    last = list(_last_words(arguments, lowered, database))
    has_source = any(a.role is Role.INPUT and a.language in INCLUDING and id(a) not in lowered for a in arguments)
    if lowered:
        last.append(_UNUSED)
    status = clang.run([*(include if has_source or database else []), *last], folder, text=text).returncode
    if database:
        _write_entries(arguments, lowered, database)
    return exit_status(status)


def _lowered(
    name: str, source: SourceFile, settings: Settings, folder: str, dependencies: list[str]
) -> tuple[int, str, list[Message]]:
    """Exit status, the file of the lowered module of a source, and remarks; no file without tensor operations."""
    names = [] if source.argument.language == "ir" else source.name_options()
    dependencies += names
    done = False
    try:
        result = _lowered_with_names(name, source, settings, folder, names)
        done = not result[0]
    finally:
        if not done:
            _remove_dependencies(names)
    return result


def _lowered_with_names(
    name: str, source: SourceFile, settings: Settings, folder: str, names: Sequence[str]
) -> tuple[int, str, list[Message]]:
    from pathlib import Path

    from tlx.cli.driver.lowering import lower_source, write_remarks

    stem = Path(source.argument.value).stem
    Path(folder).mkdir()
    raw, lowered = Path(folder, f"{stem}.in.ll"), Path(folder, f"{stem}.ll")
    said = b""
    if (module := source.assembly()) is None:
        status, said = source.compile(str(raw), names)
        if status:
            _say(said)
            return exit_status(status), "", []
        module = raw.read_text(**_TEXT)

    def locate() -> str:
        if source.argument.language == "ir":
            return ""
        source.compile(str(raw), (), ("-gline-tables-only",))
        return raw.read_text(**_TEXT)

    is_native = any(word in _NATIVE for word in words_of(source.arguments))
    outcome = lower_source(module, source.argument.value, name, settings, is_native=is_native, locate=locate)
    if outcome.text is None and not outcome.failed:
        return 0, "", []  # clang compiles it again, and says the same
    _say(said + "".join(f"{message.render()}\n" for message in outcome.messages).encode())
    if outcome.failed:
        return 1, "", []
    if settings.save_remarks:
        write_remarks(source.remarks_file(), outcome.remarks)
    lowered.write_text(outcome.text or "", **_TEXT)
    return 0, str(lowered), outcome.remarks


def _say(text: bytes) -> None:
    sys.stderr.flush()
    sys.stderr.buffer.write(text)
    sys.stderr.buffer.flush()


@contextmanager
def _dependency_options() -> Generator[list[str]]:
    """A list for options that name dependency files: a signal removes the files, as the output is never written."""
    options: list[str] = []
    try:
        yield options
    except SignalledError:
        _remove_dependencies(options)
        raise


def _remove_dependencies(options: Sequence[str]) -> None:
    """Remove the dependency files of sources that failed, as clang does."""
    from contextlib import suppress
    from itertools import pairwise

    for word, value in pairwise(options):
        if word == "-MF" and value != "-":
            with suppress(OSError):
                os.unlink(value)  # noqa: PTH108


def _write_entries(arguments: list[CommandArgument], lowered: dict[int, str], database: str) -> None:
    """Write clang's entries of a compilation database to the file of `-MJ`, with sources for the lowered modules."""
    from json import dumps
    from pathlib import Path

    from tlx.api.files import write_output

    file = next(a.value for a in reversed(arguments) if a.role is Role.DATABASE)
    text = Path(database).read_text(**_TEXT).replace(f"{dumps(_UNUSED)}, ", "").replace(f", {dumps(_UNUSED)}", "")
    for argument in arguments:
        module = lowered.get(id(argument))
        if module is None:
            continue
        lines = text.splitlines(keepends=True)
        for number, line in enumerate(lines):
            if dumps(module) in line:
                as_source = line.replace(dumps(module), dumps(argument.value))
                lines[number] = as_source.replace('"-xir"', dumps(f"-x{argument.language}"))
        text = "".join(lines)
    write_output(file, text.encode(**_TEXT))


def _last_words(arguments: list[CommandArgument], lowered: dict[int, str], database: str) -> Iterator[str]:
    """The command line with lowered modules in place of their sources, and another file for `-MJ` if there is one."""
    reads_source = any(a.role is Role.INPUT and a.language in INCLUDING and id(a) not in lowered for a in arguments)
    stated = current = "none"  # by the command line, and by the words so far
    for argument in arguments:
        if argument.role is Role.LANGUAGE:
            stated = argument.value
        elif argument.role is Role.INPUT:
            file = lowered.get(id(argument))
            language = stated if file is None else "ir"
            yield from () if language == current else ("-x", language)
            yield file or argument.value
            current = language
        elif argument.role is Role.DATABASE and database:
            yield from ("-MJ", database)
        elif argument.role not in (Role.DEPENDENCIES, Role.DEPENDENCY_NAME) or reads_source:
            yield from argument.words


def _remove(folder: str) -> None:
    """Remove the folder of temporary files before clang takes the place of this process."""
    from shutil import rmtree

    rmtree(folder, ignore_errors=True)


def _fail(name: str, message: str) -> int:
    print(f"{name}: error: {message}", file=sys.stderr)  # noqa: T201
    return 1
