define void @f(ptr %a, ptr %b, ptr %c) {
  %s = alloca [4900 x float]
  call void @llvm.lifetime.start.p0(i64 19600, ptr %s)
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %s, token %x, <2 x i32> zeroinitializer)
  %z = call token @llvm.tensor.load(ptr elementtype(float) %s, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  call void @llvm.lifetime.end.p0(i64 19600, ptr %s)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <4900 x float> @llvm.tensor.matmul(token %z, token %y)
  %t = call token @llvm.tensor.typeinfo(<4900 x float> %m, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
declare void @llvm.lifetime.start.p0(i64, ptr)
declare void @llvm.lifetime.end.p0(i64, ptr)
