; Arguments that are constant over calls: @f.prepare packs B once, and @f reads the panels of its block.
; RUN: grep -v '^;' %s | tlx-lower - --target=avx512 --stop-after=to-tiles --remarks -o - 2> %t.txt | FileCheck %s --check-prefixes=CHECK,DOT
; RUN: FileCheck %s --input-file=%t.txt --check-prefix=SAID
; RUN: grep -v '^;' %s | tlx-lower - --target=amx --stop-after=to-tiles -o - | FileCheck %s --check-prefixes=CHECK,TILES
; RUN: grep -v '^;' %s | tlx-lower - --target=avx2,avx512,amx --stop-after=to-tiles -o - | FileCheck %s --check-prefix=LEVELS
; RUN: grep -v '^;' %s | tlx-lower - --target=avx2,avx512,amx -o - | FileCheck %s --check-prefix=CODE

; SAID: remark: matmul 32x64x64 bfloat -> float: B packed by @f.prepare: 8.0 KiB [to-tiles]
; SAID: remark: matmul 32x64x64 bfloat -> float: B packed by @f.prepare: shared [to-tiles]

; Both products read the same panels; what is not a product reads the array.
; CHECK-LABEL: define void @f(ptr noalias %x, ptr noalias readonly "tlx-prepared" %w, ptr noalias %y)
; CHECK-NEXT:    %w.raw = load ptr, ptr %w, align 64
; CHECK:         [[PANELS:%.*]] = getelementptr inbounds i8, ptr %w, i64 64
; CHECK-NEXT:    call void @tlx.matmul.32x64x64.bf16.bf16.f32(ptr %y, ptr %x, ptr [[PANELS]])
; CHECK:         [[SAME:%.*]] = getelementptr inbounds i8, ptr %w, i64 64
; CHECK-NEXT:    call void @tlx.matmul.32x64x64.bf16.bf16.f32(ptr %x, ptr %y, ptr [[SAME]])
; CHECK:         load bfloat, ptr %w.raw

; CHECK-LABEL: define internal void @tlx.matmul.32x64x64.bf16.bf16.f32.pack(ptr noalias %panels, ptr %b)
; DOT:           reshape.block
; TILES:         reshape.block
; CHECK-LABEL: define internal void @tlx.matmul.32x64x64.bf16.bf16.f32(ptr noalias %c, ptr %a, ptr %b)

; CHECK:       define void @f.prepare(ptr noalias %w.prepared, ptr %w) nounwind {
; CHECK:         store ptr %w, ptr %w.prepared, align 64
; CHECK-NEXT:    [[AT:%.*]] = getelementptr inbounds i8, ptr %w.prepared, i64 64
; CHECK-NEXT:    call void @tlx.matmul.32x64x64.bf16.bf16.f32.pack(ptr [[AT]], ptr %w)
; CHECK-NEXT:    ret void
; CHECK:       @f.prepare.bytes = constant [1 x i64] [i64 8256], align 8

; With several versions, the preparation packs the form of the machine's version, at its own offset.
; LEVELS:      define internal void @tlx.matmul.32x64x64.bf16.bf16.f32.pack.avx2(
; LEVELS-NEXT: entry:
; LEVELS-NEXT:   br label
; LEVELS:      define internal void @tlx.matmul.32x64x64.bf16.bf16.f32.pack.amx(
; LEVELS-NEXT: entry:
; LEVELS-NEXT:   getelementptr inbounds i8, ptr %panels, i64
; LEVELS:      define internal void @tlx.matmul.32x64x64.bf16.bf16.f32.pack(ptr noalias %panels, ptr %b) nounwind {
; LEVELS:        switch i32 %level
; LEVELS:      define void @f.prepare(

; CODE:        define void @f.prepare(
; CODE-NOT:    llvm.tensor
define void @f(ptr noalias %x, ptr noalias readonly "tlx-constant" dereferenceable(8192) %w, ptr noalias %y) {
  %z = call token @llvm.tensor.typeinfo(<2048 x float> zeroinitializer, <2 x i32> <i32 32, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <2 x i32> <i32 32, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %w, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <2048 x float> @llvm.tensor.mma(token %z, token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<2048 x float> %p, <2 x i32> <i32 32, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <2 x i32> zeroinitializer)
  %c = call token @llvm.tensor.load(ptr elementtype(bfloat) %y, <2 x i32> <i32 32, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %q = call <2048 x float> @llvm.tensor.mma(token %z, token %c, token %b)
  %u = call token @llvm.tensor.typeinfo(<2048 x float> %q, <2 x i32> <i32 32, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %x, token %u, <2 x i32> zeroinitializer)
  %first = load bfloat, ptr %w
  store bfloat %first, ptr %y
  ret void
}
