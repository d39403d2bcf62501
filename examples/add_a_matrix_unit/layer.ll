; c = relu(x @ y), 30x40 = 30x50 50x40: partial tiles on all sides.

define void @layer(ptr noalias %x, ptr noalias %y, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 30, i32 50>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %y, <2 x i32> <i32 50, i32 40>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <1200 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<1200 x float> %p, <2 x i32> <i32 30, i32 40>, <2 x i32> <i32 0, i32 1>,
                                        <2 x i32> zeroinitializer)
  %r = call <1200 x float> @llvm.tensor.relu(token %t)
  %u = call token @llvm.tensor.typeinfo(<1200 x float> %r, <2 x i32> <i32 30, i32 40>, <2 x i32> <i32 0, i32 1>,
                                        <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %u, <2 x i32> zeroinitializer)
  ret void
}
