; Typed pointers, numbered values and debug locations.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s --implicit-check-not=llvm.matrix
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0
; RUN: grep -v '^;' %s | tlx-lower --target=avx2 | FileCheck %s --check-prefix=LOWERED --implicit-check-not=llvm.tensor

; CHECK-LABEL: define void @f(
; LOWERED-LABEL: define void @f(
define void @f(double* %0, i64 %1) !dbg !4 {
; CHECK: %[[BUFFER:.*]] = alloca <4 x double>, align 64
; CHECK: %[[T:.*]] = call token @llvm.tensor.load.p0f64.v2i32(double* %0, <2 x i32> <i32 2, i32 2>, {{.*}}, <2 x i32> <i32 0, i32 5>), !dbg ![[LINE:.*]]
; CHECK-NEXT: %3 = call <4 x double> @llvm.tensor.tovector.v4f64(token %[[T]]), !dbg ![[LINE]]
  %3 = call <4 x double> @llvm.matrix.column.major.load.v4f64.i64(double* align 8 %0, i64 5, i1 false, i32 2, i32 2), !dbg !5
  %4 = call <4 x double> @llvm.matrix.multiply.v4f64.v4f64.v4f64(<4 x double> %3, <4 x double> %3, i32 2, i32 2, i32 2)
; CHECK: %4 = call <4 x double> @llvm.tensor.matmul.v4f64(
; CHECK-NEXT: store <4 x double> %4, <4 x double>* %[[BUFFER]], align 8
  call void @llvm.matrix.column.major.store.v4f64.i64(<4 x double> %4, double* align 8 %0, i64 %1, i1 false, i32 2, i32 2)
; CHECK: call void @llvm.memcpy.p0i8.p0i8.i64(i8* %{{.*}}, i8* %{{.*}}, i64 16, i1 false)
; CHECK: %[[NUMBER:[0-9]+]] = fadd double 1.0
; CHECK-NEXT: store double %[[NUMBER]], double* %0
  %5 = fadd double 1.0, 2.0
  store double %5, double* %0
  ret void
}

declare <4 x double> @llvm.matrix.column.major.load.v4f64.i64(double* nocapture, i64, i1 immarg, i32 immarg, i32 immarg)
declare <4 x double> @llvm.matrix.multiply.v4f64.v4f64.v4f64(<4 x double>, <4 x double>, i32 immarg, i32 immarg, i32 immarg)
declare void @llvm.matrix.column.major.store.v4f64.i64(<4 x double>, double* nocapture writeonly, i64, i1 immarg, i32 immarg, i32 immarg)

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!1}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !2)
!1 = !{i32 2, !"Debug Info Version", i32 3}
!2 = !DIFile(filename: "f.c", directory: "")
!3 = !DISubroutineType(types: !6)
!6 = !{}
!4 = distinct !DISubprogram(name: "f", file: !2, line: 1, type: !3, unit: !0, spFlags: DISPFlagDefinition)
!5 = !DILocation(line: 3, column: 5, scope: !4)
