; Functions that differ only in their names are lowered once: the result is copied for each, after every
; stage. Similar functions are lowered separately: one that calls itself, one with a comdat of its own,
; one whose signature ends up with a vector passed by pointer.
;
; REQUIRES: split-file
; RUN: split-file %s %t
; RUN: tlx-lower %t/program.ll -o - --target=avx2 --remarks=%t/remarks | FileCheck %s
; RUN: FileCheck %s --check-prefix=REMARK --implicit-check-not="under another name" < %t/remarks
; RUN: tlx-lower %t/program.ll -o /dev/null --target=avx2 --print-after=all 2>&1 | FileCheck %s --check-prefix=STAGES
; RUN: tlx-lower %t/program.ll -o /dev/null --target=avx2 --check

; CHECK: define linkonce_odr void @first(ptr noalias %c, ptr %a) nounwind comdat {
; CHECK-NEXT: call void @[[COPY:tlx\.map[^(]*]](ptr %c, ptr %a)
; CHECK-NEXT: ret void
; CHECK: define linkonce_odr void @second(ptr noalias %c, ptr %a) nounwind comdat {
; CHECK-NEXT: call void @[[COPY]](ptr %c, ptr %a)
; CHECK-NEXT: ret void
; CHECK: define linkonce_odr void @"the third"(ptr noalias %c, ptr %a) nounwind comdat {
; CHECK-NEXT: call void @[[COPY]](ptr %c, ptr %a)
; CHECK-NEXT: ret void
; CHECK: define linkonce_odr void @fourth(ptr noalias %c, ptr %a) nounwind comdat($first) {
; CHECK-NEXT: call void @[[COPY]](ptr %c, ptr %a)
; CHECK: define void @calls_itself(
; CHECK: call void @calls_itself(
; CHECK: define void @calls_the_other(
; CHECK: call void @calls_itself(
; CHECK: define void @takes_much(ptr noalias %c, ptr %v.in)
; CHECK: define void @takes_as_much(ptr noalias %c, ptr %v.in)
; CHECK: define void @caller(
; CHECK: call void @takes_much(ptr %c, ptr %
; CHECK: call void @takes_as_much(ptr %c, ptr %
; CHECK: call void @second(ptr %c, ptr %c)

; REMARK: program.ll:13:1: remark: @second equals @first, which is lowered once: its remarks apply to both [read]
; REMARK: remark: @"the third" equals @first

; STAGES: IR Dump After LowerTensorsTo2D (to-2d)
; STAGES: define linkonce_odr void @second(
; STAGES: call <16 x float> @llvm.tensor.relu.v16f32(
; STAGES: IR Dump After Lower2DToTiles (to-tiles)
; STAGES: define linkonce_odr void @second(
; STAGES-NEXT: call void @tlx.map

;--- program.ll
$first = comdat any
$second = comdat any
$"the third" = comdat any

define linkonce_odr void @first(ptr noalias %c, ptr %a) nounwind comdat {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %r = call <16 x float> @llvm.tensor.relu(token %x)
  %t = call token @llvm.tensor.typeinfo(<16 x float> %r, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define linkonce_odr void @second(ptr noalias %c, ptr %a) nounwind comdat {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %r = call <16 x float> @llvm.tensor.relu(token %x)
  %t = call token @llvm.tensor.typeinfo(<16 x float> %r, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define linkonce_odr void @"the third"(ptr noalias %c, ptr %a) nounwind comdat {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %r = call <16 x float> @llvm.tensor.relu(token %x)
  %t = call token @llvm.tensor.typeinfo(<16 x float> %r, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define linkonce_odr void @fourth(ptr noalias %c, ptr %a) nounwind comdat($first) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %r = call <16 x float> @llvm.tensor.relu(token %x)
  %t = call token @llvm.tensor.typeinfo(<16 x float> %r, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @calls_itself(ptr noalias %c, ptr %a, i1 %again) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %x, <2 x i32> zeroinitializer)
  br i1 %again, label %more, label %done

more:
  call void @calls_itself(ptr %a, ptr %c, i1 false)
  br label %done

done:
  ret void
}

define void @calls_the_other(ptr noalias %c, ptr %a, i1 %again) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %x, <2 x i32> zeroinitializer)
  br i1 %again, label %more, label %done

more:
  call void @calls_itself(ptr %a, ptr %c, i1 false)
  br label %done

done:
  ret void
}

define void @takes_much(ptr noalias %c, <4200 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<4200 x float> %v, <2 x i32> <i32 42, i32 100>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @takes_as_much(ptr noalias %c, <4200 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<4200 x float> %v, <2 x i32> <i32 42, i32 100>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @caller(ptr noalias %c, ptr %a) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 42, i32 100>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <4200 x float> @llvm.tensor.relu(token %x)
  call void @takes_much(ptr %c, <4200 x float> %v)
  call void @takes_as_much(ptr %c, <4200 x float> %v)
  call void @second(ptr %c, ptr %c)
  ret void
}
