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
from itertools import product
from typing import Any, Final

from tlx.bench.elements import Array
from tlx.bench.native_calls import Step, loop, repeated
from tlx.bench.peers.base import Attempt, Places
from tlx.bench.problems import Gemm
from tlx.bench.workload import Workload

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


# libxsmm_gemm_param: four words each for the operation, A, B, C.
PARAMETER_WORDS: Final = 16
COUNT_WORD: Final = 2
A_WORD: Final = 4
B_WORD: Final = 8
C_WORD: Final = 12


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
        if not isinstance(gemm, Gemm) or self._dispatch is None or "c" in gemm.columns:
            return
        if gemm.rhs.bytes == 1 and not gemm.vnni:
            return
        flags = _flags(gemm)
        if max(gemm.m, gemm.n, gemm.k) <= 2 * _WHOLE:
            kernel = self.kernel(gemm, gemm.m, gemm.n, gemm.k, flags)
            if kernel:
                block = (ctypes.c_uint64 * PARAMETER_WORDS)()
                block[A_WORD], block[B_WORD], block[C_WORD] = (arrays[n].ctypes.data for n in "bac")
                step = Step(kernel, (("ptr", ctypes.addressof(block)),))
                yield Attempt(repeated([step], (self._library, block, arrays)), "one kernel")
        if gemm.columns or min(gemm.m, gemm.n) < _BLOCKS[0][0]:
            return
        for (mb, nb), kb in product(_BLOCKS, _K_BLOCKS):
            if gemm.m % mb or gemm.n % nb or gemm.k % kb:
                continue
            yield from self._blocked(gemm, arrays, (mb, nb, kb), flags)

    def kernel(self, gemm: Gemm, m: int, n: int, k: int, flags: int) -> int | None:
        """The address of a kernel for an `m` x `n` x `k` part of a product; None where there is none."""
        return self._dispatch(_shape(gemm, m, n, k), flags, 0)

    def _blocked(
        self, gemm: Gemm, arrays: dict[str, Array], blocks: tuple[int, int, int], flags: int
    ) -> Iterator[Attempt]:
        mb, nb, kb = blocks
        strides = (kb * gemm.n * gemm.rhs.bytes, kb * gemm.lhs.bytes)
        kernel = self._reduce(_shape(gemm, mb, nb, kb), flags, 0, Reduction(_STRIDED, *strides, 0))
        if not kernel:
            return
        text = _loops(gemm, kernel, blocks, {name: array.ctypes.data for name, array in arrays.items()})
        yield Attempt(loop(text, (self._library, arrays)), f"blocks of {mb}x{nb}x{kb}")


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


def _loops(gemm: Gemm, kernel: int, blocks: tuple[int, int, int], pointers: dict[str, int]) -> str:
    """The loops over blocks of rows and of columns; K is summed up by the kernel."""
    mb, nb, kb = blocks
    out, lhs = gemm.out.bytes, gemm.lhs.bytes
    wide = gemm.rhs.bytes * gemm.factor  # b's columns lie that far apart
    return f"""
define void @repeat(i64 %n) {{
entry:
  %p = alloca [{PARAMETER_WORDS} x i64], align 64
  %count = alloca i64, align 8
  store i64 {gemm.k // kb}, ptr %count
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 {8 * PARAMETER_WORDS}, i1 false)
  %pn = getelementptr i64, ptr %p, i64 {COUNT_WORD}
  store ptr %count, ptr %pn
  %pa = getelementptr i64, ptr %p, i64 {A_WORD}
  %pb = getelementptr i64, ptr %p, i64 {B_WORD}
  %pc = getelementptr i64, ptr %p, i64 {C_WORD}
  br label %again
again:
  %t = phi i64 [ 0, %entry ], [ %t1, %outer.end ]
  br label %outer
outer:
  %j = phi i64 [ 0, %again ], [ %j1, %inner.end ]
  %jb = mul i64 %j, {wide}
  %b = add i64 %jb, {pointers["b"]}
  br label %inner
inner:
  %i = phi i64 [ 0, %outer ], [ %i1, %inner ]
  %ia = mul i64 %i, {gemm.k * lhs}
  %a = add i64 %ia, {pointers["a"]}
  %ic = mul i64 %i, {gemm.n * out}
  %jc = mul i64 %j, {out}
  %ijc = add i64 %ic, %jc
  %c = add i64 %ijc, {pointers["c"]}
  store i64 %b, ptr %pa
  store i64 %a, ptr %pb
  store i64 %c, ptr %pc
  call void inttoptr (i64 {kernel} to ptr)(ptr %p)
  %i1 = add i64 %i, {mb}
  %more.i = icmp ult i64 %i1, {gemm.m}
  br i1 %more.i, label %inner, label %inner.end
inner.end:
  %j1 = add i64 %j, {nb}
  %more.j = icmp ult i64 %j1, {gemm.n}
  br i1 %more.j, label %outer, label %outer.end
outer.end:
  %t1 = add i64 %t, 1
  %more = icmp ult i64 %t1, %n
  br i1 %more, label %again, label %end
end:
  ret void
}}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""
