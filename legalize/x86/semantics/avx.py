"""AVX2, AVX-512, AVX-VNNI and AVX-NE-CONVERT: dot products and conversions (Intel SDM volume 2).

Operands come as the element type of today's LLVM (`<64 x i8>`) or as older ones have them (`<16 x i32>`): only their
bytes count.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tlx.evaluate.context import CallSite, FunctionTable, Implementation, ImplementationFactory, type_independent
from tlx.evaluate.scalars import fma
from tlx.evaluate.values import BFLOAT16, DType, element_dtype, to_float
from tlx.intrinsics.numpy_types import Array
from tlx.ir.types import VectorType, scalar_of
from tlx.legalize.x86.semantics.amx import flushed

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
        kept = np.concatenate((mask, np.ones(len(passthru) - len(mask), np.bool_)))
        return np.where(kept, convert(numbers), passthru)

    return run


def _from_half(site: CallSite) -> Implementation:
    count = _count(site)

    def run(a: Array, *_: object) -> Array:
        return a.view(np.float16)[:count].astype(np.float32)

    return run


def _to_half(site: CallSite) -> Implementation:
    """`vcvtps2ph`; the rounding mode is taken for nearest even."""
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
            picked = np.resize(words, count) if not step else words[start::step]
            if kind is BFLOAT16:
                return (picked.astype(np.uint32) << 16).view(np.float32)
            return picked.view(np.float16).astype(np.float32)

        return run

    return factory


def _scaled(x: Array, exponent: Array, *_: object) -> Array:
    """`vscalefps`, all lanes: x 2^floor(exponent), rounded once."""
    steps = np.clip(np.nan_to_num(np.floor(exponent), nan=0.0), -5000, 5000).astype(np.int64)
    with np.errstate(all="ignore"):
        return np.where(np.isnan(exponent), exponent, np.ldexp(x.astype(np.float64), steps)).astype(x.dtype)


def _reciprocal(x: Array, *_: object) -> Array:
    """`vrcp14ps`, all lanes: 1 / x as good as the manual promises, 2^-14, and no better."""
    with np.errstate(all="ignore"):
        exact = (1 / x).astype(x.dtype)
    fraction = 23 if x.dtype == np.float32 else 52
    words = exact.view(np.uint32 if x.dtype == np.float32 else np.uint64)
    kept = words & ~np.array((1 << (fraction - 14)) - 1, words.dtype)
    return np.where(np.isfinite(exact), kept.view(x.dtype), exact)


def _fraction(x: Array, *_: object) -> Array:
    """`vreduceps` to the nearest integer, all lanes: x - rint(x), of infinity 0."""
    with np.errstate(all="ignore"):
        return np.where(np.isinf(x), np.zeros_like(x), x - np.rint(x))


def _exponent(x: Array, *_: object) -> Array:
    """`vgetexpps`, all lanes: floor(log2 |x|), of zero -infinity."""
    with np.errstate(all="ignore"):
        found = np.frexp(np.abs(x))[1].astype(x.dtype) - 1
        found = np.where(x == 0, x.dtype.type(-np.inf), found)
    return np.where(np.isfinite(x), found, np.abs(x))


def _mantissa(x: Array, form: Array, *_: object) -> Array:
    """`vgetmantps`, all lanes: of positive numbers from 3/4 to 3/2, of negative ones NaN, of zeros 1."""
    if int(form) != _FROM_THREE_QUARTERS:
        msg = f"vgetmantps with immediate {int(form)}"
        raise NotImplementedError(msg)
    with np.errstate(all="ignore"):
        half = np.frexp(np.where(np.isfinite(x), x, 1))[0]
        found = np.where(half < x.dtype.type(0.75), 2 * half, half).astype(x.dtype)
    found = np.where((x == 0) | np.isposinf(x), x.dtype.type(1), found)
    return np.where((x < 0) | np.isnan(x), x.dtype.type(np.nan), found)


def _permuted(table: Array, index: Array) -> Array:
    """`vpermps`: elements of a register, by the last four bits of the index."""
    return table[index & (table.size - 1)]


def _permuted_of_two(first: Array, index: Array, second: Array) -> Array:
    """`vpermi2ps`: elements of two registers."""
    return _permuted(np.concatenate([first, second]), index)


_FROM_THREE_QUARTERS: Final = 0b1111
_I8: Final = {"s": np.int8, "u": np.uint8}
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
