define void @f() {
  call void asm sideeffect "nop", ""()
  ret void
}
