; A batch of products, a map, and a second product: one loop, in which the map's result is that of one batch element.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 --remarks -o - 2>&1 | FileCheck %s

; CHECK: <stdin>:[[#]]:3: remark: fused matmul, exp, matmul into one loop of 32 iterations: of 2.0 MiB between them, 64.0 KiB are in memory at a time [to-2d]
; CHECK: <stdin>:[[#]]:3: remark: not fused into one loop with the surrounding operations, because 'call void @g()' may change what it reads [to-2d]
; CHECK-LABEL: define void @batch(
; CHECK:         call noalias ptr @malloc(i64 65600), !tlx.buffer !{!"part.loop"}
; CHECK:       part.loop:
; CHECK-NEXT:    %part = phi i64 [ 0, %allocated ], [ %part.next, %part.loop ]
; CHECK:         %[[Q:.*]] = getelementptr inbounds float, ptr %q, i64
; CHECK:         %[[K:.*]] = getelementptr inbounds float, ptr %k, i64
; CHECK:         call <16384 x float> @llvm.tensor.matmul.v16384f32
; CHECK:         call <16384 x float> @llvm.tensor.exp.v16384f32
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %e.1.buf
; CHECK:         %[[Y:.*]] = getelementptr inbounds float, ptr %y, i64
; CHECK:         call <2048 x float> @llvm.tensor.matmul.v2048f32
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %[[Y]]
; CHECK:         br i1 %{{.*}}, label %part.loop, label %part.end, !tlx.independent !{}
; CHECK:         ret void
define void @batch(ptr noalias %q, ptr noalias %k, ptr noalias %v, ptr noalias %y) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %q, <3 x i32> <i32 32, i32 128, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %k, <3 x i32> <i32 32, i32 16, i32 128>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %s = call <524288 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<524288 x float> %s, <3 x i32> <i32 32, i32 128, i32 128>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %e = call <524288 x float> @llvm.tensor.exp(token %t)
  %u = call token @llvm.tensor.typeinfo(<524288 x float> %e, <3 x i32> <i32 32, i32 128, i32 128>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %c = call token @llvm.tensor.load(ptr elementtype(float) %v, <3 x i32> <i32 32, i32 128, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %p = call <65536 x float> @llvm.tensor.matmul(token %u, token %c)
  store <65536 x float> %p, ptr %y
  ret void
}

; The call may change the memory of %v, which the loop would read after it.
; CHECK-LABEL: define void @call(
; CHECK-NOT:   part.loop
; CHECK:       ret void
declare void @g()

define void @call(ptr %q, ptr %k, ptr %v, ptr %y) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %q, <3 x i32> <i32 32, i32 128, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %k, <3 x i32> <i32 32, i32 16, i32 128>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %s = call <524288 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<524288 x float> %s, <3 x i32> <i32 32, i32 128, i32 128>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %e = call <524288 x float> @llvm.tensor.exp(token %t)
  %u = call token @llvm.tensor.typeinfo(<524288 x float> %e, <3 x i32> <i32 32, i32 128, i32 128>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %c = call token @llvm.tensor.load(ptr elementtype(float) %v, <3 x i32> <i32 32, i32 128, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  call void @g()
  %p = call <65536 x float> @llvm.tensor.matmul(token %u, token %c)
  store <65536 x float> %p, ptr %y
  ret void
}
