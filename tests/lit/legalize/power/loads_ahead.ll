; Operands are loaded 28 products before their first use. Here those are all operands of the next iteration, which phis
; carry; the last iteration is peeled and loads nothing.
;
; RUN: grep -v '^;' %s | tlx-lower - --target=vsx --mcpu=pwr9 | FileCheck %s
;
; CHECK-LABEL: define {{.*}} @tlx.matmul
; CHECK: [[B0:%.*]] = load <4 x float>, ptr
; CHECK: [[A0:%.*]] = load float, ptr
; CHECK: br label %k.{{loop}}
; CHECK: {{^}}k.loop:
; CHECK-NEXT: %k = phi i64 [ 0, %{{.*}} ], [ %k.next, %k.loop ]
; CHECK: [[B:%.*]] = phi <4 x float> [ [[B0]], %{{.*}} ], [ [[B1:%.*]], %k.loop ]
; CHECK-NOT: load
; CHECK: %k.next = add i64 %k, {{2}}
; CHECK: [[B1]] = load <4 x float>, ptr
; CHECK: call <4 x float> @llvm.fma.v4f32(<4 x float> {{%.*}}, <4 x float> [[B]],
; CHECK: icmp slt i64 %k.next, {{62}}
; CHECK-NEXT: br i1 {{%.*}}, label %k.loop, label %k.last
; CHECK: {{^}}k.last:
; CHECK-NOT: load
; CHECK: call <4 x float> @llvm.fma.v4f32(<4 x float> {{%.*}}, <4 x float> [[B1]],
; CHECK: br label %k.{{end}}

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 64, i32 4>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <12 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  store <12 x float> %m, ptr %c, align 4
  ret void
}
