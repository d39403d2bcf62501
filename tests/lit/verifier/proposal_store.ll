; The proposal's example of store gives 240 elements for 16 x 6 x 4.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(float* %mem_ptr, <384 x float> %tensor) {
  %tensor_token = call token @llvm.tensor.typeinfo(<384 x float> %tensor,
                                             <3 x i32> <i32 16, i32 6, i32 4>,
                                             <3 x i32> <i32 0, i32 1, i32 2>,
                                             <3 x i32> <i32 0, i32 0, i32 0>)
  call void @llvm.tensor.store(float* %mem_ptr, token %tensor_token,
                                            <3 x i32> <i32 0, i32 12, i32 10>)
  ret void
}
