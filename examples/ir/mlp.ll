; A layer of a neural network: y = relu(x @ w + bias), 512x256 = 512x256 256x256, bfloat in and out, sums in float.
;
; The operations after the product are ordinary LLVM IR on its flattened result. They are computed on the register tiles
; of the product, so that no matrix of float is ever stored: only y is written.

define void @mlp(ptr noalias %x, ptr noalias %w, ptr noalias %bias, ptr noalias %y) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <2 x i32> <i32 512, i32 256>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %w, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %product = call <131072 x float> @llvm.tensor.matmul(token %a, token %b)

  ; The bias has one dimension, which becomes dimension 1 of the result: it is added to every row.
  %row = call token @llvm.tensor.load(ptr elementtype(float) %bias, <1 x i32> <i32 256>, <1 x i32> zeroinitializer,
                                      <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %rows = call <131072 x float> @llvm.tensor.broadcast(token %row, <2 x i32> <i32 512, i32 256>, <1 x i32> <i32 1>)
  %sum = fadd <131072 x float> %product, %rows

  %s = call token @llvm.tensor.typeinfo(<131072 x float> %sum, <2 x i32> <i32 512, i32 256>, <2 x i32> <i32 0, i32 1>,
                                        <2 x i32> zeroinitializer)
  %relu = call <131072 x float> @llvm.tensor.relu(token %s)
  %narrow = fptrunc <131072 x float> %relu to <131072 x bfloat>
  store <131072 x bfloat> %narrow, ptr %y
  ret void
}
