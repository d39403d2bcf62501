; Sums of tile products are never subnormal, so an instruction that flushes subnormal floats rounds 32 of them to bfloat.
; Sums with a bias may be subnormal: such numbers are raised by 2^-126 before the instruction. Without the instruction, all
; are rounded by integer arithmetic.
;
; RUN: grep -v '^;' %s | tlx-lower - -o %t.ll --target=amx --no-request-permission
; RUN: FileCheck %s --input-file=%t.ll --implicit-check-not=llvm.tensor. --implicit-check-not=tlx.no_subnormals
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --stop-after=to-tiles | FileCheck %s --check-prefix=TILES
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --mattr=-avx512bf16 | FileCheck %s --check-prefix=WITHOUT --implicit-check-not=cvtne2ps2bf16

; CHECK: define {{.*}}.fused(ptr noalias %c, ptr %a, ptr %b)
; CHECK: %[[ROUNDED:.*]] = call <32 x i16> @llvm.x86.avx512bf16.cvtne2ps2bf16.512(<16 x float> %{{.*}}, <16 x float> %{{.*}})
; CHECK: store <32 x i16> %[[ROUNDED]], ptr
; CHECK: define {{.*}}.fused.1(ptr
; CHECK: cvtne2ps2bf16
; CHECK: define {{.*}}.fused.2(ptr
; CHECK: %[[EXPONENT:[^ ]*]] = and <16 x i32> %[[BITS:[^ ,]*]], {{.*}}2139095040
; CHECK: %[[SMALL:[^ ]*]] = icmp eq <16 x i32> %[[EXPONENT]], <i32 0,
; CHECK: %[[RAISED:[^ ]*]] = or <16 x i32> %[[BITS]], {{.*}}8388608
; CHECK: select <16 x i1> %[[SMALL]], <16 x i32> %[[RAISED]], <16 x i32> %[[BITS]]
; CHECK: %[[PAIR:.*]] = call <32 x i16> @llvm.x86.avx512bf16.cvtne2ps2bf16.512(
; CHECK: %[[RAISE:.*]] = select <32 x i1> %{{.*}}, <32 x i16> {{.*}}128
; CHECK: sub <32 x i16> %[[PAIR]], %[[RAISE]]

; TILES: call token @llvm.tensor.load{{.*}}<2 x i32> <i32 1, i32 32>{{.*}}, !tlx.no_subnormals !{}

; WITHOUT: add <16 x i32> %{{.*}}, {{.*}}32767

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <4096 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %r = fptrunc <4096 x float> %m to <4096 x bfloat>
  %t = call token @llvm.tensor.typeinfo(<4096 x bfloat> %r, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @g(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <4096 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %mt = call token @llvm.tensor.typeinfo(<4096 x float> %m, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %y = call <4096 x float> @llvm.tensor.relu(token %mt)
  %r = fptrunc <4096 x float> %y to <4096 x bfloat>
  %t = call token @llvm.tensor.typeinfo(<4096 x bfloat> %r, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @h(ptr noalias %c, ptr %a, ptr %b, ptr %x) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <4096 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %xt = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %bias = call <4096 x float> @llvm.tensor.tovector(token %xt)
  %y = fadd <4096 x float> %m, %bias
  %r = fptrunc <4096 x float> %y to <4096 x bfloat>
  %t = call token @llvm.tensor.typeinfo(<4096 x bfloat> %r, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
