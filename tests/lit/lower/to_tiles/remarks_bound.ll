; The bound of maps and reductions: how much they move, which cache holds it, and which share of its bandwidth they use.
;
; RUN: tlx-lower %s -o /dev/null --target=avx512 --remarks 2>&1 | FileCheck %s
; CHECK: remark: map 1x16777216 float: fadd (2 extra operands) in one pass; moves 192.0 MiB, beyond the caches: bound by memory; non-temporal stores [to-tiles]
; CHECK: remark: map 1x2048 float: tanh (1 extra operand) in one pass; moves 16.0 KiB, in the L1 cache: bound by instructions, about {{[0-9]+}} % of the bandwidth of that cache [to-tiles]
; CHECK: remark: reduce.add 512x256 float in one pass; moves 514.0 KiB, in the L2 cache: bound by that cache [to-tiles]

define void @add(ptr noalias %y, ptr noalias %a, ptr noalias %b) {
  %v = load <16777216 x float>, ptr %a
  %w = load <16777216 x float>, ptr %b
  %r = fadd <16777216 x float> %v, %w
  store <16777216 x float> %r, ptr %y
  ret void
}

define void @tanh(ptr noalias %y, ptr noalias %a) {
  %v = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> <i32 2048>, <1 x i32> zeroinitializer,
      <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %r = call <2048 x float> @llvm.tensor.tanh(token %v)
  store <2048 x float> %r, ptr %y
  ret void
}

define void @sums(ptr noalias %y, ptr noalias %a) {
  %v = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 512, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %s = call <512 x float> @llvm.tensor.reduce.add(token %v, <2 x i32> <i32 1, i32 256>, <2 x i32> <i32 1, i32 1>)
  store <512 x float> %s, ptr %y
  ret void
}
