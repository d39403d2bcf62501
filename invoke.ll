declare i32 @pers(...)
define <4900 x float> @g(<4900 x float> %x) {
  %r = fadd <4900 x float> %x, %x
  ret <4900 x float> %r
}
define void @f(ptr %a, ptr %c) personality ptr @pers {
  %v = load <4900 x float>, ptr %a
  %r = invoke <4900 x float> @g(<4900 x float> %v) to label %ok unwind label %bad
ok:
  store <4900 x float> %r, ptr %c
  ret void
bad:
  %l = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %l
}
