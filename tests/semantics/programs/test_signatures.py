"""Functions of any signature mean the same when Python calls them as when the evaluator does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tlx
from tests.semantics.programs.signatures import Signature, module
from tlx.diagnostics import UsageError
from tlx.evaluate import Machine
from tlx.ir.parser.module import parse

_FUNCTIONS = 80


@pytest.mark.parametrize("level", range(4))
def test_random_signatures(level: int) -> None:
    text, signatures = module(level, _FUNCTIONS)
    compiled, machine = tlx.compile(text, "generic", opt_level=level), Machine(parse(text))
    callable_ = [signature for signature in signatures if _is_callable(compiled, signature.name)]
    assert len(callable_) > 0.7 * _FUNCTIONS
    for seed, signature in enumerate(callable_):
        reference = _called(signature, seed, partial(machine.call, signature.name))
        got = _called(signature, seed, compiled[signature.name])
        for position, (mine, expected) in enumerate(zip(got, reference, strict=True)):
            np.testing.assert_array_equal(mine, expected, f"argument {position}, or the result, of\n{signature.text}")


def _is_callable(compiled: tlx.api.compiler.CompiledModule, name: str) -> bool:
    """Whether LLVM is not known to compile calls of the function wrong."""
    try:
        return bool(compiled[name])
    except UsageError as refusal:
        if "which LLVM (19 to 22) miscompiles" in refusal.message:
            return False
        raise


def _called(signature: Signature, seed: int, call: Callable[..., Any]) -> list[Any]:
    """Arguments after a call, and what it returned."""
    arguments = signature.arguments(seed)
    returned = call(*arguments)
    return [*arguments, 0 if returned is None else returned]
