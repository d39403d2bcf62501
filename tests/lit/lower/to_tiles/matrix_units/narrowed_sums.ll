; Sums of a matrix unit that are wider than the result are narrowed row by row while the next tile is multiplied: two rows
; at once in each step of K, and none in the remaining steps. Those of the last tile have a loop of their own.
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll --target=amx --stop-after=to-tiles -o - | FileCheck %s
; RUN: tlx-lower %t.ll -o %t.o.ll --target=amx --check --emulate-matrix

; CHECK-LABEL: define internal void @tlx.matmul.64x96x544.bf16.bf16.bf16(
; CHECK:       t.loop:
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %{{.*}}, token %sums, <2 x i32> <i32 0, i32 0>)
; CHECK:         call <1024 x float> @llvm.tensor.smma
; CHECK:       ke.loop:
; CHECK:         call <1024 x float> @llvm.tensor.smma
; CHECK:         call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 2, i32 32>,
; CHECK:         fptrunc <64 x float> %{{.*}} to <64 x bfloat>
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %{{.*}}, token %out{{.*}}, <2 x i32> <i32 0, i32 96>)
; CHECK:         icmp slt i64 %ke.next, 16
; CHECK:       er.loop:
; CHECK:         fptrunc <32 x float> %{{.*}} to <32 x bfloat>
define void @f(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 64, i32 544>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 544, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <6144 x bfloat> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<6144 x bfloat> %c, <2 x i32> <i32 64, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}

; With one step of K after the first, all rows are computed beside it.
; CHECK-LABEL: define internal void @tlx.matmul.64x96x64.bf16.bf16.bf16(
; CHECK:       t.loop:
; CHECK-COUNT-2: call <1024 x float> @llvm.tensor.smma
; CHECK-COUNT-16: fptrunc <64 x float> %{{.*}} to <64 x bfloat>
; CHECK:         icmp slt i64 %t.next
define void @few(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 64, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <6144 x bfloat> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<6144 x bfloat> %c, <2 x i32> <i32 64, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}

; Rows that take many times as long as all steps have a loop behind them: the sums are ready when the next tile stores them.
; CHECK-LABEL: define internal void @tlx.matmul.64x96x64.bf16.bf16.bf16.fused(
; CHECK:       t.loop:
; CHECK-COUNT-2: call <1024 x float> @llvm.tensor.smma
; CHECK:       ke.loop:
; CHECK-NOT:     smma
; CHECK:         tanh
; CHECK:         icmp slt i64 %ke.next, 16
; CHECK:       ke.end:
; CHECK-NOT:     smma
; CHECK:         icmp slt i64 %t.next
define void @long(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 64, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <6144 x bfloat> @llvm.tensor.matmul(token %a, token %b)
  %e = call <6144 x bfloat> @llvm.exp.v6144bf16(<6144 x bfloat> %c)
  %y = call <6144 x bfloat> @llvm.tanh.v6144bf16(<6144 x bfloat> %e)
  %t = call token @llvm.tensor.typeinfo(<6144 x bfloat> %y, <2 x i32> <i32 64, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}
