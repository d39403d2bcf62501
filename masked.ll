define void @f(ptr %a, ptr %c) {
  %v = load <4900 x float>, ptr %a
  %k = fcmp ogt <4900 x float> %v, zeroinitializer
  call void @llvm.masked.store.v4900f32.p0(<4900 x float> %v, ptr %c, i32 4, <4900 x i1> %k)
  ret void
}
declare void @llvm.masked.store.v4900f32.p0(<4900 x float>, ptr, i32, <4900 x i1>)
