; Each sum's first product comes before the second ones. Loads are spread over the products, between labels that keep
; LLVM from moving them, ten products before an operand's first use, but not before its last use in the iteration before:
; here, all but two belong to the next iteration, and phis carry them. The last iteration is peeled and loads only those.
;
; RUN: grep -v '^;' %s | tlx-lower - --target=vsx --mcpu=pwr9 | FileCheck %s
;
; CHECK-LABEL: define {{.*}} @tlx.matmul
; CHECK: [[A0:%.*]] = shufflevector <4 x float>
; CHECK: [[B0:%.*]] = load <4 x float>, ptr
; CHECK: br label %k.{{loop}}
; CHECK: {{^}}k.loop:
; CHECK-NEXT: %k = phi i64 [ 0, %{{.*}} ], [ %k.next, %k.loop ]
; CHECK-COUNT-3: phi <4 x float> [ zeroinitializer, %{{.*}} ]
; CHECK: [[A:%.*]] = phi <4 x float> [ [[A0]], %{{.*}} ], [ [[A1:%.*]], %k.loop ]
; CHECK: [[B:%.*]] = phi <4 x float> [ [[B0]], %{{.*}} ], [ [[B1:%.*]], %k.loop ]
; CHECK: %k.next = add i64 %k, 4
; CHECK-NEXT: call void @llvm.codeview.annotation(metadata !{})
; CHECK: load <4 x float>, ptr
; CHECK: load float, ptr
; CHECK: call void @llvm.codeview.annotation(metadata !{})
; CHECK-NEXT: [[S0:%.*]] = call <4 x float> @llvm.fma.v4f32(<4 x float> [[A]], <4 x float> [[B]], <4 x float> %k.acc.1)
; CHECK: [[A1]] = shufflevector
; CHECK: call <4 x float> @llvm.fma.v4f32(<4 x float> {{.*}}, <4 x float> [[B]], <4 x float> %k.acc.2)
; CHECK: call <4 x float> @llvm.fma.v4f32(<4 x float> {{.*}}, <4 x float> [[B]], <4 x float> %k.acc.3)
; CHECK-NEXT: call void @llvm.codeview.annotation(metadata !{})
; CHECK: [[B1]] = load <4 x float>, ptr
; CHECK: call <4 x float> @llvm.fma.v4f32(<4 x float> {{.*}}, <4 x float> {{.*}}, <4 x float> [[S0]])
; CHECK: icmp slt i64 %k.next, {{60}}
; CHECK-NEXT: br i1 {{%.*}}, label %k.loop, label %k.last
; CHECK: {{^}}k.last:
; CHECK: load <4 x float>, ptr
; CHECK: load float, ptr
; CHECK-NOT: load
; CHECK: call <4 x float> @llvm.fma.v4f32(<4 x float> [[A1]], <4 x float> [[B1]],
; CHECK-NOT: load
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
