"""The programs whose text `tests/lit` checks mean the same after stage 1 as before it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

import tlx

FOLDER: Final = Path(__file__).parents[3] / "lit/lower/to_2d"
SMALL: Final = (
    "accumulator_overlap", "broadcast", "concat", "contract", "copies", "insert", "interleaved", "is_fpclass", "loop",
    "matmul", "matmul_batch", "mma", "pad", "reduce", "reduce_windows", "reshape_block", "reshape_permute",
    "stored_transpose", "transpose", "typed_pointers", "values", "vector_reduce", "vector_reduce_bits",
)  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_means_the_same(name: str) -> None:
    text = (FOLDER / f"{name}.ll").read_text(encoding="utf-8")
    assert not tlx.validate(text, "generic", options=tlx.Options(stop_after="to-2d"), runs=1)
