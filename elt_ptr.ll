define void @f(ptr %a, ptr %c) {
  %v = load <300 x ptr>, ptr %a
  store <300 x ptr> %v, ptr %c
  ret void
}
