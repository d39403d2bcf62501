"""The programs whose text `tests/lit` checks mean the same after stage 1 as before it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

import tlx

FOLDER: Final = Path(__file__).parents[3] / "lit/lower/to_2d"
SMALL: Final = (
    "contraction/accumulator_overlap", "contraction/contract", "contraction/interleaved", "contraction/matmul",
    "contraction/matmul_batch", "contraction/mma", "loop", "rules/broadcast", "rules/concat", "rules/copies",
    "rules/insert", "rules/is_fpclass", "rules/pad", "rules/reduce", "rules/reduce_windows", "rules/reshape_block",
    "rules/reshape_permute", "rules/stored_transpose", "rules/transpose", "rules/vector_reduce",
    "rules/vector_reduce_bits", "typed_pointers", "values",
)  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_means_the_same(name: str) -> None:
    text = (FOLDER / f"{name}.ll").read_text(encoding="utf-8")
    assert not tlx.validate(text, "generic", options=tlx.Options(stop_after="to-2d"), runs=1)
