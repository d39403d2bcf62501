"""Calls of duplicate regions mean the same as the regions, also of regions that overwrite each other's memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest

import tlx
from tests.support.tools import quick, require_processor, runs
from tlx.evaluate import Machine
from tlx.fuzz.check import CheckSettings, check_program
from tlx.fuzz.generation.programs import RandomProgram
from tlx.fuzz.worker import Request
from tlx.intrinsics.numpy_types import Array
from tlx.ir.module import Module
from tlx.ir.parser import duplicates
from tlx.ir.parser.duplicates import outlined_region
from tlx.ir.parser.module import parse, parse_fully
from tlx.lower.options import STAGE_NAMES, Options
from tlx.lower.pipeline import lower

DIMS = "<2 x i32> <i32 20, i32 24>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
TURNED = DIMS.replace("i32 20, i32 24", "i32 24, i32 20")
DENSE = "<2 x i32> zeroinitializer"
SIZE = 512


@pytest.fixture(autouse=True)
def _all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Extract all duplicates, however few."""
    monkeypatch.setattr(duplicates, "MIN_REGIONS", 1)
    monkeypatch.setattr(duplicates, "MIN_REPEATS", 0)


def parted(text: str) -> tuple[Module, int]:
    module = parse(text, outline=True)
    return module, sum(outlined_region(item) is not None for item in module.items)


@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize("profile", ["small", "loops", "overlaps", "any"])
@pytest.mark.parametrize("sample", quick([(0, 2), (100, 4)]), ids=str)
def test_random_programs(profile: str, target: str, sample: tuple[int, int]) -> None:
    """What the numpy model says, at every stage and as machine code; written and read again it is the same module."""
    require_processor(target)
    first, programs = sample
    checked = 0
    for seed in range(first, first + 100):
        check = CheckSettings(target, evaluate=profile != "any", variant=seed)
        made = Request(profile, seed, check).program()
        assert isinstance(made, RandomProgram)
        module, count = parted(made.text)
        if count:
            text = str(module)
            assert str(lower(module, target)) == str(lower(parse(text), target))
            check_program(replace(made, text=text), check, lambda _doing: None)
            checked += 1
        if checked == programs:
            return
    assert checked


def relu(number: int, c: str, a: str) -> str:
    return f"""  %t{number} = call token @llvm.tensor.load(ptr elementtype(float) {a}, {DIMS}, {DENSE})
  %r{number} = call <480 x float> @llvm.tensor.relu(token %t{number})
  %s{number} = fadd <480 x float> %r{number}, %r{number}
  %u{number} = call token @llvm.tensor.typeinfo(<480 x float> %s{number}, {DIMS})
  call void @llvm.tensor.store(ptr {c}, token %u{number}, {DENSE})
"""


def transposed(number: int, c: str, a: str) -> str:
    return f"""  %t{number} = call token @llvm.tensor.load(ptr elementtype(float) {a}, {DIMS}, {DENSE})
  %r{number} = call <480 x float> @llvm.tensor.transpose(token %t{number})
  %u{number} = call token @llvm.tensor.typeinfo(<480 x float> %r{number}, {TURNED})
  call void @llvm.tensor.store(ptr {c}, token %u{number}, {DENSE})
"""


def program(places: list[tuple[str, str]], parameters: str) -> str:
    """Consecutive regions, each from one place to another."""
    body = "".join(one(number, c, a) for number, (one, (c, a)) in enumerate(product((relu, transposed), places * 2)))
    return f"""define void @f({parameters}) {{
entry:
  %l = alloca [480 x float], align 16
  %m = alloca [500 x float], align 16
  %m2 = getelementptr float, ptr %m, i64 5
  %x3 = getelementptr float, ptr %x, i64 3
  %y7 = getelementptr inbounds float, ptr %y, i64 7
  %z0 = bitcast ptr %z to ptr
{body}{relu(100, "%m", "%l")}{relu(101, "%y", "%m")}  ret void
}}
"""


CHAINS = {
    "over its own input": [("%x", "%x"), ("%x3", "%x"), ("%x", "%x3"), ("%l", "%x")],
    "over each other's inputs": [("%y", "%x"), ("%x", "%y7"), ("%y7", "%x3"), ("%l", "%y")],
    "through local memory": [("%l", "%x"), ("%m", "%l"), ("%m2", "%m"), ("%y", "%m2"), ("%z", "%l")],
    "over all": [("%z", "%x"), ("%z0", "%z"), ("%y", "%z0"), ("%x", "%y"), ("%l", "%x3")],
}
PARAMETERS = [
    "ptr %x, ptr %y, ptr %z",
    "ptr noalias %x, ptr %y, ptr %z",
    "ptr noalias %x, ptr noalias %y, ptr noalias %z",
]


def called(run: Callable[..., object], offsets: tuple[int, int, int]) -> Array:
    """The memory after a call with three places in it."""
    memory = (np.arange(4 * SIZE) % 23 - 11).astype(np.float32)
    run(*(memory[offset:] for offset in offsets))
    return memory


@pytest.mark.parametrize("target", ["avx2", "avx512"])
@pytest.mark.parametrize("parameters", PARAMETERS, ids=["none", "one", "all"])
@pytest.mark.parametrize("chain", CHAINS)
def test_regions_that_overwrite_each_other(chain: str, parameters: str, target: str) -> None:
    text = program(CHAINS[chain], parameters)
    module, count = parted(text)
    assert count < 24
    apart = (0, SIZE, 2 * SIZE)
    places = [apart] if parameters.count("noalias") == 3 else [apart, (0, SIZE, SIZE + 2)]
    if "noalias" not in parameters:
        places += [(0, 0, 0), (1, 3, 2), (SIZE, 0, 30)]
    machines = [Machine(parse(text))]
    for stage in STAGE_NAMES:
        lowered = lower(parse(str(module)), target, options=Options(stop_after=stage))
        machines.append(Machine(parse_fully(str(lowered))))
    calls: list[Callable[..., object]] = [partial(evaluated, machine) for machine in machines]
    if runs(target):
        calls += [tlx.compile(program, target)["f"] for program in (text, str(module))]
    for offsets in places:
        expected = called(calls[0], offsets)
        for run in calls[1:]:
            np.testing.assert_array_equal(called(run, offsets), expected)


def evaluated(machine: Machine, *views: Array) -> None:
    """Call the function with views of one array."""
    base = views[0].base
    assert base is not None
    region = machine.memory.add(base.data.cast("B"), "memory", 64)
    start = base.__array_interface__["data"][0]
    machine.call("f", *(region.base + view.__array_interface__["data"][0] - start for view in views))
