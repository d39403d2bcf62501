; Row maxima. Of bfloat: in registers of 32, with negative numbers mapped to the integers' order by a masked operation that
; avoids the maximum's port. Of float: two registers are tested for NaN at once, and their masks are combined by the tests.
; Row sums of bfloat: even and odd elements are separate, so that none is permuted.
; Eight short rows are reduced together: each step halves the number of registers.
;
; REQUIRES: clang-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx512
; RUN: clang-19 -O2 -Xclang -disable-llvm-passes -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: FileCheck %s --check-prefix=BF16 < %t.s
; RUN: FileCheck %s --check-prefix=F32 < %t.s
; RUN: FileCheck %s --check-prefix=SUM --implicit-check-not=vpmovzx < %t.s
; RUN: FileCheck %s --check-prefix=SHORT --implicit-check-not='(%rsp' < %t.s
;
; BF16-LABEL: {{^}}tlx.reduce.max.rows.64x1024.bf16:
; BF16: Inner Loop
; BF16-COUNT-4: vptestmw
; BF16-COUNT-4: vpmaxsw
; BF16-NOT: vpmaxsw
; BF16: jl
;
; F32-LABEL: {{^}}tlx.reduce.max.rows.64x1024.f32:
; F32: Inner Loop
; F32-COUNT-7: vmaxps
; F32: vcmpordps %{{zmm[0-9]+}}, %{{zmm[0-9]+}}, %[[K:k[0-9]]]{{$}}
; F32-COUNT-3: vcmpordps {{.*}} {%[[K]]}
; F32-NEXT: vpblendmd
; F32-NOT: vcmp
; F32: jl
;
; SUM-LABEL: {{^}}tlx.reduce.add.rows.64x1024.bf16:
; SUM: Inner Loop
; SUM-COUNT-4: vmovdqu64 {{.*}}(%r{{.*}}), %zmm
; SUM: vpslld $16,
; SUM-NEXT: vaddps
; SUM-NEXT: vpand
; SUM-NEXT: vaddps
; SUM: jl
;
; SHORT-LABEL: {{^}}tlx.reduce.max.rows.64x64.f32:
; SHORT: Loop
; SHORT-COUNT-24: vmaxps %zmm
; SHORT-COUNT-7: vmaxps %zmm
; SHORT: vmaxps %ymm
; SHORT-NOT: vmaxps
; SHORT: vmovups %ymm{{.*}}, (%rdi)
; SHORT: jl

define void @largest_bfloat(ptr noalias %y, ptr %x) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <2 x i32> <i32 64, i32 1024>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <64 x bfloat> @llvm.tensor.reduce.max(token %a, <2 x i32> <i32 1, i32 1024>, <2 x i32> <i32 1, i32 1>)
  %t = call token @llvm.tensor.typeinfo(<64 x bfloat> %m, <2 x i32> <i32 64, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @largest_float(ptr noalias %y, ptr %x) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 64, i32 1024>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <64 x float> @llvm.tensor.reduce.max(token %a, <2 x i32> <i32 1, i32 1024>, <2 x i32> <i32 1, i32 1>)
  %t = call token @llvm.tensor.typeinfo(<64 x float> %m, <2 x i32> <i32 64, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @sums(ptr noalias %y, ptr %x) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <2 x i32> <i32 64, i32 1024>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <64 x bfloat> @llvm.tensor.reduce.add(token %a, <2 x i32> <i32 1, i32 1024>, <2 x i32> <i32 1, i32 1>)
  %t = call token @llvm.tensor.typeinfo(<64 x bfloat> %m, <2 x i32> <i32 64, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @short_rows(ptr noalias %y, ptr %x) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <64 x float> @llvm.tensor.reduce.max(token %a, <2 x i32> <i32 1, i32 64>, <2 x i32> <i32 1, i32 1>)
  %t = call token @llvm.tensor.typeinfo(<64 x float> %m, <2 x i32> <i32 64, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <2 x i32> zeroinitializer)
  ret void
}
