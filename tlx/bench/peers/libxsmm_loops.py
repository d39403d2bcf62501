"""Loops around libxsmm's kernels, as LLVM IR: a kernel takes a pointer to its parameters."""

from __future__ import annotations

from typing import Final

from tlx.bench.native_calls import AGAIN, counted, repeating
from tlx.bench.problems import Gemm

# libxsmm_gemm_param: four words each for the operation, A, B, C.
PARAMETER_WORDS: Final = 16
COUNT_WORD: Final = 2
A_WORD: Final = 4
B_WORD: Final = 8
C_WORD: Final = 12

_PACK: Final = "  call void @pack()\n"
_MEMSET: Final = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"


def _parameters(summed: int) -> str:
    """Makes a kernel's parameters for a sum of `summed` products, and where its operands go."""
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


def product(
    gemm: Gemm, kernel: int, blocks: tuple[int, int, int], pointers: dict[str, int], flat: int, columns: int
) -> str:
    """The loops over blocks of rows and of the first `columns`; K is summed up by the kernel."""
    mb, nb, kb = blocks
    out, lhs = gemm.out.bytes, gemm.lhs.bytes
    wide = gemm.rhs.bytes * gemm.factor  # b's columns lie that far apart
    call = f"""  %ia = mul i64 %rows.i, {gemm.k * lhs}
  %a = add i64 %ia, {pointers["a"]}
  %ic = mul i64 %rows.i, {gemm.n * out}
  %jc = mul i64 %columns.i, {out}
  %ijc = add i64 %ic, %jc
  %c = add i64 %ijc, {pointers["c"]}
{_call(kernel)}"""
    place = f"  %jb = mul i64 %columns.i, {wide}\n  %b = add i64 %jb, {pointers['b']}\n"
    rows = counted("rows", "columns", gemm.m, call, mb)
    body = _PACK * bool(flat) + counted("columns", AGAIN, columns, place + rows, nb, "rows.end")
    text = repeating(body, "columns.end", _parameters(gemm.k // kb)) + _MEMSET
    return text + (packing(gemm, flat, pointers["b"]) if flat else "")


def _call(kernel: int) -> str:
    """A kernel's call on %a, %b and %c, which libxsmm takes the other way round."""
    return f"""  store i64 %b, ptr %pa
  store i64 %a, ptr %pb
  store i64 %c, ptr %pc
  call void inttoptr (i64 {kernel} to ptr)(ptr %p)
"""


def packing(gemm: Gemm, flat: int, packed: int) -> str:
    """`@pack`, which interleaves v rows of b: [K][N] -> [K/v][N][v], in registers of 64 bytes at most."""
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
    columns = counted("columns", "rows", gemm.n, body, lanes)
    rows = counted("rows", "entry", gemm.k // v, columns, last="columns.end")
    attributes = '"min-legal-vector-width"="512" "prefer-vector-width"="512"'
    return f"define internal void @pack() {attributes} {{\nentry:\n{rows}  ret void\n}}\n"


def batch(kernel: int, calls: int, summed: int, sizes: list[int], pointers: dict[str, int], first: str = "") -> str:
    """Calls, each on the next operands; a call sums up `summed` products. `sizes` are the bytes of a, b and c.

    `first` is a function `@pack` to call each time before.
    """
    a, b, c = sizes
    call = f"""  %ia = mul i64 %calls.i, {a}
  %ib = mul i64 %calls.i, {b}
  %ic = mul i64 %calls.i, {c}
  %a = add i64 %ia, {pointers["a"]}
  %b = add i64 %ib, {pointers["b"]}
  %c = add i64 %ic, {pointers["c"]}
{_call(kernel)}"""
    body = _PACK * bool(first) + counted("calls", AGAIN, calls, call)
    return repeating(body, "calls.end", _parameters(summed)) + _MEMSET + first
