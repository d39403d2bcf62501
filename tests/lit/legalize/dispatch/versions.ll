; Kernels for several machines and their dispatcher. Versions that differ only in unused features are merged.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx,avx2,avx512 --remarks=%t | FileCheck %s --implicit-check-not=llvm.tensor.
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512,amx,avx2 | FileCheck %s
; RUN: FileCheck %s --check-prefix=REMARK --input-file=%t
; RUN: tlx-lower %s -o - --target=avx2,avx512 --stop-after=to-tiles | FileCheck %s --check-prefix=TILES
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2,avx512 --stop-after=to-tiles | tlx-lower - -o - --target=avx2,avx512 | FileCheck %s --check-prefix=AGAIN
; RUN: not tlx-lower %s -o - --target=avx2,avx512,avx2 2>&1 | FileCheck %s --check-prefix=TWICE
; RUN: not tlx-lower %s -o - --target=avx2,avx513 2>&1 | FileCheck %s --check-prefix=UNKNOWN
; RUN: tlx-lower %s -o - --target=avx2,avx2+avxvnni+avxvnniint8 | FileCheck %s --check-prefix=NAMED

; CHECK: define internal void @tlx.matmul.9x32x16.f32.f32.f32.avx2(ptr noalias %c, ptr %a, ptr %b) {{.*}}"target-features"="+avx2,+fma,+f16c"
; CHECK-NOT: tlx-target
; CHECK: define internal void @tlx.matmul.9x32x16.f32.f32.f32.avx512({{.*}}"target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+f16c,+fma"
; CHECK: define internal void @tlx.cpu.detect() nounwind noinline cold {
; CHECK: call { i32, i32, i32, i32 } asm sideeffect "cpuid"
; CHECK: call { i32, i32 } asm sideeffect "xgetbv"
; CHECK: asm sideeffect "syscall"
; CHECK: store atomic i32 %{{.*}}, ptr @tlx.cpu.level monotonic, align 4
; CHECK: define internal void @tlx.matmul.9x32x16.f32.f32.f32(ptr noalias %c, ptr %a, ptr %b) nounwind {
; CHECK: load atomic i32, ptr @tlx.cpu.level monotonic, align 4
; CHECK: call void @tlx.cpu.detect()
; CHECK: switch i32 %level, label %version [ i32 3, label %version.1 i32 4, label %version.1 i32 5, label %version.1 i32 6, label %version.1 ]
; CHECK: tail call void @tlx.matmul.9x32x16.f32.f32.f32.avx2(ptr %c, ptr %a, ptr %b)
; CHECK: tail call void @tlx.matmul.9x32x16.f32.f32.f32.avx512(ptr %c, ptr %a, ptr %b)
; CHECK: switch i32 %level, label %version [ i32 2, label %version.1 i32 3, label %version.2 i32 4, label %version.3 i32 5, label %version.3 i32 6, label %version.4 ]
; CHECK-NOT: global_ctors
; CHECK: @tlx.cpu.level = internal global i32 0

; REMARK: remark: avx2: matmul 9x32x16 float: multiply-add
; REMARK: remark: avx512: matmul 9x32x16 float: multiply-add
; REMARK: versions for avx2, avx512: the program uses the last one that the processor supports
; REMARK: versions for avx2, avx2.avxvnni, avx512, avx512.avx512vnni, amx: the program

; TILES: define internal void @tlx.matmul.9x32x16.f32.f32.f32.avx512({{.*}} "tlx-target"="avx512"
; TILES: define internal void @tlx.matmul.9x32x16.f32.f32.f32(ptr

; AGAIN: call <8 x float> @llvm.fma.v8f32
; AGAIN: call <16 x float> @llvm.fma.v16f32

; TWICE: error: target 'avx2' is named twice
; UNKNOWN: error: unknown target 'avx513'

; NAMED: define internal void @tlx.matmul.64x32x64.i8.i8.i32.ss.avx2.avxvnni.avxvnniint8({{.*}}"target-features"="+avx2,+fma,+f16c,+avxvnni,+avxvnniint8"
; NAMED: llvm.x86.avx2.vpdpbssd.256

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 9, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <288 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<288 x float> %m, <2 x i32> <i32 9, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @bytes(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <2048 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<2048 x i32> %m, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
