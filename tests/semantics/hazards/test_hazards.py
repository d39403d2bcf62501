"""Each program means the same after the lowering, wherever its pointers point to, and however often its loop runs."""

from __future__ import annotations

import numpy as np
import pytest

import tlx
from tests.semantics.hazards.language import ARRAY, Hazard
from tests.semantics.hazards.loops import LOOPS
from tests.semantics.hazards.pointers import POINTERS
from tests.semantics.hazards.results import RESULTS
from tests.semantics.hazards.writes import WRITES
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse
from tlx.lower.options import Options
from tlx.lower.pipeline import lower

HAZARDS = [*WRITES, *POINTERS, *RESULTS, *LOOPS]


def array() -> Array:
    return np.random.default_rng(1).integers(-3, 4, ARRAY).astype(np.float32)


def results(hazard: Hazard, machine: Machine) -> list[Array]:
    """The array after each call: three iterations from each place, and none from the first one."""
    places = [(*places, 3) for places in hazard.places()]
    changed: list[Array] = []
    for numbers in (*places, (*places[0][:3], 0)):
        changed.append(array())
        machine.call("main", changed[-1], *numbers)
    return changed


@pytest.mark.parametrize("hazard", HAZARDS, ids=[hazard.name for hazard in HAZARDS])
def test_loads_and_stores_keep_their_order(hazard: Hazard) -> None:
    text = hazard.module()
    expected = results(hazard, Machine(parse(text)))
    lowered = lower(parse(text), "generic", options=Options(stop_after="to-2d"))
    for got, want in zip(results(hazard, Machine(lowered)), expected, strict=True):
        assert np.array_equal(got, want, equal_nan=True)
    compiled = tlx.compile(text)["main"]
    for places, want in zip(hazard.places(), expected, strict=False):
        got = array()
        compiled(got, *places, 3)
        assert np.array_equal(got, want, equal_nan=True)
