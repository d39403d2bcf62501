; The proposal's example of store gives 240 elements for 16 x 6 x 4.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: proposal_store_invalid.ll:9:66: error: typeinfo: expected 384 elements for shape 16x6x4, got <240 x float>
; CHECK-NEXT: %tensor_token = call token @llvm.tensor.typeinfo(<240 x float> %tensor,
; CHECK-NEXT: {{^ {65}\^~~~~~~$}}

define void @f(float* %mem_ptr, <240 x float> %tensor) {
  %tensor_token = call token @llvm.tensor.typeinfo(<240 x float> %tensor,
                                             <3 x i32> <i32 16, i32 6, i32 4>,
                                             <3 x i32> <i32 0, i32 1, i32 2>,
                                             <3 x i32> <i32 0, i32 0, i32 0>)
  call void @llvm.tensor.store(float* %mem_ptr, token %tensor_token,
                                            <3 x i32> <i32 0, i32 12, i32 10>)
  ret void
}
