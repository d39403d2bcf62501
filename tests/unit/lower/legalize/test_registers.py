"""Tiles as lists of registers: how rows are split, and constants."""

from __future__ import annotations

import pytest

from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I8, I16, I32, Type, VectorType
from tlx.ir.values import Constant, Keyword, Local, Splat, Value, const_float, const_int, const_ints, const_vector, zero
from tlx.lower.legalize.registers import Registers, constant_registers, register_element, register_widths


@pytest.mark.parametrize(
    ("cols", "lanes", "expected"),
    [(40, 16, [16, 16, 8]), (16, 16, [16]), (3, 16, [3]), (17, 16, [16, 1]), (4, 1, [1, 1, 1, 1])],
)
def test_rows_are_cut_into_whole_registers_and_a_rest(cols: int, lanes: int, expected: list[int]) -> None:
    assert register_widths(cols, lanes) == expected


@pytest.mark.parametrize(
    ("element", "stored"), [(BFLOAT, I16), (HALF, I16), (FLOAT, FLOAT), (I8, I8), (DOUBLE, DOUBLE)]
)
def test_narrow_floats_are_stored_as_integers(element: Type, stored: Type) -> None:
    assert register_element(element) == stored


def test_constants_are_cut_row_by_row() -> None:
    tile = constant_registers(const_ints(I32, list(range(12))), I32, 2, 6, 4)
    spelled = [[str(r) for r in row] for row in tile.regs]
    assert spelled == [
        ["<i32 0, i32 1, i32 2, i32 3>", "<i32 4, i32 5>"],
        ["<i32 6, i32 7, i32 8, i32 9>", "<i32 10, i32 11>"],
    ]


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (zero(VectorType(6, FLOAT)), "zeroinitializer"),
        (Keyword(VectorType(6, FLOAT), "undef"), "undef"),
        (Splat(VectorType(6, I32), const_int(I32, 7)), "<i32 7, i32 7, i32 7>"),
    ],
)
def test_constants_without_a_list_of_elements(value: Constant, spelled: str) -> None:
    element = value.type.element if isinstance(value.type, VectorType) else value.type
    tile = constant_registers(value, element, 1, 6, 3)
    assert [str(r) for r in tile.flat()] == [spelled, spelled]
    assert [r.type for r in tile.flat()] == [VectorType(3, element)] * 2


@pytest.mark.parametrize(
    ("element", "numbers", "bits"),
    [(BFLOAT, [1.0, -0.5], [0x3F80, 0xBF00]), (HALF, [1.0, -2.0], [0x3C00, 0xC000])],
)
def test_constants_of_narrow_floats_are_their_bits(element: Type, numbers: list[float], bits: list[int]) -> None:
    assert element in (BFLOAT, HALF)
    value = const_vector([const_float(BFLOAT if element == BFLOAT else HALF, n) for n in numbers])
    tile = constant_registers(value, element, 1, 2, 2)
    assert str(tile.regs[0][0]) == f"<i16 {bits[0]}, i16 {bits[1]}>"


def test_a_constant_without_elements_is_refused() -> None:
    class Odd(Constant):
        """A constant expression."""

        def __str__(self) -> str:
            return "odd"

    with pytest.raises(ValueError, match="no elements in constant odd"):
        constant_registers(Odd(VectorType(2, I32)), I32, 1, 2, 2)


def test_flat_and_replaced_are_inverse() -> None:
    registers: list[Value] = [Local(VectorType(2, I32), f"r{i}") for i in range(6)]
    tile = Registers(I32, 2, 6, 2, (tuple(registers[:3]), tuple(registers[3:])))
    assert tile.flat() == registers
    reversed_tile = tile.replaced(registers[::-1])
    assert reversed_tile.flat() == registers[::-1]
    assert reversed_tile.replaced(registers) == tile


def test_map_changes_every_register_and_the_element() -> None:
    registers: list[Value] = [Local(VectorType(2, I32), f"r{i}") for i in range(4)]
    tile = Registers(I32, 2, 4, 2, (tuple(registers[:2]), tuple(registers[2:])))
    changed = tile.map(FLOAT, lambda r: Local(VectorType(2, FLOAT), f"{str(r)[1:]}f"))
    assert changed.element == FLOAT
    assert [str(r) for r in changed.flat()] == ["%r0f", "%r1f", "%r2f", "%r3f"]
