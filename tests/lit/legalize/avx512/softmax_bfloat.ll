; Softmax of rows of bfloat, computed in float. e^x of 64 elements has no code for subnormal results: no VCVTPS2DQ, and
; one comparison for 32 of them, for NaN. The inverse of the sum is computed once for a row, outside the loop over the
; columns. Quotients are rounded by adding half an ulp, without VPTESTNMD for ties; one comparison for 128 numerators
; finds those that are too small.
;
; REQUIRES: clang-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx512 --bf16-intermediates=float
; RUN: clang-19 -O2 -Xclang -disable-llvm-passes -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: FileCheck %s < %t.s
;
; CHECK-LABEL: {{^}}tlx.rows.64x512.bf16:
; CHECK: vreduceps
; CHECK-COUNT-4: vscalefps
; CHECK-NOT: vcvtps2dq
; CHECK: vcvtne2ps2bf16
; CHECK: vcvtne2ps2bf16
; CHECK-NOT: vptestnmd
; CHECK-COUNT-2: vpsubw {{.*}} {%k
; CHECK: vdivps
; CHECK: jmp .LBB
; CHECK-COUNT-2: vmulps
; CHECK-COUNT-2: vpaddd
; CHECK-NEXT: vpsrld $16,
; CHECK: vpternlog
; CHECK-NOT: vptestnmd
; CHECK-COUNT-3: vpminuw
; CHECK-NEXT: vpcmpltuw
; CHECK: kortestd

define void @softmax(ptr noalias %y, ptr noalias %x) {
  %x.t = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <2 x i32> <i32 64, i32 512>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <32768 x bfloat> @llvm.tensor.tovector(token %x.t)
  %max = call <64 x bfloat> @llvm.tensor.reduce.max(token %x.t, <2 x i32> <i32 1, i32 512>, <2 x i32> <i32 1, i32 1>)
  %m = call token @llvm.tensor.typeinfo(<64 x bfloat> %max, <2 x i32> <i32 64, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %maxima = call <32768 x bfloat> @llvm.tensor.broadcast(token %m, <2 x i32> <i32 64, i32 512>, <2 x i32> <i32 0, i32 1>)
  %d = fsub <32768 x bfloat> %v, %maxima
  %d.t = call token @llvm.tensor.typeinfo(<32768 x bfloat> %d, <2 x i32> <i32 64, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %e = call <32768 x bfloat> @llvm.tensor.exp(token %d.t)
  %w = fpext <32768 x bfloat> %e to <32768 x float>
  %w.t = call token @llvm.tensor.typeinfo(<32768 x float> %w, <2 x i32> <i32 64, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %sum = call <64 x float> @llvm.tensor.reduce.add(token %w.t, <2 x i32> <i32 1, i32 512>, <2 x i32> <i32 1, i32 1>)
  %short = fptrunc <64 x float> %sum to <64 x bfloat>
  %s = call token @llvm.tensor.typeinfo(<64 x bfloat> %short, <2 x i32> <i32 64, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %sums = call <32768 x bfloat> @llvm.tensor.broadcast(token %s, <2 x i32> <i32 64, i32 512>, <2 x i32> <i32 0, i32 1>)
  %q = fdiv <32768 x bfloat> %e, %sums
  store <32768 x bfloat> %q, ptr %y
  ret void
}
