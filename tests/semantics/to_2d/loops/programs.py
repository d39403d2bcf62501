"""A loop that carries a tensor in a vector."""

from __future__ import annotations

from typing import Final

DENSE: Final = "<2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
"""Row-major layout of a matrix, without padding."""


def carried_loop(body: str) -> str:
    """Four iterations on a matrix of 3x4 floats: from its vector `%v` and token `%vt`, the body computes `%w`."""
    return f"""
define void @f(ptr %x, ptr %y) {{
entry:
  %first = load <12 x float>, ptr %x
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %v = phi <12 x float> [ %first, %entry ], [ %w, %loop ]
  %vt = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>, {DENSE})
{body}  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 4
  br i1 %more, label %loop, label %exit
exit:
  store <12 x float> %w, ptr %y
  ret void
}}
"""
