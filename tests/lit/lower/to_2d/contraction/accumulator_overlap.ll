; A product with an accumulator in the memory of the result, which another operand may overlap. This is checked at run
; time: in place if it does not overlap, through a buffer if it does.
;
; RUN: tlx-lower %s --target=generic --stop-after=to-2d --remarks=%t | grep -v '^;' | FileCheck %s
; RUN: FileCheck %s --check-prefix=REMARKS --input-file=%t

define void @accumulate(ptr %x, ptr %y, ptr %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %y, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %d = call token @llvm.tensor.load(ptr elementtype(float) %c, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <64 x float> @llvm.tensor.smma(token %d, token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<64 x float> %p, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>,
                                        <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

; CHECK-LABEL: define void @accumulate(
; CHECK:         br i1 %overlap{{.*}}, label %overlaps, label %in.place
; CHECK:       overlaps:
; CHECK:         call void @llvm.tensor.store{{.*}}(ptr {{.*}}%temporary.buf, token
; CHECK:         call void @llvm.memcpy{{.*}}(ptr %c, ptr %temporary.buf, i64 256
; CHECK:         br label %overlap.end
; CHECK:       in.place:
; CHECK:         llvm.tensor.smma
; CHECK:         call void @llvm.tensor.store{{.*}}(ptr {{.*}}%c, token
; CHECK:         br label %overlap.end
; CHECK:       overlap.end:
; CHECK-NEXT:    ret void

; REMARKS: remark: %c may alias %x and %y: checked at run time; a temporary of 256 bytes is used if they overlap
; REMARKS-NOT: may alias
