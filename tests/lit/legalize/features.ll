; A function with the attribute for the target's features gets them, with or without tensor operations.
;
; RUN: tlx-lower %s --target=avx2 | grep -v '^;' | FileCheck %s --check-prefix=AVX2
; RUN: tlx-lower %s --target=generic | grep -v '^;' | FileCheck %s --check-prefix=GENERIC

define void @tensors(ptr %p) "tlx-features"="target" nounwind {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <1 x i32> <i32 8>, <1 x i32> zeroinitializer,
                                    <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %r = call <8 x float> @llvm.tensor.relu(token %t)
  %u = call token @llvm.tensor.typeinfo(<8 x float> %r, <1 x i32> <i32 8>, <1 x i32> zeroinitializer,
                                        <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %p, token %u, <1 x i32> zeroinitializer)
  ret void
}

define <8 x float> @plain(<8 x float> %x) #0 {
  %y = fadd <8 x float> %x, %x
  ret <8 x float> %y
}

define void @other(ptr %p) #1 {
  store i32 0, ptr %p, align 4
  ret void
}

declare void @may_throw()

define void @throws() #2 {
  call void @may_throw()
  ret void
}

attributes #0 = { "tlx-features"="target" nounwind }
attributes #1 = { nounwind }
attributes #2 = { "tlx-features"="target" }

; AVX2: define void @tensors(ptr %p) {{.*}}"target-features"="{{.*}}+avx2{{.*}}"
; AVX2-NOT: tlx-features
; AVX2: attributes #0 = { "target-features"="{{.*}}+avx2{{.*}}" "min-legal-vector-width"="256" "prefer-vector-width"="256" nounwind }
; AVX2: attributes #1 = { nounwind }

; GENERIC-NOT: target-features
; GENERIC-NOT: tlx-features
; GENERIC: attributes #2 = { "tlx-lowered" }
