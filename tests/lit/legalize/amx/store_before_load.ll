; Sums whose store is delayed are stored before a load reads them: a row of a scratch tile, after the only product.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK: call void @llvm.x86.tdpbssd(i8 [[SUMS:[0-7]]],
; CHECK-NEXT: call void @llvm.x86.tilestored64(i8 [[SUMS]], ptr %s, i64 64)
; CHECK-NEXT: load <16 x i32>, ptr %s

define void @f(ptr %c, ptr %a, ptr %b, ptr %s) "tlx-stage"="tiles" {
  %acc = call token @llvm.tensor.typeinfo(<256 x i32> zeroinitializer, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 16, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %packed = call token @llvm.tensor.load(ptr elementtype(i8) %b, <4 x i32> <i32 1, i32 16, i32 16, i32 4>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %flat = call <1024 x i8> @llvm.tensor.reshape.permute(token %packed, <4 x i32> <i32 1, i32 3, i32 0, i32 2>, <2 x i32> <i32 64, i32 16>)
  %rhs = call token @llvm.tensor.typeinfo(<1024 x i8> %flat, <2 x i32> <i32 64, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %p = call <256 x i32> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
  %sums = call token @llvm.tensor.typeinfo(<256 x i32> %p, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %s, token %sums, <2 x i32> zeroinitializer)
  %row = call token @llvm.tensor.load(ptr elementtype(i32) %s, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <16 x i32> @llvm.tensor.tovector(token %row)
  %t = call token @llvm.tensor.typeinfo(<16 x i32> %v, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
