; An A that several products would each pack is copied once, in the layout and type that they read: before a loop of
; products, or before the first product in a block that does not change it in between.
; RUN: grep -v '^;' %s | tlx-lower - --target=amx --stop-after=to-tiles -o - | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --target=amx --stop-after=to-tiles --knobs=pack_b=true -o - | FileCheck %s --check-prefix=ASKED
; RUN: grep -v '^;' %s | tlx-lower - --target=amx --remarks -o %t.ll 2>&1 | FileCheck %s --check-prefix=REMARK
; RUN: grep -v '^;' %s | tlx-lower - --target=avx2 --check=1 --remarks -o %t.ll 2>&1 | FileCheck %s --check-prefix=WIDER
; RUN: grep -v '^;' %s | tlx-lower - --target=avx2 --stop-after=to-tiles -o - | FileCheck %s --check-prefix=LOOP
; RUN: grep -v '^;' %s | tlx-lower - --target=avx2,amx --stop-after=to-tiles -o - | FileCheck %s --check-prefix=VERSIONS

; CHECK-LABEL: define void @two(
; CHECK:         call void @tlx.transpose.64x64.bf16(ptr %panels.buf, ptr %x)
; CHECK-NEXT:    call void @[[PRODUCT:tlx.matmul.64x32x64.bf16.bf16.f32[.0-9]*]](ptr %c0, ptr %panels.buf, ptr %w0)
; CHECK-NEXT:    call void @[[PRODUCT]](ptr %c1, ptr %panels.buf, ptr %w1)
; CHECK-NEXT:    ret void

; CHECK-LABEL: define void @changed(
; CHECK-NOT:     tlx.transpose
; CHECK:         call void @[[PACKS:tlx.matmul.64x32x64.bf16.bf16.f32[.0-9]*]](ptr %c0, ptr %x, ptr %w0)
; CHECK-NEXT:    store bfloat 0xR3F80, ptr %x
; CHECK-NEXT:    call void @[[PACKS]](ptr %c1, ptr %x, ptr %w1)

; CHECK-LABEL: define void @batch(
; CHECK:         call void @tlx.transpose.32x32.bf16(ptr %[[COPY:[a-z.]+]], ptr %x)
; CHECK-NEXT:    call void @tlx.nest.batch(ptr %w, ptr %c, ptr %[[COPY]])

; Knobs turn this off.
; ASKED-NOT: tlx.transpose.64x64

; REMARK: remark: A of 64x64 bfloat column-major copied row by row, once for 2 products
; WIDER: remark: A of 64x64 bfloat column-major copied as float row by row, once for 2 products
; WIDER: remark: A of 64x64 i8 copied as i16 row by row, once for 4 products

; An A that stage 1 leaves in place, as bytes are, is converted before the loop.
; LOOP-LABEL: define void @bytes(
; LOOP:         %[[WIDE:panels.buf]] = alloca [8192 x i8], align 64
; LOOP-NEXT:    call void @tlx.map.64x64.i16(ptr %[[WIDE]], ptr %x)
; LOOP-NEXT:    call void @tlx.nest.bytes(ptr %w, ptr %c, ptr %[[WIDE]])

; Versions that read A in different types pack it themselves.
; VERSIONS-NOT: tlx.transpose.64x64
define void @two(ptr noalias %x, ptr noalias %w0, ptr noalias %c0, ptr noalias %w1, ptr noalias %c1) {
  %a0 = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b0 = call token @llvm.tensor.load(ptr elementtype(bfloat) %w0, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p0 = call <2048 x float> @llvm.tensor.matmul(token %a0, token %b0)
  %t0 = call token @llvm.tensor.typeinfo(<2048 x float> %p0, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c0, token %t0, <2 x i32> zeroinitializer)
  %a1 = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b1 = call token @llvm.tensor.load(ptr elementtype(bfloat) %w1, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p1 = call <2048 x float> @llvm.tensor.matmul(token %a1, token %b1)
  %t1 = call token @llvm.tensor.typeinfo(<2048 x float> %p1, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c1, token %t1, <2 x i32> zeroinitializer)
  ret void
}

define void @changed(ptr noalias %x, ptr noalias %w0, ptr noalias %c0, ptr noalias %w1, ptr noalias %c1) {
  %a0 = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b0 = call token @llvm.tensor.load(ptr elementtype(bfloat) %w0, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p0 = call <2048 x float> @llvm.tensor.matmul(token %a0, token %b0)
  %t0 = call token @llvm.tensor.typeinfo(<2048 x float> %p0, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c0, token %t0, <2 x i32> zeroinitializer)
  store bfloat 0xR3F80, ptr %x
  %a1 = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b1 = call token @llvm.tensor.load(ptr elementtype(bfloat) %w1, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p1 = call <2048 x float> @llvm.tensor.matmul(token %a1, token %b1)
  %t1 = call token @llvm.tensor.typeinfo(<2048 x float> %p1, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c1, token %t1, <2 x i32> zeroinitializer)
  ret void
}

define void @batch(ptr noalias %c, ptr noalias %x, ptr noalias %w) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %w, <3 x i32> <i32 4, i32 32, i32 64>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %p = call <8192 x float> @llvm.tensor.contract(token %a, token %b, <1 x i32> <i32 0>, <1 x i32> <i32 1>)
  %t = call token @llvm.tensor.typeinfo(<8192 x float> %p, <3 x i32> <i32 32, i32 4, i32 64>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %q = call <8192 x float> @llvm.tensor.transpose(token %t, <3 x i32> <i32 1, i32 0, i32 2>)
  %r = call token @llvm.tensor.typeinfo(<8192 x float> %q, <3 x i32> <i32 32, i32 4, i32 64>, <3 x i32> <i32 1, i32 0, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %r, <3 x i32> zeroinitializer)
  ret void
}

define void @bytes(ptr noalias %c, ptr noalias %x, ptr noalias %w) {
  %a = call token @llvm.tensor.load(ptr elementtype(i8) %x, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(i8) %w, <3 x i32> <i32 4, i32 64, i32 64>, <3 x i32> <i32 1, i32 0, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %p = call <16384 x i8> @llvm.tensor.contract(token %a, token %b, <1 x i32> <i32 1>, <1 x i32> <i32 0>)
  %t = call token @llvm.tensor.typeinfo(<16384 x i8> %p, <3 x i32> <i32 64, i32 4, i32 64>, <3 x i32> <i32 1, i32 0, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}
