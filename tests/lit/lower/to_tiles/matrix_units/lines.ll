; Bytes of a row-major right operand are packed for all tiles of a panel at a time: four rows of 64 columns, each line of
; which is read once. With the 64 rows of a tile 1 KB apart, L1 would have evicted the line before the next tile.
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll --target=amx --tile=16x64 --stop-after=to-tiles -o - | FileCheck %s
; RUN: tlx-lower %t.ll --target=amx --tile=16x64 --emit=asm -o - | FileCheck %s --check-prefix=ASM
; RUN: tlx-lower %t.ll --target=amx --tile=16x64 -O 2 --emit=asm -o - | FileCheck %s --check-prefix=ASM

; CHECK-LABEL: define internal void @tlx.matmul.32x128x1024.i8.i8.i32.ss(
; CHECK:         {{.*}}call noalias ptr @malloc(i64 131136)
; CHECK:       kp.loop:
; CHECK:       jp.loop:
; CHECK:       r.loop:
; CHECK-COUNT-4: call {{.*}} @llvm.tensor.reshape.block
; CHECK-NOT:   reshape.block
; CHECK:       r.end:
; CHECK:       jp.end:
; CHECK:       kp.end:
; CHECK-NOT:   reshape.block
; CHECK:         ret void

; Two shuffles per line: the halves are joined, then the bytes permuted; all else is loads. LLVM's optimiser keeps this.
; ASM-LABEL:   tlx.matmul.32x128x1024.i8.i8.i32.ss:
; ASM-NOT:     vpunpck
; ASM-COUNT-8: vpermb
; ASM-NOT:     vpermb
; ASM:         tdpbssd
define void @lines(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(i8) %p, <2 x i32> <i32 32, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(i8) %q, <2 x i32> <i32 1024, i32 128>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <4096 x i32> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<4096 x i32> %c, <2 x i32> <i32 32, i32 128>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}
