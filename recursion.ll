define void @f(ptr %a, ptr %b, ptr %c, i32 %n) {
entry:
  %z = icmp eq i32 %n, 0
  br i1 %z, label %done, label %go
go:
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <4900 x float> @llvm.tensor.matmul(token %x, token %y)
  %l = sub i32 %n, 1
  call void @f(ptr %a, ptr %b, ptr %c, i32 %l)
  %o = call token @llvm.tensor.load(ptr elementtype(float) %c, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %ov = call <4900 x float> @llvm.tensor.tovector(token %o)
  %s = fadd <4900 x float> %m, %ov
  %t = call token @llvm.tensor.typeinfo(<4900 x float> %s, <2 x i32> <i32 70, i32 70>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  br label %done
done:
  ret void
}
