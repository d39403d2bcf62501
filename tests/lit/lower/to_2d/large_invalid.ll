; Uses of large flattened vectors that cannot be lowered are errors that point at the instruction.
; RUN: split-file %s %t
; RUN: not tlx-lower %t/call.ll --stop-after=to-2d --target=generic -o - 2>&1 | FileCheck %s --check-prefix=CALL
; RUN: not tlx-lower %t/address.ll --stop-after=to-2d --target=generic -o - 2>&1 | FileCheck %s --check-prefix=ADDRESS
; RUN: not tlx-lower %t/bits.ll --stop-after=to-2d --target=generic -o - 2>&1 | FileCheck %s --check-prefix=BITS
; RUN: not tlx-lower %t/structure.ll --stop-after=to-2d --target=generic -o - 2>&1 | FileCheck %s --check-prefix=STRUCTURE
; RUN: not tlx-lower %t/parameter.ll --stop-after=to-2d --target=generic -o - 2>&1 | FileCheck %s --check-prefix=PARAMETER
; RUN: not tlx-lower %t/constant.ll --stop-after=to-2d --target=generic -o - 2>&1 | FileCheck %s --check-prefix=CONSTANT
; RUN: not tlx-lower %t/result.ll --stop-after=to-2d --target=generic -o - 2>&1 | FileCheck %s --check-prefix=RESULT
; RUN: not tlx-lower %t/named.ll --stop-after=to-2d --target=generic -o - 2>&1 | FileCheck %s --check-prefix=NAMED
; REQUIRES: split-file

; CALL: call.ll:4:3: error: call of <6400 x float> is not lowered yet
; CALL-NEXT:   call void @take(<6400 x float> %m)
; CALL-NEXT:   ^~~~

; ADDRESS: address.ll:2:1: error: @f has a vector of more than 4096 elements in its signature: its address cannot be taken

; BITS: bits.ll:3:3: error: llvm.tensor.relu of i1 is not lowered: convert the operands, for instance to i8

; STRUCTURE: structure.ll:2:3: error: load of { <5000 x float>, i32 } is not lowered
; PARAMETER: parameter.ll:1:1: error: parameter %v of @f is a [2 x <5000 x float>] by value: pass a pointer to it
; CONSTANT: constant.ll:2:3: error: store of { <5000 x float>, i32 } is not lowered
; RESULT: result.ll:2:3: error: ret of { <5000 x float>, i32 } is not lowered
; NAMED: named.ll:4:3: error: load of %pair is not lowered

;--- call.ll
define void @f(ptr %a, ptr %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 80, i32 80>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <6400 x float> @llvm.tensor.matmul(token %x, token %x)
  call void @take(<6400 x float> %m)
  ret void
}
declare void @take(<6400 x float>)
;--- address.ll
@table = global ptr @f
define void @f(<6400 x float> %v, ptr %c) {
  %x = call token @llvm.tensor.typeinfo(<6400 x float> %v, <2 x i32> <i32 80, i32 80>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %x, <2 x i32> zeroinitializer)
  ret void
}
;--- bits.ll
define void @f(<8 x i1> %v, ptr %c) {
  %x = call token @llvm.tensor.typeinfo(<8 x i1> %v, <1 x i32> <i32 8>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %r = call <8 x i1> @llvm.tensor.relu(token %x)
  store <8 x i1> %r, ptr %c
  ret void
}
;--- structure.ll
define void @f(ptr %x, ptr %c) {
  %v = load { <5000 x float>, i32 }, ptr %x
  store { <5000 x float>, i32 } %v, ptr %c
  ret void
}
;--- parameter.ll
define void @f([2 x <5000 x float>] %v, ptr %c) {
  store [2 x <5000 x float>] %v, ptr %c
  ret void
}
;--- constant.ll
define void @f(ptr %c) {
  store { <5000 x float>, i32 } zeroinitializer, ptr %c
  ret void
}
;--- result.ll
define { <5000 x float>, i32 } @f() {
  ret { <5000 x float>, i32 } zeroinitializer
}
;--- named.ll
%pair = type { [2 x %one] }
%one = type { <5000 x float>, i32 }
define void @f(ptr %x, ptr %c) {
  %v = load %pair, ptr %x
  store %pair %v, ptr %c
  %w = load <5000 x float>, ptr %x
  store <5000 x float> %w, ptr %c
  ret void
}
