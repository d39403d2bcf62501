define void @f(ptr %a, ptr %b, ptr %c, i1 %k) {
entry:
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  br i1 %k, label %one, label %two
one:
  %m = call <4900 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<4900 x float> %m, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  br label %end
two:
  %r = call <4900 x float> @llvm.tensor.relu(token %y)
  %t2 = call token @llvm.tensor.typeinfo(<4900 x float> %r, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %a, token %t2, <2 x i32> zeroinitializer)
  br label %end
end:
  %m3 = call <4900 x float> @llvm.tensor.matmul(token %y, token %x)
  %t3 = call token @llvm.tensor.typeinfo(<4900 x float> %m3, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %b, token %t3, <2 x i32> zeroinitializer)
  ret void
}
