define void @f(ptr %a, ptr %c) {
  %i = load <4900 x i32>, ptr %a
  %p = getelementptr float, ptr %c, <4900 x i32> %i
  %w = call <4900 x float> @llvm.masked.gather.v4900f32.v4900p0(<4900 x ptr> %p, i32 4, <4900 x i1> splat (i1 true), <4900 x float> zeroinitializer)
  store <4900 x float> %w, ptr %c
  ret void
}
declare <4900 x float> @llvm.masked.gather.v4900f32.v4900p0(<4900 x ptr>, i32, <4900 x i1>, <4900 x float>)
