; All users of a token imply the same element type.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: load_users_disagree_invalid.ll:15:41: error: load: the users of the token disagree about the element type of ptr %p: float and i32; write ptr elementtype(T) %p
; CHECK-NEXT: %t = call token @llvm.tensor.load(ptr %p, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^ {40}\^~$}}
; CHECK-NEXT: load_users_disagree_invalid.ll:17:3: note: used as float here
; CHECK-NEXT: %u = call <12 x float> @llvm.tensor.tovector(token %t)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: load_users_disagree_invalid.ll:18:3: note: used as i32 here
; CHECK-NEXT: %w = call <12 x i32> @llvm.tensor.transpose(token %t)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(ptr %p) {
  %t = call token @llvm.tensor.load(ptr %p, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %u = call <12 x float> @llvm.tensor.tovector(token %t)
  %w = call <12 x i32> @llvm.tensor.transpose(token %t)
  ret void
}
