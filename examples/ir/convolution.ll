; A 3x3 convolution with bias and relu: 8 images of 64 channels, 30x30, and 64 filters give 8 x 64 channels of 28x28.
;
; x is images, channels, rows, columns; w is filters, channels, rows, columns. The strides and dilations are 1. Each
; output channel has its own bias: the one dimension of %bias becomes dimension 1 of the result.

define void @convolution(ptr noalias %x, ptr noalias %w, ptr noalias %bias, ptr noalias %y) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <4 x i32> <i32 8, i32 64, i32 30, i32 30>,
                                    <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %f = call token @llvm.tensor.load(ptr elementtype(float) %w, <4 x i32> <i32 64, i32 64, i32 3, i32 3>,
                                    <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %sums = call <401408 x float> @llvm.tensor.convolution(token %a, token %f, <2 x i32> <i32 1, i32 1>,
                                                         <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)

  %b = call token @llvm.tensor.load(ptr elementtype(float) %bias, <1 x i32> <i32 64>, <1 x i32> zeroinitializer,
                                    <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %biases = call <401408 x float> @llvm.tensor.broadcast(token %b, <4 x i32> <i32 8, i32 64, i32 28, i32 28>,
                                                         <1 x i32> <i32 1>)
  %biased = fadd <401408 x float> %sums, %biases
  %positive = call <401408 x float> @llvm.maxnum(<401408 x float> %biased, <401408 x float> zeroinitializer)
  store <401408 x float> %positive, ptr %y
  ret void
}
