define void @f(ptr %a, ptr %b, ptr %c) {
entry:
  br label %l
l:
  %i = phi i32 [ 0, %entry ], [ %n, %l ]
  %p = phi ptr [ %a, %entry ], [ %q, %l ]
  %q = phi ptr [ %c, %entry ], [ %p, %l ]
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <4900 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<4900 x float> %m, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %q, token %t, <2 x i32> zeroinitializer)
  %n = add i32 %i, 1
  %k = icmp ult i32 %n, 3
  br i1 %k, label %l, label %d
d:
  ret void
}
