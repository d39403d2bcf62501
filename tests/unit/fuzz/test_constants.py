"""Constants of random programs: globals that are loaded as tensors, and packed at compile time where they are a B."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tlx.fuzz.check import CheckSettings, check_program
from tlx.fuzz.generation.model import Choices, RunState
from tlx.fuzz.generation.profiles import PROFILES
from tlx.fuzz.generation.programs import random_program
from tlx.fuzz.generation.sources import MOST_CONSTANT_ELEMENTS, Sources
from tlx.fuzz.options import RandomOptions
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.parser.module import parse
from tlx.ir.types import BFLOAT, FLOAT, I8, Type
from tlx.lower.pipeline import lower


def quiet(_: str) -> None:
    pass


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("element", [FLOAT, BFLOAT, I8], ids=str)
def test_a_constant_is_what_its_global_says(element: Type, *, typed: bool) -> None:
    writer = Sources(PROFILES["small"], Choices("7"), "f", typed=typed, suffixes=False)
    type_ = TensorType.dense(element, (3, 4))
    token = writer.constant_load(type_, [0, 6])
    state = RunState({})
    writer.steps[-1](state)
    tensor = state.tensors[token.name]
    assert tensor.shape == (3, 4)
    if element == I8:
        assert len(np.unique(tensor)) > 3
    else:
        assert set(np.unique(tensor.astype(float))) <= {-1.0, 0.0, 1.0}
    assert re.search(r"(?m)^@f\.w0 = .*constant \[", writer.text)
    assert "@f.w0" in writer.text.split("define ", 1)[1]


def test_programs_have_constants_of_limited_size() -> None:
    texts = [random_program("small", seed).text for seed in range(20)]
    lines = [line for text in texts for line in text.splitlines() if "constant [" in line]
    assert len(lines) > 3
    assert all(int(line.split("constant [", 1)[1].split(" x ")[0]) <= MOST_CONSTANT_ELEMENTS + 3 for line in lines)


def test_constants_are_packed_at_compile_time() -> None:
    """Among the programs are some whose B the compiler packs."""
    programs = (random_program("small", seed) for seed in range(8, 40))
    program = next(made for made in programs if "@tlx.panels" in str(lower(parse(made.text), "avx2")))
    check_program(program, CheckSettings("avx2", run=False, variant=1), quiet)
    plain = lower(
        parse(program.text), "avx2", options=RandomOptions(weight_bytes=0).options(CheckSettings("avx2").options)
    )
    assert "@tlx.panels" not in str(plain)
