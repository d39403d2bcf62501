define <4900 x float> @g(<4900 x float> %x) {
  %r = fadd <4900 x float> %x, %x
  ret <4900 x float> %r
}
define <4900 x float> @h(<4900 x float> %x) {
  %r = fmul <4900 x float> %x, %x
  ret <4900 x float> %r
}
define void @f(ptr %a, ptr %c, i1 %k) {
  %v = load <4900 x float>, ptr %a
  %fn = select i1 %k, ptr @g, ptr @h
  %r = call <4900 x float> %fn(<4900 x float> %v)
  store <4900 x float> %r, ptr %c
  ret void
}
