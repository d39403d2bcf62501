"""libxsmm: kernels for one shape each, compiled at run time, and loops around them for large matrices.

libxsmm is column-major: our row-major c = a @ b is its C = A B with A = b, B = a, and m and n swapped.

    for j step nb, for i step mb:               loops in machine code, split among threads
      brgemm(&c[i, j], &a[i, :], &b[:, j])      sums over all blocks of K; bias and ReLU of layers are in the kernel

Versions since 2021 have `libxsmm_dispatch_gemm_v2` or, later, `libxsmm_dispatch_gemm`; release 1.17 has neither and is
used for float and double only.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from tlx.bench.peers.base import Attempt, LibraryPaths
from tlx.intrinsics.numpy_types import Array
from tlx.tuning import machine
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
from tlx.tuning.workload import BatchProblem, BlockedProblem, GemmProblem, LayerProblem, Workload, WorkloadBuffer

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


class UnaryOperations(ctypes.Structure):
    """`libxsmm_gemm_ext_unary_argops`: functions of A, B and C, with leading dimensions, flags, whether to store."""

    _fields_ = [(f"{name}_{operand}", ctypes.c_int) for operand in "abc" for name in ("ld", "type", "flags", "store")]


class BinaryOperation(ctypes.Structure):
    """`libxsmm_gemm_ext_binary_postops`: what is added to the sums."""

    _fields_ = [(name, ctypes.c_int) for name in ("ld", "input_type", "type", "flags")]


_RELU: Final = 5
_ADD: Final = 1
_BROADCAST_COLUMN: Final = 4  # libxsmm's columns are our rows


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
        self._reduce_layer: Any = getattr(library, f"libxsmm_dispatch_brgemm_ext{self._end}", None)
        for function in (self._dispatch, self._reduce, self._reduce_layer):
            if function is not None:
                function.restype = ctypes.c_void_p
        generation = "2" if self._dispatch is not None else "1.17"
        self.version = f"{generation} ({library.libxsmm_get_target_arch().decode()})"

    def attempts(self, work: Workload, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """A single kernel, then loops around a kernel with several block sizes."""
        if self._dispatch is None:
            yield from self._old(work, arrays)
            return
        match work.problem:
            case BatchProblem() as batch:
                yield from self._batch(batch, arrays)
            case BlockedProblem() as blocked:
                yield from self._of_blocks(blocked, arrays)
            case LayerProblem(gemm) if self._reduce_layer is not None:
                yield from self._product(gemm, arrays)
            case GemmProblem() as gemm if "c" not in gemm.columns:
                yield from self._product(gemm, arrays)
            case _:
                return

    def _product(self, gemm: GemmProblem, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """A product, or a layer if there is a bias."""
        if gemm.prepared:
            yield from self._panels(gemm, arrays)
            return
        if gemm.rhs.bytes < 4 and not gemm.vnni:
            yield from self._packed(gemm, arrays)
        if gemm.rhs.bytes == 1 and not gemm.vnni:
            return
        flags = _flags(gemm)
        if "bias" not in arrays and max(gemm.m, gemm.n, gemm.k) <= 2 * _WHOLE:
            kernel = self.kernel(gemm, gemm.m, gemm.n, gemm.k, flags)
            if kernel:
                block = (ctypes.c_uint64 * PARAMETER_WORDS)()
                block[A_WORD], block[B_WORD], block[C_WORD] = (arrays[n].ctypes.data for n in "bac")
                step = NativeCall(kernel, (("ptr", ctypes.addressof(block)),))
                yield Attempt(call_loop([step], (self._library, block, arrays)), "one kernel")
        if gemm.columns or min(gemm.m, gemm.n) < _BLOCKS[0][0]:
            return
        yield from self._blocked(gemm, arrays, flags)

    def _of_blocks(self, problem: BlockedProblem, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """A kernel call for each block of C; the kernel interleaves rows of B of a narrow type if they are not yet."""
        gemm, (mb, nb, kb) = problem.gemm, problem.blocks
        shape = _shape(gemm, mb, nb, kb, leading=(nb, kb, nb))
        strides = (kb * nb * gemm.rhs.bytes, mb * kb * gemm.lhs.bytes)
        kernel = self._accumulating_kernel(shape, strides, _flags(gemm), arrays)
        if kernel:
            block = mb * nb * gemm.out.bytes
            loops = BlockLoops(
                kernel,
                gemm.m // mb,
                gemm.n // nb,
                gemm.k // kb,
                (mb * gemm.k * gemm.lhs.bytes, nb * gemm.k * gemm.rhs.bytes, gemm.n // nb * block, block, nb),
            )
            yield Attempt(compile_loop(loops.text(_addresses(arrays)), (self._library, arrays)))

    def _old(self, work: Workload, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """A kernel of release 1.17, which takes pointers to its operands as arguments."""
        gemm = work.problem
        if not isinstance(gemm, GemmProblem) or gemm.columns or max(gemm.m, gemm.n, gemm.k) > 2 * _WHOLE:
            return
        beta = int(gemm.accumulates)
        dispatch = {"f32": "libxsmm_smmdispatch", "f64": "libxsmm_dmmdispatch"}.get(work.types)
        if dispatch is None:
            return
        make = getattr(self._library, dispatch)
        make.restype = ctypes.c_void_p
        scalar = ctypes.c_float if gemm.out.name == "f32" else ctypes.c_double
        one, zero = ctypes.byref(scalar(1)), ctypes.byref(scalar(beta))
        kernel = make(gemm.n, gemm.m, gemm.k, None, None, None, one, zero, None, None)
        if kernel:
            pointers = [("ptr", arrays[name].ctypes.data) for name in "bacbac"]  # the last three are prefetch addresses
            yield Attempt(call_loop([NativeCall(kernel, tuple(pointers))], (self._library, arrays)), "one kernel")

    def _batch(self, batch: BatchProblem, arrays: dict[str, Array]) -> Iterator[Attempt]:
        """A kernel call for each product, or one that sums over the batch; B of a narrow type is interleaved first."""
        gemm = batch.gemm
        sizes = [gemm.m * gemm.k * gemm.lhs.bytes, gemm.k * gemm.n * gemm.rhs.bytes, gemm.m * gemm.n * gemm.out.bytes]
        pointers = _addresses(arrays)
        calls, summed = (1, batch.count) if batch.reduced else (batch.count, 1)
        for narrow in (False, True) if gemm.rhs.bytes < 4 and gemm.n % 32 == 0 and not gemm.vnni else (False,):
            like = replace(gemm, vnni=narrow or gemm.vnni)
            if gemm.rhs.bytes == 1 and not like.vnni:
                continue
            shape = _shape(like, gemm.m, gemm.n, gemm.k)
            kernel = (
                self._accumulating_kernel(shape, (sizes[1], sizes[0]), _flags(like))
                if batch.reduced
                else self._dispatch(shape, _flags(like), 0)
            )
            if not kernel:
                continue
            first, rows, operands, packed = "", 0, pointers, None
            if narrow:  # B as a whole is one matrix of count * K rows
                whole = replace(like, k=batch.count * gemm.k)
                packed = WorkloadBuffer("b", gemm.rhs, whole.b_shape, output=True).fill(0)
                first = packing_function(whole, pointers["b"], packed.ctypes.data)
                rows = whole.k // whole.factor
                operands = {**pointers, "b": packed.ctypes.data}
            text = batch_loop(kernel, calls, summed, sizes, operands, (first, rows))
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
            pointers = _addresses(arrays | {"b": panels})
            for mb, kb in product(row_blocks(gemm.m), (*_K_BLOCKS, gemm.k)):
                if gemm.k % kb:
                    continue
                shape = _shape(like, mb, nb, kb, leading=(nb, gemm.k, gemm.n))
                strides = (kb * nb * gemm.rhs.bytes, kb * gemm.lhs.bytes)
                kernel = self._accumulating_kernel(shape, strides, _flags(like))
                if kernel:
                    loops = _row_major_loops(like, kernel, (mb, nb, kb), gemm.n, gemm.k * gemm.rhs.bytes)
                    repeat = compile_loop(loops.text(pointers), (self._library, arrays, panels))
                    yield Attempt(repeat, f"blocks of {mb}x{nb}x{kb}, B packed beforehand")

    def kernel(self, gemm: GemmProblem, m: int, n: int, k: int, flags: int) -> int | None:
        """The address of a kernel for an `m` x `n` x `k` part of a product; None if there is none."""
        return self._dispatch(_shape(gemm, m, n, k), flags, 0)

    def _blocked(self, gemm: GemmProblem, arrays: dict[str, Array], flags: int, flat: int = 0) -> Iterator[Attempt]:
        """Loops around a kernel for several block sizes; for large products, the two fastest on part of the columns."""
        pointers = _addresses(arrays)
        kernels: dict[Blocks, int] = {}
        for blocks in _blocks(gemm):
            strides = (blocks[2] * gemm.n * gemm.rhs.bytes, blocks[2] * gemm.lhs.bytes)
            if kernel := self._accumulating_kernel(_shape(gemm, *blocks), strides, flags, arrays):
                kernels[blocks] = kernel

        def repeat(blocks: Blocks, columns: int, pack: int) -> Repeat:
            loops = _row_major_loops(gemm, kernels[blocks], blocks, columns)
            if pack:
                packing = packing_function(gemm, pack, pointers["b"])
                loops = replace(loops, packing=packing, packed=gemm.k // gemm.factor)
            return compile_loop(loops.text(pointers), (self._library, arrays))

        sizes = list(kernels)
        if gemm.m * gemm.n * gemm.k > _LARGE:
            sizes = sorted(sizes, key=lambda blocks: seconds(repeat(blocks, _TRIAL_ROWS, 0)))[:_MOST_BLOCKINGS]
        for blocks in sizes:
            note = f"blocks of {'x'.join(map(str, blocks))}" + (", packs b" if flat else "")
            yield Attempt(repeat(blocks, gemm.n, flat), note)

    def _accumulating_kernel(
        self, shape: GemmShape, strides: tuple[int, int], flags: int, arrays: Mapping[str, Array] | None = None
    ) -> int | None:
        """A kernel that sums products of blocks, with bias and ReLU if there is an array of biases; None without one.

        Args:
            shape: Shape of the blocks.
            strides: Bytes between consecutive blocks of libxsmm's A and B.
            flags: Flags of the product.
            arrays: The operands.
        """
        config = BatchReduceConfig(_STRIDED, *strides, 0)
        if arrays is None or "bias" not in arrays:
            return self._reduce(shape, flags, 0, config)
        relu, bias = UnaryOperations(), BinaryOperation(shape.ldc, _DATATYPES["f32"], _ADD, _BROADCAST_COLUMN)
        relu.ld_c, relu.type_c = shape.ldc, _RELU
        return self._reduce_layer(shape, flags, 0, config, relu, bias)


def _addresses(arrays: Mapping[str, Array]) -> dict[str, int]:
    return {name: array.ctypes.data for name, array in arrays.items()}


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
    flags = 0 if gemm.accumulates else _BETA_0
    flags |= _TRANSPOSE_A if "b" in gemm.columns else 0
    flags |= _TRANSPOSE_B if "a" in gemm.columns else 0
    flags |= _B_UNSIGNED if gemm.lhs.name == "u8" else 0
    flags |= _A_UNSIGNED if gemm.rhs.name == "u8" else 0
    return flags | (_VNNI_A if gemm.vnni else 0)


def _shape(gemm: GemmProblem, m: int, n: int, k: int, leading: tuple[int, int, int] | None = None) -> GemmShape:
    """The shape of a part of a product; the leading dimensions of our B, A and C are those of the whole by default."""
    whole = gemm.n if gemm.vnni else gemm.b_shape[1], gemm.a_shape[1], gemm.c_shape[1]
    types = [_DATATYPES[e.name] for e in (gemm.rhs, gemm.lhs, gemm.out, gemm.accumulator)]
    return GemmShape(n, m, k, *(leading or whole), *types)


# libxsmm_gemm_ext_param: four words each for the operation, A, B, C, D (the bias), and three that are not used.
PARAMETER_WORDS: Final = 32
COUNT_WORD: Final = 2
A_WORD: Final = 4
B_WORD: Final = 8
C_WORD: Final = 12
BIAS_WORD: Final = 16

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
  %pd = getelementptr i64, ptr %p, i64 {BIAS_WORD}
"""


@dataclass(frozen=True)
class BlockLoops:
    """Loops around a kernel that computes a block of C as a sum along K; threads take consecutive blocks.

        for j in columns, for i in rows:  kernel(a + i a_step, b + j b_step, c + i c_down + j c_right, bias + j biases)

    Attributes:
        kernel: Address of the kernel.
        rows: Number of blocks along M.
        columns: Number of blocks along N.
        summed: Number of products that the kernel sums.
        steps: (a_step, b_step, c_down, c_right) in bytes, and the number of biases, of float, in a block.
        packing: The text of a function `@pack` to call first, which interleaves a range of B's rows.
        packed: Number of those rows.
    """

    kernel: int
    rows: int
    columns: int
    summed: int
    steps: tuple[int, int, int, int, int]
    packing: str = ""
    packed: int = 0

    def text(self, pointers: Mapping[str, int]) -> str:
        """The module, for operands at these addresses."""
        return self._of_range(pointers) + self.packing + _MEMSET + self._repeated(machine.library_threads())

    def _of_range(self, pointers: Mapping[str, int]) -> str:
        """The function `@blocks`, which computes the blocks from `%first` up to `%last`."""
        a, b, down, right, biases = self.steps
        body = f"""  %t = add i64 %first, %blocks.i
  %j = udiv i64 %t, {self.rows}
  %i = urem i64 %t, {self.rows}
  %ia = mul i64 %i, {a}
  %a = add i64 %ia, {pointers["a"]}
  %jb = mul i64 %j, {b}
  %b = add i64 %jb, {pointers["b"]}
  %ic = mul i64 %i, {down}
  %jc = mul i64 %j, {right}
  %ijc = add i64 %ic, %jc
  %c = add i64 %ijc, {pointers["c"]}
  %jd = mul i64 %j, {4 * biases}
  %d = add i64 %jd, {pointers.get("bias", 0)}
  store i64 %d, ptr %pd
{_kernel_call(self.kernel)}"""
        return _range_function("blocks", body, _parameters(self.summed))

    def _repeated(self, threads: int) -> str:
        """The function `@repeat`: all blocks, `%n` times, after packing."""
        total = self.rows * self.columns
        if threads == 1:
            pack = f"  call void @pack(i64 0, i64 {self.packed})\n" if self.packing else ""
            return loop_function(f"{pack}  call void @blocks(i64 0, i64 {total})\n")
        pack = _shared_call("pack", self.packed) + "  call void @GOMP_barrier()\n" if self.packing else ""
        team = "  call void @GOMP_parallel(ptr @member, ptr null, i32 0, i32 0)\n"
        return loop_function(team) + _MEMBER.replace("CALLS", pack + _shared_call("blocks", total))


_MEMBER: Final = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare void @GOMP_barrier()
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()

define internal void @member(ptr %unused) {
  %number = call i32 @omp_get_thread_num()
  %members = call i32 @omp_get_num_threads()
  %begin = zext i32 %number to i64
  %team = zext i32 %members to i64
  %end = add i64 %begin, 1
CALLS  ret void
}
"""


def _shared_call(name: str, total: int) -> str:
    """A thread's call of a function of a range, on its share of 0 to `total`."""
    return f"""  %{name}.0 = mul i64 %begin, {total}
  %{name}.1 = udiv i64 %{name}.0, %team
  %{name}.2 = mul i64 %end, {total}
  %{name}.3 = udiv i64 %{name}.2, %team
  call void @{name}(i64 %{name}.1, i64 %{name}.3)
"""


def _range_function(name: str, body: str, first: str = "", last: str = "", attributes: str = "") -> str:
    """The function `@NAME(i64 %first, i64 %last)`: a body for `%NAME.i` from 0 up to the length of the range.

    Args:
        name: Its name.
        body: The body.
        first: Instructions before the loop.
        last: The last block of the body, if it has several.
        attributes: Attributes of the function.
    """
    return f"""define internal void @{name}(i64 %first, i64 %last) {attributes} {{
entry:
{first}  %size = sub i64 %last, %first
  %empty = icmp eq i64 %size, 0
  br i1 %empty, label %done, label %start
start:
{counted_loop(name, "start", "%size", body, last=last)}  br label %done
done:
  ret void
}}
"""


def _row_major_loops(gemm: GemmProblem, kernel: int, blocks: Blocks, columns: int, wide: int = 0) -> BlockLoops:
    """The loops over blocks of all rows and of the first `columns` columns of row-major matrices.

    `wide` is the number of bytes between the starts of two columns of B, if it is not interleaved as a whole.
    """
    mb, nb, kb = blocks
    out = gemm.out.bytes
    wide = wide or gemm.rhs.bytes * gemm.factor
    steps = (mb * gemm.k * gemm.lhs.bytes, nb * wide, mb * gemm.n * out, nb * out, nb)
    return BlockLoops(kernel, gemm.m // mb, columns // nb, gemm.k // kb, steps)


def _kernel_call(kernel: int) -> str:
    """A kernel call on %a, %b and %c; libxsmm takes A and B in the opposite order."""
    return f"""  store i64 %b, ptr %pa
  store i64 %a, ptr %pb
  store i64 %c, ptr %pc
  call void inttoptr (i64 {kernel} to ptr)(ptr %p)
"""


def packing_function(gemm: GemmProblem, flat: int, packed: int) -> str:
    """The function `@pack`: interleaves v rows of B, [K][N] -> [K/v][N][v], in registers of up to 64 bytes.

    It takes a range of groups of v rows.
    """
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
    body = f"""  %kr = mul i64 %group, {v * row}
  %nc = mul i64 %columns.i, {size}
  %off = add i64 %kr, %nc
  %from = add i64 %off, {flat}
{loads}{joins}  %nv = mul i64 %columns.i, {v * size}
  %to = add i64 %kr, %nv
  %q = add i64 %to, {packed}
  %place = inttoptr i64 %q to ptr
  store <{v * lanes} x {type_}> {result}, ptr %place, align 64
"""
    columns = "  %group = add i64 %first, %pack.i\n" + counted_loop("columns", "pack", gemm.n, body, lanes)
    attributes = '"min-legal-vector-width"="512" "prefer-vector-width"="512"'
    return _range_function("pack", columns, last="columns.end", attributes=attributes)


def batch_loop(
    kernel: int,
    calls: int,
    summed: int,
    sizes: list[int],
    pointers: dict[str, int],
    packing: tuple[str, int] = ("", 0),
) -> str:
    """Kernel calls on consecutive operands, each summing `summed` products; `sizes` are the bytes of A, B and C.

    `packing` is the text of a function `@pack` that is called before the loop, and the end of its range.
    """
    a, b, c = sizes
    call = f"""  %ia = mul i64 %calls.i, {a}
  %ib = mul i64 %calls.i, {b}
  %ic = mul i64 %calls.i, {c}
  %a = add i64 %ia, {pointers["a"]}
  %b = add i64 %ib, {pointers["b"]}
  %c = add i64 %ic, {pointers["c"]}
{_kernel_call(kernel)}"""
    first, rows = packing
    pack = f"  call void @pack(i64 0, i64 {rows})\n" if first else ""
    body = pack + counted_loop("calls", LOOP_LABEL, calls, call)
    return loop_function(body, "calls.end", _parameters(summed)) + _MEMSET + first
