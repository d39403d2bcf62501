"""A loop over AMX tiles: a row of bytes times itself, summed up as often as `count` says."""

from typing import Final

DECLARED: Final = """\
declare x86_amx @llvm.x86.tilezero.internal(i16, i16)
declare x86_amx @llvm.x86.tileloadd64.internal(i16, i16, ptr, i64)
declare x86_amx @llvm.x86.tileloaddt164.internal(i16, i16, ptr, i64)
declare void @llvm.x86.tilestored64.internal(i16, i16, ptr, i64, x86_amx)
declare x86_amx @llvm.x86.tdpbssd.internal(i16, i16, i16, x86_amx, x86_amx, x86_amx)
"""
POWER: Final = """\
define void @power(ptr %a, ptr %c, i16 %count) noinline {
entry:
  %t = call x86_amx @llvm.x86.tileloadd64.internal(i16 1, i16 4, ptr %a, i64 4)
  %u = call x86_amx @llvm.x86.tileloadd64.internal(i16 1, i16 4, ptr %a, i64 4)
  %z = call x86_amx @llvm.x86.tilezero.internal(i16 1, i16 4)
  br label %loop
loop:
  %i = phi i16 [ 0, %entry ], [ %j, %loop ]
  %acc = phi x86_amx [ %z, %entry ], [ %next, %loop ]
  %next = call x86_amx @llvm.x86.tdpbssd.internal(i16 1, i16 4, i16 4, x86_amx %acc, x86_amx %t, x86_amx %u)
  %j = add i16 %i, 1
  %more = icmp ult i16 %j, %count
  br i1 %more, label %loop, label %done
done:
  call void @llvm.x86.tilestored64.internal(i16 1, i16 4, ptr %c, i64 4, x86_amx %next)
  ret void
}
"""
