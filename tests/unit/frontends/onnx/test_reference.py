"""The table of operators, and the page that is generated from it."""

from __future__ import annotations

import inspect
from pathlib import Path

import onnx
import pytest

from tlx.frontends.onnx import reference
from tlx.frontends.onnx.table import operators

PAGE = Path(__file__).parents[4] / "docs/front_ends/onnx_operators.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference.page(), "run `make docs`"


@pytest.mark.parametrize("name", sorted(operators()))
def test_operators_are_those_of_onnx(name: str) -> None:
    entry = operators()[name]
    assert inspect.getdoc(entry.translate)
    domain, _, plain = name.rpartition(".")
    if domain or plain == "SimplifiedLayerNormalization":  # onnxruntime's optimizer writes it without a domain
        return
    schemas = [s for s in onnx.defs.get_all_schemas_with_history() if s.name == plain and not s.domain]
    assert schemas
    assert any(entry.required <= s.min_input for s in schemas)


def test_definitions_of_onnx() -> None:
    """What the page says is defined by others has a definition, and is not in the table."""
    for name in reference.defined_by_onnx():
        schema = onnx.defs.get_schema(name)
        assert getattr(schema, "has_function", False) or getattr(schema, "has_context_dependent_function", False)
        assert name not in operators()
