"""LLVM's own optimiser may run over tensor programs before they are lowered: they are lowered, and mean the same.

Among what it does are hoisting out of loops, folding of phis, loops whose token is used behind them, and shuffles in
place of what moves single elements.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.semantics.programs.harness import EMULATED, RUN_ONLY, Job, check
from tests.support.tools import quick, require
from tlx.api.validation import StageRecorder, compare_stages
from tlx.diagnostics import TlxError
from tlx.fuzz.generation.programs import canonical
from tlx.ir.parser.module import parse
from tlx.lower.options import Options
from tlx.lower.pipeline import lower, raise_front_ends

OPT: Final = "opt-19"
LEVELS: Final = ("-O2", "-O3")
JOBS: Final = [
    Job("loops", "avx2", 3, 0, optimise=OPT),
    Job("small", "generic", 3, 1, optimise=OPT),
    Job("large", "avx2", 1, 2, (RUN_ONLY,), OPT),
    Job("any", "avx512", 3, 3, optimise=OPT),
    Job("moves", "avx2", 2, 5, optimise=OPT),
    Job("overlaps", "avx512", 2, 6, optimise=OPT),
    Job("any-tiles", "amx", 1, 8, (EMULATED,), OPT),
]
LONG_JOBS: Final = [
    Job("loops", "avx2", 8, 10, optimise=OPT),
    Job("small", "generic", 6, 11, optimise=OPT),
    Job("large", "avx2", 3, 12, (RUN_ONLY,), OPT),
    Job("any", "avx512", 6, 13, optimise=OPT),
    Job("any", "generic", 6, 14, optimise=OPT),
    Job("moves", "avx2", 3, 15, optimise=OPT),
    Job("overlaps", "avx512", 3, 16, optimise=OPT),
    Job("run-time", "avx2", 2, 17, optimise=OPT),
    Job("any-tiles", "amx", 2, 18, (EMULATED,), OPT),
]
ROOT: Final = Path(__file__).parents[3]
FILES: Final = sorted(
    path
    for folder in ("examples", "tests/lit")
    for path in (ROOT / folder).rglob("*.ll")
    if "Output" not in path.parts and "Inputs" not in path.parts
)
_PART: Final = re.compile(r"^;--- .*\n", re.MULTILINE)
_COUNT: Final = re.compile(r"<(\d+) x \w+>")
_LARGEST: Final = 5000
"""Elements of vectors of a program that is evaluated as well."""


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("job", quick([*JOBS, *LONG_JOBS], len(JOBS)), ids=str)
def test_optimised_before_lowering(job: Job) -> None:
    require(OPT)
    check(job)


@pytest.mark.filterwarnings("ignore::tlx.diagnostics.TlxWarning")
@pytest.mark.parametrize(
    ("path", "levels"),
    [
        pytest.param(path, LEVELS if n % 4 == 0 else LEVELS[n % 2 :][:1], marks=[pytest.mark.long] if n % 4 else [])
        for n, path in enumerate(FILES)
    ],
    ids=lambda value: _name(value) if isinstance(value, Path) else " ".join(value),
)
def test_optimised_programs_can_still_be_lowered(path: Path, levels: Sequence[str]) -> None:
    """Every fourth file at both levels, the others at one of them."""
    opt = require(OPT)
    for text in filter(_is_lowered, _programs(path)):
        _check(opt, levels, canonical(str(raise_front_ends(parse(text)))), path.name)


def _programs(path: Path) -> Iterator[str]:
    """The tensor programs of a file that `split-file` may cut."""
    for text in _PART.split(path.read_text(encoding="utf-8")):
        if "define" in text and "llvm.tensor." in text:
            yield text


def _is_lowered(text: str) -> bool:
    try:
        lower(parse(text), "avx512", options=Options(stop_after="to-2d"))
    except TlxError:
        return False
    return True


def _check(opt: str, levels: Sequence[str], text: str, name: str) -> None:
    seen = ""
    for level in levels:
        done = subprocess.run([opt, level, "-S"], input=text, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        if done.stdout == seen:
            continue
        seen, stages = done.stdout, StageRecorder()
        lower(parse(seen, f"{name} after {level}"), "avx512", options=Options(stop_after="to-2d", print_after=stages))
        if _is_quick(text):
            compare_stages(text, name, stages, runs=1)


def _is_quick(text: str) -> bool:
    """Whether to evaluate a program as well. What a function writes to an argument `byval`, its caller does not see."""
    return max(map(int, _COUNT.findall(text)), default=0) < _LARGEST and "byval" not in text
