"""libxsmm: kernels for one shape each, compiled at run time, and loops around them for large matrices.

libxsmm is column-major: our row-major c = a @ b is its C = A B with A = b, B = a, and m and n swapped.

    for j step nb, for i step mb:               loops in machine code
      brgemm(&c[i, j], &a[i, :], &b[:, j])      sums over all blocks of K

Versions since 2021 have `libxsmm_dispatch_gemm_v2` or, later, `libxsmm_dispatch_gemm`; release 1.17 has neither and is
used for float and double only.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, Final

from tlx.bench.peers.base import Attempt, LibraryPaths
from tlx.intrinsics.numpy_types import Array
from tlx.tuning.timing import (
    LOOP_LABEL,
    NativeCall,
    Repeat,
    call_loop,
    compile_loop,
    counted_loop,
    loop_function,
    seconds,
)
from tlx.tuning.workload import BatchProblem, GemmProblem, Workload, WorkloadBuffer

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
_PANELS: Final = (32, 64, 128)
_MOST_ROWS: Final = 64
_LARGE: Final = 1 << 33  # multiplications above which block sizes are tried on part of the columns first
_TRIAL_ROWS: Final = 128
_MOST_BLOCKINGS: Final = 2

Blocks = tuple[int, int, int]


class GemmShape(ctypes.Structure):
    """`libxsmm_gemm_shape`."""

    _fields_ = [(name, ctypes.c_int) for name in "m n k lda ldb ldc a_type b_type out_type comp_type".split()]


class BatchReduceConfig(ctypes.Structure):
    """`libxsmm_gemm_batch_reduce_config`."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("stride_a", ctypes.c_int),
        ("stride_b", ctypes.c_int),
        ("unroll", ctypes.c_ubyte),
    ]


class Libxsmm:
    """The library, as a peer."""

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
        """A single kernel, then loops around a kernel with several block sizes."""
        gemm = work.problem
        if self._dispatch is None:
            yield from self._old(work, arrays)
        if isinstance(gemm, BatchProblem) and self._dispatch is not None:
            yield from self._batch(gemm, arrays)
        if not isinstance(gemm, GemmProblem) or self._dispatch is None or "c" in gemm.columns:
            return
        if gemm.prepared:
            yield from self._panels(gemm, arrays)
            return
        if gemm.rhs.bytes < 4 and not gemm.vnni:
            yield from self._packed(gemm, arrays)
        if gemm.rhs.bytes == 1 and not gemm.vnni:
            return
        flags = _flags(gemm)
        if max(gemm.m, gemm.n, gemm.k) <= 2 * _WHOLE:
            kernel = self.kernel(gemm, gemm.m, gemm.n, gemm.k, flags)
            if kernel:
                block = (ctypes.c_uint64 * PARAMETER_WORDS)()
                block[4], block[8], block[12] = (arrays[n].ctypes.data for n in "bac")
                step = NativeCall(kernel, (("ptr", ctypes.addressof(block)),))
                yield Attempt(call_loop([step], (self._library, block, arrays)), "one kernel")
        if gemm.columns or min(gemm.m, gemm.n) < _BLOCKS[0][0]:
            return
        yield from self._blocked(gemm, arrays, flags)

    def _old(self, work: Workload, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """A kernel of release 1.17, which takes pointers to its operands as arguments."""
        gemm = work.problem
        if not isinstance(gemm, GemmProblem) or gemm.columns or max(gemm.m, gemm.n, gemm.k) > 2 * _WHOLE:
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
            pointers = [("ptr", arrays[name].ctypes.data) for name in "bacbac"]  # the last three are prefetch addresses
            yield Attempt(call_loop([NativeCall(kernel, tuple(pointers))], (self._library, arrays)), "one kernel")

    def _batch(self, batch: BatchProblem, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """A kernel call for each product, or one that sums over the batch; B of a narrow type is interleaved first."""
        gemm = batch.gemm
        sizes = [gemm.m * gemm.k * gemm.lhs.bytes, gemm.k * gemm.n * gemm.rhs.bytes, gemm.m * gemm.n * gemm.out.bytes]
        pointers = {name: array.ctypes.data for name, array in arrays.items()}
        calls, summed = (1, batch.count) if batch.reduced else (batch.count, 1)
        for narrow in (False, True) if gemm.rhs.bytes < 4 and gemm.n % 32 == 0 else (False,):
            like = replace(gemm, vnni=narrow)
            if gemm.rhs.bytes == 1 and not narrow:
                continue
            shape = _shape(like, gemm.m, gemm.n, gemm.k)
            stride = BatchReduceConfig(_STRIDED, sizes[1], sizes[0], 0)
            kernel = (
                self._reduce(shape, _flags(like), 0, stride)
                if batch.reduced
                else self._dispatch(shape, _flags(like), 0)
            )
            if not kernel:
                continue
            first, operands, packed = "", pointers, None
            if narrow:  # B as a whole is one matrix of count * K rows
                whole = replace(like, k=batch.count * gemm.k)
                packed = WorkloadBuffer("b", gemm.rhs, whole.b_shape, output=True).fill(0)
                first = packing_function(whole, pointers["b"], packed.ctypes.data)
                operands = {**pointers, "b": packed.ctypes.data}
            text = batch_loop(kernel, calls, summed, sizes, operands, first)
            yield Attempt(compile_loop(text, (self._library, arrays, packed)), "packs b" if narrow else "")

    def _packed(self, gemm: GemmProblem, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """Interleave B first in each call, as the kernels for narrow types require."""
        like = replace(gemm, vnni=True)
        if gemm.columns or gemm.n % 64 or gemm.k % 64 or gemm.m % 32:
            return
        packed = WorkloadBuffer("b", gemm.rhs, like.b_shape, output=True).fill(0)
        buffers = {**arrays, "b": packed}
        flat = arrays["b"].ctypes.data
        yield from self._blocked(like, buffers, _flags(like), flat)

    def _panels(self, gemm: GemmProblem, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """Loops around a kernel on panels of B, [N/nb][K/v][nb][v], which are packed beforehand."""
        for nb in _PANELS:
            if gemm.n % nb:
                continue
            like = replace(gemm, vnni=gemm.rhs.bytes < 4)
            v = like.factor
            panels = WorkloadBuffer("b", gemm.rhs, (gemm.n // nb, gemm.k // v, nb, v), output=True).fill(0)
            panels[...] = arrays["b"].reshape(gemm.k // v, v, gemm.n // nb, nb).transpose(2, 0, 3, 1)
            pointers = {name: array.ctypes.data for name, array in (arrays | {"b": panels}).items()}
            for mb, kb in product(row_blocks(gemm.m), (*_K_BLOCKS, gemm.k)):
                if gemm.k % kb:
                    continue
                shape = _shape(like, mb, nb, kb, leading_b=nb)
                strides = BatchReduceConfig(_STRIDED, kb * nb * gemm.rhs.bytes, kb * gemm.lhs.bytes, 0)
                kernel = self._reduce(shape, _flags(like), 0, strides)
                if kernel:
                    text = product_loops(like, kernel, (mb, nb, kb), pointers, 0, gemm.n, gemm.k * gemm.rhs.bytes)
                    repeat = compile_loop(text, (self._library, arrays, panels))
                    yield Attempt(repeat, f"blocks of {mb}x{nb}x{kb}, B packed beforehand")

    def kernel(self, gemm: GemmProblem, m: int, n: int, k: int, flags: int) -> int | None:
        """The address of a kernel for an `m` x `n` x `k` part of a product; None if there is none."""
        return self._dispatch(_shape(gemm, m, n, k), flags, 0)

    def _blocked(self, gemm: GemmProblem, arrays: dict[str, Array], flags: int, flat: int = 0) -> Iterator[Attempt]:
        """Loops around a kernel for several block sizes; for large products, the two fastest on part of the columns."""
        pointers = {name: array.ctypes.data for name, array in arrays.items()}
        kernels = {blocks: kernel for blocks in _blocks(gemm) if (kernel := self._summing(gemm, blocks, flags))}

        def repeat(blocks: Blocks, columns: int, pack: int) -> Repeat:
            text = product_loops(gemm, kernels[blocks], blocks, pointers, pack, columns)
            return compile_loop(text, (self._library, arrays))

        sizes = list(kernels)
        if gemm.m * gemm.n * gemm.k > _LARGE:
            sizes = sorted(sizes, key=lambda blocks: seconds(repeat(blocks, _TRIAL_ROWS, 0)))[:_MOST_BLOCKINGS]
        for blocks in sizes:
            note = f"blocks of {'x'.join(map(str, blocks))}" + (", packs b" if flat else "")
            yield Attempt(repeat(blocks, gemm.n, flat), note)

    def _summing(self, gemm: GemmProblem, blocks: Blocks, flags: int) -> int | None:
        """A kernel that sums the products of blocks along K."""
        strides = (blocks[2] * gemm.n * gemm.rhs.bytes, blocks[2] * gemm.lhs.bytes)
        return self._reduce(_shape(gemm, *blocks), flags, 0, BatchReduceConfig(_STRIDED, *strides, 0))


def row_blocks(m: int) -> list[int]:
    """Numbers of rows that divide `m`: the two largest up to 64, which include all of a small `m`."""
    return [mb for mb in range(min(m, _MOST_ROWS), 0, -1) if m % mb == 0][:2]


def _blocks(gemm: GemmProblem) -> list[Blocks]:
    """Block sizes that divide a product's extents."""
    sizes = [(mb, nb, kb) for (mb, nb), kb in product(_BLOCKS, _K_BLOCKS)]
    return [(mb, nb, kb) for mb, nb, kb in sizes if not (gemm.m % mb or gemm.n % nb or gemm.k % kb)]


def load(places: LibraryPaths) -> Libxsmm:
    """Load libxsmm with the newest interface found.

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


def _flags(gemm: GemmProblem) -> int:
    flags = _BETA_0
    flags |= _TRANSPOSE_A if "b" in gemm.columns else 0
    flags |= _TRANSPOSE_B if "a" in gemm.columns else 0
    flags |= _B_UNSIGNED if gemm.lhs.name == "u8" else 0
    flags |= _A_UNSIGNED if gemm.rhs.name == "u8" else 0
    return flags | (_VNNI_A if gemm.vnni else 0)


def _shape(gemm: GemmProblem, m: int, n: int, k: int, leading_b: int = 0) -> GemmShape:
    leading_a = leading_b or (gemm.n if gemm.vnni else gemm.b_shape[1])
    types = [_DATATYPES[e.name] for e in (gemm.rhs, gemm.lhs, gemm.out, gemm.accumulator)]
    return GemmShape(n, m, k, leading_a, gemm.a_shape[1], gemm.c_shape[1], *types)


# libxsmm_gemm_param: four words each for the operation, A, B, C.
PARAMETER_WORDS: Final = 16
COUNT_WORD: Final = 2
A_WORD: Final = 4
B_WORD: Final = 8
C_WORD: Final = 12

_PACK: Final = "  call void @pack()\n"
_MEMSET: Final = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"


def _parameters(summed: int) -> str:
    """IR that allocates a kernel's parameters for a sum of `summed` products, and addresses its operands."""
    return f"""  %p = alloca [{PARAMETER_WORDS} x i64], align 64
  %count = alloca i64, align 8
  store i64 {summed}, ptr %count
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 {8 * PARAMETER_WORDS}, i1 false)
  %pn = getelementptr i64, ptr %p, i64 {COUNT_WORD}
  store ptr %count, ptr %pn
  %pa = getelementptr i64, ptr %p, i64 {A_WORD}
  %pb = getelementptr i64, ptr %p, i64 {B_WORD}
  %pc = getelementptr i64, ptr %p, i64 {C_WORD}
"""


def product_loops(
    gemm: GemmProblem,
    kernel: int,
    blocks: tuple[int, int, int],
    pointers: dict[str, int],
    flat: int,
    columns: int,
    wide: int = 0,
) -> str:
    """The loops over blocks of rows and of the first `columns` columns; the kernel sums over K.

    `wide` is the number of bytes between the starts of two columns of B, if it is not interleaved as a whole.
    """
    mb, nb, kb = blocks
    out, lhs = gemm.out.bytes, gemm.lhs.bytes
    wide = wide or gemm.rhs.bytes * gemm.factor
    call = f"""  %ia = mul i64 %rows.i, {gemm.k * lhs}
  %a = add i64 %ia, {pointers["a"]}
  %ic = mul i64 %rows.i, {gemm.n * out}
  %jc = mul i64 %columns.i, {out}
  %ijc = add i64 %ic, %jc
  %c = add i64 %ijc, {pointers["c"]}
{_kernel_call(kernel)}"""
    place = f"  %jb = mul i64 %columns.i, {wide}\n  %b = add i64 %jb, {pointers['b']}\n"
    rows = counted_loop("rows", "columns", gemm.m, call, mb)
    body = _PACK * bool(flat) + counted_loop("columns", LOOP_LABEL, columns, place + rows, nb, "rows.end")
    text = loop_function(body, "columns.end", _parameters(gemm.k // kb)) + _MEMSET
    return text + (packing_function(gemm, flat, pointers["b"]) if flat else "")


def _kernel_call(kernel: int) -> str:
    """A kernel call on %a, %b and %c; libxsmm takes A and B in the opposite order."""
    return f"""  store i64 %b, ptr %pa
  store i64 %a, ptr %pb
  store i64 %c, ptr %pc
  call void inttoptr (i64 {kernel} to ptr)(ptr %p)
"""


def packing_function(gemm: GemmProblem, flat: int, packed: int) -> str:
    """The function `@pack`, which interleaves v rows of B, [K][N] -> [K/v][N][v], in registers of up to 64 bytes."""
    v, size = gemm.factor, gemm.rhs.bytes
    lanes = min(64 // size, gemm.n)
    row, type_ = gemm.n * size, f"i{8 * size}"
    loads = "".join(
        f"  %a{r} = add i64 %from, {r * row}\n  %p{r} = inttoptr i64 %a{r} to ptr\n"
        f"  %r{r} = load <{lanes} x {type_}>, ptr %p{r}, align {size}\n"
        for r in range(v)
    )
    pairs = ", ".join(f"i32 {i + half * lanes}" for i in range(lanes) for half in range(2))
    joins = f"  %j0 = shufflevector <{lanes} x {type_}> %r0, <{lanes} x {type_}> %r1, <{2 * lanes} x i32> <{pairs}>\n"
    if v == 4:
        order = ", ".join(
            f"i32 {2 * i + half * 2 * lanes + s}" for i in range(lanes) for half in range(2) for s in range(2)
        )
        two = f"<{2 * lanes} x {type_}>"
        joins += (
            f"  %j1 = shufflevector <{lanes} x {type_}> %r2, <{lanes} x {type_}> %r3, <{2 * lanes} x i32> <{pairs}>\n"
        )
        joins += f"  %j = shufflevector {two} %j0, {two} %j1, <{4 * lanes} x i32> <{order}>\n"
    result = "%j" if v == 4 else "%j0"
    body = f"""  %kr = mul i64 %rows.i, {v * row}
  %nc = mul i64 %columns.i, {size}
  %off = add i64 %kr, %nc
  %from = add i64 %off, {flat}
{loads}{joins}  %nv = mul i64 %columns.i, {v * size}
  %to = add i64 %kr, %nv
  %q = add i64 %to, {packed}
  %place = inttoptr i64 %q to ptr
  store <{v * lanes} x {type_}> {result}, ptr %place, align 64
"""
    columns = counted_loop("columns", "rows", gemm.n, body, lanes)
    rows = counted_loop("rows", "entry", gemm.k // v, columns, last="columns.end")
    attributes = '"min-legal-vector-width"="512" "prefer-vector-width"="512"'
    return f"define internal void @pack() {attributes} {{\nentry:\n{rows}  ret void\n}}\n"


def batch_loop(
    kernel: int, calls: int, summed: int, sizes: list[int], pointers: dict[str, int], first: str = ""
) -> str:
    """Kernel calls on consecutive operands, each summing `summed` products; `sizes` are the bytes of A, B and C.

    `first` is the text of a function `@pack` that is called before the loop.
    """
    a, b, c = sizes
    call = f"""  %ia = mul i64 %calls.i, {a}
  %ib = mul i64 %calls.i, {b}
  %ic = mul i64 %calls.i, {c}
  %a = add i64 %ia, {pointers["a"]}
  %b = add i64 %ib, {pointers["b"]}
  %c = add i64 %ic, {pointers["c"]}
{_kernel_call(kernel)}"""
    body = _PACK * bool(first) + counted_loop("calls", LOOP_LABEL, calls, call)
    return loop_function(body, "calls.end", _parameters(summed)) + _MEMSET + first
