"""Completion in the shells themselves: commands, options, targets and files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.tools import HANG_S, find

BIN: Final = Path(sys.executable).parent


def run(shell: str, script: str, folder: Path) -> str:
    path = find(shell)
    if path is None:
        pytest.skip(f"{shell} is missing")
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(folder)}
    done = subprocess.run(
        [path, "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=HANG_S, check=True
    )
    return done.stdout


def in_bash(words: str, folder: Path) -> list[str]:
    """The completions of a line in bash, whose last word is incomplete."""
    program = words.split(maxsplit=1)[0]
    script = f"""
eval "$(tlx completion bash)"
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_LINE="{words}"
name=$(complete -p {program} | sed 's/.*-F \\([^ ]*\\).*/\\1/')
compopt() {{ local IFS=' '; echo "compopt $*"; }}
$name {program} "${{COMP_WORDS[COMP_CWORD]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return run("bash", script, folder).split("\n")


@pytest.mark.parametrize(
    ("words", "completion"),
    [
        ("tlx ex", "explain"),
        ("tlx lower --tar", "--target"),
        ("tlx-lower --target av", "avx512"),
        ("tlx explain --target nat", "native"),
        ("tlx completion zs", "zsh"),
        ("tlx-lower --emit o", "obj"),
    ],
)
def test_bash_completes(words: str, completion: str, tmp_path: Path) -> None:
    assert completion in in_bash(words, tmp_path)


@pytest.mark.parametrize(
    "words", ["tlx-lower pro", "tlx explain pro", "tlx run pro", "tlx-lower -o pro", "tlx verify pro"]
)
def test_bash_completes_files(words: str, tmp_path: Path) -> None:
    (tmp_path / "program.ll").write_text("", encoding="utf-8")
    assert "compopt -o default" in in_bash(words, tmp_path)


def test_fish_completes(tmp_path: Path) -> None:
    (tmp_path / "program.ll").write_text("", encoding="utf-8")
    script = "tlx completion fish | source; complete -C 'tlx ex'; complete -C 'tlx-lower --target av'"
    lines = run("fish", f"{script}; complete -C 'tlx-lower pro'", tmp_path).split("\n")
    names = [line.split("\t")[0] for line in lines]
    assert {"explain", "avx2", "avx512", "program.ll"} <= set(names)


def test_zsh_reads_the_script(tmp_path: Path) -> None:
    script = (
        'autoload -Uz compinit && compinit -u && eval "$(tlx completion zsh)" && print $_comps[tlx] $_comps[tlx-lower]'
    )
    assert run("zsh", script, tmp_path).split() == ["_tlx_completion", "_tlx_lower_completion"]
