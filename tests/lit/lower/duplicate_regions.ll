; A function with many equal operations: each distinct one is lowered once, as a function that is called in their place.
; The function knows no more about aliasing than its caller: two pointers into the same memory are not noalias.
;
; RUN: %python %S/Inputs/repeat.py %s > %t.ll
; RUN: tlx-lower %t.ll -o %t.lowered.ll --target=avx2 --remarks=%t.remarks
; RUN: FileCheck %s < %t.lowered.ll
; RUN: FileCheck %s --check-prefix=REMARK --implicit-check-not="more copies" < %t.remarks
; RUN: tlx-lower %t.ll -o /dev/null --target=avx2 --print-after=all 2>&1 | FileCheck %s --check-prefix=STAGES
; RUN: tlx-lower %t.ll -o /dev/null --target=avx2 --check=1

; CHECK: define void @many(ptr noalias %c, ptr %a, i64 %n) #0 {
; CHECK-NEXT: entry:
; CHECK-NEXT: %t = getelementptr float, ptr %c, i64 2
; CHECK-NEXT: call void @many.part(ptr %a, ptr %c)
; CHECK-NEXT: call void @many.part.1(ptr %c)
; CHECK-NEXT: call void @many.part.2(ptr %t, ptr %c)
; CHECK-NEXT: %p0 = getelementptr float, ptr %a, i64 %n
; CHECK-NEXT: call void @many.part(ptr %p0, ptr %c)
; CHECK: %p15 = getelementptr float, ptr %a, i64 %n
; CHECK-NEXT: call void @many.part(ptr %p15, ptr %c)
; CHECK-NEXT: ret void
; CHECK-NEXT: }
; CHECK: define internal void @many.part(ptr %a, ptr noalias %c) nounwind "target-features"="+avx2,+fma" {
; CHECK-NEXT: entry:
; CHECK-NEXT: call void @[[RELU:tlx\.map[^(]*]](ptr %c, ptr %a)
; CHECK-NEXT: ret void
; CHECK: define internal void @many.part.1(ptr noalias %c) nounwind "target-features"="+avx2,+fma" {
; CHECK: define internal void @many.part.2(ptr %t, ptr %c) nounwind "target-features"="+avx2,+fma" {
; CHECK: define void @few(
; CHECK-NOT: .part

; REMARK: ll:4:3: remark: 31 more copies of this region are calls to @many.part, which is lowered once [read]
; REMARK: ll:8:3: remark: 15 more copies of this region are calls to @many.part.1, which is lowered once [read]
; REMARK: ll:12:3: remark: 15 more copies of this region are calls to @many.part.2, which is lowered once [read]

; STAGES: IR Dump After LowerTensorsTo2D (to-2d)
; STAGES: call void @many.part(ptr %a, ptr %c)
; STAGES: define internal void @many.part(ptr %a, ptr noalias %c)
; STAGES: call <16 x float> @llvm.tensor.relu.v16f32(
; STAGES: IR Dump After Lower2DToTiles (to-tiles)

;--- program
define void @many(ptr noalias %c, ptr %a, i64 %n) #0 {
entry:
  %t = getelementptr float, ptr %c, i64 2
; repeat 16
  %x# = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %r# = call <16 x float> @llvm.tensor.relu(token %x#)
  %y# = call token @llvm.tensor.typeinfo(<16 x float> %r#, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %y#, <2 x i32> zeroinitializer)
  %u# = call token @llvm.tensor.load(ptr elementtype(float) %c, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %q# = call <16 x float> @llvm.tensor.sigmoid(token %u#)
  %z# = call token @llvm.tensor.typeinfo(<16 x float> %q#, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %z#, <2 x i32> zeroinitializer)
  %v# = call token @llvm.tensor.load(ptr elementtype(float) %t, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %v#, <2 x i32> zeroinitializer)
  %p# = getelementptr float, ptr %a, i64 %n
  %m# = call token @llvm.tensor.load(ptr elementtype(float) %p#, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %k# = call <16 x float> @llvm.tensor.relu(token %m#)
  %w# = call token @llvm.tensor.typeinfo(<16 x float> %k#, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %w#, <2 x i32> zeroinitializer)
; end
  ret void
}

define void @few(ptr noalias %c, ptr %a) {
entry:
; repeat 31
  %x# = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %x#, <2 x i32> zeroinitializer)
; end
  ret void
}

attributes #0 = { readonly "target-features"="+avx2,+fma" }
