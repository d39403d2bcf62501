; a comment before everything { with a brace "and a quote
source_filename = "define void @not_a_function() {"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

module asm "define: .byte 0 ; { not a body"

%pair = type { i32, float }
%multi = type {
  i32,
  [4 x %pair]
}
%"quoted type" = type <{ i8, i64 }>
%unknown = type opaque
%0 = type { i16, i16 }

$folded = comdat any

@g = global i32 7, align 4
@"quoted global" = internal constant [6 x i8] c"a\22{}\0A\00"
@table = constant [2 x ptr] [ptr blockaddress(@jumps, %there), ptr @g]
@nested = constant %multi { i32 1, [4 x %pair] zeroinitializer }
@alias = alias i32, ptr @g
@llvm.used = appending global [1 x ptr] [ptr @g], section "llvm.metadata"

declare i32 @__gxx_personality_v0(...)
declare void @may_throw() declare void @on_the_same_line(i32 noundef %x)
declare i32 @printf(ptr noundef nonnull readonly captures(none), ...) #1
declare void @several_lines(i32,
                            { i32, i32 })
    nounwind ; a comment behind it
declare ptr @llvm.stacksave.p0()
declare void @llvm.assume(i1 noundef)
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare { i32, i1 } @llvm.sadd.with.overflow.i32(i32, i32)
declare void @llvm.dbg.value(metadata, metadata, metadata)

define i32 @arithmetic(i32 %a, i32 noundef %b, i64 %c, float %x, double %y) #0 {
  %1 = add nuw nsw i32 %a, %b
  %2 = sub i32 %1, -5
  %3 = mul nsw i32 %2, 3, !annotation !9
  %4 = udiv exact i32 %3, 7
  %5 = sdiv i32 %4, 2
  %6 = urem i32 %5, 11
  %7 = srem i32 %6, 13
  %8 = shl nuw i32 %7, 1
  %9 = lshr exact i32 %8, 1
  %10 = ashr i32 %9, 1
  %11 = and i32 %10, 255
  %12 = or disjoint i32 %11, 256
  %13 = xor i32 %12, -1
  %f1 = fadd fast float %x, 1.000000e+00
  %f2 = fsub nnan ninf float %f1, 0x3FB99999A0000000
  %f3 = fmul reassoc nsz arcp contract afn float %f2, %x
  %f4 = fdiv float %f3, 1.5
  %f5 = frem float %f4, 2.5e-1
  %f6 = fneg fast float %f5
  %f7 = fptoui float %f6 to i32
  %f8 = fptosi float %f6 to i32
  %f9 = uitofp nneg i32 %13 to float
  %f10 = sitofp i32 %13 to double
  %f11 = fptrunc double %y to float
  %f12 = fpext float %f11 to double
  %t1 = trunc nuw i64 %c to i32
  %t2 = zext nneg i32 %t1 to i64
  %t3 = sext i32 %t1 to i64
  %t4 = bitcast double %f12 to i64
  %t5 = inttoptr i64 %t3 to ptr
  %t6 = ptrtoint ptr %t5 to i64
  %t7 = addrspacecast ptr %t5 to ptr addrspace(1)
  %c1 = icmp samesign ult i32 %13, %a
  %c2 = icmp eq ptr %t5, null
  %c3 = fcmp nnan olt float %f6, 0xFFF0000000000000
  %c4 = fcmp true double %y, 0x7FF8000000000000
  %s1 = select i1 %c1, i32 %13, i32 poison
  %s2 = select fast i1 %c3, float %f6, float undef
  %s3 = freeze i32 %s1
  ret i32 %s3
}

define <4 x float> @vectors(<4 x float> %v, <4 x float> %w, <vscale x 2 x i64> %s, i32 %i) {
entry:
  %a = extractelement <4 x float> %v, i32 %i
  %b = insertelement <4 x float> %w, float %a, i64 2
  %c = shufflevector <4 x float> %v, <4 x float> poison, <8 x i32> <i32 0, i32 1, i32 poison, i32 undef, i32 4, i32 5, i32 6, i32 7>
  %d = shufflevector <vscale x 2 x i64> %s, <vscale x 2 x i64> poison, <vscale x 2 x i32> zeroinitializer
  %e = fadd <4 x float> %b, splat (float 1.000000e+00)
  %f = fcmp oeq <4 x float> %e, <float 1.0, float 0x7FF0000000000000, float undef, float 2.5>
  %g = select <4 x i1> %f, <4 x float> %e, <4 x float> zeroinitializer
  %h = add <vscale x 2 x i64> %d, splat (i64 u0xFF)
  %k = add <2 x i8> <i8 s0xFF, i8 0>, <i8 1, i8 -1>
  ret <4 x float> %g
}

define void @memory(ptr %p, ptr addrspace(3) %q, i64 %n, %multi %m) {
entry:
  %a = alloca i32
  %b = alloca [4 x %pair], i64 %n, align 16
  %c = alloca inalloca %pair, align 8
  %d = load i32, ptr %a
  %e = load volatile i32, ptr %a, align 4, !nontemporal !8, !range !7
  %f = load atomic i32, ptr %a syncscope("singlethread") acquire, align 4
  store i32 %d, ptr %a
  store atomic volatile i32 %e, ptr %a seq_cst, align 4
  store <2 x half> <half 0xH3C00, half 0xH0000>, ptr %p, align 2 store bfloat 0xR3F80, ptr %p, align 2
  store x86_fp80 0xK3FFF8000000000000000, ptr %p, align 16
  store fp128 0xL00000000000000003FFF000000000000, ptr %p
  store ppc_fp128 0xM3FF00000000000000000000000000000, ptr %p
  %g = getelementptr inbounds nuw %multi, ptr %p, i64 %n, i32 1, i64 2, i32 0
  %h = getelementptr inbounds [4 x i32], <2 x ptr> <ptr @g, ptr null>, i64 0, <2 x i64> <i64 1, i64 2>
  %i = extractvalue %multi %m, 1, 3, 1
  %j = insertvalue { i32, [2 x i64] } undef, i64 %n, 1, 0
  %k = atomicrmw volatile add ptr %a, i32 1 monotonic, align 4
  %l = atomicrmw fmax ptr %p, float %i syncscope("agent") acq_rel, align 4
  %m1 = cmpxchg weak volatile ptr %a, i32 %d, i32 %e acq_rel monotonic, align 4
  %n1 = va_arg ptr %p, i32
  fence syncscope("singlethread") seq_cst
  fence acquire
  store
    i32 %k,
    ptr
      %a ; in several lines
    , align 4
  call void @llvm.assume(i1 true) [ "align"(ptr %p, i64 64), "nonnull"(ptr %p) ]
  %o = call i32 (ptr, ...) @printf(ptr noundef nonnull align 1 @"quoted global", i32 signext %d, double 1.0) #2, !srcloc !8
  %p1 = tail call fastcc noundef range(i32 0, 10) i32 @fast(i32 inreg %d)
  %q1 = notail call addrspace(0) i32 @fast(i32 %o) nounwind memory(read)
  %r = call fast float asm sideeffect alignstack "fadd $0, $1", "=x,x,~{memory}"(float %i)
  %s = call i32 %p(i32 1) "attribute"="value"
  call void @byval(ptr byval(%pair) align 8 %p, ptr sret({ i32, i32 }) %p)
  call void asm inteldialect "nop", ""()
  %t = load ptr, ptr getelementptr inbounds ([2 x ptr], ptr @table, i64 0, i64 1)
  store i64 sub (i64 ptrtoint (ptr @g to i64), i64 ptrtoint (ptr dso_local_equivalent @fast to i64)), ptr %p
  store ptr no_cfi @fast, ptr %p
  store { i32, { <2 x i16>, [1 x i8] } } { i32 1, { <2 x i16>, [1 x i8] } { <2 x i16> <i16 1, i16 2>, [1 x i8] c"\00" } }, ptr %p
  store <{ i8, i64 }> <{ i8 1, i64 2 }>, ptr %p
  store %"quoted type" zeroinitializer, ptr %p
  store %0 { i16 1, i16 2 }, ptr %p
  ret void
}

define internal fastcc i32 @fast(i32 inreg %0) unnamed_addr #0 comdat($folded) align 16 {
  %2 = musttail call fastcc i32 @fast(i32 inreg %0)
  ret i32 %2
}

define dso_local { i32, i32 } @struct_result({ i32, i32 } %0, ptr nonnull %1) "odd"="{;}" section "a b" gc "statepoint-example" { ret { i32, i32 } %0 }
define void @byval(ptr byval(%pair) align 8, ptr sret({ i32, i32 })) prefix { i32, i8 } { i32 1, i8 2 } { ret void } define cc 10 void @convention() { ret void }

define i32 @jumps(i32 %0, i1 %1) personality ptr @__gxx_personality_v0 {
  br i1 %1, label %3, label %"a block"

3:                                                ; preds = %2
  switch i32 %0, label %there [
    i32 0, label %"a block"
    i32 -1, label %6 ; in the middle
  ]

"a block":                                        ; preds = %3, %2
  %4 = phi i32 [ 0, %2 ], [ %0, %3 ]
  br label %there
  ; a block without a label
  br label %there
there:
  indirectbr ptr blockaddress(@jumps, %there), [label %there, label %$odd, label %6]
6:
  invoke void @may_throw() [ "deopt"(i32 %0) ]
          to label %$odd unwind label %-lands
$odd: %7 = invoke fastcc i32 @fast(i32 %0) #0 to label %8 unwind label %-lands
8: switch i32 %7, label %.dots []
.dots:
  callbr void asm sideeffect "", "r,!i,!i"(i32 %0) to label %9 [label %8, label %10]
9:
  unreachable
10:
  ret i32 0
-lands:
  %l = landingpad { ptr, i32 }
          cleanup
          catch ptr null
          filter [1 x ptr] [ptr @g]
  resume { ptr, i32 } %l
}

define void @funclets() personality ptr @__gxx_personality_v0 {
  invoke void @may_throw()
          to label %done unwind label %dispatch
dispatch:
  %cs = catchswitch within none [label %handler, label %other] unwind label %clean
handler:
  %cp = catchpad within %cs [ptr null, i32 64, ptr null]
  call void @may_throw() [ "funclet"(token %cp) ]
  catchret from %cp to label %done
other:
  %cq = catchpad within %cs []
  catchret from %cq to label %done
clean:
  %cl = cleanuppad within none [i32 1]
  cleanupret from %cl unwind to caller
done:
  ret void
}

define void @records(i32 %x, ptr %p) !dbg !2 {
entry:
    #dbg_value(i32 %x, !5, !DIExpression(DW_OP_plus_uconst, 1, DW_OP_stack_value), !6)
    #dbg_declare(ptr %p, !5, !DIExpression(), !6)
    #dbg_value(!DIArgList(i32 %x, ptr %p), !5, !DIExpression(DW_OP_LLVM_arg, 0), !6)
    #dbg_value(ptr poison, !5, !DIExpression(), !6)
  %y = add i32 %x, 1, !dbg !6
    #dbg_value(i32 %y, !5, !DIExpression(), !6)
  br label %end, !dbg !DILocation(line: 3, scope: !2)
end:
  ret void, !dbg !6, !annotation !9
}

define void @token() presplitcoroutine {
  %id = call token @llvm.coro.id(i32 0, ptr null, ptr null, ptr null)
  %1 = call { i32, i1 } @llvm.sadd.with.overflow.i32(i32 1, i32 2)
  %2 = extractvalue { i32, i1 } %1, 1
  %3 = add i128 -170141183460469231731687303715884105728, 1
  %4 = call ptr @llvm.stacksave.p0()
  ret void
}

define linkonce_odr void @use_lists(i32 %a) {
  %b = add i32 %a, %a
  %c = mul i32 %b, %a
  ret void

; uselistorder directives
  uselistorder i32 %a, { 1, 0, 2 }
}

attributes #0 = { nounwind "a"="}" "min-legal-vector-width"="0" }
attributes #1 = { nofree }
attributes #2 = { nobuiltin "no-builtins" }

!llvm.dbg.cu = !{!1}
!llvm.module.flags = !{!0}
!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !DICompileUnit(language: DW_LANG_C, file: !3, emissionKind: FullDebug)
!2 = distinct !DISubprogram(name: "define", unit: !1, file: !3, type: !4, spFlags: DISPFlagDefinition)
!3 = !DIFile(filename: "}{;.c", directory: "/")
!4 = !DISubroutineType(types: !{})
!5 = !DILocalVariable(name: "x", scope: !2)
!6 = !DILocation(line: 1, scope: !2)
!7 = !{i32 0, i32 9}
!8 = !{i32 1}
!9 = !{!"a } note"}
