"""Command lines of clang: the table of the options that the driver distinguishes, and parsing by it.

    -c -o a.o -I include -x c a.txt   ->   (-c) (-o a.o) (-I include) (-x c) (a.txt)
                                           PHASE OUTPUT  OTHER        LANGUAGE INPUT: c

An option that is not in the table is passed on by every step as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Final


class Role(Enum):
    """What an argument means to the driver."""

    INPUT = auto()
    OTHER = auto()
    """An option for all steps."""
    OUTPUT = auto()
    LANGUAGE = auto()
    PHASE = auto()
    """`-c` or `-S`: what clang writes, which is the last step's business."""
    EMIT_LLVM = auto()
    NO_CODE = auto()
    """clang compiles nothing, and runs alone."""
    DEPENDENCIES = auto()
    """Dependency files, which the step that reads the source writes."""
    DEPENDENCY_NAME = auto()
    """Their names."""
    DATABASE = auto()
    """The file for entries of a compilation database, which the last step writes."""
    LEVEL = auto()
    MATRIX = auto()
    INSTRUMENT = auto()
    """LLVM instruments the code, which it must do once: after the lowering."""
    LAST = auto()
    """An option for the last step, which writes what is asked for."""


@dataclass(frozen=True, slots=True)
class CommandArgument:
    """An argument.

    Attributes:
        words: Its one or two words.
        role: What it means.
        value: Its value, if it takes one; the file, for an input.
        language: For an input, its language as `-x` calls it; empty for what clang passes to the linker.
    """

    words: tuple[str, ...]
    role: Role
    value: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class CompilerOption:
    """An option.

    Attributes:
        role: What it means.
        separate: Whether its value may be the next word.
        joined: Whether its value may follow in the same word.
    """

    role: Role
    separate: bool = False
    joined: bool = False


def _rules(role: Role, names: str, *, separate: bool = False, joined: bool = False) -> dict[str, CompilerOption]:
    return dict.fromkeys(names.split(), CompilerOption(role, separate, joined))


RULES: Final[dict[str, CompilerOption]] = {
    # Options whose value may be the next word: it is not an input.
    **_rules(Role.OTHER, "-A -B -D -F -G -I -L -T -U -b -e -l -u -z", separate=True, joined=True),
    **_rules(
        Role.OTHER,
        "--analyzer-output --param --serialize-diagnostics --vfsoverlay --sysroot -Xanalyzer -Xassembler -Xclang "
        "-Xcuda-fatbinary -Xcuda-ptxas -Xlinker -Xoffload-linker -Xopenmp-target -Xpreprocessor -arch "
        "-ccc-gcc-name -ccc-install-dir -darwin-target-variant -dependency-dot -dsym-dir -dumpdir "
        "-fdebug-compilation-dir -filelist -fmodules-user-build-path -framework -ftrapv-handler "
        "-include-pch -imultilib -install_name -meabi -mllvm -mmlir "
        "-mthread-model -resource-dir -rpath -serialize-diagnostics -target -undefined -vfsoverlay -working-directory",
        separate=True,
    ),
    **_rules(Role.OTHER, "-Xarch_ -Xopenmp-target=", separate=True, joined=True),
    **_rules(
        Role.OTHER,
        "--imacros --include -cxx-isystem -iapinotes-modules -idirafter -iframework -iframeworkwithsysroot -imacros "
        "-include -iprefix -iquote -isysroot -isystem -isystem-after -ivfsoverlay -iwithprefix -iwithprefixbefore "
        "-iwithsysroot -stdlib++-isystem",
        separate=True,
        joined=True,
    ),
    **_rules(Role.OUTPUT, "-o", separate=True, joined=True),
    **_rules(Role.OUTPUT, "--output", separate=True),
    **_rules(Role.OUTPUT, "--output=", joined=True),
    **_rules(Role.LANGUAGE, "-x", separate=True, joined=True),
    **_rules(Role.LANGUAGE, "--language", separate=True),
    **_rules(Role.LANGUAGE, "--language=", joined=True),
    **_rules(Role.PHASE, "-c -S --compile --assemble"),
    **_rules(Role.EMIT_LLVM, "-emit-llvm"),
    **_rules(
        Role.NO_CODE,
        "-### -E --preprocess -M --dependencies -MM --user-dependencies -fsyntax-only --analyze -emit-ast -emit-pch "
        "-emit-interface-stubs -extract-api --migrate --precompile -rewrite-objc -rewrite-legacy-objc -verify-pch "
        "-fdriver-only -ccc-print-phases -ccc-print-bindings --help --help-hidden -help --version -dumpmachine "
        "-dumpversion",
    ),
    **_rules(Role.NO_CODE, "-print- --print-", joined=True),
    **_rules(
        Role.DEPENDENCIES,
        "-MD -MMD -MG -MP -MV --write-dependencies --write-user-dependencies --print-missing-file-dependencies",
    ),
    **_rules(Role.DEPENDENCIES, "-Wp,-MD, -Wp,-MMD,", joined=True),
    **_rules(Role.DEPENDENCY_NAME, "-MF -MT -MQ", separate=True, joined=True),
    **_rules(Role.DATABASE, "-MJ", separate=True, joined=True),
    **_rules(Role.DEPENDENCIES, "-dependency-file", separate=True),
    **_rules(Role.LEVEL, "-O --optimize= --optimize", joined=True),
    **_rules(Role.LAST, "-flto -flto= -fno-lto", joined=True),
    **_rules(Role.MATRIX, "-fenable-matrix"),
    **_rules(Role.INSTRUMENT, "-fcoverage-mapping -ftest-coverage -fprofile-arcs --coverage -coverage"),
    **_rules(
        Role.INSTRUMENT,
        "-fsanitize= -fsanitize-coverage= -fprofile-generate -fprofile-instr- -fprofile-use -fprofile-sample-use "
        "-fcs-profile-generate",
        joined=True,
    ),
    **_rules(Role.NO_CODE, "-ObjC -ObjC++"),
    **_rules(Role.LAST, "-save-temps --save-temps -v -ftime-report -save-stats"),
    **_rules(Role.LAST, "-save-temps= --save-temps= -ftime-trace -fsave-optimization-record", joined=True),
    **_rules(Role.LAST, "-foptimization-record-", joined=True),
}
"""Options by their spelling. Of several that a word begins with, the longest counts."""

_TWO_VALUES: Final = ("-Xarch_", "-Xopenmp-target=")
"""Options with one value in their own word and one in the next."""
_LONGEST: Final = max(map(len, RULES))

LANGUAGES: Final[dict[str, str]] = {
    ".c": "c",
    **dict.fromkeys((".cc", ".cp", ".cxx", ".cpp", ".CPP", ".c++", ".C", ".CXX"), "c++"),
    ".i": "cpp-output",
    ".ii": "c++-cpp-output",
    ".ll": "ir",
    ".bc": "ir",
    ".h": "c-header",
    **dict.fromkeys((".hh", ".H", ".hpp", ".hxx"), "c++-header"),
}
"""Languages by the endings of files."""
SOURCES: Final = ("c", "c++", "cpp-output", "c++-cpp-output", "ir")
"""The languages in which the driver looks for tensors."""
INCLUDING: Final = ("c", "c++", "c-header", "c++-header")
"""Those that include headers."""


def parse(words: Iterable[str], *, cxx: bool = False) -> list[CommandArgument]:
    """The arguments of a command line.

    Args:
        words: The words, without the name of the program and without response files.
        cxx: Whether `*.c` and `*.i` are C++, as they are for clang++.
    """
    return list(_parsed(iter(words), cxx=cxx))


def _parsed(words: Iterator[str], *, cxx: bool) -> Iterator[CommandArgument]:
    language = ""
    for word in words:
        if word == "--":
            yield from (_input((other,), language, cxx=cxx) for other in words)
            return
        if not word.startswith("-") or word == "-":
            yield _input((word,), language, cxx=cxx)
            continue
        spelling, rule = rule_of(word)
        value, parts = word[len(spelling) :], (word,)
        if rule.separate and (not value or spelling in _TWO_VALUES) and (following := next(words, None)) is not None:
            value, parts = following, (word, following)
        if rule.role is Role.LANGUAGE:
            language = "" if value == "none" else value
        yield CommandArgument(parts, rule.role, value)


_UNKNOWN: Final = ("", CompilerOption(Role.OTHER))


def rule_of(word: str) -> tuple[str, CompilerOption]:
    """The option that a word is, and the table's spelling of it; `OTHER` for an unknown one."""
    if word in RULES:
        return word, RULES[word]
    for size in range(min(len(word) - 1, _LONGEST), 1, -1):
        rule = RULES.get(word[:size])
        if rule is not None and rule.joined:
            return word[:size], rule
    return _UNKNOWN


def _input(words: tuple[str, ...], language: str, *, cxx: bool) -> CommandArgument:
    file = words[0]
    if not language:
        language = LANGUAGES.get(os.path.splitext(file)[1], "")  # noqa: PTH122 (`-` and odd names are right)
        if cxx and language in ("c", "cpp-output"):
            language = "c++" if language == "c" else "c++-cpp-output"
    return CommandArgument(words, Role.INPUT, file, language)


def words_of(arguments: Iterable[CommandArgument]) -> list[str]:
    """The words of arguments."""
    return [word for argument in arguments for word in argument.words]


def expanded(words: Iterable[str]) -> list[str]:
    """The words with those of response files, `@file`, in their place; what cannot be read stays, as for clang."""
    result: list[str] = []
    for word in words:
        try:
            text = Path(word[1:]).read_text(encoding="utf-8") if word.startswith("@") else None
        except (OSError, ValueError):
            text = None
        result += [word] if text is None else expanded(split(text))
    return result


def split(text: str) -> list[str]:
    """The words of a response file: quoted by ' or ", or by a backslash before a character."""
    words: list[str] = []
    word: list[str] | None = None
    characters = iter(text)
    quote = ""
    for character in characters:
        if quote:
            if character == quote:
                quote = ""
                continue
        elif character.isspace():
            words += [] if word is None else ["".join(word)]
            word = None
            continue
        word = [] if word is None else word
        if not quote and character in "'\"":
            quote = character
        elif character == "\\":
            word.append(next(characters, ""))
        else:
            word.append(character)
    return words if word is None else [*words, "".join(word)]


def quoted(words: Iterable[str]) -> str:
    """The text of a response file with these words."""
    return "".join('"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"\n' for word in words)
