define { <4900 x float>, <4900 x float> } @g(<4900 x float> %x) {
  %r = fadd <4900 x float> %x, %x
  %s = insertvalue { <4900 x float>, <4900 x float> } poison, <4900 x float> %r, 0
  %t = insertvalue { <4900 x float>, <4900 x float> } %s, <4900 x float> %x, 1
  ret { <4900 x float>, <4900 x float> } %t
}
define void @f(ptr %a, ptr %c) {
  %v = load <4900 x float>, ptr %a
  %r = call { <4900 x float>, <4900 x float> } @g(<4900 x float> %v)
  %q = extractvalue { <4900 x float>, <4900 x float> } %r, 0
  store <4900 x float> %q, ptr %c
  ret void
}
