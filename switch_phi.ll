define void @f(ptr %a, ptr %b, ptr %c, i32 %k) {
entry:
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  switch i32 %k, label %z [ i32 0, label %o
 i32 1, label %o
 i32 2, label %j ]
o:
  %m = call <4900 x float> @llvm.tensor.matmul(token %x, token %y)
  br label %j
z:
  %r = call <4900 x float> @llvm.tensor.relu(token %x)
  br label %j
j:
  %v = phi <4900 x float> [ %m, %o ], [ %r, %z ], [ zeroinitializer, %entry ]
  %t = call token @llvm.tensor.typeinfo(<4900 x float> %v, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
