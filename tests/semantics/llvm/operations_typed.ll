; A convolution, a layer, reductions, moves, a contraction and functions, with the pointers of LLVM 14.

define void @convolution(float* noalias %y, float* %a, float* %b) {
  %x = call token @llvm.tensor.load(float* %a, <4 x i32> <i32 1, i32 2, i32 6, i32 8>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(float* %b, <4 x i32> <i32 3, i32 2, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %r = call <72 x float> @llvm.tensor.convolution(token %x, token %w, <2 x i32> <i32 1, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %t = call token @llvm.tensor.typeinfo(<72 x float> %r, <4 x i32> <i32 1, i32 3, i32 4, i32 6>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(float* %y, token %t, <4 x i32> zeroinitializer)
  ret void
}

; relu(a @ b + bias) and behind it the sums of its rows; the bias lies behind b
define void @layer(float* noalias %y, float* %a, float* %b) {
  %x = call token @llvm.tensor.load(float* %a, <2 x i32> <i32 6, i32 9>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(float* %b, <2 x i32> <i32 9, i32 11>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <66 x float> @llvm.tensor.matmul(token %x, token %w)
  %behind = getelementptr inbounds float, float* %b, i64 99
  %bias = call token @llvm.tensor.load(float* %behind, <1 x i32> <i32 11>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %c = call <66 x float> @llvm.tensor.broadcast(token %bias, <2 x i32> <i32 6, i32 11>, <1 x i32> <i32 1>)
  %s = fadd <66 x float> %p, %c
  %t = call token @llvm.tensor.typeinfo(<66 x float> %s, <2 x i32> <i32 6, i32 11>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %r = call <66 x float> @llvm.tensor.relu(token %t)
  %u = call token @llvm.tensor.typeinfo(<66 x float> %r, <2 x i32> <i32 6, i32 11>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(float* %y, token %u, <2 x i32> zeroinitializer)
  %sums = call <6 x float> @llvm.tensor.reduce.add(token %u, <2 x i32> <i32 1, i32 11>, <2 x i32> <i32 1, i32 1>)
  %v = call token @llvm.tensor.typeinfo(<6 x float> %sums, <2 x i32> <i32 6, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %end = getelementptr inbounds float, float* %y, i64 66
  call void @llvm.tensor.store(float* %end, token %v, <2 x i32> zeroinitializer)
  ret void
}

define void @moves(float* noalias %y, float* %a, float* %b) {
  %x = call token @llvm.tensor.load(float* %a, <2 x i32> <i32 5, i32 7>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 9>)
  %p = call <50 x float> @llvm.tensor.pad(token %x, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 2>, float 7.0)
  %t = call token @llvm.tensor.typeinfo(<50 x float> %p, <2 x i32> <i32 5, i32 10>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %c = call <85 x float> @llvm.tensor.concat(token %t, token %x, i32 1)
  %u = call token @llvm.tensor.typeinfo(<85 x float> %c, <2 x i32> <i32 5, i32 17>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(float* %y, token %u, <2 x i32> zeroinitializer)
  ret void
}

define void @contraction(float* noalias %y, float* %a, float* %b) {
  %x = call token @llvm.tensor.load(float* %a, <3 x i32> <i32 3, i32 4, i32 5>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(float* %b, <3 x i32> <i32 6, i32 3, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %r = call <30 x float> @llvm.tensor.contract(token %x, token %w, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 1, i32 2>)
  %t = call token @llvm.tensor.typeinfo(<30 x float> %r, <2 x i32> <i32 5, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(float* %y, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @functions(float* noalias %y, float* %a, float* %b) {
  %x = call token @llvm.tensor.load(float* %a, <2 x i32> <i32 5, i32 13>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %r = call <65 x float> @llvm.tensor.tanh(token %x)
  %t = call token @llvm.tensor.typeinfo(<65 x float> %r, <2 x i32> <i32 5, i32 13>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %s = call <65 x float> @llvm.tensor.sin(token %t)
  %u = call token @llvm.tensor.typeinfo(<65 x float> %s, <2 x i32> <i32 5, i32 13>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(float* %y, token %u, <2 x i32> zeroinitializer)
  ret void
}
