; Constant weights are packed at compile time, but not for big-endian machines: the evaluator that packs them is little
; endian.
;
; RUN: tlx-lower %s --target=vsx --mtriple=powerpc64le-linux-gnu | FileCheck %s --check-prefix=LITTLE
; RUN: tlx-lower %s --target=vsx --mtriple=powerpc64-linux-gnu --remarks -o %t.ll 2>&1 | FileCheck %s --check-prefix=BIG
; RUN: not grep -q "^@.*panels.* = private" %t.ll
;
; LITTLE: {{^@tlx}}.panels = private unnamed_addr constant [512 x i8] c"{{.*}}\80\BF
; BIG: remark: {{.*}}constant B packed when the program runs: the evaluator, which would pack it, is little endian, and the target is not

@w = private constant [80 x bfloat] [bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80, bfloat 0xR4000, bfloat 0xR0000, bfloat 0xRBF80]

define void @f(ptr noalias %c, ptr %a) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 100, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) @w, <2 x i32> <i32 16, i32 5>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <500 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  store <500 x float> %m, ptr %c, align 4
  ret void
}
