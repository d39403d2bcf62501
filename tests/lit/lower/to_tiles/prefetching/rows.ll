; If A and B together exceed L2 and B is read in place, each row tile of A is multiplied by all panels
; of B, and prefetches the rows of the next one: 11 with each of three panels, starting 32 rows below. If all of B is one panel
; of four tiles, each tile of A is loaded once, between four products, and nothing is prefetched.
; RUN: grep -v '^;' %s | tlx-lower - --target=amx --stop-after=to-tiles --remarks -o - 2>&1 | FileCheck %s

; CHECK: remark: matmul 256x96x4608 bfloat -> float: {{.*}}nothing packed{{.*}}A of the next tiles prefetched
; CHECK: remark: matmul 256x64x4608 bfloat -> float: {{.*}}register tile 16x64, nothing packed
; CHECK-NOT: prefetched
; CHECK-LABEL: define internal void @tlx.matmul.256x96x4608
; CHECK:       t.loop:
; CHECK:         %[[SHARE:.*]] = mul i64 %{{.*}}, 11
; CHECK-NEXT:    %[[ROW:.*]] = add i64 %[[SHARE]], 32
; CHECK-NEXT:    mul i64 %[[ROW]], 9216
; CHECK-COUNT-11: call void @llvm.prefetch{{.*}}(ptr %{{.*}}, i32 0, i32 2, i32 1)
; CHECK:         k.loop{{.*}}:
; CHECK-COUNT-11: call void @llvm.prefetch{{.*}}(ptr %{{.*}}, i32 0, i32 2, i32 1)
; CHECK-NOT:     call void @llvm.prefetch
; CHECK:         ret void
define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 256, i32 4608>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %packed = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <3 x i32> <i32 2304, i32 96, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>,
      <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %rhs.flat = call <442368 x bfloat> @llvm.tensor.reshape.permute(token %packed, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 4608, i32 96>)
  %rhs = call token @llvm.tensor.typeinfo(<442368 x bfloat> %rhs.flat, <2 x i32> <i32 4608, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %m = call <24576 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<24576 x float> %m, <2 x i32> <i32 256, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

; CHECK-LABEL: define internal void @tlx.matmul.256x64x4608
; CHECK-NOT:     call void @llvm.prefetch
; CHECK:         ret void
define void @one_panel(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 256, i32 4608>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %packed = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <3 x i32> <i32 2304, i32 64, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>,
      <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %rhs.flat = call <294912 x bfloat> @llvm.tensor.reshape.permute(token %packed, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 4608, i32 64>)
  %rhs = call token @llvm.tensor.typeinfo(<294912 x bfloat> %rhs.flat, <2 x i32> <i32 4608, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %m = call <16384 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<16384 x float> %m, <2 x i32> <i32 256, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
