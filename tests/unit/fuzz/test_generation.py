"""What random programs contain: tensors of i1, vectors by value, arrays that overlap, sizes known at run time."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tlx.fuzz.campaign import MIXED_PROFILES
from tlx.fuzz.check import CheckSettings, check_program
from tlx.fuzz.generation.model import ArrayParameter, InitialContents
from tlx.fuzz.generation.profiles import PROFILES
from tlx.fuzz.generation.programs import random_program
from tlx.ir.parser.module import parse
from tlx.ir.types import I1, I32
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.lower.remarks import Remarks

KINDS = {
    "tensors of i1": r"elementtype\(i1\)|i1\* ",
    "large vectors by value": r"define [^v\n]*<(\d{3}|409[7-9]|4[1-9]\d\d|\d{5,}) x ",
    "arrays that overlap": r"ptr %p, ptr %q",
    "offsets from memory": r"%p = getelementptr \w+, ptr %b\d+, i64 %o",
    "handles": r"<vscale x 1 x ",
    "calling conventions": r"define \w*cc void @",
    "arrays by value": r"ptr (noalias )?byval\(\[",
    "arrays in registers of their own": r"\*? (noalias )?(nest|inreg|swiftself) %b",
    "vectors by value in calling conventions": r"define (internal )?(\w+cc|cc 8) <",
}


def quiet(_: str) -> None:
    pass


@cache
def mixture() -> list[str]:
    return [random_program(MIXED_PROFILES[seed % len(MIXED_PROFILES)], seed).text for seed in range(150)]


@pytest.mark.parametrize("kind", KINDS)
def test_programs_have(kind: str) -> None:
    """One in fifty at least, in the mixture that is checked unless a profile is named."""
    assert sum(bool(re.search(KINDS[kind], text)) for text in mixture()) >= 3


@pytest.mark.parametrize("profile", ["overlaps", "run-time", "run-time-tiles"])
def test_forms_alone_are_valid(profile: str) -> None:
    with np.errstate(all="ignore"):
        for seed in range(12):
            check_program(random_program(profile, seed), CheckSettings(), quiet)


@pytest.mark.parametrize("profile", ["overlaps", "run-time"])
def test_forms_mean_the_same_when_lowered(profile: str) -> None:
    chosen = replace(PROFILES[profile], work=2000, room=300, functions=1)
    with np.errstate(all="ignore"):
        for seed in range(3):
            check_program(
                random_program(chosen, f"{profile} {seed}"), CheckSettings("avx2", run=False, variant=1), quiet
            )


def test_overlap_is_checked_when_programs_run() -> None:
    remarks = Remarks()
    for seed in range(20):
        lower(
            parse(random_program("overlaps", seed).text),
            "generic",
            options=Options(stop_after="to-2d", remarks=remarks),
        )
    assert any("checked at run time" in remark.message for remark in remarks)


def test_contents_of_integers() -> None:
    generator = np.random.default_rng(3)
    truth = ArrayParameter("b", I1, 200)
    truth.data[:] = True
    assert set(truth.fill(generator, 0).tolist()) == {False, True}
    size = ArrayParameter("b", I32, 1, InitialContents(33, 33))
    size.data[:] = True
    assert size.fill(generator, 0).tolist() == [33]
