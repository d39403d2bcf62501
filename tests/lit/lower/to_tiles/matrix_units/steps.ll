; If one row tile uses B, each step of it is packed right before it is multiplied, always to the same 4 KB (A, whose rows end within a step, takes 16): nothing is
; written to a panel that would pass through L2. The last step of K = 1000 has 40 positions, padded with zeros.
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll --target=amx --stop-after=to-tiles -o - | FileCheck %s
; RUN: tlx-lower %t.ll --target=amx --stop-after=to-tiles --tile=16x64 -o - | FileCheck %s --check-prefix=TILE
; RUN: tlx-lower %t.ll --target=amx -O 2 --emit=asm -o - | FileCheck %s --check-prefix=ASM

; CHECK-LABEL: define internal void @tlx.matmul.16x512x1000.i8.i8.i32.ss(
; CHECK-NOT:     malloc
; CHECK:         alloca [20480 x i8]
; CHECK:       t.loop:
; CHECK:       k.loop:
; CHECK:         %[[STEP:.*]] = mul i64 %k, 64
; CHECK:         %[[ROWS:.*]] = mul i64 %[[STEP]], 512
; CHECK:         getelementptr inbounds i8, ptr %{{.*}}, i64 %[[ROWS]]
; CHECK:       r.loop
; CHECK-COUNT-4: call {{.*}} @llvm.tensor.reshape.block
; CHECK:       r.end
; CHECK:         call token @llvm.tensor.load{{.*}}(ptr elementtype(i8) %scratch, <4 x i32> <i32 4, i32 16, i32 16, i32 4>
; CHECK:         call {{.*}} @llvm.tensor.smma
; CHECK:       k.end:
; CHECK:         icmp slt i64 %r.next{{.*}}, 5{{$}}
; CHECK:         typeinfo{{.*}}(<64 x i8> zeroinitializer, <2 x i32> <i32 1, i32 64>
; CHECK:         call {{.*}} @llvm.tensor.smma
; CHECK:         ret void

; TILE: alloca [20480 x i8]

; ASM-LABEL: tlx.matmul.16x512x1000.i8.i8.i32.ss:
; ASM-NOT:   call
; ASM:       vpermb
; ASM-NOT:   call
; ASM:       tdpbssd
; ASM-NOT:   call
; ASM:       retq
define void @few(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(i8) %p, <2 x i32> <i32 16, i32 1000>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(i8) %q, <2 x i32> <i32 1000, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <8192 x i32> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<8192 x i32> %c, <2 x i32> <i32 16, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}
