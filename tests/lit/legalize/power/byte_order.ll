; The first bfloat of a word is its lower half on a little-endian machine, its upper half on a big-endian one.
;
; RUN: tlx-lower %s --target=vsx --mtriple=powerpc64le-linux-gnu | FileCheck %s --check-prefix=LITTLE
; RUN: tlx-lower %s --target=vsx --mtriple=powerpc64-linux-gnu | FileCheck %s --check-prefix=BIG
;
; LITTLE:      define {{void}} @f
; LITTLE:      [[WORDS:%.*]] = bitcast <8 x i16> {{.*}} to <4 x i32>
; LITTLE-NEXT: [[BITS:%.*]] = shl <4 x i32> [[WORDS]]
; LITTLE-NEXT: [[FIRST:%.*]] = bitcast <4 x i32> [[BITS]] to <4 x float>
; LITTLE:      and <4 x i32> {{.*}}, <i32 -65536,
; LITTLE:      call <4 x float> @llvm.fma.v4f32(<4 x float> {{.*}}, <4 x float> [[FIRST]],
;
; BIG:      define {{void}} @f
; BIG:      [[WORDS:%.*]] = bitcast <8 x i16> {{.*}} to <4 x i32>
; BIG-NEXT: [[BITS:%.*]] = and <4 x i32> [[WORDS]], <i32 -65536,
; BIG-NEXT: [[FIRST:%.*]] = bitcast <4 x i32> [[BITS]] to <4 x float>
; BIG:      shl <4 x i32>
; BIG:      call <4 x float> @llvm.fma.v4f32(<4 x float> {{.*}}, <4 x float> [[FIRST]],

define void @f(ptr %a, ptr %b, ptr %c, i32 %k) {
  %lhs.shape = insertelement <2 x i32> <i32 64, i32 0>, i32 %k, i32 1
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> %lhs.shape, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs.shape = insertelement <2 x i32> <i32 0, i32 64>, i32 %k, i32 0
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> %rhs.shape, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <vscale x 1 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %m, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
