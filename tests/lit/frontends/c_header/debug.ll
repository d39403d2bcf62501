; Debug locations stay with their calls; debug values of tokens are removed.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0

; CHECK: %t = call token @llvm.tensor.load.p0.v1i32(ptr elementtype(float) %p, {{.*}}), !dbg !7
; CHECK-NEXT: call void @llvm.tensor.store.p0.v1i32(ptr elementtype(float) %p, token %t, {{.*}}), !dbg !8
; CHECK-NEXT: call void @llvm.dbg.value(metadata i32 %n, metadata !6, metadata !DIExpression()), !dbg !8
; CHECK-NEXT: ret void, !dbg !8
define void @f(ptr %p, i32 %n) !dbg !4 {
  %t = call i32 (ptr, ...) @tensor_load_f32(ptr %p, i32 4, i32 0, i32 0, i32 0), !dbg !7
  call void @llvm.dbg.value(metadata i32 %t, metadata !6, metadata !DIExpression()), !dbg !7
  call void (ptr, ...) @tensor_store_f32(ptr %p, i32 %t, i32 0), !dbg !8
  call void @llvm.dbg.value(metadata i32 %n, metadata !6, metadata !DIExpression()), !dbg !8
  ret void, !dbg !8
}

declare void @llvm.dbg.value(metadata, metadata, metadata)
declare i32 @tensor_load_f32(ptr, ...)
declare void @tensor_store_f32(ptr, ...)

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3}

!0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !1, producer: "clang", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug)
!1 = !DIFile(filename: "f.c", directory: "/")
!2 = !{i32 7, !"Dwarf Version", i32 5}
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = distinct !DISubprogram(name: "f", scope: !1, file: !1, line: 1, type: !5, spFlags: DISPFlagDefinition, unit: !0)
!5 = !DISubroutineType(types: !{null})
!6 = !DILocalVariable(name: "t", scope: !4, file: !1, line: 2)
!7 = !DILocation(line: 2, column: 1, scope: !4)
!8 = !DILocation(line: 3, column: 1, scope: !4)
