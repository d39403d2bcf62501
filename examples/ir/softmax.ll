; Softmax of each of 512 rows of 1000 numbers: y[i, j] = exp(x[i, j] - max of row i) / sum of row i's exponentials.
;
; A reduction's window is the block that is reduced to one element: <1, 1000> is a row. The result has 512 x 1 elements,
; and a broadcast repeats the single column 1000 times.

define void @softmax(ptr noalias %x, ptr noalias %y) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 512, i32 1000>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <512000 x float> @llvm.tensor.tovector(token %a)

  %max = call <512 x float> @llvm.tensor.reduce.max(token %a, <2 x i32> <i32 1, i32 1000>, <2 x i32> <i32 1, i32 1>)
  %m = call token @llvm.tensor.typeinfo(<512 x float> %max, <2 x i32> <i32 512, i32 1>, <2 x i32> <i32 0, i32 1>,
                                        <2 x i32> zeroinitializer)
  %maxima = call <512000 x float> @llvm.tensor.broadcast(token %m, <2 x i32> <i32 512, i32 1000>,
                                                         <2 x i32> <i32 0, i32 1>)
  %difference = fsub <512000 x float> %v, %maxima
  %d = call token @llvm.tensor.typeinfo(<512000 x float> %difference, <2 x i32> <i32 512, i32 1000>,
                                        <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %exp = call <512000 x float> @llvm.tensor.exp(token %d)

  %e = call token @llvm.tensor.typeinfo(<512000 x float> %exp, <2 x i32> <i32 512, i32 1000>, <2 x i32> <i32 0, i32 1>,
                                        <2 x i32> zeroinitializer)
  %sum = call <512 x float> @llvm.tensor.reduce.add(token %e, <2 x i32> <i32 1, i32 1000>, <2 x i32> <i32 1, i32 1>)
  %s = call token @llvm.tensor.typeinfo(<512 x float> %sum, <2 x i32> <i32 512, i32 1>, <2 x i32> <i32 0, i32 1>,
                                        <2 x i32> zeroinitializer)
  %sums = call <512000 x float> @llvm.tensor.broadcast(token %s, <2 x i32> <i32 512, i32 1000>, <2 x i32> <i32 0, i32 1>)
  %quotient = fdiv <512000 x float> %exp, %sums
  store <512000 x float> %quotient, ptr %y
  ret void
}
