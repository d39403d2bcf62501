; Arithmetic on half fills whole registers, also in the epilogue of a product, whose sums are float.
;
; REQUIRES: llvm-filecheck
; RUN: tlx-lower %s --target=neon --emit=asm -O2 -o %t.s
; RUN: FileCheck %s --check-prefix=NEON --implicit-check-not=".4h, v{{[0-9]+}}.4h" < %t.s
; RUN: tlx-lower %s --target=sve256 --emit=asm -O2 -o %t.s
; RUN: FileCheck %s --check-prefix=SVE --implicit-check-not=".8h" < %t.s
; RUN: tlx-lower %s --target=sve512 --emit=asm -O2 -o %t.s
; RUN: FileCheck %s --check-prefix=SVE --implicit-check-not=".8h" < %t.s
; RUN: tlx-lower %s --target=neon --mattr=-fullfp16 --emit=asm -O2 -o - | FileCheck %s --check-prefix=FLOAT

; NEON: tlx.map.1x512.f16:
; NEON: fmla v{{[0-9]+}}.8h, v{{[0-9]+}}.8h, v{{[0-9]+}}.8h
; NEON: fadd v{{[0-9]+}}.8h, v{{[0-9]+}}.8h, v{{[0-9]+}}.8h
; NEON: stp q

; SVE: tlx.map.1x512.f16:
; SVE: fmla z{{[0-9]+}}.h, p{{[0-9]+}}/m, z{{[0-9]+}}.h, z{{[0-9]+}}.h
; SVE: fadd z{{[0-9]+}}.h, z{{[0-9]+}}.h, z{{[0-9]+}}.h

; FLOAT: tlx.map.1x512.f16:
; FLOAT: fadd v{{[0-9]+}}.4s, v{{[0-9]+}}.4s, v{{[0-9]+}}.4s

define void @elements(ptr noalias %x, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(half) %x, <2 x i32> <i32 8, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <512 x half> @llvm.tensor.tovector(token %a)
  %p = call <512 x half> @llvm.fma(<512 x half> %v, <512 x half> %v, <512 x half> %v)
  %q = fadd <512 x half> %p, %v
  %t = call token @llvm.tensor.typeinfo(<512 x half> %q, <2 x i32> <i32 8, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

; NEON: tlx.matmul.64x64x64.f16.f16.f16.fused:
; NEON: fcvtn2 v{{[0-9]+}}.8h, v{{[0-9]+}}.4s
; NEON: fadd v{{[0-9]+}}.8h, v{{[0-9]+}}.8h, v{{[0-9]+}}.8h

; SVE: tlx.matmul.64x64x64.f16.f16.f16.fused:
; SVE: fadd z{{[0-9]+}}.h, z{{[0-9]+}}.h, z{{[0-9]+}}.h

define void @epilogue(ptr noalias %x, ptr noalias %y, ptr noalias %r, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(half) %x, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(half) %y, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <4096 x half> @llvm.tensor.matmul(token %a, token %b)
  %l = call token @llvm.tensor.load(ptr elementtype(half) %r, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <4096 x half> @llvm.tensor.tovector(token %l)
  %s = fadd <4096 x half> %p, %v
  %t = call token @llvm.tensor.typeinfo(<4096 x half> %s, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
