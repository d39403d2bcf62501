define void @f(ptr %a, ptr %b, ptr %c) {
  %u = load <300 x x86_fp80>, ptr %a
  %v = load <300 x x86_fp80>, ptr %b
  %w = fadd <300 x x86_fp80> %u, %v
  store <300 x x86_fp80> %w, ptr %c
  ret void
}
