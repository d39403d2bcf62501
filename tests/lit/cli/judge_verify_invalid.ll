; LLVM's verifier gives no location: it follows from the instructions that it prints.
;
; RUN: not tlx-lower %s 2>&1 | FileCheck %s
; RUN: not tlx verify %s 2>&1 | FileCheck %s
; CHECK: judge_verify_invalid.ll:18:3: error: Instruction does not dominate all uses!
; CHECK-NEXT: %y = add nsw  i32 %x, 1
; CHECK-NEXT: {{^  \^}}
; CHECK-NEXT: judge_verify_invalid.ll:15:3: note: see also
; CHECK-NEXT: %x = load i32, ptr %p

define i32 @f(i1 %b, ptr %p) {
  br i1 %b, label %then, label %end

then:
  %x = load i32, ptr %p
  br label %end
end:
  %y = add nsw  i32 %x, 1 ; spelled otherwise than LLVM prints it
  ret i32 %y
}
