; A right operand whose rows are pages apart is packed across all panels of a block, one step of K at a time.
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll --target=amx --knobs=mc=40 --stop-after=to-tiles -o - | FileCheck %s
; RUN: tlx-lower %t.ll -o %t.o.ll --target=amx --check --emulate-matrix

; CHECK-LABEL: define internal void @tlx.matmul.40x64x70.bf16.bf16.f32(
; CHECK:       kp.loop.2:
; CHECK:       jp.loop:
; CHECK:       jp.end:
; CHECK:       kp.end.2:
; CHECK:       jp.loop.1:
; CHECK:       jp.end.1:
; CHECK-NOT:   reshape.block
; CHECK:         call <1024 x float> @llvm.tensor.smma
; CHECK-NOT:   reshape.block
; CHECK:         ret void
define void @far(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 40, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 70, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 1024>)
  %c = call <2560 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<2560 x float> %c, <2 x i32> <i32 40, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}
