"""Lowered elementwise operations compile with every LLVM, and call nothing that is not documented."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.semantics.llvm import elementwise_programs as programs
from tests.support.tools import HANG_S, require
from tlx.lower import pipeline
from tlx.lower.operations import ELEMENTWISE_INTRINSICS
from tlx.lower.options import Options
from tlx.lower.remarks import Remarks

LANES: Final = {"generic": 4, "avx2": 8, "avx512": 16}
COMPILERS: Final = {
    "llc-14": "llc-14 -O1 -filetype=obj",
    "clang-15": "clang-15 -O1 -Wno-override-module -c -x ir",
    "clang-16": "clang-16 -O1 -Wno-override-module -c -x ir",
    "llc-19": "llc-19 -O1 -filetype=obj",
}
LIBRARY: Final = {"pow", "fmod", "ldexp", "exp10", "tan", "sinh", "cosh", "asin", "acos", "atan"}
"""What LLVM calls the C library for, in double or with an `f` in float; of `generic` also `fma` of doubles."""


@cache
def lowered(target: str, version: int) -> tuple[str, Remarks]:
    """LLVM up to 16 gets typed pointers, which it reads to this day."""
    text = programs.Program(version, LANES[target], version < 17).text
    options = Options(verify_each=False)
    return pipeline.lower_text(text, "all.ll", target, options=options), options.remarks


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("target", LANES)
def test_every_llvm_compiles_the_output(target: str, compiler: str, tmp_path: Path) -> None:
    program, binary = tmp_path / "all.ll", tmp_path / "all.o"
    program.write_text(lowered(target, 19 if compiler == "llc-19" else 14)[0])
    require(compiler)
    _run(*COMPILERS[compiler].split(), str(program), "-o", str(binary))
    called = {line.split()[-1] for line in _run(require("nm"), "-u", str(binary)).splitlines()}
    known = LIBRARY | {f"{name}f" for name in LIBRARY} | ({"fma"} if target == "generic" else set[str]())
    assert {"pow", "powf", "fmod", "fmodf"} <= called
    assert called - known <= {"memcpy"}


@pytest.mark.parametrize("target", LANES)
def test_remarks_name_library_calls(target: str) -> None:
    said = [remark.message for remark in lowered(target, 19)[1] if "the C library is called" in remark.message]
    named = {message.split()[0].removeprefix("llvm.") for message in said}
    assert named == (LIBRARY - {"fmod"}) | {"frem", "powi"} | ({"fma"} if target == "generic" else set[str]())


def test_no_operation_is_left_out() -> None:
    families = (programs.FLOAT_CALLS, programs.INT_CALLS, programs.LATER)
    called = {name for family in families for names in family.values() for name in names}
    called |= {*programs.MATH_CALLS, *programs.FLAGGED, *programs.ONLY_IN_19, "powi", "bswap"}
    called |= {"fptosi.sat", "fptoui.sat"}
    called |= {"lround", "llround"}  # not of vectors before LLVM 20
    called |= {"minimumnum", "maximumnum", "atan2"}  # from LLVM 20 on
    called |= {"convert.from.arbitrary.fp", "convert.to.arbitrary.fp"}  # test_small_floats
    assert {f"llvm.{name}" for name in called} == ELEMENTWISE_INTRINSICS


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stderr[:2000]
    return done.stdout
