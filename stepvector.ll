define void @f(ptr %a, ptr %c) {
  %v = load <4900 x i32>, ptr %a
  %s = call <4900 x i32> @llvm.stepvector.v4900i32()
  %w = add <4900 x i32> %v, %s
  store <4900 x i32> %w, ptr %c
  ret void
}
declare <4900 x i32> @llvm.stepvector.v4900i32()
