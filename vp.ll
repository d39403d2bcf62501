define void @f(ptr %a, ptr %c) {
  %v = load <4900 x float>, ptr %a
  %k = fcmp ogt <4900 x float> %v, zeroinitializer
  %w = call <4900 x float> @llvm.vp.fadd.v4900f32(<4900 x float> %v, <4900 x float> %v, <4900 x i1> %k, i32 4900)
  store <4900 x float> %w, ptr %c
  ret void
}
declare <4900 x float> @llvm.vp.fadd.v4900f32(<4900 x float>, <4900 x float>, <4900 x i1>, i32)
