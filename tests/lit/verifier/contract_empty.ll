; A contraction over no dimension: all lists are omitted, or an empty list is <-1>.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<6 x float> %v, <7 x float> %w, <12 x float> %m) {
  %a = call token @llvm.tensor.typeinfo(<6 x float> %v, <1 x i32> <i32 6>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %b = call token @llvm.tensor.typeinfo(<7 x float> %w, <1 x i32> <i32 7>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %c = call token @llvm.tensor.typeinfo(<12 x float> %m, <2 x i32> <i32 6, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %p = call <42 x float> @llvm.tensor.contract(token %a, token %b)
  %q = call <42 x float> @llvm.tensor.contract(token %a, token %b, <1 x i32> <i32 -1>, <1 x i32> <i32 -1>)
  %r = call <42 x float> @llvm.tensor.contract(token %a, token %b, <1 x i32> <i32 -1>, <1 x i32> <i32 -1>, <1 x i32> <i32 -1>, <1 x i32> <i32 -1>)
  %s = call <12 x float> @llvm.tensor.contract(token %a, token %c, <1 x i32> <i32 -1>, <1 x i32> <i32 -1>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %t = call <2 x float> @llvm.tensor.contract(token %a, token %c, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> <i32 -1>, <1 x i32> <i32 -1>)
  ret void
}
