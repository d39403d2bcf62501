; The proposal's example of load has three elements in a vector of two.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: proposal_load_invalid.ll:9:3: error: {{.*}}'<3 x i32>'{{.*}}'<2 x i32>'
; CHECK-NEXT: %tensor = call token @llvm.tensor.load(i8* %mem_ptr,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(i8* %mem_ptr, float* %to) {
  %tensor = call token @llvm.tensor.load(i8* %mem_ptr,
                                       <3 x i32> <i32 16, i32 6, i32 4>,
                                       <2 x i32> <i32 0, i32 1, i32 2>,
                                       <3 x i32> <i32 0, i32 0, i32 0>,
                                       <3 x i32> <i32 0, i32 0, i32 8>)
  call void @llvm.tensor.store(float* %to, token %tensor, <3 x i32> zeroinitializer)
  ret void
}
