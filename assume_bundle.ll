define void @f(ptr %a, ptr %b, ptr %c) {
  call void @llvm.assume(i1 true) [ "align"(ptr %a, i64 64), "nonnull"(ptr %b) ]
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <4900 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<4900 x float> %m, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
declare void @llvm.assume(i1)
