"""libxsmm: kernels made when the program runs, of one shape each; loops around them for matrices that are large.

libxsmm thinks in columns: our c = a @ b, row by row, is its C = A B with A = b, B = a, and m and n exchanged.

    for j step nb, for i step mb:               loops in machine code
      brgemm(&c[i, j], &a[i, :], &b[:, j])      sums over all blocks of K

Versions from 2021 on have `libxsmm_dispatch_gemm_v2`, later `libxsmm_dispatch_gemm`; release 1.17 has neither, and does
float and double only here.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, Final

from tlx.bench.elements import Array
from tlx.bench.native_calls import Repeat, Step, loop, repeated
from tlx.bench.peers import libxsmm_loops
from tlx.bench.peers.base import Attempt, Places
from tlx.bench.problems import Batch, Gemm
from tlx.bench.timing import seconds
from tlx.bench.workload import Buffer, Workload

_DATATYPES: Final = {"f64": 0, "f32": 1, "bf16": 2, "f16": 3, "s32": 8, "s8": 12, "u8": 13}
_TRANSPOSE_A: Final = 1
_TRANSPOSE_B: Final = 2
_BETA_0: Final = 4
_A_UNSIGNED: Final = 256
_B_UNSIGNED: Final = 512
_VNNI_A: Final = 2048
_STRIDED: Final = 4
_WHOLE: Final = 128
_BLOCKS: Final = ((32, 64), (64, 64), (32, 128), (128, 64))
_K_BLOCKS: Final = (64, 256, 1024)
_LARGE: Final = 1 << 33  # multiplications above which blocks are chosen by what they do with a part of the columns
_PART: Final = 128
_MOST: Final = 2

Blocks = tuple[int, int, int]


class Shape(ctypes.Structure):
    """`libxsmm_gemm_shape`."""

    _fields_ = [(name, ctypes.c_int) for name in "m n k lda ldb ldc a_type b_type out_type comp_type".split()]


class Reduction(ctypes.Structure):
    """`libxsmm_gemm_batch_reduce_config`."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("stride_a", ctypes.c_int),
        ("stride_b", ctypes.c_int),
        ("unroll", ctypes.c_ubyte),
    ]


class Libxsmm:
    """The library."""

    name = "libxsmm"

    def __init__(self, library: Any) -> None:
        self._library = library
        library.libxsmm_init()
        library.libxsmm_get_target_arch.restype = ctypes.c_char_p
        new = [hasattr(library, f"libxsmm_dispatch_gemm{end}") for end in ("_v2", "")]
        self._end = "_v2" if new[0] else ""
        self._dispatch: Any = getattr(library, f"libxsmm_dispatch_gemm{self._end}", None)
        self._reduce: Any = getattr(library, f"libxsmm_dispatch_brgemm{self._end}", None)
        for function in (self._dispatch, self._reduce):
            if function is not None:
                function.restype = ctypes.c_void_p
        generation = "2" if self._dispatch is not None else "1.17"
        self.version = f"{generation} ({library.libxsmm_get_target_arch().decode()})"

    def attempts(self, work: Workload, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """One kernel for all, then blocks of several sizes."""
        gemm = work.problem
        if self._dispatch is None:
            yield from self._old(work, arrays)
        if isinstance(gemm, Batch) and self._dispatch is not None:
            yield from self._batch(gemm, arrays)
        if not isinstance(gemm, Gemm) or self._dispatch is None or "c" in gemm.columns:
            return
        if gemm.rhs.bytes < 4 and not gemm.vnni:
            yield from self._packed(gemm, arrays)
        if gemm.rhs.bytes == 1 and not gemm.vnni:
            return
        flags = _flags(gemm)
        if max(gemm.m, gemm.n, gemm.k) <= 2 * _WHOLE:
            kernel = self.kernel(gemm, gemm.m, gemm.n, gemm.k, flags)
            if kernel:
                block = (ctypes.c_uint64 * libxsmm_loops.PARAMETER_WORDS)()
                block[4], block[8], block[12] = (arrays[n].ctypes.data for n in "bac")
                step = Step(kernel, (("ptr", ctypes.addressof(block)),))
                yield Attempt(repeated([step], (self._library, block, arrays)), "one kernel")
        if gemm.columns or min(gemm.m, gemm.n) < _BLOCKS[0][0]:
            return
        yield from self._blocked(gemm, arrays, flags)

    def _old(self, work: Workload, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """One kernel of release 1.17, which takes its operands as it is called."""
        gemm = work.problem
        if not isinstance(gemm, Gemm) or gemm.columns or max(gemm.m, gemm.n, gemm.k) > 2 * _WHOLE:
            return
        dispatch = {"f32": "libxsmm_smmdispatch", "f64": "libxsmm_dmmdispatch"}.get(work.types)
        if dispatch is None:
            return
        make = getattr(self._library, dispatch)
        make.restype = ctypes.c_void_p
        scalar = ctypes.c_float if gemm.out.name == "f32" else ctypes.c_double
        one, zero = ctypes.byref(scalar(1)), ctypes.byref(scalar(0))
        kernel = make(gemm.n, gemm.m, gemm.k, None, None, None, one, zero, None, None)
        if kernel:
            pointers = [("ptr", arrays[name].ctypes.data) for name in "bacbac"]  # the last three are to be prefetched
            yield Attempt(repeated([Step(kernel, tuple(pointers))], (self._library, arrays)), "one kernel")

    def _batch(self, batch: Batch, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """A call of a kernel for each product, or one that sums up all of them; b is interleaved first if narrow."""
        gemm = batch.gemm
        sizes = [gemm.m * gemm.k * gemm.lhs.bytes, gemm.k * gemm.n * gemm.rhs.bytes, gemm.m * gemm.n * gemm.out.bytes]
        pointers = {name: array.ctypes.data for name, array in arrays.items()}
        calls, summed = (1, batch.count) if batch.reduced else (batch.count, 1)
        for narrow in (False, True) if gemm.rhs.bytes < 4 and gemm.n % 32 == 0 else (False,):
            like = replace(gemm, vnni=narrow)
            if gemm.rhs.bytes == 1 and not narrow:
                continue
            shape = _shape(like, gemm.m, gemm.n, gemm.k)
            stride = Reduction(_STRIDED, sizes[1], sizes[0], 0)
            kernel = (
                self._reduce(shape, _flags(like), 0, stride)
                if batch.reduced
                else self._dispatch(shape, _flags(like), 0)
            )
            if not kernel:
                continue
            first, given, packed = "", pointers, None
            if narrow:  # all of b is one matrix of count * K rows
                whole = replace(like, k=batch.count * gemm.k)
                packed = Buffer("b", gemm.rhs, whole.b_shape, output=True).filled(0)
                first = libxsmm_loops.packing(whole, pointers["b"], packed.ctypes.data)
                given = {**pointers, "b": packed.ctypes.data}
            text = libxsmm_loops.batch(kernel, calls, summed, sizes, given, first)
            yield Attempt(loop(text, (self._library, arrays, packed)), "packs b" if narrow else "")

    def _packed(self, gemm: Gemm, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """B is interleaved first, each time, as kernels for narrow types want it."""
        like = replace(gemm, vnni=True)
        if gemm.columns or gemm.n % 64 or gemm.k % 64 or gemm.m % 32:
            return
        packed = Buffer("b", gemm.rhs, like.b_shape, output=True).filled(0)
        given = {**arrays, "b": packed}
        flat = arrays["b"].ctypes.data
        yield from self._blocked(like, given, _flags(like), flat)

    def kernel(self, gemm: Gemm, m: int, n: int, k: int, flags: int) -> int | None:
        """The address of a kernel for an `m` x `n` x `k` part of a product; None where there is none."""
        return self._dispatch(_shape(gemm, m, n, k), flags, 0)

    def _blocked(self, gemm: Gemm, arrays: dict[str, Array], flags: int, flat: int = 0) -> Iterator[Attempt]:
        """Loops around a kernel, for blocks of several sizes; of large products the two that do a part the fastest."""
        pointers = {name: array.ctypes.data for name, array in arrays.items()}
        kernels = {blocks: kernel for blocks in _blocks(gemm) if (kernel := self._summing(gemm, blocks, flags))}

        def repeat(blocks: Blocks, columns: int, pack: int) -> Repeat:
            text = libxsmm_loops.product(gemm, kernels[blocks], blocks, pointers, pack, columns)
            return loop(text, (self._library, arrays))

        sizes = list(kernels)
        if gemm.m * gemm.n * gemm.k > _LARGE:
            sizes = sorted(sizes, key=lambda blocks: seconds(repeat(blocks, _PART, 0)))[:_MOST]
        for blocks in sizes:
            note = f"blocks of {'x'.join(map(str, blocks))}" + (", packs b" if flat else "")
            yield Attempt(repeat(blocks, gemm.n, flat), note)

    def _summing(self, gemm: Gemm, blocks: Blocks, flags: int) -> int | None:
        """A kernel that sums up the products of blocks along K."""
        strides = (blocks[2] * gemm.n * gemm.rhs.bytes, blocks[2] * gemm.lhs.bytes)
        return self._reduce(_shape(gemm, *blocks), flags, 0, Reduction(_STRIDED, *strides, 0))


def _blocks(gemm: Gemm) -> list[Blocks]:
    """Sizes of blocks that divide a product."""
    sizes = [(mb, nb, kb) for (mb, nb), kb in product(_BLOCKS, _K_BLOCKS)]
    return [(mb, nb, kb) for mb, nb, kb in sizes if not (gemm.m % mb or gemm.n % nb or gemm.k % kb)]


def load(places: Places) -> Libxsmm:
    """The newest kind of libxsmm that is found as a shared library.

    Raises:
        MissingError: It is not installed.
    """
    for path in places.libraries("libxsmm*.so*"):
        try:
            library = ctypes.CDLL(str(path), mode=os.RTLD_LAZY)
        except OSError:
            continue
        if hasattr(library, "libxsmm_create_gemm_shape"):
            return Libxsmm(library)
    return Libxsmm(places.load(["libxsmm*.so*"], ["xsmm"]))


def _flags(gemm: Gemm) -> int:
    flags = _BETA_0
    flags |= _TRANSPOSE_A if "b" in gemm.columns else 0
    flags |= _TRANSPOSE_B if "a" in gemm.columns else 0
    flags |= _B_UNSIGNED if gemm.lhs.name == "u8" else 0
    flags |= _A_UNSIGNED if gemm.rhs.name == "u8" else 0
    return flags | (_VNNI_A if gemm.vnni else 0)


def _shape(gemm: Gemm, m: int, n: int, k: int) -> Shape:
    leading_a = gemm.n if gemm.vnni else gemm.b_shape[1]
    types = [_DATATYPES[e.name] for e in (gemm.rhs, gemm.lhs, gemm.out, gemm.accumulator)]
    return Shape(n, m, k, leading_a, gemm.a_shape[1], gemm.c_shape[1], *types)
