; Mixed signs are a dot product as they are, in either order: no correction is needed, and A is read in place.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK-LABEL: define internal void @tlx.matmul.8x32x16.i8.i8.i32.us(ptr %c, ptr %a, ptr %b, ptr %acc) nounwind noinline "tlx-stage"="tiles" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" {
; CHECK-NEXT: entry:
; CHECK-NOT: xor
; CHECK: %[[ACC_1:.*]] = call token @llvm.tensor.typeinfo.v256i32.v2i32(<256 x i32> %{{.*}}, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_7:.*]] = getelementptr inbounds i8, ptr %a, i64 %{{.*}}
; CHECK-NEXT: %[[A_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i8) %[[T_7]], <2 x i32> <i32 8, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT: %[[T_8:.*]] = mul i64 %{{.*}}, 32
; CHECK-NEXT: %[[T_9:.*]] = getelementptr inbounds i8, ptr %{{.*}}, i64 %[[T_8]]
; CHECK-NEXT: %[[B_VNNI_1:.*]] = call token @llvm.tensor.load.p0.v3i32(ptr elementtype(i8) %[[T_9]], <3 x i32> <i32 1, i32 32, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
; CHECK-NEXT: %[[B_FLAT:.*]] = call <128 x i8> @llvm.tensor.reshape.permute.v128i8.v3i32.v2i32(token %[[B_VNNI_1]], <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 4, i32 32>)
; CHECK-NEXT: %[[B_2:.*]] = call token @llvm.tensor.typeinfo.v128i8.v2i32(<128 x i8> %[[B_FLAT]], <2 x i32> <i32 4, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %{{.*}} = call <256 x i32> @llvm.tensor.usmma.v256i32(token %[[ACC_1]], token %[[A_1]], token %[[B_2]])
; CHECK-LABEL: define internal void @tlx.matmul.8x32x16.i8.i8.i32.su(ptr %c, ptr %a, ptr %b, ptr %acc) nounwind noinline "tlx-stage"="tiles" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" {
; CHECK-NEXT: entry:
; CHECK-NOT: xor
; CHECK: %[[ACC_1:.*]] = call token @llvm.tensor.typeinfo.v256i32.v2i32(<256 x i32> %{{.*}}, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_7:.*]] = getelementptr inbounds i8, ptr %a, i64 %{{.*}}
; CHECK-NEXT: %[[A_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i8) %[[T_7]], <2 x i32> <i32 8, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT: %[[T_8:.*]] = mul i64 %{{.*}}, 32
; CHECK-NEXT: %[[T_9:.*]] = getelementptr inbounds i8, ptr %{{.*}}, i64 %[[T_8]]
; CHECK-NEXT: %[[B_VNNI_1:.*]] = call token @llvm.tensor.load.p0.v3i32(ptr elementtype(i8) %[[T_9]], <3 x i32> <i32 1, i32 32, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
; CHECK-NEXT: %[[B_FLAT:.*]] = call <128 x i8> @llvm.tensor.reshape.permute.v128i8.v3i32.v2i32(token %[[B_VNNI_1]], <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 4, i32 32>)
; CHECK-NEXT: %[[B_2:.*]] = call token @llvm.tensor.typeinfo.v128i8.v2i32(<128 x i8> %[[B_FLAT]], <2 x i32> <i32 4, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %{{.*}} = call <256 x i32> @llvm.tensor.summa.v256i32(token %[[ACC_1]], token %[[A_1]], token %[[B_2]])

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %acc = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x i32> @llvm.tensor.usmma(token %acc, token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x i32> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @g(ptr noalias %c, ptr %a, ptr %b) {
  %acc = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x i32> @llvm.tensor.summa(token %acc, token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x i32> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
