; Operations that are not lowered at run-time sizes are errors that point at them.
; RUN: not tlx-lower %s --target=generic -o - 2>&1 | FileCheck %s
; CHECK: not_lowered.ll:[[@LINE+6]]:3: error: llvm.tensor.reshape.block of extents known only at run time is not lowered yet: make them constants, in a function for each size
; RUN: sed 's/(float)/(i1)/; s/^  %y.*$/  %y = call <vscale x 1 x i1> @llvm.tensor.tovector(token %x)/' %s | not tlx-lower --target=generic -o - 2>&1 | FileCheck %s --check-prefix=BITS
; BITS: 8:3: error: tensors of i1 are not lowered yet where an extent is known only at run time: store them as i8

define void @f(ptr %a, <2 x i32> %s) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call <vscale x 1 x float> @llvm.tensor.reshape.block(token %x, <1 x i32> <i32 1>, <1 x i32> <i32 8>)
  ret void
}
