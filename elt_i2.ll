define void @f(ptr %a, ptr %b, ptr %c) {
  %u = load <300 x i2>, ptr %a
  %v = load <300 x i2>, ptr %b
  %w = add <300 x i2> %u, %v
  store <300 x i2> %w, ptr %c
  ret void
}
