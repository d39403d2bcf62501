; An A that misses L2 for each block of columns is prefetched a row tile ahead: 32 rows while 16 panels
; are multiplied, two in each step of K. An A that stays in L2 besides a block of packed B is not prefetched.
; RUN: grep -v "^;" %s > %t.ll && tlx-lower %t.ll --target=amx --stop-after=to-tiles --remarks=%t.txt -o - | FileCheck %s
; RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.txt

; REMARK: matmul 640x1024x1024 bfloat -> float: {{.*}}packed B, blocks M 32, N 512, {{.*}}A of the next tiles prefetched
; REMARK-NOT: matmul 64x2048x1024 {{.*}}A of the next tiles prefetched

; CHECK-LABEL: define internal void @tlx.matmul.640x1024x1024.bf16.bf16.f32(
; CHECK:       k.loop{{[.0-9]*}}:
; CHECK-COUNT-2: call void @llvm.prefetch.p0(ptr %{{.*}}, i32 0, i32 2, i32 1)
; CHECK:         @llvm.tensor.smma
; CHECK-NOT:     prefetch
; CHECK:         br i1
; CHECK-LABEL: define internal void @tlx.matmul.64x2048x1024.bf16.bf16.f32(
; CHECK-NOT:     prefetch
; CHECK:         ret void

define void @far(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 640, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <655360 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<655360 x float> %c, <2 x i32> <i32 640, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @near(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 64, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 1024, i32 2048>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <131072 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<131072 x float> %c, <2 x i32> <i32 64, i32 2048>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}
