"""The table of operations has all of StableHLO, and the documents show it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.tools import require_module
from tlx.frontends.jax import reference
from tlx.frontends.jax.operations import REFUSED, RULES

operations: Any = require_module("jaxlib.mlir.dialects._stablehlo_ops_gen")


def test_every_operation_is_translated_or_refused() -> None:
    classes: list[Any] = [getattr(operations, name) for name in dir(operations)]
    known = {getattr(value, "OPERATION_NAME", "stablehlo.return") for value in classes}
    assert known - {"stablehlo.return"} - RULES.keys() - REFUSED.keys() == set()
    assert RULES.keys() & REFUSED.keys() == set()


def test_the_page_is_up_to_date() -> None:
    written = (Path(__file__).parents[4] / "docs/front_ends/jax_operations.md").read_text(encoding="utf-8")
    assert written == reference.page(), "run: python -m tlx.frontends.jax.reference docs/front_ends/jax_operations.md"
