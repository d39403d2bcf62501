"""Each rule of the checker: a kernel that obeys it, and one that breaks it, with the location."""

from __future__ import annotations

import pytest

from tests.unit.frontends.tensor_language.check.cases import Case, errors_of, read_cases, text_of, without_marks

CASES = read_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_accepts(case: Case) -> None:
    assert [error.render() for error in errors_of(text_of(case.accepted))] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_rejects(case: Case) -> None:
    text, spans = without_marks(text_of(case.rejected))
    errors = errors_of(text)
    assert [error.message for error in errors] == [case.message]
    assert [(e.span.start, e.span.end) for e in errors if e.span] == spans


def test_names_of_rules_are_unique() -> None:
    assert len({case.rule for case in CASES}) == len(CASES)
