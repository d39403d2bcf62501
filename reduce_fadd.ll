define void @f(ptr %a, ptr %c) {
  %v = load <4900 x float>, ptr %a
  %w = call float @llvm.vector.reduce.fadd.v4900f32(float -0.0, <4900 x float> %v)
  store float %w, ptr %c
  ret void
}
declare float @llvm.vector.reduce.fadd.v4900f32(float, <4900 x float>)
