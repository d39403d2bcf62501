; Operations that are not lowered at run-time sizes are errors that point at them.
; RUN: not tlx-lower %s --target=generic -o - 2>&1 | FileCheck %s
; CHECK: not_lowered.ll:7:3: error: {{.*}}llvm.tensor.reshape.block of extents known only at run time is not lowered yet

define void @f(ptr %a, <2 x i32> %s) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call <vscale x 1 x float> @llvm.tensor.reshape.block(token %x, <1 x i32> <i32 1>, <1 x i32> <i32 8>)
  ret void
}
