"""Intel AMX: tiles of up to 16 rows of 64 bytes (Intel SDM volume 2, TDPBSSD, TDPBF16PS, TILELOADD).

A tile value is always 16 x 64 bytes; what lies outside the rows and column bytes of the operation that made it is
zero. B of a product is in VNNI order: q = 4 (i8) or 2 (bf16, f16) elements of one column lie side by side,

    element (k, n) of B  at  row k / q, column n * q + k % q          (K x N  ->  K/q x N*q)

Instructions on tile values have the shapes as operands; those on numbered registers take them from LDTILECFG.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from tlx.diagnostics import EvaluationError
from tlx.evaluate.context import (
    CallSite,
    FunctionTable,
    Implementation,
    ImplementationFactory,
    MachineContext,
    type_independent,
    typed,
)
from tlx.evaluate.values import BFLOAT16, DType, signed
from tlx.intrinsics.numpy_types import Array

_TILE_ROWS: Final = 16
_ROW_BYTES: Final = 64
_TILE_REGISTERS: Final = 8
_OPERANDS: Final = 3  # of a product
Dot = Callable[[Array, Array, Array], Array]


@dataclass(eq=False)
class _Registers:
    """The tile registers of a machine: rows and bytes of a row of each, and what is in it."""

    shapes: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    tiles: list[Array] = field(default_factory=list[Array])

    def shape(self, number: int) -> tuple[int, int]:
        """Rows and bytes of a row of a register.

        Raises:
            EvaluationError: It is not configured.
        """
        rows, row_bytes = self.shapes[number] if self.shapes else (0, 0)
        if not (rows and row_bytes):
            raise EvaluationError(f"tile register {number} is not configured")
        return rows, row_bytes


_REGISTERS: Final[WeakKeyDictionary[MachineContext, _Registers]] = WeakKeyDictionary()


def _registers(site: CallSite) -> _Registers:
    """The registers of the machine that a call runs on."""
    return _REGISTERS.setdefault(site.context, _Registers())


def check_shape(rows: int, row_bytes: int) -> None:
    """Refuse a shape that no tile register has.

    Raises:
        EvaluationError: Too many rows or bytes, or none.
    """
    if not (0 < rows <= _TILE_ROWS and 0 < row_bytes <= _ROW_BYTES):
        raise EvaluationError(f"tile of {rows} rows of {row_bytes} bytes: AMX tiles have 1 to 16 rows of 1 to 64 bytes")


def _zero(rows: int, row_bytes: int) -> Array:
    check_shape(rows, row_bytes)
    return np.zeros((_TILE_ROWS, _ROW_BYTES), np.uint8)


def _load(site: CallSite) -> Implementation:
    memory = site.context.memory

    def run(rows: int, row_bytes: int, address: int, stride: int) -> Array:
        tile = _zero(rows, row_bytes)
        stride = signed(stride, 64)
        for row in range(rows):
            data = memory.read(address + row * stride, row_bytes, f"tile load, row {row},")
            tile[row, :row_bytes] = np.frombuffer(data, np.uint8)
        return tile

    return run


def _store(site: CallSite) -> Implementation:
    memory = site.context.memory

    def run(rows: int, row_bytes: int, address: int, stride: int, tile: Array) -> None:
        check_shape(rows, row_bytes)
        stride = signed(stride, 64)
        for row in range(rows):
            memory.write(address + row * stride, tile[row, :row_bytes].tobytes(), f"tile store, row {row},")

    return run


def _from_vector(value: Array) -> Array:
    """Row after row of 64 bytes; a vector of fewer bytes leaves the rest zero."""
    return np.frombuffer(value.tobytes().ljust(_TILE_ROWS * _ROW_BYTES, b"\0"), np.uint8).reshape(
        _TILE_ROWS, _ROW_BYTES
    )


def _to_vector(site: CallSite) -> Implementation:
    decode = site.context.codecs[site.result].decode
    return typed(lambda tile: decode(memoryview(tile.tobytes()), 0))


# Products ------------------------------------------------------------------------------------------------------------


def _product(
    lhs: DType | type[Any], rhs: DType | type[Any], result: DType | type[Any], dot: Dot
) -> ImplementationFactory:
    """Acc + A @ B for A of M x K, B in VNNI order, acc of M x N."""
    q = 4 // np.dtype(lhs).itemsize

    def run(rows: int, n_bytes: int, k_bytes: int, acc: Array, a: Array, b: Array) -> Array:
        check_shape(rows, n_bytes)
        check_shape(k_bytes // 4, k_bytes)
        n, k = n_bytes // 4, k_bytes // 4
        left = a[:rows, :k_bytes].copy().view(lhs)
        right = b[:k, :n_bytes].copy().view(rhs).reshape(k, n, q).transpose(0, 2, 1).reshape(k * q, n)
        total = dot(acc[:rows, :n_bytes].copy().view(result), left, right)
        tile = np.zeros((_TILE_ROWS, _ROW_BYTES), np.uint8)
        tile[:rows, :n_bytes] = total.view(np.uint8)
        return tile

    return type_independent(run)


def _integer_dot(acc: Array, a: Array, b: Array) -> Array:
    """Products and sums are exact in double; the addition to acc wraps.

    acc + A @ B
    MxN   MxK KxN
    """
    return acc + (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int32)


def flushed(numbers: Array) -> Array:
    """Float32 numbers with subnormals as zeros of their sign."""
    return np.where(np.abs(numbers) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), numbers), numbers)


def _pair_dot(acc: Array, a: Array, b: Array) -> Array:
    """The manual's order: even and odd products in sums of their own, then even + odd, then acc; each step flushes."""
    left, right = flushed(a.astype(np.float32)), flushed(b.astype(np.float32))
    sums = [np.zeros_like(acc), np.zeros_like(acc)]
    for k in range(left.shape[1]):
        product = left[:, k : k + 1].astype(np.float64) * right[k : k + 1].astype(np.float64)
        sums[k % 2] = flushed((sums[k % 2].astype(np.float64) + product).astype(np.float32))
    return flushed(flushed(acc) + flushed(sums[0] + sums[1]))


# Numbered registers --------------------------------------------------------------------------------------------------


def _configure(site: CallSite) -> Implementation:
    """LDTILECFG: palette, 16 words of bytes of a row from byte 16 on, 16 numbers of rows from byte 48 on."""
    registers, memory = _registers(site), site.context.memory

    def run(address: int) -> None:
        data = memory.read(address, 64, "tile configuration")
        widths = np.frombuffer(data, np.uint16, _TILE_REGISTERS, 16)
        registers.shapes = [(data[48 + number], int(widths[number])) for number in range(_TILE_REGISTERS)]
        for rows, row_bytes in registers.shapes:
            if rows or row_bytes:
                check_shape(rows, row_bytes)
        registers.tiles = [np.zeros((_TILE_ROWS, _ROW_BYTES), np.uint8) for _ in range(_TILE_REGISTERS)]

    return run


def _release(site: CallSite) -> Implementation:
    registers = _registers(site)

    def run() -> None:
        registers.shapes, registers.tiles = [], []

    return run


def _clear_register(site: CallSite) -> Implementation:
    registers = _registers(site)

    def run(number: int) -> None:
        registers.tiles[number] = _zero(*registers.shape(number))

    return run


def _load_register(site: CallSite) -> Implementation:
    registers, load = _registers(site), _load(site)

    def run(number: int, address: int, stride: int) -> None:
        registers.tiles[number] = load(*registers.shape(number), address, stride)

    return run


def _store_register(site: CallSite) -> Implementation:
    registers, store = _registers(site), _store(site)

    def run(number: int, address: int, stride: int) -> None:
        store(*registers.shape(number), address, stride, registers.tiles[number])

    return run


def _multiply_registers(value_form: ImplementationFactory) -> ImplementationFactory:
    """A product on registers, given the one on values; the manual wants three of them, and their shapes to fit."""

    def factory(site: CallSite) -> Implementation:
        registers, product = _registers(site), value_form(site)

        def run(acc: int, a: int, b: int) -> None:
            if len({acc, a, b}) < _OPERANDS:
                raise EvaluationError(f"tiles {acc}, {a}, {b} of a product are not three")
            (rows, n), (a_rows, k), (b_rows, b_n) = (registers.shape(number) for number in (acc, a, b))
            if (a_rows, b_rows * 4, b_n) != (rows, k, n):
                raise EvaluationError(
                    f"tiles {acc}, {a}, {b} of a product do not fit: {rows}x{n}, {a_rows}x{k}, {b_rows}x{b_n}"
                )
            tiles = registers.tiles
            tiles[acc] = product(rows, n, k, tiles[acc], tiles[a], tiles[b])

        return run

    return factory


_I8: Final = {"s": np.int8, "u": np.uint8}

_PRODUCTS: Final[FunctionTable] = {
    **{f"x86.tdpb{a}{b}d": _product(_I8[a], _I8[b], np.int32, _integer_dot) for a in "su" for b in "su"},
    "x86.tdpbf16ps": _product(BFLOAT16, BFLOAT16, np.float32, _pair_dot),
    "x86.tdpfp16ps": _product(np.float16, np.float16, np.float32, _pair_dot),
}

AMX_INSTRUCTIONS: Final[FunctionTable] = {
    "x86.tilezero.internal": type_independent(_zero),
    "x86.tileloadd64.internal": _load,
    "x86.tileloaddt164.internal": _load,
    "x86.tileloaddrs64.internal": _load,
    "x86.tileloaddrst164.internal": _load,
    "x86.tilestored64.internal": _store,
    **{f"{name}.internal": product for name, product in _PRODUCTS.items()},
    "x86.ldtilecfg": _configure,
    "x86.tilerelease": _release,
    "x86.tilezero": _clear_register,
    "x86.tileloadd64": _load_register,
    "x86.tileloaddt164": _load_register,
    "x86.tilestored64": _store_register,
    **{name: _multiply_registers(product) for name, product in _PRODUCTS.items()},
    "x86.cast.vector.to.tile": type_independent(_from_vector),
    "x86.cast.tile.to.vector": _to_vector,
}
