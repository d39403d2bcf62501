; A long epilogue is computed among the steps of K of the next tile, as evenly as two loops can: 16 pairs of rows beside 23
; steps. The loads and products of tiles are spread over its code.
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll --target=amx --bf16-intermediates=float --stop-after=to-tiles -o - | FileCheck %s
; RUN: tlx-lower %t.ll --target=amx --bf16-intermediates=float -o - | FileCheck %s --check-prefix=SPREAD
; RUN: tlx-lower %t.ll -o %t.o.ll --target=amx --check --emulate-matrix

; CHECK-LABEL: define internal void @tlx.matmul.64x96x768.bf16.bf16.bf16.fused(ptr noalias %c,
; CHECK:       ke.loop:
; CHECK-COUNT-3: call <1024 x float> @llvm.tensor.smma
; CHECK-NOT:     call <1024 x float> @llvm.tensor.smma
; CHECK:         icmp slt i64 %ke.next, 7
; CHECK:       ke.loop.1:
; CHECK:         add i64 %ke.1, 22
; CHECK:         call <1024 x float> @llvm.tensor.smma
; CHECK-NOT:     call <1024 x float> @llvm.tensor.smma
; CHECK:         icmp slt i64 %ke.next.1, 2
; CHECK-NOT:   k.loop

; SPREAD-LABEL: define internal void @tlx.matmul.64x96x768.bf16.bf16.bf16.fused(
; SPREAD:       ke.loop.1:
; SPREAD:         @llvm.x86.tdpbf16ps
; SPREAD:         <16 x float>
; SPREAD:         @llvm.x86.tdpbf16ps
; SPREAD:         @llvm.fmuladd.v16f32
; SPREAD:         @llvm.x86.tdpbf16ps
; SPREAD:         <16 x float>
; SPREAD:         @llvm.x86.tdpbf16ps
; SPREAD:         @llvm.x86.avx512bf16.cvtne2ps2bf16
; SPREAD:         br i1
define void @f(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 64, i32 768>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 768, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <6144 x bfloat> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<6144 x bfloat> %c, <2 x i32> <i32 64, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %s = call <6144 x bfloat> @llvm.tensor.tanh(token %t)
  %y = fmul <6144 x bfloat> %s, %c
  store <6144 x bfloat> %y, ptr %r
  ret void
}

; An operand of the epilogue that may be C itself must not be overwritten before it is read: the first tile is peeled off.
; Lines of the operand are prefetched while their tile is multiplied, if L1 does not hold them.
; CHECK-LABEL: define internal void @tlx.matmul.64x512x544.bf16.bf16.bf16.fused(ptr %c,
; CHECK:       k.loop:
; CHECK:         call void @llvm.prefetch
; CHECK:         call <1024 x float> @llvm.tensor.smma
; CHECK:       t.loop
; CHECK:       ke.loop:
; CHECK:         call <1024 x float> @llvm.tensor.smma
; CHECK:         fadd contract <64 x float>
define void @residual(ptr %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 64, i32 544>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 544, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <32768 x bfloat> @llvm.tensor.matmul(token %a, token %b)
  %x = load <32768 x bfloat>, ptr %r
  %s = fadd <32768 x bfloat> %c, %x
  %y = fmul <32768 x bfloat> %s, %s
  store <32768 x bfloat> %y, ptr %r
  ret void
}

; What all rows share, as a bias, is loaded and extended once for a tile.
; CHECK-LABEL: define internal void @tlx.matmul.64x96x512.bf16.bf16.bf16.fused(ptr noalias %c,
; CHECK:       t.loop
; CHECK:         fpext <64 x bfloat> %{{.*}} to <64 x float>
; CHECK:       ke.loop:
; CHECK-NOT:     fpext
; CHECK:         fadd contract <64 x float>
; CHECK:         icmp slt i64 %ke.next
define void @biased(ptr noalias %r, ptr noalias %p, ptr noalias %q, ptr noalias %s) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 64, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 512, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %t = call token @llvm.tensor.load(ptr elementtype(bfloat) %s, <2 x i32> <i32 1, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <6144 x bfloat> @llvm.tensor.matmul(token %a, token %b)
  %bias = call <6144 x bfloat> @llvm.tensor.broadcast(token %t, <2 x i32> <i32 64, i32 96>, <2 x i32> <i32 0, i32 1>)
  %y = fadd <6144 x bfloat> %c, %bias
  store <6144 x bfloat> %y, ptr %r
  ret void
}
