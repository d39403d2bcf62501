"""Where the sums of a tile lie in shared memory: threads that access it at the same time use different banks."""

import numpy as np
import pytest

import tlx
from tlx.ir.builder.blocks import new_function
from tlx.ir.parser.module import parse
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I32, I64, PTR
from tlx.lower.to_blocks.staging import SumsView

ROWS, BANKS, BANK_BYTES = 16, 32, 4


def offsets(view: SumsView) -> list[list[int]]:
    """The distance of each element from the first one, in banks."""
    module = parse("")
    function = new_function(module, "f", [(PTR, "", "row"), (PTR, "", "to")], "", "dso_local")
    b = TensorBuilder(module, function)
    base, to = (argument.value for argument in function.arguments)
    with b.loop(0, view.rows, name="row") as row, b.loop(0, view.cols, name="column") as column:
        address = view.address(b, base, b.cast("trunc", row.index, I32), b.cast("trunc", column.index, I32))
        distance = b.sub(b.cast("ptrtoint", address, I64), b.cast("ptrtoint", base, I64))
        b.store(distance, b.gep(I64, to, b.add(b.mul(row.index, view.cols), column.index)), 8)
    b.ret()
    found = np.zeros((view.rows, view.cols), np.int64)
    tlx.compile(str(module), entry="f")(np.zeros(1, np.float32), found)
    assert sorted(found.flat) == sorted(set(found.flat))
    assert found.max() < view.size
    return (found // BANK_BYTES).tolist()


@pytest.mark.parametrize("columns", [32, 64, 128, 256])
def test_threads_use_different_banks(columns: int) -> None:
    banks = offsets(SumsView(I32, ROWS, columns))
    for row in range(0, ROWS, 4):  # half a warp stores pairs of columns: four rows, four threads each
        for column in range(0, columns, 8):
            written = [banks[row + i][column + k] % BANKS for i in range(4) for k in range(8)]
            assert len(set(written)) == BANKS
    for row in range(ROWS):
        for column in range(0, columns - 63, 64):
            for half in (0, 4):  # a quarter of a warp loads eight columns a thread, four at a time
                starts = [banks[row][column + 8 * thread + half] % BANKS for thread in range(8)]
                assert sorted(starts) == list(range(0, BANKS, 4))
        assert all(banks[row][k + 1] - banks[row][k] == 1 for k in range(columns) if k % 4 < 3)


def test_sums_of_eight_bytes_and_short_rows_are_padded() -> None:
    assert offsets(SumsView(I32, ROWS, 16))[1][0] == 24
    assert offsets(SumsView(I64, ROWS, 32))[1][0] == 2 * 40
