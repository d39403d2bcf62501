; LLVM reads `%"x"` as `%x`. A module may have both; names that need quotes keep them.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 -O 1 | FileCheck %s
; RUN: grep -v '^;' %s | sed 's/@relu/@relo/' | not tlx-lower - 2>&1 | FileCheck %s --check-prefix=WRONG

; CHECK: define {{.*}}void @"f 1"(
; WRONG: <stdin>:18:25: error: use of undefined value '@relo'
define internal <8 x float> @"relu"(<8 x float> %"in x") {
"top":
  %t = call token @llvm.tensor.typeinfo(<8 x float> %"in x", <1 x i32> <i32 8>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %"r" = call <8 x float> @llvm.tensor.relu(token %t)
  br label %top.end
"top.end":
  %q = phi <8 x float> [ %r, %top ]
  ret <8 x float> %"q"
}
define void @labels() {
  br label %only.here.unquoted
  "only.here.unquoted":
  ret void
}
define void @"f 1"(ptr %"p") {
  %"x" = load <8 x float>, ptr %p
  %y = call <8 x float> @relu(<8 x float> %x)
  store <8 x float> %"y", ptr %"p"
  ret void
}
