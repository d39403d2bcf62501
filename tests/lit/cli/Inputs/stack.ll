define float @f(i64 %i) {
  %m = alloca [9 x float]
  %p = getelementptr float, ptr %m, i64 %i
  store float 1.0, ptr %p
  %r = load volatile float, ptr %m
  ret float %r
}
