; Constant arguments with typed pointers: the address in the block is a pointer to a pointer.
; RUN: grep -v '^;' %s | tlx-lower - --target=avx512 --stop-after=to-tiles -o - | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --target=avx512 -o - | FileCheck %s --check-prefix=CODE

; CHECK-LABEL: define void @f(float* noalias %x, float* noalias "tlx-prepared" %w, float* noalias %y)
; CHECK-NEXT:    [[AT:%.*]] = bitcast float* %w to float**
; CHECK-NEXT:    %w.raw = load float*, float** [[AT]], align 64
; CHECK:         [[BYTES:%.*]] = bitcast float* %w to i8*
; CHECK-NEXT:    [[BLOCK:%.*]] = getelementptr inbounds i8, i8* [[BYTES]], i64 64
; CHECK-NEXT:    [[PANELS:%.*]] = bitcast i8* [[BLOCK]] to float*
; CHECK-NEXT:    call void @tlx.matmul.8x256x256.f32.f32.f32(float* %y, float* %x, float* [[PANELS]])
; CHECK:       define void @f.prepare(i8* noalias %w.prepared, float* %w) nounwind {
; CHECK:         store float* %w, float** {{%.*}}, align 64
; CODE:        define void @f.prepare(i8* noalias %w.prepared, float* %w)
define void @f(float* noalias %x, float* noalias "tlx-constant" %w, float* noalias %y) {
  %a = call token @llvm.tensor.load(float* %x, <2 x i32> <i32 8, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(float* %w, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <2048 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<2048 x float> %p, <2 x i32> <i32 8, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(float* %y, token %t, <2 x i32> zeroinitializer)
  %first = load float, float* %w
  store float %first, float* %x
  ret void
}
