"""The table of clang's options, and command lines parsed by it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.tools import require
from tlx.cli.driver.arguments import RULES, CommandArgument, Role, expanded, parse, quoted, rule_of, split, words_of


def inputs(*words: str, cxx: bool = False) -> list[tuple[str, str]]:
    return [(a.value, a.language) for a in parse(words, cxx=cxx) if a.role is Role.INPUT]


def test_values_are_no_inputs() -> None:
    words = "-c -o a.o -I include -Iother -D X=1 -MF a.d -include b.h -Xclang -O1 -target x86_64-linux-gnu a.c"
    assert inputs(*words.split()) == [("a.c", "c")]
    assert words_of(parse(words.split())) == words.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("a.c b.cpp c.o d.s e.ll f.i", [("a.c", "c"), ("b.cpp", "c++"), ("c.o", ""), ("d.s", ""), ("e.ll", "ir"),
                                        ("f.i", "cpp-output")]),
        ("-x c++ a.c -x none b.c", [("a.c", "c++"), ("b.c", "c")]),
        ("-xc -", [("-", "c")]),
        ("-x assembler a.c", [("a.c", "assembler")]),
        ("-- -c.c", [("-c.c", "c")]),
    ],
)  # fmt: skip
def test_languages(words: str, expected: list[tuple[str, str]]) -> None:
    assert inputs(*words.split()) == expected


def test_c_is_cxx_for_the_cxx_driver() -> None:
    assert inputs("a.c", "b.i", cxx=True) == [("a.c", "c++"), ("b.i", "c++-cpp-output")]


@pytest.mark.parametrize(
    ("word", "spelling", "role"),
    [
        ("-O2", "-O", Role.LEVEL),
        ("-ObjC", "-ObjC", Role.NO_CODE),
        ("-flto=thin", "-flto=", Role.LAST),
        ("-Wp,-MD,a.d", "-Wp,-MD,", Role.DEPENDENCIES),
        ("-print-file-name=x", "-print-", Role.NO_CODE),
        ("-fsanitize=address", "-fsanitize=", Role.INSTRUMENT),
        ("-march=native", "", Role.OTHER),
        ("-cc", "", Role.OTHER),
        ("-MFa.d", "-MF", Role.DEPENDENCY_NAME),
    ],
)
def test_spellings(word: str, spelling: str, role: Role) -> None:
    found, rule = rule_of(word)
    assert (found, rule.role) == (spelling, role)


def test_options_of_two_words_with_a_value_in_the_first() -> None:
    assert parse(["-Xarch_host", "-O2", "a.c"])[0] == CommandArgument(("-Xarch_host", "-O2"), Role.OTHER, "-O2")


def test_response_files(tmp_path: Path) -> None:
    words = ['-DX="a b"', "it's", "back\\slash", "", "-c"]
    file = tmp_path / "words"
    file.write_text(quoted(words), encoding="utf-8")
    assert expanded(["a", f"@{file}", "@missing"]) == ["a", *words, "@missing"]
    assert split('-a \'b c\' "d\\"e" f\\ g\n') == ["-a", "b c", 'd"e', "f g"]


def test_clang_takes_the_next_word_as_the_value_of_the_same_options(tmp_path: Path) -> None:
    """A word that clang does not take as a value is an input, of which it says that it does not exist."""
    clang = require("clang-19")
    (tmp_path / "a.c").touch()
    options = [name for name, rule in RULES.items() if rule.separate and name not in _OF_OTHER_SYSTEMS]
    pairs = [word for name in options for word in (name, f"/nonexistent{name}")]
    for words, taken in ((pairs, True), (["-emit-llvm", "/nonexistent-emit-llvm"], False)):
        command = [clang, "-###", *words, "-c", "a.c"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ("no such file or directory: '/nonexistent" in done.stderr) != taken, done.stderr


_OF_OTHER_SYSTEMS = ("-arch", "-framework", "-install_name", "-Xarch_", "-Xopenmp-target=")
