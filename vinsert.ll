define void @f(ptr %a, ptr %c) {
  %v = load <4900 x float>, ptr %a
  %e = call <64 x float> @llvm.vector.extract.v64f32.v4900f32(<4900 x float> %v, i64 128)
  %w = call <4900 x float> @llvm.vector.insert.v4900f32.v64f32(<4900 x float> %v, <64 x float> %e, i64 64)
  store <4900 x float> %w, ptr %c
  ret void
}
declare <64 x float> @llvm.vector.extract.v64f32.v4900f32(<4900 x float>, i64)
declare <4900 x float> @llvm.vector.insert.v4900f32.v64f32(<4900 x float>, <64 x float>, i64)
