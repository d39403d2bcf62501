"""Loops around libxsmm's kernels, as LLVM IR: a kernel takes a pointer to its parameters."""

from __future__ import annotations

from typing import Final

from tlx.bench.problems import Gemm

# libxsmm_gemm_param: four words each for the operation, A, B, C.
PARAMETER_WORDS: Final = 16
COUNT_WORD: Final = 2
A_WORD: Final = 4
B_WORD: Final = 8
C_WORD: Final = 12


def _parameters(summed: int) -> str:
    """The entry block: a kernel's parameters for a sum of `summed` products, and where its operands go."""
    return f"""entry:
  %p = alloca [{PARAMETER_WORDS} x i64], align 64
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
    return f"""
define void @repeat(i64 %n) {{
{_parameters(gemm.k // kb)}  br label %again
again:
  %t = phi i64 [ 0, %entry ], [ %t1, %outer.end ]
{"  call void @pack()" if flat else ""}
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
  %more.j = icmp ult i64 %j1, {columns}
  br i1 %more.j, label %outer, label %outer.end
outer.end:
  %t1 = add i64 %t, 1
  %more = icmp ult i64 %t1, %n
  br i1 %more, label %again, label %end
end:
  ret void
}}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
{packing(gemm, flat, pointers["b"]) if flat else ""}"""


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
    return f"""
define internal void @pack() "min-legal-vector-width"="512" "prefer-vector-width"="512" {{
entry:
  br label %rows
rows:
  %k = phi i64 [ 0, %entry ], [ %k1, %row.end ]
  br label %columns
columns:
  %n = phi i64 [ 0, %rows ], [ %n1, %columns ]
  %kr = mul i64 %k, {v * row}
  %nc = mul i64 %n, {size}
  %off = add i64 %kr, %nc
  %from = add i64 %off, {flat}
{loads}{joins}  %nv = mul i64 %n, {v * size}
  %to = add i64 %kr, %nv
  %q = add i64 %to, {packed}
  %place = inttoptr i64 %q to ptr
  store <{v * lanes} x {type_}> {result}, ptr %place, align 64
  %n1 = add i64 %n, {lanes}
  %more.n = icmp ult i64 %n1, {gemm.n}
  br i1 %more.n, label %columns, label %row.end
row.end:
  %k1 = add i64 %k, 1
  %more.k = icmp ult i64 %k1, {gemm.k // v}
  br i1 %more.k, label %rows, label %end
end:
  ret void
}}
"""


def batch(kernel: int, calls: int, summed: int, sizes: list[int], pointers: dict[str, int], first: str = "") -> str:
    """Calls, each on the next operands; a call sums up `summed` products. `sizes` are the bytes of a, b and c.

    `first` is a function `@pack` to call each time before.
    """
    a, b, c = sizes
    return f"""
define void @repeat(i64 %n) {{
{_parameters(summed)}  br label %again
again:
  %t = phi i64 [ 0, %entry ], [ %t1, %done ]
{"  call void @pack()" if first else ""}
  br label %loop
loop:
  %i = phi i64 [ 0, %again ], [ %i1, %loop ]
  %ia = mul i64 %i, {a}
  %ib = mul i64 %i, {b}
  %ic = mul i64 %i, {c}
  %va = add i64 %ia, {pointers["a"]}
  %vb = add i64 %ib, {pointers["b"]}
  %vc = add i64 %ic, {pointers["c"]}
  store i64 %vb, ptr %pa
  store i64 %va, ptr %pb
  store i64 %vc, ptr %pc
  call void inttoptr (i64 {kernel} to ptr)(ptr %p)
  %i1 = add i64 %i, 1
  %more.i = icmp ult i64 %i1, {calls}
  br i1 %more.i, label %loop, label %done
done:
  %t1 = add i64 %t, 1
  %more = icmp ult i64 %t1, %n
  br i1 %more, label %again, label %end
end:
  ret void
}}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
{first}"""
