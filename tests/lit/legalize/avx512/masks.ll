; Padded rows of elements of any size are loaded and stored with masks.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a) nounwind noinline "no-builtins" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" "min-legal-vector-width"="512" "prefer-vector-width"="512" {
; CHECK-NEXT: %[[X:.*]] = call <64 x i8> @llvm.masked.load.v64i8.p0(ptr %a, i32 1, <64 x i1> <i1 true, i1 true, i1 true, i1 false, {{.*}}>, <64 x i8> zeroinitializer)
; CHECK-NEXT: %[[Y:.*]] = add <64 x i8> %[[X]], %[[X]]
; CHECK-NEXT: call void @llvm.masked.store.v64i8.p0(<64 x i8> %[[Y]], ptr %c, i32 1, <64 x i1> <i1 true, i1 true, i1 true, i1 false, {{.*}}>)
; CHECK-LABEL: define void @g(ptr %c, ptr %a) nounwind noinline "no-builtins" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" "min-legal-vector-width"="512" "prefer-vector-width"="512" {
; CHECK-NEXT: %[[T:.*]] = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %a, i32 8, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>, <8 x double> zeroinitializer)
; CHECK-NEXT: %[[T_1:.*]] = fadd <8 x double> %[[T]], %[[T]]
; CHECK-NEXT: call void @llvm.masked.store.v8f64.p0(<8 x double> %[[T_1]], ptr %c, i32 8, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>)
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 1, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 61>, <2 x i32> <i32 0, i32 0>)
  %v = call <64 x i8> @llvm.tensor.tovector(token %x)
  %w = add <64 x i8> %v, %v
  %y = call token @llvm.tensor.typeinfo(<64 x i8> %w, <2 x i32> <i32 1, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 61>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}

define void @g(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(double) %a, <2 x i32> <i32 1, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 3>, <2 x i32> <i32 0, i32 0>)
  %v = call <8 x double> @llvm.tensor.tovector(token %x)
  %w = fadd <8 x double> %v, %v
  %y = call token @llvm.tensor.typeinfo(<8 x double> %w, <2 x i32> <i32 1, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 3>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
