; If a row tile of A and all of B do not fit L1 together, tiles of B are loaded with a streaming hint; not if
; they fit, if one row tile reads B, or if LLVM emulates tiles.
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll --target=amx --stop-after=to-tiles -o - | FileCheck %s
; RUN: tlx-lower %t.ll --target=amx -o - | FileCheck %s --check-prefix=TILES
; RUN: tlx-lower %t.ll --target=amx --emit=asm -o - | FileCheck %s --check-prefix=ASM
; RUN: tlx-lower %t.ll -o %t.o.ll --target=amx --check --emulate-matrix
; RUN: FileCheck %s --check-prefix=EMULATED --input-file=%t.o.ll

; CHECK-LABEL: define internal void @tlx.matmul.64x128x512.bf16.bf16.f32(
; CHECK:         %a{{.*}} = call token @llvm.tensor.load{{.*}}){{$}}
; CHECK:         %b.vnni{{.*}} = call token @llvm.tensor.load{{.*}}), !tlx.streaming !{}
; CHECK-LABEL: define internal void @tlx.matmul.64x64x64.bf16.bf16.f32(
; CHECK-NOT:     !tlx.streaming
; CHECK:         ret void
; CHECK-LABEL: define internal void @tlx.matmul.32x512x64.bf16.bf16.f32(
; CHECK-NOT:     !tlx.streaming
; CHECK:         ret void

; TILES-LABEL: define internal void @tlx.matmul.64x128x512.bf16.bf16.f32(
; TILES:         call void @llvm.x86.tileloaddt164(i8 [[B0:[0-7]]], ptr %{{.*}}, i64 64)
; TILES:         call void @llvm.x86.tileloadd64(i8 [[A0:[0-7]]], ptr %{{.*}}, i64 1024)
; TILES:         call void @llvm.x86.tdpbf16ps(i8 {{[0-7]}}, i8 [[A0]], i8 [[B0]])
; TILES:         ret void
; TILES-LABEL: define internal void @tlx.matmul.64x64x64.bf16.bf16.f32(
; TILES-NOT:     tileloaddt1
; TILES:         ret void
; TILES-LABEL: define internal void @tlx.matmul.32x512x64.bf16.bf16.f32(
; TILES-NOT:     tileloaddt1
; TILES:         ret void

; ASM-COUNT-2: tileloaddt1 ({{.*}}), %tmm
; EMULATED-NOT: tileloaddt1

define void @passes(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 64, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 512, i32 128>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <8192 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<8192 x float> %c, <2 x i32> <i32 64, i32 128>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @stays(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <4096 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<4096 x float> %c, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @once(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 32, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 64, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <16384 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<16384 x float> %c, <2 x i32> <i32 32, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}
