define void @kernel({POINTER} noalias %c, {POINTER} noalias %a, {POINTER} noalias %b) {
  %x = call token @llvm.tensor.load({POINTER} {ELEMENTTYPE} %a, <{RANK_A} x i32> <{SHAPE_A}>, <{RANK_A} x i32> <{LAYOUT_A}>, <{RANK_A} x i32> zeroinitializer, <{RANK_A} x i32> zeroinitializer)
  %y = call token @llvm.tensor.load({POINTER} {ELEMENTTYPE} %b, <{RANK_B} x i32> <{SHAPE_B}>, <{RANK_B} x i32> <{LAYOUT_B}>, <{RANK_B} x i32> zeroinitializer, <{RANK_B} x i32> zeroinitializer)
  %p = call <{COUNT} x {TYPE}> @llvm.tensor.contract(token %x, token %y, <{SUMS} x i32> <{AXES_A}>, <{SUMS} x i32> <{AXES_B}>)
  %q = call token @llvm.tensor.typeinfo(<{COUNT} x {TYPE}> %p, <{RANK_C} x i32> <{SHAPE_P}>, <{RANK_C} x i32> <{LAYOUT_P}>, <{RANK_C} x i32> zeroinitializer)
  %r = call <{COUNT} x {TYPE}> @llvm.tensor.transpose(token %q, <{RANK_C} x i32> <{LAYOUT_C}>)
  %t = call token @llvm.tensor.typeinfo(<{COUNT} x {TYPE}> %r, <{RANK_C} x i32> <{SHAPE_C}>, <{RANK_C} x i32> <{LAYOUT_C}>, <{RANK_C} x i32> zeroinitializer)
  call void @llvm.tensor.store({POINTER} %c, token %t, <{RANK_C} x i32> zeroinitializer)
  ret void
}

define void @entry(i64 %c, i64 %a, i64 %b) {
  %x = inttoptr i64 %c to {POINTER}
  %y = inttoptr i64 %a to {POINTER}
  %z = inttoptr i64 %b to {POINTER}
  call void @kernel({POINTER} %x, {POINTER} %y, {POINTER} %z)
  ret void
}
