; Without AMX-FP16, a large product of halves is computed from bfloat parts on the matrix unit: each half is the sum of two. Both
; operands are split before the product, and a step of K multiplies both tiles of A by both of B.
;
; RUN: grep -v '^;' %s > %t.ll
; RUN: tlx-lower %t.ll -o - --target=amx --stop-after=to-tiles --remarks=%t.txt | FileCheck %s
; RUN: FileCheck %s --check-prefix=REMARK < %t.txt
; RUN: tlx-lower %t.ll -o - --target=amx --mattr=+amx-fp16 --stop-after=to-tiles | FileCheck %s --check-prefix=WHOLE --implicit-check-not=tlx.map
; RUN: tlx-lower %t.ll -o - --target=avx512 --stop-after=to-tiles | FileCheck %s --check-prefix=WHOLE --implicit-check-not=tlx.map
; RUN: tlx-lower %t.ll -o - --target=amx,avx512 --stop-after=to-tiles | FileCheck %s --check-prefix=SEVERAL --implicit-check-not=tlx.map

; CHECK-LABEL: define void @f(
; CHECK: call void @tlx.map.256x256.i16(ptr %[[A:.*]], ptr %a)
; CHECK: call void @tlx.map.256x256.i16.1(ptr %{{.*}}, ptr %a)
; CHECK: call void @tlx.map.256x256.i16(ptr %[[B:.*]], ptr %b)
; CHECK: call void @tlx.map.256x256.i16.1(ptr %{{.*}}, ptr %b)
; CHECK: call void @tlx.matmul.256x256x2x2x256.bf16.bf16.f32(ptr %c, ptr %[[A]], ptr %[[B]],

; A small one is computed by multiply-adds of floats, and so is one in a loop, whose iterations may run in parallel.
; CHECK-LABEL: define void @small(
; CHECK: call void @tlx.matmul.32x32x32.f16.f16.f32(ptr %c, ptr %a, ptr %b
; CHECK-LABEL: define internal void @tlx.map.256x256.i16(
; CHECK: %[[X:.*]] = fpext
; CHECK: fmul {{.*}} %[[X]], <float 0x3FEFC00000000000
; CHECK: lshr
; CHECK-LABEL: define internal void @tlx.map.256x256.i16.1(
; CHECK: %[[X:.*]] = fpext
; CHECK: %[[REST:.*]] = fsub {{.*}} %[[X]], %[[FIRST:.*]]
; CHECK: %[[EQUAL:.*]] = fcmp oeq {{.*}} %[[X]], %[[FIRST]]
; CHECK: select {{.*}} %[[EQUAL]], {{.*}} %[[X]], {{.*}} %[[REST]]
; CHECK-LABEL: define internal void @tlx.matmul.256x256x2x2x256.bf16.bf16.f32(
; CHECK: k.loop:
; CHECK: %k.acc = phi
; CHECK-COUNT-4: @llvm.tensor.smma
; CHECK-NOT: @llvm.tensor.smma
; CHECK: k.end:

; REMARK: matmul 256x256x2*2*256 bfloat -> float: matrix unit{{.*}}each half is the sum of two bfloat numbers

; WHOLE: call void @tlx.matmul.256x256x256.f16.f16.f32(ptr %c, ptr %a, ptr %b
; SEVERAL: call void @tlx.matmul.256x256x256.f16.f16.f32.avx512(ptr %c, ptr %a, ptr %b

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(half) %b, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <65536 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<65536 x float> %m, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @small(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(half) %b, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1024 x float> %m, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @batch(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <3 x i32> <i32 4, i32 256, i32 256>, <3 x i32> <i32 0, i32 1, i32 2>,
      <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(half) %b, <3 x i32> <i32 4, i32 256, i32 256>, <3 x i32> <i32 0, i32 1, i32 2>,
      <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <262144 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<262144 x float> %m, <3 x i32> <i32 4, i32 256, i32 256>, <3 x i32> <i32 0, i32 1, i32 2>,
      <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}
