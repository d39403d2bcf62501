"""The meaning of x86 instructions in numpy: AMX tiles, AVX dot products, conversions and permutations.

Source: Intel SDM volume 2 (TDPBSSD, TDPBF16PS, TILELOADD, VPDPBUSD, ...).

An AMX tile value is always 16 x 64 bytes; bytes outside the rows and row bytes of the operation that defines it are
zero. B of a product is in VNNI order: q = 4 (i8) or 2 (bf16, f16) elements of one column are adjacent,

    element (k, n) of B  at  row k / q, column n * q + k % q          (K x N  ->  K/q x N*q)

Instructions on tile values have the shapes as operands; those on numbered registers take them from LDTILECFG.

Operands of AVX instructions have the element types of current LLVM (`<64 x i8>`) or of older versions (`<16 x i32>`):
only their bytes matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
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
    TargetSemantics,
    type_independent,
    typed,
)
from tlx.evaluate.scalars import fma
from tlx.evaluate.values import BFLOAT16, DType, element_dtype, signed, to_float
from tlx.intrinsics.numpy_types import Array
from tlx.ir.types import VectorType, scalar_of

_TILE_ROWS: Final = 16
_ROW_BYTES: Final = 64
_TILE_REGISTERS: Final = 8
_OPERANDS: Final = 3  # of a product
Dot = Callable[[Array, Array, Array], Array]


@dataclass(eq=False)
class _TileRegisters:
    """The tile registers of a machine: rows and row bytes of each, and its contents."""

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


_REGISTERS: Final[WeakKeyDictionary[MachineContext, _TileRegisters]] = WeakKeyDictionary()


def _registers(site: CallSite) -> _TileRegisters:
    """The registers of the machine that a call runs on."""
    return _REGISTERS.setdefault(site.context, _TileRegisters())


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
    """A product on registers, by the one on values; the manual requires three registers whose shapes fit."""

    def factory(site: CallSite) -> Implementation:
        registers, product = _registers(site), value_form(site)

        def run(acc: int, a: int, b: int) -> None:
            if len({acc, a, b}) < _OPERANDS:
                raise EvaluationError(f"tiles {acc}, {a}, {b} of a product are not distinct")
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
_Kind = DType | type[Any]


def _dot(lhs: _Kind, rhs: _Kind, *, saturate: bool = False) -> ImplementationFactory:
    """`vpdp*`: each 32-bit lane of acc plus the products of the 4 bytes or 2 words in that lane."""
    q = 4 // np.dtype(lhs).itemsize
    unsigned = np.dtype(lhs).kind == np.dtype(rhs).kind == "u"
    low, high = (0, (1 << 32) - 1) if unsigned else (-1 << 31, (1 << 31) - 1)

    def run(acc: Array, a: Array, b: Array) -> Array:
        products = a.view(lhs).astype(np.int64) * b.view(rhs).astype(np.int64)
        sums = products.reshape(-1, q).sum(1)
        if not saturate:
            return acc + sums.astype(np.uint32)
        start = acc.astype(np.int64) if unsigned else acc.view(np.int32).astype(np.int64)
        return np.clip(start + sums, low, high).astype(np.uint32)

    return type_independent(run)


def _multiply_add(lhs: _Kind, rhs: _Kind, *, saturate: bool) -> ImplementationFactory:
    """`pmaddwd` (words to 32 bits) and `pmaddubsw` (u8 times s8, saturating at 16 bits)."""

    def run(a: Array, b: Array) -> Array:
        sums = (a.view(lhs).astype(np.int64) * b.view(rhs).astype(np.int64)).reshape(-1, 2).sum(1)
        if saturate:
            return np.clip(sums, -1 << 15, (1 << 15) - 1).astype(np.int16).view(np.uint16)
        return sums.astype(np.uint32)

    return type_independent(run)


def _dot_bf16(acc: Array, a: Array, b: Array) -> Array:
    """`vdpbf16ps`: odd products first, then even ones, each added with one rounding; subnormals are zeros."""
    left = flushed(a.view(BFLOAT16).astype(np.float32)).reshape(-1, 2)
    right = flushed(b.view(BFLOAT16).astype(np.float32)).reshape(-1, 2)
    total = flushed(fma(left[:, 1], right[:, 1], flushed(acc)))
    return flushed(fma(left[:, 0], right[:, 0], total))


def _dot_f16(acc: Array, a: Array, b: Array) -> Array:
    left = a.view(np.float16).astype(np.float32).reshape(-1, 2)
    right = b.view(np.float16).astype(np.float32).reshape(-1, 2)
    return fma(left[:, 0], right[:, 0], fma(left[:, 1], right[:, 1], acc))


# Conversions ---------------------------------------------------------------------------------------------------------


def _to_bf16(site: CallSite) -> Implementation:
    """Floats to bfloat, to nearest even, subnormals as zeros; two operands: the second is the low half."""
    dtype, count = _dtype(site), _count(site)

    def run(*args: Array) -> Array:
        numbers = flushed(np.concatenate(args[::-1])) if len(args) == 2 else flushed(args[0])
        converted = to_float(numbers, BFLOAT16).view(dtype)
        return np.concatenate((converted, np.zeros(count - len(converted), dtype)))

    return run


def _dtype(site: CallSite) -> DType:
    return element_dtype(scalar_of(site.result))


def _count(site: CallSite) -> int:
    return site.result.count if isinstance(site.result, VectorType) else 1


def _masked_to_bf16(site: CallSite) -> Implementation:
    convert = _to_bf16(site)

    def run(numbers: Array, passthru: Array, mask: Array) -> Array:
        is_converted = np.concatenate((mask, np.ones(len(passthru) - len(mask), np.bool_)))
        return np.where(is_converted, convert(numbers), passthru)

    return run


def _from_half(site: CallSite) -> Implementation:
    count = _count(site)

    def run(a: Array, *_: object) -> Array:
        return a.view(np.float16)[:count].astype(np.float32)

    return run


def _to_half(site: CallSite) -> Implementation:
    """`vcvtps2ph`, assuming that the rounding mode is to nearest even."""
    dtype, count = _dtype(site), _count(site)

    def run(a: Array, *_: object) -> Array:
        converted = a.astype(np.float16).view(dtype)
        return np.concatenate((converted, np.zeros(count - len(converted), dtype)))

    return run


def _widening_load(start: int, step: int, *, kind: _Kind = BFLOAT16) -> ImplementationFactory:
    """`vcvtnee*`, `vcvtneo*` (every second element from `start` on), `vbcstne*` (`step` 0): from memory to floats.

    The manual, VCVTNEEBF162PS: "does not generate floating-point exceptions and does not consult or update MXCSR":
    bfloat becomes the float with its bits on top, so subnormals and signalling NaNs stay what they are.
    """

    def factory(site: CallSite) -> Implementation:
        count, memory = _count(site), site.context.memory

        def run(address: int) -> Array:
            data = memory.read(address, 4 * count if step else 2, site.name)
            words = np.frombuffer(data, np.uint16)
            elements = np.resize(words, count) if not step else words[start::step]
            if kind is BFLOAT16:
                return (elements.astype(np.uint32) << 16).view(np.float32)
            return elements.view(np.float16).astype(np.float32)

        return run

    return factory


def _scaled(x: Array, exponent: Array, *_: object) -> Array:
    """`vscalefps`, all lanes: x 2^floor(exponent), rounded once."""
    steps = np.clip(np.nan_to_num(np.floor(exponent), nan=0.0), -5000, 5000).astype(np.int64)
    with np.errstate(all="ignore"):
        return np.where(np.isnan(exponent), exponent, np.ldexp(x.astype(np.float64), steps)).astype(x.dtype)


def _reciprocal(x: Array, *_: object) -> Array:
    """`vrcp14ps`, all lanes: 1 / x with the largest error that the manual allows, 2^-14."""
    with np.errstate(all="ignore"):
        exact = (1 / x).astype(x.dtype)
    fraction = 23 if x.dtype == np.float32 else 52
    words = exact.view(np.uint32 if x.dtype == np.float32 else np.uint64)
    truncated = words & ~np.array((1 << (fraction - 14)) - 1, words.dtype)
    return np.where(np.isfinite(exact), truncated.view(x.dtype), exact)


def _fraction(x: Array, *_: object) -> Array:
    """`vreduceps` to the nearest integer, all lanes: x - rint(x), of infinity 0."""
    with np.errstate(all="ignore"):
        return np.where(np.isinf(x), np.zeros_like(x), x - np.rint(x))


def _exponent(x: Array, *_: object) -> Array:
    """`vgetexpps`, all lanes: floor(log2 |x|), of zero -infinity."""
    with np.errstate(all="ignore"):
        exponent = np.frexp(np.abs(x))[1].astype(x.dtype) - 1
        exponent = np.where(x == 0, x.dtype.type(-np.inf), exponent)
    return np.where(np.isfinite(x), exponent, np.abs(x))


def _mantissa(x: Array, form: Array, *_: object) -> Array:
    """`vgetmantps`, all lanes, of zeros and infinity 1: from 3/4 to 3/2, of negative numbers NaN; |x| from 1 to 2."""
    if int(form) not in (_FROM_THREE_QUARTERS, _MAGNITUDE_FROM_ONE):
        message = f"vgetmantps with immediate {int(form)}"
        raise NotImplementedError(message)
    is_magnitude = int(form) == _MAGNITUDE_FROM_ONE
    x = np.where(np.isnan(x), x, np.abs(x)) if is_magnitude else x
    with np.errstate(all="ignore"):
        half = np.frexp(np.where(np.isfinite(x), x, 1))[0]
        mantissa = np.where(half < x.dtype.type(1 if is_magnitude else 0.75), 2 * half, half).astype(x.dtype)
    mantissa = np.where((x == 0) | np.isposinf(x), x.dtype.type(1), mantissa)
    return np.where((x < 0) | np.isnan(x), x.dtype.type(np.nan), mantissa)


def _rounded_to_integers(x: Array, passthru: Array, mask: Array, *_: object) -> Array:
    """`vcvtps2dq`, `vcvtpd2qq` in the lanes of the mask."""
    is_chosen = (int(mask) >> np.arange(x.size)) & 1
    return np.where(is_chosen, np.rint(np.where(is_chosen, x, 0)).astype(passthru.dtype), passthru)


def _multiply_add_up(x: Array, y: Array, z: Array, rounding: Array) -> Array:
    """`vfmadd231ps` rounded upward."""
    if int(rounding) != _UPWARD:
        message = f"vfmadd231ps with rounding {int(rounding)}"
        raise NotImplementedError(message)
    with np.errstate(all="ignore"):
        nearest = fma(x, y, z)
        above = np.nextafter(nearest, x.dtype.type(np.inf))

    def is_below(total: Any, *factors: Any) -> bool:
        a, b, c, t = (Fraction(float(v)) for v in (*factors, total))
        return t < a * b + c

    below = [bool(np.isfinite(v).all()) and is_below(*v) for v in np.stack([nearest, x, y, z], 1)]
    return np.where(below, above, nearest)


def _permuted(table: Array, index: Array) -> Array:
    """`vpermps`: elements of a register, by the last four bits of the index."""
    return table[index & (table.size - 1)]


def _permuted_of_two(first: Array, index: Array, second: Array) -> Array:
    """`vpermi2ps`: elements of two registers."""
    return _permuted(np.concatenate([first, second]), index)


_UPWARD: Final = 0b1010
_FROM_THREE_QUARTERS: Final = 0b1111
_MAGNITUDE_FROM_ONE: Final = 0b0100
_I16: Final = {"s": np.int16, "u": np.uint16}
_SIGNS: Final = [(a, b) for a in "su" for b in "su"]

AVX_INSTRUCTIONS: Final[FunctionTable] = {
    "x86.avx512.vpdpbusd": _dot(np.uint8, np.int8),
    "x86.avx512.vpdpbusds": _dot(np.uint8, np.int8, saturate=True),
    "x86.avx512.vpdpwssd": _dot(np.int16, np.int16),
    "x86.avx512.vpdpwssds": _dot(np.int16, np.int16, saturate=True),
    **{f"x86.{v}.vpdpb{a}{b}d": _dot(_I8[a], _I8[b]) for v in ("avx2", "avx10") for a, b in _SIGNS},
    **{f"x86.{v}.vpdpb{a}{b}ds": _dot(_I8[a], _I8[b], saturate=True) for v in ("avx2", "avx10") for a, b in _SIGNS},
    **{f"x86.{v}.vpdpw{a}{b}d": _dot(_I16[a], _I16[b]) for v in ("avx2", "avx10") for a, b in _SIGNS},
    **{f"x86.{v}.vpdpw{a}{b}ds": _dot(_I16[a], _I16[b], saturate=True) for v in ("avx2", "avx10") for a, b in _SIGNS},
    "x86.sse2.pmadd.wd": _multiply_add(np.int16, np.int16, saturate=False),
    "x86.avx2.pmadd.wd": _multiply_add(np.int16, np.int16, saturate=False),
    "x86.avx512.pmaddw.d": _multiply_add(np.int16, np.int16, saturate=False),
    "x86.ssse3.pmadd.ub.sw": _multiply_add(np.uint8, np.int8, saturate=True),
    "x86.avx2.pmadd.ub.sw": _multiply_add(np.uint8, np.int8, saturate=True),
    "x86.avx512.pmaddubs.w": _multiply_add(np.uint8, np.int8, saturate=True),
    "x86.avx512.mask.scalef.ps": type_independent(_scaled),
    "x86.avx512.mask.scalef.pd": type_independent(_scaled),
    "x86.avx512.rcp14.ps": type_independent(_reciprocal),
    "x86.avx512.rcp14.pd": type_independent(_reciprocal),
    "x86.avx512.mask.reduce.ps": type_independent(_fraction),
    "x86.avx512.mask.reduce.pd": type_independent(_fraction),
    "x86.avx512.mask.getexp.ps": type_independent(_exponent),
    "x86.avx512.mask.getexp.pd": type_independent(_exponent),
    "x86.avx512.mask.getmant.ps": type_independent(_mantissa),
    "x86.avx512.mask.getmant.pd": type_independent(_mantissa),
    "x86.avx512.mask.cvtps2dq": type_independent(_rounded_to_integers),
    "x86.avx512.mask.cvtpd2qq": type_independent(_rounded_to_integers),
    "x86.avx512.vfmadd.ps": type_independent(_multiply_add_up),
    "x86.avx512.vfmadd.pd": type_independent(_multiply_add_up),
    "x86.avx512.permvar.sf": type_independent(_permuted),
    "x86.avx512.permvar.df": type_independent(_permuted),
    "x86.avx512.permvar.hi": type_independent(_permuted),
    "x86.avx512.permvar.qi": type_independent(_permuted),
    "x86.avx512.vpermi2var.ps": type_independent(_permuted_of_two),
    "x86.avx512.vpermi2var.pd": type_independent(_permuted_of_two),
    "x86.avx512bf16.dpbf16ps": type_independent(_dot_bf16),
    "x86.avx10.vdpphps": type_independent(_dot_f16),
    "x86.avx512bf16.cvtneps2bf16": _to_bf16,
    "x86.avx512bf16.cvtne2ps2bf16": _to_bf16,
    "x86.avx512bf16.mask.cvtneps2bf16": _masked_to_bf16,
    "x86.vcvtneps2bf16128": _to_bf16,
    "x86.vcvtneps2bf16256": _to_bf16,
    **{f"x86.vcvtneebf162ps{bits}": _widening_load(0, 2) for bits in (128, 256)},
    **{f"x86.vcvtneobf162ps{bits}": _widening_load(1, 2) for bits in (128, 256)},
    **{f"x86.vbcstnebf162ps{bits}": _widening_load(0, 0) for bits in (128, 256)},
    **{f"x86.vcvtneeph2ps{bits}": _widening_load(0, 2, kind=np.float16) for bits in (128, 256)},
    **{f"x86.vcvtneoph2ps{bits}": _widening_load(1, 2, kind=np.float16) for bits in (128, 256)},
    **{f"x86.vbcstnesh2ps{bits}": _widening_load(0, 0, kind=np.float16) for bits in (128, 256)},
    "x86.vcvtph2ps": _from_half,
    "x86.vcvtps2ph": _to_half,
}


def _zeros(_inputs: Sequence[int]) -> Sequence[int]:
    """CPUID of a processor without any features, on which a program selects its weakest kernels."""
    return (0, 0, 0, 0)


SEMANTICS: Final = TargetSemantics(
    intrinsics={**AMX_INSTRUCTIONS, **AVX_INSTRUCTIONS},
    registers={"x86_amx": (16, 64)},
    assembly=dict.fromkeys(("cpuid", "xgetbv", "syscall"), _zeros),
)
