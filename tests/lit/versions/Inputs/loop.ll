; C = sum over k of A[k] @ B[k], then D = C @ C: the token of the last C is defined in the loop and used after it.
define void @sum(ptr noalias %a, ptr noalias %b, ptr noalias %d, i64 %count) {
entry:
  br label %loop

loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %c = phi <64 x float> [ zeroinitializer, %entry ], [ %sum, %loop ]
  %offset = mul i64 %k, 32
  %pa = getelementptr inbounds float, ptr %a, i64 %offset
  %pb = getelementptr inbounds float, ptr %b, i64 %offset
  %ct = call token @llvm.tensor.typeinfo.v64f32.v2i32(<64 x float> %c, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %at = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %pa, <2 x i32> <i32 8, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %bt = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %pb, <2 x i32> <i32 4, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %sum = call <64 x float> @llvm.tensor.smma.v64f32(token %ct, token %at, token %bt)
  %last = call token @llvm.tensor.typeinfo.v64f32.v2i32(<64 x float> %sum, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %next = add nuw nsw i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done

done:
  %square = call <64 x float> @llvm.tensor.matmul.v64f32(token %last, token %last)
  %dead = call <64 x float> @llvm.tensor.matmul.v64f32(token %last, token %last)
  %t = call token @llvm.tensor.typeinfo.v64f32.v2i32(<64 x float> %square, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store.p0.v2i32(ptr %d, token %t, <2 x i32> zeroinitializer)
  ret void
}

declare token @llvm.tensor.typeinfo.v64f32.v2i32(<64 x float>, <2 x i32>, <2 x i32>, <2 x i32>) nounwind readnone
declare token @llvm.tensor.load.p0.v2i32(ptr, <2 x i32>, <2 x i32>, <2 x i32>, <2 x i32>) argmemonly nounwind readonly
declare void @llvm.tensor.store.p0.v2i32(ptr, token, <2 x i32>) argmemonly nounwind willreturn writeonly
declare <64 x float> @llvm.tensor.smma.v64f32(token, token, token) nounwind readnone speculatable willreturn
declare <64 x float> @llvm.tensor.matmul.v64f32(token, token) nounwind readnone speculatable willreturn
