"""A source file: whether it uses tensors, its LLVM IR, and its dependency file.

A C or C++ file uses tensors if it includes `tlx.h`, or has matrix types under `-fenable-matrix`; LLVM IR, if it has
their functions.

    clang -E           which files does it include?
    clang -S -emit-llvm, with the options of the command line but for
        -O2, -O3       -O1: clang optimises the lowered module in full, and vectorises and unrolls its loops only once
        -MD, -MF ...   the names that clang itself gives to the dependency file and its target
        sanitizers, profiles and -fenable-matrix: LLVM would expand matrices, or instrument twice. Its passes run
        in a second call, without these options
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tlx.cli.driver.arguments import SOURCES, CommandArgument, Role, split, words_of
from tlx.cli.driver.clang import Clang

_IR_MARKERS: Final = (b"llvm.tensor.", b"llvm.vector.totensor", b"tensor_", b"llvm.matrix.")
_COVERAGE: Final = ("-coverage-notes-file", "-coverage-data-file")
_RECORD: Final = "-fsave-optimization-record"
_RECORD_FILE: Final = "-opt-record-file"
_REMARKS: Final = ".remarks"
_MATRIX_MARKER: Final = b"matrix_type"
_HEADER: Final = re.compile(rb'(?m)^#(?:line)? \d+ "(?:[^"\n]*[/\\])?tlx\.h"')
_BITCODE: Final = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
_NO_PASSES: Final = ("-Xclang", "-disable-llvm-passes")
_PASSES: Final = (Role.MATRIX, Role.INSTRUMENT)
"""Options that change what LLVM's passes do."""
_KEPT_LEVELS: Final = ("0", "1", "g")
_NOT_VECTORISED: Final = ("-fno-vectorize", "-fno-slp-vectorize")
_LEVELS: Final = {"fast": ("-O1", "-ffast-math"), "s": ("-Os", *_NOT_VECTORISED), "z": ("-Oz", *_NOT_VECTORISED)}
"""The level of the first step, where it is neither the command line's nor `-O1`."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source of a command line.

    Attributes:
        clang: The clang.
        argument: The file and its language.
        arguments: All of the command line.
        include: Options for the folder of `tlx.h`.
        folder: A folder for temporary files.
        text: The contents, if they are on standard input.
    """

    clang: Clang
    argument: CommandArgument
    arguments: Sequence[CommandArgument]
    include: Sequence[str]
    folder: str
    text: bytes | None = None

    def uses_tensors(self) -> bool:
        """Whether it might use tensors; False as well for a source that clang cannot read."""
        if self.argument.language == "ir":
            data = self.text if self.text is not None else _contents(self.argument.value)
            return any(marker in data for marker in _IR_MARKERS)
        words = [*self._front_words(), "-w", "-E", *self._input()]
        done = self.clang.run(words, self.folder, text=self.text, out=True, err=True)
        has_matrices = any(argument.role is Role.MATRIX for argument in self.arguments)
        return bool(_HEADER.search(done.stdout)) or (has_matrices and _MATRIX_MARKER in done.stdout)

    def assembly(self) -> str | None:
        """The text of a source that is LLVM assembly; None for others."""
        if self.argument.language != "ir":
            return None
        data = self.text if self.text is not None else _contents(self.argument.value)
        return None if data.startswith(_BITCODE) else data.decode(errors="surrogateescape")

    def compile(self, file: str, names: Sequence[str], extra: Sequence[str] = ()) -> tuple[int, bytes]:
        """Write its LLVM assembly.

        Args:
            file: Where to.
            names: See `name_options`.
            extra: Further options.

        Returns:
            clang's exit status, and its diagnostics.
        """
        colour = ["-fcolor-diagnostics"] if os.isatty(2) else []
        written = ["-Qunused-arguments", "-S", "-emit-llvm", "-o", file]
        is_ir = self.argument.language == "ir"
        two_calls = not is_ir and any(argument.role in _PASSES for argument in self.arguments)
        passes = _NO_PASSES if two_calls or is_ir else ()
        words = [*colour, *self._front_words(), *self._level(), *passes, *names, *extra, *written]
        done = self.clang.run([*words, *self._input()], self.folder, text=self.text, err=True)
        if done.returncode or not two_calls or self._level() == ["-O0"]:
            return done.returncode, done.stderr
        others = words_of(argument for argument in self.arguments if argument.role is Role.OTHER)
        again = self.clang.run([*others, *self._level(), *written, "-x", "ir", file], self.folder, err=True)
        return again.returncode, done.stderr + again.stderr

    def name_options(self) -> list[str]:
        """Options for the files that are written besides the output, if any are, by the names that clang gives them.

        They follow from `-o`, and from how many inputs there are:

            clang -### -MMD -c a.c -o x/a.o   ->   clang -cc1 ... -dependency-file x/a.d -MT x/a.o ... a.c
        """
        if not any(a.role in (Role.DEPENDENCIES, Role.DEPENDENCY_NAME, Role.INSTRUMENT) for a in self.arguments):
            return []
        words = self._first_phase()
        return [*_dependency_words(words), *_coverage_words(words)]

    def remarks_file(self) -> str:
        """The file for remarks, beside the output: that of `-fsave-optimization-record`, with another ending."""
        words = self._first_phase(_RECORD)
        record = next((value for word, value in pairwise(words) if word == _RECORD_FILE), self.argument.value)
        name, ending = os.path.splitext(record)  # noqa: PTH122
        return f"{name.removesuffix('.opt') if ending == '.yaml' else name}{_REMARKS}"

    def _first_phase(self, *extra: str) -> list[str]:
        """The command that clang would compile the source by; empty if there is none."""
        stated = words_of(a for a in self.arguments if not (extra and a.role is Role.LAST))
        done = self.clang.run(["-###", *extra, *stated], self.folder, err=True, text=b"")
        commands = [split(line) for line in done.stderr.decode(errors="surrogateescape").splitlines()]
        return next((words for words in commands if "-cc1" in words and words[-1] == self.argument.value), list[str]())

    def _front_words(self) -> list[str]:
        return [*words_of(a for a in self.arguments if a.role in (Role.OTHER, *_PASSES)), *self.include]

    def _level(self) -> list[str]:
        level = next((a.value.lstrip("=") for a in reversed(self.arguments) if a.role is Role.LEVEL), "0")
        return [f"-O{level}"] if level in _KEPT_LEVELS else [*_LEVELS.get(level, ("-O1",))]

    def _input(self) -> list[str]:
        assert self.argument.language in SOURCES
        return ["-x", self.argument.language, self.argument.value]


def _dependency_words(words: Sequence[str]) -> list[str]:
    """Options of clang for the dependency file of a command of its first phase."""
    if "-dependency-file" not in words:
        return []
    result = ["-MD" if "-sys-header-deps" in words else "-MMD"]
    result += [word for word in words if word in ("-MP", "-MG", "-MV")]
    for word, value in pairwise(words):
        if word in ("-dependency-file", "-MT"):
            result += ["-MF" if word == "-dependency-file" else word, value]
    return result


def _coverage_words(words: Sequence[str]) -> list[str]:
    """Options of clang for the files of coverage: their names are written into the code."""
    result: list[str] = []
    for word, value in pairwise(words):
        if word.startswith(_COVERAGE):
            result += ["-Xclang", word, *([] if "=" in word else ["-Xclang", value])]
    return result


def _contents(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (quicker)
            return file.read()
    except (OSError, ValueError):
        return b""
