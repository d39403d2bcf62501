; A module with typed pointers gets a kernel with typed pointers; addresses are cast where the element types differ.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles --no-verify-each | FileCheck %s

; CHECK-LABEL: define void @f(float* noalias %c, bfloat* %a, bfloat* %b) {
; CHECK-NEXT: call void @tlx.matmul.8x32x6.bf16.bf16.f32(float* %c, bfloat* %a, bfloat* %b)
; CHECK-LABEL: define internal void @tlx.matmul.8x32x6.bf16.bf16.f32(float* noalias %c, bfloat* %a, bfloat* %b) nounwind noinline "tlx-stage"="tiles" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" {
; CHECK-NEXT: entry:
; CHECK-NEXT: %{{.*}} = alloca [384 x i8], align 64
; CHECK: %[[B_1:.*]] = call token @llvm.tensor.load.p0bf16.v2i32(bfloat* %{{.*}}, <2 x i32> <i32 2, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT: %[[B_VNNI:.*]] = call <64 x bfloat> @llvm.tensor.reshape.block.v64bf16.v1i32.v1i32(token %[[B_1]], <1 x i32> <i32 0>, <1 x i32> <i32 2>)
; CHECK-NEXT: %[[B_PACKED:.*]] = call token @llvm.tensor.typeinfo.v64bf16.v2i32(<64 x bfloat> %[[B_VNNI]], <2 x i32> <i32 1, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_5:.*]] = mul i64 %{{.*}}, 32
; CHECK-NEXT: %[[T_6:.*]] = getelementptr inbounds bfloat, bfloat* %{{.*}}, i64 %[[T_5]]
; CHECK-NEXT: call void @llvm.tensor.store.p0bf16.v2i32(bfloat* %[[T_6]], token %[[B_PACKED]], <2 x i32> <i32 0, i32 0>)
; CHECK-NOT: {{[( ]}}ptr{{[ ,)]}}

define void @f(float* noalias %c, bfloat* %a, bfloat* %b) {
  %lhs = call token @llvm.tensor.load(bfloat* %a, <2 x i32> <i32 8, i32 6>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(bfloat* %b, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(float* %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
