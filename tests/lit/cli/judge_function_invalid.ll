; LLVM's verifier rejects a function as a whole.
;
; RUN: not tlx verify %s 2>&1 | FileCheck %s
; CHECK: judge_function_invalid.ll:7:13: error: Function takes x86_amx but isn't an intrinsic
; CHECK-NEXT: define void @f(x86_amx %x) {

define void @f(x86_amx %x) {
  ret void
}
