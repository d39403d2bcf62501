source_filename = "typed.c"
target triple = "x86_64-pc-linux-gnu"

%struct.node = type { i32, %struct.node*, i32 (i8*, ...)* }

@text = private unnamed_addr constant [3 x i8] c"%d\00", align 1
@pointer = global i8* getelementptr inbounds ([3 x i8], [3 x i8]* @text, i64 0, i64 0), align 8

declare i32 @printf(i8* nocapture readonly, ...) #0
declare void @llvm.dbg.value(metadata, metadata, metadata)
declare void @llvm.lifetime.start.p0i8(i64 immarg, i8* nocapture)
declare i32 @__gxx_personality_v0(...)
declare token @llvm.coro.id(i32, i8*, i8*, i8*)

define dso_local i32 @main(i32 %0, i8** nocapture readnone %1) local_unnamed_addr #0 personality i8* bitcast (i32 (...)* @__gxx_personality_v0 to i8*) {
  %3 = alloca %struct.node, align 8
  %4 = alloca i32 (i8*, ...)*, align 8
  %5 = bitcast %struct.node* %3 to i8*
  call void @llvm.lifetime.start.p0i8(i64 24, i8* nonnull %5) #1
  store i32 (i8*, ...)* @printf, i32 (i8*, ...)** %4, align 8
  %6 = load i32 (i8*, ...)*, i32 (i8*, ...)** %4, align 8
  %7 = call i32 (i8*, ...) %6(i8* getelementptr inbounds ([3 x i8], [3 x i8]* @text, i64 0, i64 0), i32 %0)
  %8 = getelementptr inbounds %struct.node, %struct.node* %3, i64 0, i32 1
  store %struct.node* null, %struct.node** %8, align 8, !tbaa !0
  %9 = load %struct.node*, %struct.node** %8, align 8
  %10 = icmp eq %struct.node* %9, %3
  br i1 %10, label %11, label %15

11:                                               ; preds = %15, %2
  %12 = phi i32 [ %7, %2 ], [ 0, %15 ]
  %13 = call i32 (i8*, ...)* @chooser(i8* bitcast (i8** @pointer to i8*))
  %14 = call token @llvm.coro.id(i32 0, i8* null, i8* null, i8* null)
  ret i32 %12

15:                                               ; preds = %2
  %16 = getelementptr i8*, <2 x i8**> undef, <2 x i64> <i64 1, i64 2>
  %17 = addrspacecast i8** %1 to i8* addrspace(1)*
  %18 = load i8*, i8* addrspace(1)* %17, align 8
  call void @llvm.dbg.value(metadata i32 %7, metadata !1, metadata !DIExpression()), !dbg !7
  call void @llvm.dbg.value(metadata !DIArgList(i32 %0, i32 %7), metadata !1, metadata !DIExpression(DW_OP_LLVM_arg, 0)), !dbg !7
  br label %11
}

define internal i32 (i8*, ...)* @chooser(i8* %0) {
  ret i32 (i8*, ...)* @printf
}

attributes #0 = { nounwind uwtable }
attributes #1 = { nounwind }

!llvm.dbg.cu = !{!3}
!llvm.module.flags = !{!8}
!0 = !{!9, !9, i64 0}
!1 = !DILocalVariable(name: "x", scope: !2, file: !4, line: 1, type: !5)
!2 = distinct !DISubprogram(name: "main", scope: !4, file: !4, line: 1, type: !6, unit: !3, spFlags: DISPFlagDefinition)
!3 = distinct !DICompileUnit(language: DW_LANG_C99, file: !4, emissionKind: FullDebug)
!4 = !DIFile(filename: "typed.c", directory: "/")
!5 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!6 = !DISubroutineType(types: !{})
!7 = !DILocation(line: 1, scope: !2)
!8 = !{i32 2, !"Debug Info Version", i32 3}
!9 = !{!"int", !10, i64 0}
!10 = !{!"root"}
