"""Fixtures that tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tlx.tuning import timing


@pytest.fixture(scope="module")
def short_samples() -> Iterator[None]:
    """Samples that take no time."""
    patch = pytest.MonkeyPatch()
    patch.setattr(timing, "SAMPLE_NS", 1)
    yield
    patch.undo()
