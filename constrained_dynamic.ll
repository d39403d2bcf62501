define void @f(ptr %a, ptr %b, ptr %c) strictfp {
  %u = load <4900 x float>, ptr %a
  %v = load <4900 x float>, ptr %b
  %w = call <4900 x float> @llvm.experimental.constrained.fadd.v4900f32(<4900 x float> %u, <4900 x float> %v, metadata !"round.dynamic", metadata !"fpexcept.strict") strictfp
  store <4900 x float> %w, ptr %c
  ret void
}
declare <4900 x float> @llvm.experimental.constrained.fadd.v4900f32(<4900 x float>, <4900 x float>, metadata, metadata)
