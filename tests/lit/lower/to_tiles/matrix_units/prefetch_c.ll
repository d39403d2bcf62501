; 128x128x128 bytes are two steps of K for each register tile, 8 products: the stores of 64 lines to L2 take longer.
; The lines are prefetched during the products, 8 after each product, and stored by the next tile.
; With 256x256x256, four steps hide the stores.
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll --target=amx --remarks -o - 2>&1 | FileCheck %s
; CHECK: remark: matmul 128x128x128 i8 -> i32: {{.*}}C prefetched
; CHECK-NOT: remark: matmul 256x256x256 i8 -> i32: {{.*}}C prefetched
; CHECK-LABEL: define internal void @tlx.matmul.128x128x128.i8.i8.i32.ss(
; CHECK:         br label %t.loop
; CHECK:       t.loop:
; CHECK:         call void @llvm.x86.tdpbssd
; CHECK-NEXT:    call void @llvm.prefetch.p0(ptr %{{.*}}, i32 1, i32 3, i32 1)
; CHECK-NEXT:    call void @llvm.prefetch
; CHECK-NEXT:    call void @llvm.prefetch
; CHECK-NEXT:    call void @llvm.prefetch
; CHECK-NEXT:    call void @llvm.prefetch
; CHECK-NEXT:    call void @llvm.prefetch
; CHECK-NEXT:    call void @llvm.prefetch
; CHECK-NEXT:    call void @llvm.prefetch
; CHECK-NOT:     prefetch
; CHECK:         call void @llvm.x86.tdpbssd
; CHECK:         call void @llvm.prefetch
; CHECK-LABEL: define internal void @tlx.matmul.256x256x256.i8.i8.i32.ss(
; CHECK-NOT:     prefetch
; CHECK:         ret void
define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <3 x i32> <i32 128, i32 32, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <3 x i32> <i32 32, i32 128, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <16384 x i32> @llvm.tensor.contract(token %lhs, token %rhs, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 0, i32 2>)
  %t = call token @llvm.tensor.typeinfo(<16384 x i32> %m, <2 x i32> <i32 128, i32 128>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
define void @g(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <3 x i32> <i32 256, i32 64, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <3 x i32> <i32 64, i32 256, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <65536 x i32> @llvm.tensor.contract(token %lhs, token %rhs, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 0, i32 2>)
  %t = call token @llvm.tensor.typeinfo(<65536 x i32> %m, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
declare token @llvm.tensor.load(ptr, <3 x i32>, <3 x i32>, <3 x i32>, <3 x i32>)
declare void @llvm.tensor.store(ptr, token, <2 x i32>)
