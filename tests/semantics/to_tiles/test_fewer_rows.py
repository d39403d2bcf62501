"""Products whose rows do not fill a matrix unit's tiles: tiles have fewer rows, or the last ones are padded."""

from __future__ import annotations

import pytest

from tests.semantics.to_tiles.test_knobs import check_product
from tests.tools import quick
from tlx.lower.knobs import Knobs
from tlx.tuning.product import parse_product

ROWS = (4, 24, 65, 1, 13, 15, 17, 20, 30, 36, 50)


@pytest.mark.parametrize("rows", quick(ROWS, 3))
@pytest.mark.parametrize("types", ["bfloat -> float", "i8 -> i32 ss"])
def test_rows_that_do_not_fill_tiles(rows: int, types: str) -> None:
    product = parse_product(f"matmul {rows}x{rows * 7 % 60 + 17}x{64 if rows % 2 else 70} {types}")
    knobs = Knobs((32, 32) if rows > 16 else (16, 64))
    for stage in ("to-tiles", "legalize"):
        check_product(product, knobs, "amx", stage)
