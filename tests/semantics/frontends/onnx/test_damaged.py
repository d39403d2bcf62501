"""Damaged models are errors, whatever is damaged: no other exception, no crash, no long run, no large memory."""

from __future__ import annotations

import random
import resource
import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

import pytest

from tests.semantics.frontends.onnx.node_cases import node_cases
from tests.semantics.frontends.onnx.test_session import loop, two_layers
from tlx.diagnostics import TlxError
from tlx.frontends.onnx import InferenceSession
from tlx.frontends.onnx.examples import EXAMPLES, mutated_fields
from tlx.fuzz.mutation import damaged_model

SECONDS = 20
MEMORY = 6 << 30


def models() -> list[bytes]:
    names = (
        "lstm_defaults",
        "resize_upsample_sizes_cubic",
        "scan9_sum",
        "qlinearconv",
        "attention_4d",
        "einsum_batch_matmul",
    )
    cases = node_cases()
    return [two_layers(dynamic=False), loop(rows=True), *(cases[n].model.SerializeToString() for n in names)]


@contextmanager
def limited() -> Generator[None]:
    """A limit of processor time for each model, and of memory."""

    def late(_: int, __: FrameType | None) -> None:
        raise AssertionError(f"not finished in {SECONDS} seconds of processor time")

    before = signal.signal(signal.SIGPROF, late)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.long) for k in range(1, 8))])
def test_damaged_models_are_errors(seed: int) -> None:
    choose = random.Random(seed)
    whole = [*EXAMPLES, *models()]
    errors: list[str] = []
    for number in range(200):
        data = damaged_model(choose, whole[number % len(whole)], mutated_fields)
        with limited():
            try:
                InferenceSession(data, lazy=True).translate()
            except TlxError as error:
                errors.append(str(error))
    assert len(errors) > 100
    assert not [error for error in errors if "Traceback" in error or len(error) > 2000]
