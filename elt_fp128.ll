define void @f(ptr %a, ptr %b, ptr %c) {
  %u = load <300 x fp128>, ptr %a
  %v = load <300 x fp128>, ptr %b
  %w = fadd <300 x fp128> %u, %v
  store <300 x fp128> %w, ptr %c
  ret void
}
