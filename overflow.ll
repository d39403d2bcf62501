define void @f(ptr %a, ptr %c) {
  %v = load <4900 x i32>, ptr %a
  %w = call { <4900 x i32>, <4900 x i1> } @llvm.sadd.with.overflow.v4900i32(<4900 x i32> %v, <4900 x i32> %v)
  %q = extractvalue { <4900 x i32>, <4900 x i1> } %w, 0
  store <4900 x i32> %q, ptr %c
  ret void
}
declare { <4900 x i32>, <4900 x i1> } @llvm.sadd.with.overflow.v4900i32(<4900 x i32>, <4900 x i32>)
