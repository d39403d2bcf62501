"""VNNI packing by whole registers puts every element where reshape.block does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from tlx.ir.builder import Builder
from tlx.ir.types import I8, I16, VectorType
from tlx.ir.values import Local, Value
from tlx.lower.legalize.vnni import can_interleave, interleaved_registers


class _Shuffler:
    """Stands for a builder: keeps what each register holds, and counts shuffles."""

    def __init__(self) -> None:
        self.held: dict[str, list[tuple[int, int] | None]] = {}
        self.shuffles = 0

    def register(self, name: str, elements: Sequence[tuple[int, int] | None], bits: int) -> Value:
        self.held[name] = list(elements)
        return Local(VectorType(len(elements), I8 if bits == 8 else I16), name)

    def shuffle(self, x: Value, y: Value | None, mask: Sequence[int]) -> Value:
        self.shuffles += 1
        sources = self._of(x) + (self._of(y) if y is not None else [])
        assert isinstance(x.type, VectorType)
        bits = 8 if x.type.element == I8 else 16
        return self.register(f"s{self.shuffles}", [sources[i] if i >= 0 else None for i in mask], bits)

    def _of(self, value: Value) -> list[tuple[int, int] | None]:
        assert isinstance(value, Local)
        return self.held[value.name]


@pytest.mark.parametrize("vector_bits", [128, 256, 512])
@pytest.mark.parametrize(("bits", "width"), [(8, 4), (8, 2), (16, 2)])
def test_all_columns_of_all_rows_in_order(vector_bits: int, bits: int, width: int) -> None:
    full = vector_bits // bits
    counts = [n for n in range(1, full + 1) if can_interleave(n, bits, width, vector_bits)]
    assert full in counts
    for count in counts:
        b = _Shuffler()
        rows = [b.register(f"r{k}", [(k, n) for n in range(count)], bits) for k in range(width)]
        made = interleaved_registers(cast("Builder", b), rows, vector_bits)
        got = [element for r in made if isinstance(r, Local) for element in b.held[r.name]]
        assert got == [(k, n) for n in range(count) for k in range(width)]


def test_four_registers_of_bytes_take_sixteen_shuffles() -> None:
    b = _Shuffler()
    rows = [b.register(f"r{k}", [(k, n) for n in range(64)], 8) for k in range(4)]
    interleaved_registers(cast("Builder", b), rows, 512)
    assert b.shuffles == 16


@pytest.mark.parametrize(("count", "bits", "width"), [(32, 8, 4), (63, 8, 4), (65, 8, 4), (64, 8, 8), (32, 16, 4)])
def test_partial_registers_are_not_packed(count: int, bits: int, width: int) -> None:
    assert not can_interleave(count, bits, width, 512)
