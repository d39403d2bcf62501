define void @gemm(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %b, <2 x i32> <i32 4, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %z = call <6 x float> @llvm.tensor.matmul.v6f32(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo.v6f32.v2i32(<6 x float> %z, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store.p0.v2i32(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

declare token @llvm.tensor.load.p0.v2i32(ptr, <2 x i32>, <2 x i32>, <2 x i32>, <2 x i32>) nounwind memory(argmem: read)
declare token @llvm.tensor.typeinfo.v6f32.v2i32(<6 x float>, <2 x i32>, <2 x i32>, <2 x i32>) nounwind memory(none)
declare <6 x float> @llvm.tensor.matmul.v6f32(token, token) nounwind willreturn speculatable memory(none)
declare void @llvm.tensor.store.p0.v2i32(ptr, token, <2 x i32>) nounwind willreturn memory(argmem: write)
