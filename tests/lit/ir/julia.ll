; Modules that Julia writes: its address spaces, its tokens and its calling conventions.
; RUN: grep -v '^;' %s | tlx-lower - --target=avx2 -o - | FileCheck %s --implicit-check-not=llvm.tensor.
; RUN: sed '/^;/d; s/addrspace(13) noalias/addrspace(13)/g' %s | tlx-lower - --target=avx2 -o - | FileCheck %s --implicit-check-not=llvm.tensor.

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128-ni:10:11:12:13"
target triple = "x86_64-unknown-linux-gnu"

; CHECK-LABEL: define swiftcc void @"julia_gemm!_0"(ptr nonnull swiftself %pgcstack
; CHECK: %token = call token (...) @llvm.julia.gc_preserve_begin(ptr addrspace(10) %array)
; CHECK: %data = load ptr addrspace(13), ptr addrspace(11) %derived, align 8, !tbaa
; CHECK: call void @tlx.matmul.64x64x64.f32.f32.f32(ptr {{.*}}
; CHECK: call void @llvm.julia.gc_preserve_end(token %token)
define swiftcc void @"julia_gemm!_0"(ptr nonnull swiftself %pgcstack, ptr addrspace(10) %array, ptr addrspace(13) noalias %c) #0 {
top:
  %token = call token (...) @llvm.julia.gc_preserve_begin(ptr addrspace(10) %array)
  %derived = addrspacecast ptr addrspace(10) %array to ptr addrspace(11)
  %data = load ptr addrspace(13), ptr addrspace(11) %derived, align 8, !tbaa !0, !nonnull !3
  %a = call token @llvm.tensor.load(ptr addrspace(13) elementtype(float) %data, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <4096 x float> @llvm.tensor.matmul(token %a, token %a)
  %t = call token @llvm.tensor.typeinfo(<4096 x float> %p, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr addrspace(13) %c, token %t, <2 x i32> zeroinitializer)
  call void @llvm.julia.gc_preserve_end(token %token)
  ret void
}

declare token @llvm.julia.gc_preserve_begin(...)
declare void @llvm.julia.gc_preserve_end(token)

attributes #0 = { "frame-pointer"="all" "julia.fsig"="gemm!(Matrix{Float32}, Matrix{Float32})" "probe-stack"="inline-asm" }
!0 = !{!1, !1, i64 0}
!1 = !{!"jtbaa_arrayptr", !2, i64 0}
!2 = !{!"jtbaa"}
!3 = !{}
