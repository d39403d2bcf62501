define <4900 x float> @g(<4900 x float> %x, i32 %n) {
entry:
  %z = icmp eq i32 %n, 0
  br i1 %z, label %done, label %go
go:
  %d = fadd <4900 x float> %x, splat (float 1.0)
  %l = sub i32 %n, 1
  %r = call <4900 x float> @g(<4900 x float> %d, i32 %l)
  %q = fadd <4900 x float> %r, %x
  br label %done
done:
  %p = phi <4900 x float> [ %x, %entry ], [ %q, %go ]
  ret <4900 x float> %p
}
define void @f(ptr %a, ptr %c) {
  %v = load <4900 x float>, ptr %a
  %r = call <4900 x float> @g(<4900 x float> %v, i32 3)
  store <4900 x float> %r, ptr %c
  ret void
}
