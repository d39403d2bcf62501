"""Functions that multiply two matrices, as text."""

from __future__ import annotations

_NONE = "<2 x i32> zeroinitializer"


def product_text(
    m: int,
    n: int,
    k: int,
    element: str = "float",
    *,
    result: str = "",
    a_columns: bool = False,
    b_columns: bool = False,
    relu: bool = False,
) -> str:
    """A function `@f(ptr noalias %c, ptr %a, ptr %b)` that stores the product of A and B to C.

    Args:
        m: Rows of A and C.
        n: Columns of B and C.
        k: Columns of A, rows of B.
        element: Element type of A and B.
        result: Element type of C; by default that of A and B.
        a_columns: Whether A is column-major.
        b_columns: Whether B is.
        relu: Whether C is `relu` of the product.
    """
    vector = f"<{m * n} x {result or element}>"
    c = _dims(m, n)
    value, epilogue = "%m", ""
    if relu:
        value = "%r"
        epilogue = f"""  %u = call token @llvm.tensor.typeinfo({vector} %m, {c}, {_NONE})
  %r = call {vector} @llvm.tensor.relu(token %u)
"""
    return f"""define void @f(ptr noalias %c, ptr %a, ptr %b) {{
  %x = call token @llvm.tensor.load(ptr elementtype({element}) %a, {_dims(m, k, a_columns)}, {_NONE}, {_NONE})
  %y = call token @llvm.tensor.load(ptr elementtype({element}) %b, {_dims(k, n, b_columns)}, {_NONE}, {_NONE})
  %m = call {vector} @llvm.tensor.matmul(token %x, token %y)
{epilogue}  %t = call token @llvm.tensor.typeinfo({vector} {value}, {c}, {_NONE})
  call void @llvm.tensor.store(ptr %c, token %t, {_NONE})
  ret void
}}
"""


def _dims(rows: int, columns: int, by_columns: bool = False) -> str:
    """Extents and layout of a matrix; those of a column-major one are listed as it lies: columns first."""
    if by_columns:
        return f"<2 x i32> <i32 {columns}, i32 {rows}>, <2 x i32> <i32 1, i32 0>"
    return f"<2 x i32> <i32 {rows}, i32 {columns}>, <2 x i32> <i32 0, i32 1>"
