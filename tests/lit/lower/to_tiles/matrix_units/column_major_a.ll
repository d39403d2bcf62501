; Packing a column-major A for dot products takes a cycle for each element: the matrix unit computes even narrow products
; of such an A, whose tiles are transposed faster.
;
; RUN: tlx-lower %s -o /dev/null --target=amx --remarks 2>&1 | FileCheck %s
; RUN: sed 's/i32 1, i32 0/i32 0, i32 1/' %s | tlx-lower - -o /dev/null --target=amx --remarks 2>&1 | FileCheck %s --check-prefix=ROWS

; CHECK: matmul 256x32x256 i8 -> i32: matrix unit i8 x i8 -> i32, register tile 32x32, packed A and B
; ROWS: matmul 256x32x256 i8 -> i32: {{.*}}, packed B
define void @f(ptr noalias %x, ptr noalias %y, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(i8) %x, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(i8) %y, <2 x i32> <i32 256, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <8192 x i32> @llvm.tensor.matmul(token %a, token %b)
  store <8192 x i32> %p, ptr %c
  ret void
}
