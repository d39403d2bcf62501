; Large flattened vectors outside of tensor operations are refused, at the instruction that has them.
; RUN: split-file %s %t
; RUN: not tlx-lower %t/ret.ll --stop-after=to-2d --target=generic -o - 2>&1 | FileCheck %s --check-prefix=RET
; RUN: not tlx-lower %t/parameter.ll --stop-after=to-2d --target=generic -o - 2>&1 | FileCheck %s --check-prefix=PARAMETER
; RUN: not tlx-lower %t/bits.ll --stop-after=to-2d --target=generic -o - 2>&1 | FileCheck %s --check-prefix=BITS
; REQUIRES: split-file

; RET: ret.ll:4:3: error: ret of <6400 x float> is not lowered yet
; RET-NEXT:   ret <6400 x float> %m
; RET-NEXT:   ^~~~

; PARAMETER: parameter.ll:1:1: error: parameter %v of @f is a <6400 x float> by value: pass a pointer to it, such as ptr byval

; BITS: bits.ll:2:3: error: tensors of i1 are not lowered yet

;--- ret.ll
define <6400 x float> @f(ptr %a) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 80, i32 80>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <6400 x float> @llvm.tensor.matmul(token %x, token %x)
  ret <6400 x float> %m
}
;--- parameter.ll
define void @f(<6400 x float> %v, ptr %c) {
  %x = call token @llvm.tensor.typeinfo(<6400 x float> %v, <2 x i32> <i32 80, i32 80>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %x, <2 x i32> zeroinitializer)
  ret void
}
;--- bits.ll
define void @f(<8 x i1> %v, ptr %c) {
  %x = call token @llvm.tensor.typeinfo(<8 x i1> %v, <1 x i32> <i32 8>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %x, <1 x i32> zeroinitializer)
  ret void
}
