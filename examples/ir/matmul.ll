; Four matrix products: c[b] = x[b] @ y[b], 4 x 512 x 512, float.
;
; A tensor in memory becomes a token by `load`: shape, layout (0, 1, 2: row-major), padding (none), pitches (0: dense).
; An operation returns the flattened result; `typeinfo` gives it a shape. The intrinsics are written in short form,
; without declarations and mangled types; `tlx-lower` adds both.

define void @matmul(ptr noalias %x, ptr noalias %y, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <3 x i32> <i32 4, i32 512, i32 512>,
                                    <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %y, <3 x i32> <i32 4, i32 512, i32 512>,
                                    <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %p = call <1048576 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<1048576 x float> %p, <3 x i32> <i32 4, i32 512, i32 512>,
                                        <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}
