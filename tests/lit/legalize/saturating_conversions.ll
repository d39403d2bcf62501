; LLVM converts with saturation one element after another on x86-64 and Power, so comparisons bound the numbers there.
; RUN: tlx-lower --target=avx2 %s | FileCheck %s
; RUN: tlx-lower --target=avx512 %s | FileCheck %s
; RUN: tlx-lower --target=vsx %s | FileCheck %s
; RUN: tlx-lower --target=neon %s | FileCheck %s --check-prefix=NEON
; RUN: tlx-lower --target=avx2 --emit=asm -O2 %s | FileCheck %s --check-prefix=ASM
; RUN: tlx-lower --target=avx2 --check %s -o /dev/null

; ASM-NOT: cvttss2si
; ASM: vcvttps2dq
; ASM-NOT: cvttss2si
; NEON: {{^}}define internal
; NEON: call {{.*}}@llvm.fptoui.sat

; CHECK: {{^}}define internal
; CHECK-NOT: call {{.*}}llvm.fpto
; CHECK: [[AT_LEAST:%[^ ]+]] = select <[[N:[0-9]+]] x i1> {{%[^ ]+}}, <[[N]] x float> {{%[^ ]+}}, <[[N]] x float> {{.*}}
; CHECK: [[AT_MOST:%[^ ]+]] = select <[[N]] x i1> {{%[^ ]+}}, <[[N]] x float> [[AT_LEAST]],
; CHECK: [[ORDERED:%[^ ]+]] = fcmp ord
; CHECK: [[NUMBER:%[^ ]+]] = select <[[N]] x i1> [[ORDERED]], <[[N]] x float> [[AT_MOST]], <[[N]] x float> zeroinitializer
; CHECK: [[WIDE:%[^ ]+]] = fptosi <[[N]] x float> [[NUMBER]] to <[[N]] x i32>
; CHECK: trunc <[[N]] x i32> [[WIDE]] to <[[N]] x i8>
define void @bytes(ptr %x, ptr %y) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 640>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <640 x float> @llvm.tensor.tovector(token %t)
  %r = call <640 x i8> @llvm.fptoui.sat.v640i8.v640f32(<640 x float> %v)
  %u = call token @llvm.tensor.typeinfo(<640 x i8> %r, <1 x i32> <i32 640>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %u, <1 x i32> zeroinitializer)
  ret void
}
declare <640 x i8> @llvm.fptoui.sat.v640i8.v640f32(<640 x float>)
