; Parse errors have LLVM's message and the location in the user's file; columns count characters, not bytes.
;
; RUN: not tlx-lower %s 2>&1 | FileCheck %s
; RUN: not tlx verify %s 2>&1 | FileCheck %s
; RUN: tlx-lower --no-verify-each %s | cmp - %s
; CHECK: judge_parse_invalid.ll:11:22: error: use of undefined value '%z'
; CHECK-NEXT: %"éé" = add i32 %x, %z
; CHECK-NEXT: {{^                     \^$}}

define i32 @f(i32 %x) {
 %"éé" = add i32 %x, %z
 ret i32 %x
}
