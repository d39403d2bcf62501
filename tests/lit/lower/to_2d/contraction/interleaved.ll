; The right operand of a product may have interleaved rows (VNNI): a matrix unit, or dot products of vectors, read it in
; place. Other targets, and other uses, get a copy.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --stop-after=to-2d | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --stop-after=to-tiles | FileCheck %s --check-prefix=TILES
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --no-request-permission | FileCheck %s --check-prefix=AMX
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-2d | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 --stop-after=to-2d | FileCheck %s --check-prefix=COPY
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll -o %t.o.ll --target=amx --check --emulate-matrix
; RUN: tlx-lower %t.ll -o %t.o.ll --target=avx512 --check

; CHECK-LABEL: define void @f(
; CHECK-NOT: alloca
; CHECK: %[[PACKED:.*]] = call token @llvm.tensor.load{{.*}}(ptr elementtype(bfloat) %b, <3 x i32> <i32 32, i32 48, i32 2>,
; CHECK-NEXT: %[[FLAT:.*]] = call <3072 x bfloat> @llvm.tensor.reshape.permute{{.*}}(token %[[PACKED]], <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 64, i32 48>)
; CHECK-NEXT: %[[RHS:.*]] = call token @llvm.tensor.typeinfo{{.*}}(<3072 x bfloat> %[[FLAT]], <2 x i32> <i32 64, i32 48>,
; CHECK-NEXT: call <1920 x float> @llvm.tensor.matmul{{.*}}(token %{{.*}}, token %[[RHS]])

; TILES-LABEL: define internal void @tlx.matmul.40x48x64
; TILES-NOT: alloca
; TILES: call token @llvm.tensor.load{{.*}}, <3 x i32> <i32 16, i32 32, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 48, i32 2>)
; TILES: call token @llvm.tensor.load{{.*}}, <3 x i32> <i32 16, i32 16, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 48, i32 2>)

; AMX: call void @llvm.x86.tileloadd64(i8 {{[0-7]}}, ptr %{{.*}}, i64 192)

; COPY: %rhs.flat.buf = alloca

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 40, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %packed = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <3 x i32> <i32 32, i32 48, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>,
      <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %rhs.flat = call <3072 x bfloat> @llvm.tensor.reshape.permute(token %packed, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 64, i32 48>)
  %rhs = call token @llvm.tensor.typeinfo(<3072 x bfloat> %rhs.flat, <2 x i32> <i32 64, i32 48>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %m = call <1920 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1920 x float> %m, <2 x i32> <i32 40, i32 48>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
