define void @f(ptr %a, ptr %b, ptr %c) {
  %u = load <300 x i4>, ptr %a
  %v = load <300 x i4>, ptr %b
  %w = add <300 x i4> %u, %v
  store <300 x i4> %w, ptr %c
  ret void
}
