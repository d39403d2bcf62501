; At edges, tiles stay whole: A and B are packed with zeros, and only the store of C is padded.
;
;     M = 33, N = 40, K = 70: 32 + 1 rows, 32 + 8 columns, 64 + 6 positions
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --stop-after=to-tiles | FileCheck %s

; CHECK: %{{.*}} = call token @llvm.tensor.load.{{.*}}, <2 x i32> <i32 4, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 2, i32 0>, <2 x i32> <i32 0, i32 40>)
; CHECK: z.loop:
; CHECK: call token @llvm.tensor.typeinfo.v1024i32.v2i32(<1024 x i32> %smma{{.*}}, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK: call token @llvm.tensor.typeinfo.v1024i32.v2i32(<1024 x i32> %smma{{.*}}, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 31, i32 0>)
; CHECK: call token @llvm.tensor.typeinfo.v1024i32.v2i32(<1024 x i32> %smma{{.*}}, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 24>)
; CHECK: call token @llvm.tensor.typeinfo.v1024i32.v2i32(<1024 x i32> %smma{{.*}}, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 31, i32 24>)

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 33, i32 70>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 70, i32 40>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1320 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1320 x i32> %m, <2 x i32> <i32 33, i32 40>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
