; c = x @ y, 48x40 = 48x100 100x40, products of i16 accumulated in i32.

define void @shorts(ptr noalias %x, ptr noalias %y, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(i16) %x, <2 x i32> <i32 48, i32 100>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(i16) %y, <2 x i32> <i32 100, i32 40>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <1920 x i32> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<1920 x i32> %p, <2 x i32> <i32 48, i32 40>, <2 x i32> <i32 0, i32 1>,
                                        <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
