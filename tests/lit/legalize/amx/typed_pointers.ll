; With typed pointers, tiles are loaded and stored by i8 pointers, and the constructor has the old types.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK: %[[SHAPES:.*]] = bitcast [64 x i8]* @tlx.amx.tiles to i8*
; CHECK-NEXT: call void @llvm.x86.ldtilecfg(i8* %[[SHAPES]])
; CHECK: call void @llvm.x86.tileloadd64(i8 {{[0-7]}}, i8* %{{.*}}, i64 64)
; CHECK: call void @llvm.x86.tilestored64(i8 {{[0-7]}}, i8* %{{.*}}, i64 128)
; CHECK: @llvm.global_ctors = appending global [1 x { i32, void ()*, i8* }] [{ i32, void ()*, i8* } { i32 65535, void ()* @tlx.amx.permission, i8* null }]
; CHECK-NOT: {{[( ]}}ptr{{[ ,)]}}

define void @f(float* noalias %c, bfloat* %a, bfloat* %b) {
  %lhs = call token @llvm.tensor.load(bfloat* %a, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(bfloat* %b, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1024 x float> %m, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(float* %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
