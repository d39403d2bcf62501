; Matrices of element types that tensors lack are left alone, and so are functions without matrices.
;
; RUN: tlx raise %s | cmp - %s
; RUN: tlx-lower %s | cmp - %s

define <4 x x86_fp80> @wide(<4 x x86_fp80> %a) {
  %b = call <4 x x86_fp80> @llvm.matrix.transpose.v4f80( <4 x x86_fp80> %a,  i32 2, i32 2 )
  %c = call <4 x x86_fp80> @llvm.matrix.multiply.v4f80.v4f80.v4f80(<4 x x86_fp80> %a, <4 x x86_fp80> %b, i32 2, i32 2, i32 2)
  ret <4 x x86_fp80> %c
}

define   i32 @other( ) { ret i32 0 }

declare <4 x x86_fp80> @llvm.matrix.transpose.v4f80(<4 x x86_fp80>, i32 immarg, i32 immarg)
declare <4 x x86_fp80> @llvm.matrix.multiply.v4f80.v4f80.v4f80(<4 x x86_fp80>, <4 x x86_fp80>, i32 immarg, i32 immarg, i32 immarg)
