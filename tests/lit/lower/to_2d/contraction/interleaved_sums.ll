; A contraction over groups of interleaved rows (VNNI) and over the rows in them is one product on the matrix unit: the
; right operand is read in place, and the left one row by row. Sums of such products are one tree. A result that the
; unit cannot write in place gets products of a copy.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --stop-after=to-2d | FileCheck %s
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll -o %t.o.ll --target=amx --remarks 2>&1 | FileCheck %s --check-prefix=SAID
; RUN: tlx-lower %t.ll -o %t.o.ll --target=amx --check --emulate-matrix
; RUN: tlx-lower %t.ll -o %t.o.ll --target=avx512 --check

; SAID: matmul 32x48x64 i8 -> i32: matrix unit i8 x i8 -> i32, register tile 32x32, nothing packed
; SAID: matmul 32x16x3*32 bfloat -> float: matrix unit bfloat x bfloat -> float, register tile 32x16, nothing packed

; CHECK-LABEL: define void @bytes(
; CHECK-NOT: alloca
; CHECK: %[[A:.*]] = call token @llvm.tensor.load{{.*}}(ptr elementtype(i8) %a, <2 x i32> <i32 32, i32 64>,
; CHECK: %[[B:.*]] = call token @llvm.tensor.load{{.*}}(ptr elementtype(i8) %b, <3 x i32> <i32 16, i32 48, i32 4>,
; CHECK: %[[FLAT:.*]] = call <3072 x i8> @llvm.tensor.reshape.permute{{.*}}(token %[[B]], <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 64, i32 48>)
; CHECK: %[[RHS:.*]] = call token @llvm.tensor.typeinfo{{.*}}(<3072 x i8> %[[FLAT]], <2 x i32> <i32 64, i32 48>,
; CHECK: call <1536 x i32> @llvm.tensor.matmul{{.*}}(token %[[A]], token %[[RHS]])
; CHECK-NOT: @llvm.tensor.smma
; CHECK: ret void

define void @bytes(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <3 x i32> <i32 32, i32 16, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>,
      <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <3 x i32> <i32 16, i32 48, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>,
      <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %p = call <1536 x i32> @llvm.tensor.contract(token %lhs, token %rhs, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 0, i32 2>)
  %t = call token @llvm.tensor.typeinfo(<1536 x i32> %p, <2 x i32> <i32 32, i32 48>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

; CHECK-LABEL: define void @sums(
; CHECK-NOT: alloca
; CHECK: call <512 x float> @llvm.tensor.matmul
; CHECK-COUNT-2: call <512 x float> @llvm.tensor.smma
; CHECK: ret void

define void @sums(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <4 x i32> <i32 3, i32 32, i32 16, i32 2>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <4 x i32> <i32 3, i32 16, i32 16, i32 2>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %p = call <512 x float> @llvm.tensor.contract(token %lhs, token %rhs, <3 x i32> <i32 0, i32 2, i32 3>, <3 x i32> <i32 0, i32 1, i32 3>)
  %t = call token @llvm.tensor.typeinfo(<512 x float> %p, <2 x i32> <i32 32, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

; CHECK-LABEL: define void @turned(
; CHECK-NOT: @llvm.tensor.reshape.permute
; CHECK: ret void

define void @turned(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 20, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %packed = call token @llvm.tensor.load(ptr elementtype(i8) %b, <3 x i32> <i32 16, i32 24, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>,
      <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %rhs.flat = call <1536 x i8> @llvm.tensor.reshape.permute(token %packed, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 64, i32 24>)
  %rhs = call token @llvm.tensor.typeinfo(<1536 x i8> %rhs.flat, <2 x i32> <i32 64, i32 24>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %m = call <480 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<480 x i32> %m, <2 x i32> <i32 20, i32 24>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %turned = call <480 x i32> @llvm.tensor.transpose(token %t, <2 x i32> <i32 1, i32 0>)
  %u = call token @llvm.tensor.typeinfo(<480 x i32> %turned, <2 x i32> <i32 24, i32 20>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %u, <2 x i32> zeroinitializer)
  ret void
}
