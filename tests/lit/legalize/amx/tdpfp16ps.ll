; Halves are multiplied by tile products only with AMX-FP16. LLVM's scalarisation does not
; support these: a function replaces them.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --no-request-permission --mattr=+amx-fp16 | FileCheck %s --implicit-check-not=llvm.tensor.
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --no-request-permission --mcpu=graniterapids | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx | FileCheck %s --check-prefix=WITHOUT --implicit-check-not=fp16ps --implicit-check-not=amx-fp16
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx+amx-fp16 --emulate-matrix | FileCheck %s --check-prefix=EMULATED

; CHECK: define internal void @tlx.matmul.32x32x64.f16.f16.f32({{.*}}"target-features"="{{.*}},+amx-fp16{{[",]}}
; CHECK-COUNT-4: call void @llvm.x86.tdpfp16ps(i8 {{[0-3]}}, i8 {{[4-7]}}, i8 {{[4-7]}})
; CHECK-NOT: call void @llvm.x86.tdp
; CHECK: declare void @llvm.x86.tdpfp16ps(i8, i8, i8)
; WITHOUT: fpext <16 x half>
; EMULATED-COUNT-4: call void @tlx.tdpfp16ps(ptr %c.2, ptr %a.2, ptr %b.4)
; EMULATED-LABEL: define internal void @tlx.tdpfp16ps(ptr noalias %c, ptr noalias %a, ptr noalias %b)
; EMULATED-COUNT-2: call <16 x float> @llvm.fma.v16f32
; EMULATED-NOT: define internal void @tlx.tdpfp16ps

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 32, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(half) %b, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1024 x float> %m, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
