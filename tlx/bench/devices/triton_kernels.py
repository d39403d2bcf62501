"""Kernels from Triton's tutorials: a matrix product, and the softmax of rows."""

# Triton compiles the source of these functions, and takes annotations for its own.
# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl


@triton.jit
def product(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    a_row,
    a_column,
    b_row,
    b_column,
    sums: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    """`c = a @ b`, c row-major: a program for each block of c, in groups of rows of blocks."""
    program = tl.program_id(0)
    columns = tl.cdiv(N, BLOCK_N)
    rows = tl.cdiv(M, BLOCK_M)
    group = program // (GROUP * columns)
    height = min(rows - group * GROUP, GROUP)
    row = group * GROUP + (program % (GROUP * columns)) % height
    column = (program % (GROUP * columns)) // height
    m = (row * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    n = (column * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    k = tl.arange(0, BLOCK_K)
    a = a_ptr + m[:, None] * a_row + k[None, :] * a_column
    b = b_ptr + k[:, None] * b_row + n[None, :] * b_column
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=sums)
    for step in range(tl.cdiv(K, BLOCK_K)):
        x = tl.load(a, mask=k[None, :] < K - step * BLOCK_K, other=0)
        y = tl.load(b, mask=k[:, None] < K - step * BLOCK_K, other=0)
        acc = tl.dot(x, y, acc, out_dtype=sums)
        a += BLOCK_K * a_column
        b += BLOCK_K * b_row
    m = row * BLOCK_M + tl.arange(0, BLOCK_M)
    n = column * BLOCK_N + tl.arange(0, BLOCK_N)
    c = c_ptr + m[:, None] * N + n[None, :]
    tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    """A program for each row."""
    at = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < columns
    x = tl.load(x_ptr + at, mask=mask, other=-float("inf")).to(tl.float32)
    powers = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + at, (powers / tl.sum(powers, axis=0)).to(y_ptr.dtype.element_ty), mask=mask)
