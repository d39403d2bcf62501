define float @scaled(float %x, float %y) {
  %r = fmul float %x, %y
  ret float %r
}
