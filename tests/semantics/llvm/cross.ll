define void @product(ptr noalias %x, ptr noalias %y, ptr noalias %z) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 7, i32 9>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %y, <2 x i32> <i32 9, i32 21>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <147 x float> @llvm.tensor.matmul(token %a, token %b)
  store <147 x float> %p, ptr %z, align 4
  ret void
}

define void @bytes(ptr noalias %x, ptr noalias %y, ptr noalias %z) {
  %a = call token @llvm.tensor.load(ptr elementtype(i8) %x, <2 x i32> <i32 7, i32 9>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(i8) %y, <2 x i32> <i32 9, i32 21>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %s = call token @llvm.tensor.typeinfo(<147 x i32> zeroinitializer, <2 x i32> <i32 7, i32 21>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %p = call <147 x i32> @llvm.tensor.smma(token %s, token %a, token %b)
  store <147 x i32> %p, ptr %z, align 4
  ret void
}

define void @exponential(ptr noalias %x, ptr noalias %y) {
  %v = load <63 x float>, ptr %x, align 4
  %t = call token @llvm.tensor.typeinfo(<63 x float> %v, <2 x i32> <i32 7, i32 9>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %e = call <63 x float> @llvm.tensor.exp(token %t)
  store <63 x float> %e, ptr %y, align 4
  ret void
}

define float @scaled(float %x, double %factor, i32 %shift, float %y) {
  %power = shl i32 1, %shift
  %f = sitofp i32 %power to double
  %g = fmul double %f, %factor
  %h = fptrunc double %g to float
  %p = fmul float %x, %h
  %r = fadd float %p, %y
  ret float %r
}
