; A crash of LLVM is an error message.
;
; RUN: not tlx-lower --emit=asm %s 2>&1 | FileCheck %s
; CHECK: tlx-lower: error: LLVM cannot emit assembly: LLVM died of SIGABRT
; CHECK-NEXT: LLVM ERROR: Cannot select: intrinsic %llvm.x86.tdpbssd.internal

target triple = "x86_64-unknown-linux-gnu"

define void @f(ptr %p) {
  %z = call x86_amx @llvm.x86.tilezero.internal(i16 8, i16 8)
  %x = call x86_amx @llvm.x86.tdpbssd.internal(i16 8, i16 8, i16 8, x86_amx %z, x86_amx %z, x86_amx %z)
  call void @llvm.x86.tilestored64.internal(i16 8, i16 8, ptr %p, i64 64, x86_amx %x)
  ret void
}

declare x86_amx @llvm.x86.tilezero.internal(i16, i16)
declare x86_amx @llvm.x86.tdpbssd.internal(i16, i16, i16, x86_amx, x86_amx, x86_amx)
declare void @llvm.x86.tilestored64.internal(i16, i16, ptr, i64, x86_amx)
