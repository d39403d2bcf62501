; Four rows of bytes are interleaved by whole registers: eight unpacks within lanes, eight shuffles of lanes.
;
; REQUIRES: clang-19, host-x86_64
; RUN: tlx-lower %s --target=avx512 -o %t.ll
; RUN: clang-19 -O2 -Wno-override-module -S %t.ll -o - | FileCheck %s
;
; CHECK-LABEL: f:
; CHECK-COUNT-8: vpunpck{{[lh]}}{{.*}}%zmm
; CHECK-COUNT-8: vshufi64x2
; CHECK-NOT: vinserti
; CHECK: retq

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 4, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %v = call <256 x i8> @llvm.tensor.reshape.block(token %x, <1 x i32> <i32 0>, <1 x i32> <i32 4>)
  %y = call token @llvm.tensor.typeinfo(<256 x i8> %v, <2 x i32> <i32 1, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
