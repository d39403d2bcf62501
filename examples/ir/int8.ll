; A product of unsigned and signed bytes, added to i32: c = c + x @ y, 512x512 = 512x512 512x512.
;
; y is column-major: its layout is <1, 0>, and its shape (in memory order) is columns x rows.

define void @int8(ptr noalias %x, ptr noalias %y, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(i8) %x, <2 x i32> <i32 512, i32 512>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(i8) %y, <2 x i32> <i32 512, i32 512>, <2 x i32> <i32 1, i32 0>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %s = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 512, i32 512>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <262144 x i32> @llvm.tensor.usmma(token %s, token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<262144 x i32> %p, <2 x i32> <i32 512, i32 512>, <2 x i32> <i32 0, i32 1>,
                                        <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
