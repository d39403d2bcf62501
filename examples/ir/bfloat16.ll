; A product of bfloat matrices with a float result: c = x @ y, 500x700 = 500x600 600x700.
;
; The result's element type may be wider than the operands': products are accumulated in float. Extents need not be
; multiples of the tile size: tiles at the edges are padded.

define void @bfloat16(ptr noalias %x, ptr noalias %y, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <2 x i32> <i32 500, i32 600>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %y, <2 x i32> <i32 600, i32 700>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <350000 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<350000 x float> %p, <2 x i32> <i32 500, i32 700>, <2 x i32> <i32 0, i32 1>,
                                        <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
