; A loop around the entry block, which LLVM rejects, does not keep the memory planner busy where nothing is
; verified.
;
; RUN: tlx-lower %s -o /dev/null --no-verify-each --target=avx512

define coldcc void @f0(ptr swiftself %b0, ptr %b1, ptr noalias byval([2079 x half]) align 2 %b2, ptr noalias %b3) {
entry:
  %p2 = getelementptr i8, ptr %b0, i64 24
  %v1 = load <512 x double>, ptr %p2, align 8
  br label %loop4
loop4:
  %i6 = phi i64 [ 0, %entry ], [ %next13, %loop4 ]
  %phi3 = phi <512 x double> [ %v1, %entry ], [ %r11, %loop4 ]
  %t7 = call token @llvm.tensor.typeinfo(<512 x double> %phi3, <2 x i32> <i32 8, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %t8 = call token @llvm.tensor.load(ptr elementtype(half) %b1, <2 x i32> <i32 13, i32 34>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 5, i32 3>, <2 x i32> <i32 0, i32 35>)
  %p10 = getelementptr half, ptr %b2, i64 5
  %t9 = call token @llvm.tensor.load(ptr elementtype(half) %p10, <2 x i32> <i32 31, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 31, i32 67>)
  %r11 = call <512 x double> @llvm.tensor.mma(token %t7, token %t8, token %t9)
  %t12 = call token @llvm.tensor.typeinfo(<512 x double> %r11, <2 x i32> <i32 8, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %next13 = add i64 %i6, 1
  %again14 = icmp ult i64 %next13, 1
  br i1 %again14, label %loop4, label %entry
done5:
  %p15 = getelementptr double, ptr %b3, i64 2
  call void @llvm.tensor.store(ptr elementtype(double) %p15, token %t12, <2 x i32> <i32 0, i32 65>)
  ret void
}
